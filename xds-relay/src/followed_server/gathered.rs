//! What a control plane has, as far as it said so; and what of it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::TypeRules;
use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use super::references::rules;
use crate::config::Collection;
use crate::etcd_origin::Key;
use crate::file_origin::Served;
use crate::keyed_origin::{Change, Name};

/// How much of a control plane is followed: as many resources, and so many bytes of them, of their names and of those in them.
const MOST: Most = Most { resources: 1_000_000, bytes: 1 << 30 };

#[derive(Clone, Copy, Debug)]
struct Most {
    resources: usize,
    bytes: usize,
}

/// What it said last.
pub(super) struct Gathered {
    /// The globs, or none for all of a type.
    collections: BTreeSet<(TypeUrl, Option<ResourceName>)>,
    /// Names that are asked for whatever there is.
    always: BTreeSet<Name>,
    rules: TypeRules,
    served: Served,
    said: BTreeMap<Name, Arc<Said>>,
    /// Names that are asked for, beside what collections bring.
    named: BTreeSet<Name>,
    /// Those of them that it said do not exist.
    absent: BTreeSet<Name>,
    /// What of it counts, and what did before a restart.
    counted: BTreeMap<Name, Arc<Said>>,
    bytes: usize,
    most: Most,
    /// There was more than that.
    is_over: bool,
    /// How often it was asked what is to be asked for.
    #[cfg(test)]
    asked: usize,
}

/// A resource, as it is put under its key.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    value: Bytes,
    refers: Vec<Name>,
    /// None that came was good.
    is_broken: bool,
}

/// The names that are to be asked for, and those that are not any more.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) more: Vec<Name>,
    pub(super) left: Vec<Name>,
}

impl Said {
    /// What it takes, with its name.
    fn bytes(&self, name: &Name) -> usize {
        let size = |(_, name): &Name| size_of::<Name>() + name.as_str().len();
        self.value.len() + size(name) + self.refers.iter().map(size).sum::<usize>()
    }
}

impl Gathered {
    /// Of an origin that serves these names.
    pub(super) fn new(collections: &[Collection], served: Served) -> Self {
        let always = |of: &Collection| Some((of.type_url().into(), of.name().filter(|name| !name.is_glob())?.clone()));
        let several = collections.iter().filter(|of| of.is_several());
        Self {
            collections: several.map(|of| (of.type_url().into(), of.name().cloned())).collect(),
            always: collections.iter().filter_map(always).collect(),
            rules: rules(),
            served,
            said: BTreeMap::new(),
            named: BTreeSet::new(),
            absent: BTreeSet::new(),
            counted: BTreeMap::new(),
            bytes: 0,
            most: MOST,
            is_over: false,
            #[cfg(test)]
            asked: 0,
        }
    }

    /// A resource was there before a restart, and counts.
    pub(super) fn remember(&mut self, name: Name, value: Bytes, any: &[u8]) {
        let refers = self.refers(&name, any);
        self.counted.entry(name).or_insert_with(|| Arc::new(Said { value, refers, is_broken: false }));
    }

    /// A resource is there, with this value, and this encoded `Any` in it.
    pub(super) fn put(&mut self, name: Name, value: Bytes, any: &[u8]) {
        let refers = self.refers(&name, any);
        self.absent.remove(&name);
        self.insert(name, Said { value, refers, is_broken: false });
    }

    fn refers(&self, (type_url, _): &Name, any: &[u8]) -> Vec<Name> {
        let mut refers = BTreeSet::new();
        for reference in self.rules.references_of(type_url) {
            reference.visit(any, &mut |named| {
                let is_name = |name: &ResourceName| !name.is_glob() && !matches!(name.as_str(), "" | "*");
                // What another origin has, this one is not asked for.
                let is_here = |_: &ResourceName| self.served.refusal(named).is_none();
                let parsed = ResourceName::parse(named).ok().filter(is_name).filter(is_here);
                refers.extend(parsed.map(|named| (reference.type_url.clone(), named)));
            });
        }
        refers.into_iter().collect()
    }

    /// A resource is there, of which this is not good: what the last good one referred to is still needed. Of what is left, something
    /// may come for a while.
    pub(super) fn refused(&mut self, name: Name, value: Bytes) {
        let before = self.said.get(&name).or_else(|| self.counted.get(&name));
        if !self.said.contains_key(&name) && !self.named.contains(&name) && !self.is_collected(&name) {
            return;
        }
        let before = before.map(|said| (said.refers.clone(), said.is_broken));
        let (refers, is_broken) = before.unwrap_or((Vec::new(), true));
        self.absent.remove(&name);
        self.insert(name, Said { value, refers, is_broken });
    }

    /// A resource is not there, or not any more.
    pub(super) fn gone(&mut self, name: Name) {
        self.forget(&name);
        if self.named.contains(&name) {
            self.absent.insert(name);
        }
    }

    /// Unless it is too much: then it is as it was, until all is said anew.
    fn insert(&mut self, name: Name, said: Said) {
        let before = self.said.get(&name);
        let bytes = self.bytes - before.map_or(0, |before| before.bytes(&name)) + said.bytes(&name);
        let resources = self.said.len() + usize::from(before.is_none());
        if resources > self.most.resources || bytes > self.most.bytes {
            self.is_over = true;
            return;
        }
        self.bytes = bytes;
        self.said.insert(name, Arc::new(said));
    }

    fn forget(&mut self, name: &Name) {
        if let Some(before) = self.said.remove(name) {
            self.bytes -= before.bytes(name);
        }
    }

    #[cfg(test)]
    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    #[cfg(test)]
    pub(super) fn at_most(&mut self, resources: usize) {
        self.most.resources = resources;
    }

