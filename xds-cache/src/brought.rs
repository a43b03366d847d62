//! What a subscriber said it holds when it connected, as far as it was not compared yet (rules 83, 84).

use std::collections::HashMap;

use xdstp_uri::{NameKey, ResourceName};

use crate::resource::Version;

/// Names, each at the version the subscriber said: `None` where that does not count, because it asked for the name again
/// (rule 48).
///
/// They are kept by glob, so that what one glob has to say costs what was brought along of that, however much it is.
#[derive(Default)]
pub(crate) struct Brought {
    by_glob: HashMap<ResourceName, Names>,
    /// Those that no glob has.
    others: Names,
    count: usize,
}

type Names = HashMap<ResourceName, Option<Version>>;

impl Brought {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn contains(&self, name: &ResourceName) -> bool {
        self.count > 0 && self.beside(name).is_some_and(|names| names.contains_key(name))
    }

    pub(crate) fn version_mut(&mut self, name: &ResourceName) -> Option<&mut Option<Version>> {
        if self.count == 0 {
            return None;
        }
        match name.glob_parent_key() {
            Some(glob) => self.by_glob.get_mut(&glob as &dyn NameKey)?.get_mut(name),
            None => self.others.get_mut(name),
        }
    }

    pub(crate) fn insert(&mut self, name: ResourceName, version: Option<Version>) {
        let key = name.glob_parent_key();
        let names = match key.as_ref().map(|glob| glob as &dyn NameKey) {
            Some(glob) if !self.by_glob.contains_key(glob) => match name.glob_parent() {
                Some(glob) => self.by_glob.entry(glob).or_default(),
                None => &mut self.others,
            },
            Some(glob) => self.by_glob.get_mut(glob).unwrap_or(&mut self.others),
            None => &mut self.others,
        };
        self.count += usize::from(names.insert(name, version).is_none());
    }

    /// Room that is not needed any more is given back: it may have been much.
    pub(crate) fn remove(&mut self, name: &ResourceName) -> Option<Option<Version>> {
        if self.count == 0 {
            return None;
        }
        let removed = match name.glob_parent_key() {
            Some(glob) => {
                let names = self.by_glob.get_mut(&glob as &dyn NameKey)?;
                let removed = names.remove(name)?;
                if names.is_empty() {
                    self.by_glob.remove(&glob as &dyn NameKey);
                }
                removed
            }
            None => self.others.remove(name)?,
        };
        self.count -= 1;
        if self.count == 0 {
            *self = Self::default();
        }
        Some(removed)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.by_glob.values().chain([&self.others]).flat_map(HashMap::keys)
    }

    /// The names that are members of a glob.
    pub(crate) fn of_glob(&self, glob: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        self.by_glob.get(glob).into_iter().flat_map(HashMap::keys)
    }

    fn beside(&self, name: &ResourceName) -> Option<&Names> {
        match name.glob_parent_key() {
            Some(glob) => self.by_glob.get(&glob as &dyn NameKey),
            None => Some(&self.others),
        }
    }
}
