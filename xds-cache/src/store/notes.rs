//! Of what something changed, for who keeps it elsewhere, too.

use std::collections::{BTreeSet, HashMap, HashSet};

use xdstp_uri::ResourceName;

use crate::interest::Interest;
use crate::text::TypeUrl;

/// Each once: bounded by what there is, or else by a number.
pub(crate) struct Notes {
    changed: HashSet<(TypeUrl, Interest)>,
    most: usize,
    /// They were too many.
    all: bool,
    /// The aliases of what was evicted before its last change was taken: nothing else knows them by then.
    evicted: HashMap<(TypeUrl, ResourceName), BTreeSet<ResourceName>>,
}

impl Notes {
    pub(crate) fn of(most: usize) -> Self {
        Self { changed: HashSet::new(), most, all: false, evicted: HashMap::new() }
    }

    /// Whether it is more than is noted.
    pub(crate) fn is_all(&self) -> bool {
        self.all
    }

    pub(crate) fn any(&self) -> bool {
        self.all || !self.changed.is_empty()
    }

    pub(crate) fn note_all(&mut self) {
        (self.changed, self.all) = (HashSet::new(), true);
    }

    /// Up to so many of them; `None` if all of it may be other than it was.
    pub(crate) fn take(&mut self, most: usize) -> Option<Vec<(TypeUrl, Interest)>> {
        if std::mem::take(&mut self.all) {
            return None;
        }
        let taken: Vec<_> = self.changed.iter().take(most).cloned().collect();
        taken.iter().for_each(|noted| _ = self.changed.remove(noted));
        Some(taken)
    }

    pub(crate) fn note(&mut self, type_url: TypeUrl, interest: Interest) {
        self.changed.insert((type_url, interest));
        if self.changed.len() > self.most {
            self.note_all();
        }
    }

    /// A resource with these aliases is about to be evicted. Of more than are noted, that is forgotten.
    pub(crate) fn evict(&mut self, type_url: &TypeUrl, name: &ResourceName, aliases: BTreeSet<ResourceName>) {
        let of = (type_url.clone(), Interest::Name(name.clone()));
        if (self.all || self.changed.contains(&of)) && self.evicted.len() < self.most {
            self.evicted.insert((of.0, name.clone()), aliases);
        }
    }

    pub(crate) fn take_evicted(&mut self, type_url: &TypeUrl, name: &ResourceName) -> Option<BTreeSet<ResourceName>> {
        if self.evicted.is_empty() {
            return None;
        }
        self.evicted.remove(&(type_url.clone(), name.clone()))
    }
}
