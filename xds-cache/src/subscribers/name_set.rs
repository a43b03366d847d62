//! Names that something is to be said of.

use std::collections::{BTreeSet, HashMap};

use xdstp_uri::{NameKey, ResourceName};

use crate::subscribers::names::Names;

/// So few are gone through.
const FEW: usize = 64;

/// Names in order. Those that are members of a glob are found without the others, once somebody looked for any.
#[derive(Default)]
pub(crate) struct NameSet {
    names: BTreeSet<ResourceName>,
    by_glob: Option<Box<ByGlob>>,
}

/// Few subscribers need it.
#[derive(Default)]
struct ByGlob(HashMap<ResourceName, BTreeSet<ResourceName>>);

impl NameSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn contains(&self, name: &ResourceName) -> bool {
        self.names.contains(name)
    }

    /// Whether it is new.
    pub(crate) fn insert(&mut self, name: ResourceName) -> bool {
        if let Some(by_glob) = &mut self.by_glob {
            by_glob.insert(&name);
        }
        self.names.insert(name)
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, name: &ResourceName) -> bool {
        let was_there = self.names.remove(name);
        if was_there {
            self.removed(name);
        }
        was_there
    }

    pub(crate) fn pop_first(&mut self) -> Option<ResourceName> {
        let first = self.names.pop_first()?;
        self.removed(&first);
        Some(first)
    }

    pub(crate) fn extend(&mut self, names: impl IntoIterator<Item = ResourceName>) {
        names.into_iter().for_each(|name| _ = self.insert(name));
    }

    /// From now on the members of a glob are found without the others.
    pub(crate) fn expect_globs(&mut self) {
        if self.by_glob.is_none() && self.names.len() > FEW {
            let by_glob = self.by_glob.insert(Box::default());
            self.names.iter().for_each(|name| by_glob.insert(name));
        }
    }

    #[cfg(test)]
    pub(crate) fn is_indexed(&self) -> bool {
        self.by_glob.is_some()
    }

    #[inline(always)]
    fn removed(&mut self, name: &ResourceName) {
        if self.by_glob.is_some() {
            self.unindex(name);
        }
    }

    #[inline(never)]
    fn unindex(&mut self, name: &ResourceName) {
        if let Some(by_glob) = &mut self.by_glob {
            by_glob.remove(name);
        }
        if self.names.is_empty() {
            self.by_glob = None;
        }
    }
}

impl Names for NameSet {
    fn iter(&self) -> impl Iterator<Item = &ResourceName> {
        self.names.iter()
    }

    fn of_glob<'a>(&'a self, glob: &'a ResourceName) -> impl Iterator<Item = &'a ResourceName> {
        let is_member = move |name: &&ResourceName| *name != glob && name.answers(glob);
        let (found, others) = match &self.by_glob {
            Some(by_glob) => (by_glob.0.get(glob), None),
            None => (None, Some(self.names.iter().filter(is_member))),
        };
        found.into_iter().flatten().chain(others.into_iter().flatten())
    }
}

impl ByGlob {
    fn insert(&mut self, name: &ResourceName) {
        let Some(glob) = name.glob_parent_key() else { return };
        if let Some(members) = self.0.get_mut(&glob as &dyn NameKey) {
            members.insert(name.clone());
        } else if let Some(glob) = name.glob_parent() {
            self.0.insert(glob, BTreeSet::from([name.clone()]));
        }
    }

    fn remove(&mut self, name: &ResourceName) {
        let Some(glob) = name.glob_parent_key() else { return };
        let Some(members) = self.0.get_mut(&glob as &dyn NameKey) else { return };
        members.remove(name);
        if members.is_empty() {
            self.0.remove(&glob as &dyn NameKey);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(number: usize) -> ResourceName {
        match number {
            0 => "plain".parse(),
            1 => "xdstp://a/T/0/*".parse(),
            number => format!("xdstp://a/T/{}/{number}", number % 3).parse(),
        }
        .unwrap()
    }

    fn glob(number: usize) -> ResourceName {
        format!("xdstp://a/T/{number}/*").parse().unwrap()
    }

    #[test]
    fn few_are_gone_through_and_more_are_indexed_while_there_are_any() {
        for (count, indexed) in [(FEW, false), (FEW + 1, true)] {
            let mut set = NameSet::default();
            set.extend((0..count).map(name));
            assert!(!set.is_indexed(), "nobody looks for members");
            set.expect_globs();
            assert_eq!(set.is_indexed(), indexed);
            while set.pop_first().is_some() {}
            assert!(!set.is_indexed());
        }
    }

    proptest! {
        #[test]
        fn members_are_found_whether_they_are_indexed_or_looked_for(
            steps in proptest::collection::vec((0..5_u8, 0..150_usize), 0..400),
        ) {
            let globs = [0, 1, 2].map(glob);
            let (mut set, mut model) = (NameSet::default(), BTreeSet::new());
            set.extend((0..100).map(name));
            model.extend((0..100).map(name));
            for (step, number) in steps {
                match step {
                    0 | 1 => assert_eq!(set.insert(name(number)), model.insert(name(number))),
                    2 => assert_eq!(set.remove(&name(number)), model.remove(&name(number))),
                    3 => assert_eq!(set.pop_first(), model.pop_first()),
                    _ => set.expect_globs(),
                }
                assert!(set.iter().eq(&model) && set.is_empty() == model.is_empty());
                for glob in &globs {
                    let members = model.iter().filter(|name| !name.is_glob() && name.answers(glob));
                    assert!(set.of_glob(glob).eq(members));
                }
            }
        }
    }
}