    /// All is to be said anew: what counts does until then.
    pub(super) fn begin_anew(&mut self) {
        self.said.clear();
        self.named.clear();
        self.absent.clear();
        (self.bytes, self.is_over) = (0, false);
    }

    /// What is referred to is asked for, by what is there and by what counts in its place, and nothing else is any more.
    pub(super) fn ask(&mut self) -> Asked {
        #[cfg(test)]
        {
            self.asked += 1;
        }
        let refers = |(name, said): (&Name, &Arc<Said>)| {
            let before = self.counted.get(name).filter(|_| !self.is_whole(name, said));
            said.refers.iter().chain(before.into_iter().flat_map(|before| &before.refers)).cloned().collect::<Vec<_>>()
        };
        let all = self.said.iter().flat_map(refers);
        let wanted = all.filter(|name| !self.is_collected(name)).chain(self.always.iter().cloned());
        let wanted: BTreeSet<Name> = wanted.collect();
        let more: Vec<_> = wanted.difference(&self.named).cloned().collect();
        let left: Vec<_> = self.named.difference(&wanted).cloned().collect();
        for name in &left {
            self.absent.remove(name);
            self.forget(name);
        }
        self.named = wanted;
        Asked { more, left }
    }

    /// Whether a collection that is asked for has it, if it is there.
    fn is_collected(&self, (type_url, name): &Name) -> bool {
        let has = |collection: Option<ResourceName>| self.collections.contains(&(type_url.clone(), collection));
        (name.is_opaque() && has(None)) || name.glob_parent().is_some_and(|glob| has(Some(glob)))
    }

    /// Whether there is a resource, or it was said that there is none.
    fn is_answered(&self, name: &Name) -> bool {
        self.said.contains_key(name) || self.absent.contains(name) || self.is_collected(name)
    }

    /// The names that are asked for and not answered.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = &Name> {
        self.named.iter().filter(|name| !self.is_answered(name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Why it is not followed any further, if it has too much.
    pub(super) fn too_much(&self) -> Option<String> {
        let Most { resources, bytes } = self.most;
        self.is_over
            .then(|| format!("it has more than {resources} resources or {} MiB, and nothing changes", bytes >> 20))
    }

    /// Whether all is answered that it refers to, and for what counts already, with something good.
    fn is_whole(&self, name: &Name, said: &Said) -> bool {
        let is_broken = |name| self.said.get(name).is_some_and(|said| said.is_broken);
        let is_new = !self.counted.contains_key(name);
        said.refers.iter().all(|name| self.is_answered(name) && (is_new || !is_broken(name)))
    }

    /// All that is there, as it is if it is whole, and else as it was. So is what is asked for again and not answered.
    fn whole(&self) -> BTreeMap<&Name, &Arc<Said>> {
        let there = self.said.iter().filter_map(|(name, said)| match self.is_whole(name, said) {
            true => Some((name, said)),
            false => self.counted.get_key_value(name),
        });
        let late = self.unanswered().filter_map(|name| self.counted.get_key_value(name));
        there.chain(late).collect()
    }

    /// All of it.
    pub(super) fn all(&self) -> Vec<Change> {
        self.whole().into_iter().filter_map(|(name, said)| put(name, said)).collect()
    }

    /// What is otherwise than what counts.
    pub(super) fn changes(&self) -> Vec<Change> {
        let whole = self.whole();
        let is_new = |(name, said): &(&&Name, &&Arc<Said>)| {
            self.counted.get(**name).is_none_or(|before| before.value != said.value)
        };
        let gone = self.counted.keys().filter(|name| !whole.contains_key(name));
        let gone = gone.filter_map(|name| Some(Change::Delete(key(name)?)));
        let new = whole.iter().filter(is_new).filter_map(|(name, said)| put(name, said));
        new.chain(gone).collect()
    }

    /// What is there and otherwise than what counts, which it does from now on: of nothing it is known that it is not there.
    pub(super) fn begin(&mut self) -> Vec<Change> {
        let mut changes = self.changes();
        changes.retain(|change| matches!(change, Change::Put { .. }));
        let whole: Vec<_> = self.whole().into_iter().map(|(name, said)| (name.clone(), said.clone())).collect();
        self.counted.extend(whole);
        changes
    }

    /// It counts from now on, and nothing else.
    pub(super) fn count(&mut self) {
        self.counted = self.whole().into_iter().map(|(name, said)| (name.clone(), said.clone())).collect();
    }
}

fn put(name: &Name, said: &Said) -> Option<Change> {
    Some(Change::Put { key: key(name)?, rank: String::new(), value: said.value.clone() })
}

/// What has none is refused before it is gathered.
fn key((type_url, name): &Name) -> Option<String> {
    Key::new(type_url.as_str(), name.clone()).ok().map(|key| key.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        (TypeUrl::from("x.Y"), ResourceName::parse(text).unwrap())
    }

    #[test]
    fn what_is_too_much_is_not_taken_and_counts_with_its_name() {
        let mut gathered = Gathered::new(&["x.Y".parse().unwrap()], Served::default());
        gathered.most = Most { resources: 2, bytes: 1 << 20 };
        for text in ["a", "b", "b"] {
            gathered.put(name(text), Bytes::from_static(b"v"), b"");
        }
        assert_eq!(gathered.too_much(), None);
        gathered.put(name("c"), Bytes::new(), b"");
        assert!(gathered.too_much().is_some_and(|words| words.starts_with("it has more than 2 resources or 1 MiB")));
        gathered.begin_anew();
        assert_eq!((gathered.too_much(), gathered.bytes), (None, 0));
        let long = "n".repeat(1 << 10);
        gathered.most.bytes = 1 << 10;
        gathered.put(name(&long), Bytes::new(), b"");
        assert!(gathered.too_much().is_some() && gathered.is_empty());
    }
}
