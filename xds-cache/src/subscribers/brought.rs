//! What a subscriber said it holds when it connected, as far as it was not compared yet (rules 83, 84).

use std::collections::HashMap;

use xdstp_uri::{NameKey, ResourceName};

use crate::keys::LinkKey;
use crate::subscribers::names::Names;
use crate::text::Version;

/// Names, each at the version the subscriber said: `None` where that does not count, because it asked for the name again
/// (rule 48).
///
/// They are kept by glob, so that what one glob has to say costs what was brought along of that, however much it is. Most
/// subscribers bring nothing along, and all of them have been compared before long.
#[derive(Default)]
pub(crate) struct Brought(Option<Box<ByGlob>>);

#[derive(Default)]
struct ByGlob {
    by_glob: HashMap<ResourceName, Versions>,
    /// Those that no glob has.
    others: Versions,
    count: usize,
    sweeps: HashMap<LinkKey, Vec<ResourceName>>,
}

type Versions = HashMap<ResourceName, Option<Version>>;

impl Brought {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn contains(&self, name: &ResourceName) -> bool {
        self.0.as_ref().is_some_and(|names| names.beside(name).is_some_and(|names| names.contains_key(name)))
    }

    pub(crate) fn version(&self, name: &ResourceName) -> Option<&Option<Version>> {
        self.0.as_ref()?.beside(name)?.get(name)
    }

    pub(crate) fn version_mut(&mut self, name: &ResourceName) -> Option<&mut Option<Version>> {
        self.0.as_mut()?.beside_mut(name)?.get_mut(name)
    }

    pub(crate) fn insert(&mut self, name: ResourceName, version: Option<Version>) {
        let names = self.0.get_or_insert_default();
        // What is left to look at does not have this one.
        names.sweeps.clear();
        if names.beside(&name).is_none()
            && let Some(glob) = name.glob_parent()
        {
            names.by_glob.insert(glob, Versions::new());
        }
        let before = names.beside_mut(&name).and_then(|names| names.insert(name, version));
        names.count += usize::from(before.is_none());
    }

    /// Room that is not needed any more is given back: it may have been much.
    pub(crate) fn remove(&mut self, name: &ResourceName) -> Option<Option<Version>> {
        let names = self.0.as_mut()?;
        let beside = names.beside_mut(name)?;
        let removed = beside.remove(name)?;
        if beside.is_empty()
            && let Some(glob) = name.glob_parent_key()
        {
            names.by_glob.remove(&glob as &dyn NameKey);
        }
        names.count -= 1;
        if names.count == 0 {
            self.0 = None;
        }
        Some(removed)
    }

    /// All of them by glob; those that no glob has come with none.
    pub(crate) fn by_glob(&self) -> impl Iterator<Item = (Option<&ResourceName>, impl Iterator<Item = &ResourceName>)> {
        let of_globs = self.0.iter().flat_map(|names| names.by_glob.iter().map(|(glob, of)| (Some(glob), of.keys())));
        let others = self.0.iter().map(|names| (None, names.others.keys()));
        of_globs.chain(others)
    }

    /// What is left to look at, because a link to a collection that was answered is to say what of it is gone.
    pub(crate) fn take_sweep(&mut self, link: LinkKey) -> Option<Vec<ResourceName>> {
        self.0.as_mut()?.sweeps.remove(&link)
    }

    /// So much is left of it.
    pub(crate) fn leave_sweep(&mut self, link: LinkKey, names: Vec<ResourceName>) {
        if let Some(of) = &mut self.0 {
            of.sweeps.insert(link, names);
        }
    }

    #[cfg(test)]
    pub(crate) fn sweeps(&self) -> impl Iterator<Item = LinkKey> {
        self.0.iter().flat_map(|names| names.sweeps.keys().copied())
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |names| names.count)
    }
}

impl Names for Brought {
    fn iter(&self) -> impl Iterator<Item = &ResourceName> {
        let names = self.0.iter().flat_map(|names| names.by_glob.values().chain([&names.others]));
        names.flat_map(HashMap::keys)
    }

    fn of_glob<'a>(&'a self, glob: &'a ResourceName) -> impl Iterator<Item = &'a ResourceName> {
        let names = self.0.iter().filter_map(move |names| names.by_glob.get(glob));
        names.flat_map(HashMap::keys)
    }
}

impl ByGlob {
    /// What a name is kept with, if there is any of that.
    fn beside(&self, name: &ResourceName) -> Option<&Versions> {
        match name.glob_parent_key() {
            Some(glob) => self.by_glob.get(&glob as &dyn NameKey),
            None => Some(&self.others),
        }
    }

    fn beside_mut(&mut self, name: &ResourceName) -> Option<&mut Versions> {
        match name.glob_parent_key() {
            Some(glob) => self.by_glob.get_mut(&glob as &dyn NameKey),
            None => Some(&mut self.others),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::arena::Key;

    proptest! {
        #[test]
        fn what_is_kept_by_glob_is_what_a_plain_map_says(
            steps in proptest::collection::vec((0..6_u8, 0..9_usize, proptest::option::of(0..3_u8)), 0..60),
        ) {
            let texts = ["plain", "other", "xdstp://a/T", "xdstp://a/T/0/*", "xdstp://a/T/1/*"];
            let members = ["xdstp://a/T/0/1", "xdstp://a/T/0/2", "xdstp://a/T/1/1", "xdstp://a/T/1/2"];
            let names = texts.iter().chain(&members).map(|text| text.parse().unwrap()).collect::<Vec<ResourceName>>();
            let globs = &names[3..5];
            let (mut brought, mut model) = (Brought::default(), BTreeMap::new());
            let (mut left, link) = (None, LinkKey::FIRST);
            for (step, number, version) in steps {
                let (name, version) = (&names[number], version.map(|version| Version::from(version.to_string())));
                match step {
                    0 | 1 => {
                        brought.insert(name.clone(), version.clone());
                        model.insert(name.clone(), version);
                        left = None;
                    }
                    2 | 3 => assert_eq!(brought.remove(name), model.remove(name)),
                    4 => {
                        brought.leave_sweep(link, vec![name.clone()]);
                        left = Some(vec![name.clone()]);
                    }
                    _ => assert_eq!(brought.take_sweep(link), left.take()),
                }
                left = left.filter(|_| !model.is_empty());
                assert_eq!(brought.version_mut(name), model.get_mut(name));
                assert_eq!((brought.is_empty(), brought.len()), (model.is_empty(), model.len()));
                assert!(brought.iter().collect::<BTreeSet<_>>().into_iter().eq(model.keys()));
                assert!(names.iter().all(|name| brought.contains(name) == model.contains_key(name)));
                for glob in globs {
                    let of = brought.of_glob(glob).collect::<BTreeSet<_>>();
                    let members = model.keys().filter(|name| !name.is_glob() && name.answers(glob));
                    assert!(of.into_iter().eq(members));
                }
                // No room is kept for a glob of which nothing is left.
                for (glob, of) in brought.by_glob() {
                    assert!(of.map(|name| assert_eq!(name.glob_parent().as_ref(), glob)).count() > 0 || glob.is_none());
                }
            }
        }
    }
}
