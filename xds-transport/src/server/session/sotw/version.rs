//! The version of a whole type, where the origin gave none: the same on every relay.

use std::collections::HashMap;
use std::fmt;

use xdstp_cache::{SubscriberId, Variant, Version};
use xdstp_uri::ResourceName;

use crate::frame::digest;
use crate::server::source::Source;

/// An order-free hash over (name, version): the sum, modulo 2^128, of the first 128 bits of SHA-256
/// over each canonical name and version, either preceded by its length as eight bytes, big end
/// first; written as 32 hex digits.
///
/// Part of the interop contract: a SotW client may move between relays that got the resources over
/// delta (rules 33, 34). A weaker hash will not do: summed, its differences cancel out, and two
/// resources that go from version 1 to 2 must not leave the version of their type what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeHash(u128);

impl TypeHash {
    pub(crate) fn add(&mut self, name: &ResourceName, version: &Version) {
        self.0 = self.0.wrapping_add(share(name, version));
    }

    /// The same of a variant.
    pub(crate) fn add_variant(&mut self, name: &ResourceName, variant: &Variant, version: &Version) {
        let variant = variant.to_string();
        let parts = [name.as_str().as_bytes(), variant.as_bytes(), version.as_str().as_bytes()];
        self.0 = self.0.wrapping_add(digest(&parts));
    }

    fn subtract(&mut self, name: &ResourceName, version: &Version) {
        self.0 = self.0.wrapping_sub(share(name, version));
    }
}

/// The hash of what one session is interested in, moved by what changes: to tell a client of many names one of them
/// costs the same whatever the others are.
#[derive(Default)]
pub(crate) struct RunningHash {
    sum: TypeHash,
    /// What is in the sum.
    versions: HashMap<ResourceName, Version>,
    /// Some of it was asked for by an alias, or as a member.
    others: bool,
    /// Not every change was noted.
    stale: bool,
    /// It has what was not told then.
    ahead: bool,
    /// How far its source had changed when it was summed up.
    at: Option<u64>,
}

impl RunningHash {
    /// A resource was sent to who asked for `names`, which are in order.
    pub(crate) fn put(&mut self, name: &ResourceName, version: &Version, names: &[ResourceName]) {
        // Or all of it is to be summed up.
        if self.stale {
            return;
        }
        match self.versions.get_mut(name) {
            Some(before) if before == version => return,
            Some(before) => {
                self.sum.subtract(name, before);
                self.sum.add(name, version);
                *before = version.clone();
            }
            None => {
                self.sum.add(name, version);
                self.versions.insert(name.clone(), version.clone());
            }
        }
        self.others |= names.binary_search(name).is_err();
    }

    pub(crate) fn remove(&mut self, name: &ResourceName) {
        match self.versions.remove(name) {
            Some(before) => self.sum.subtract(name, &before),
            // It may be an alias of what is in the sum.
            None => self.stale |= self.others,
        }
    }

    /// More is to be told than was noted, or all is by now: where the source did not change since the last part, that has
    /// summed it up already.
    pub(crate) fn told(&mut self, all: bool, at: Option<u64>) {
        let was_ahead = std::mem::replace(&mut self.ahead, !all);
        self.stale |= (was_ahead || !all) && (at.is_none() || at != self.at);
    }

    /// More changed than was noted.
    pub(crate) fn invalidate(&mut self) {
        self.stale = true;
    }

    /// No version is computed for now.
    pub(crate) fn rest(&mut self) {
        *self = Self { stale: true, ..Self::default() };
    }

    pub(crate) fn of(&mut self, id: SubscriberId, names: &[ResourceName], source: &mut impl Source) -> TypeHash {
        if std::mem::take(&mut self.stale) {
            self.at = source.changes(id);
            let mut before = std::mem::take(&mut self.versions);
            self.versions.reserve(names.len());
            // Names are mostly visited in the order that they were asked for.
            let mut next = names.iter();
            source.visit(id, &mut |name, resource| {
                self.others |= next.next() != Some(name) && names.binary_search(name).is_err();
                let version = &resource.version;
                let known = if before.is_empty() { None } else { before.remove(name) };
                if known.as_ref() != Some(version) {
                    self.sum.add(name, version);
                    known.inspect(|known| self.sum.subtract(name, known));
                }
                self.versions.insert(name.clone(), version.clone());
            });
            before.iter().for_each(|(name, version)| self.sum.subtract(name, version));
        }
        self.sum
    }
}

fn share(name: &ResourceName, version: &Version) -> u128 {
    digest(&[name.as_str().as_bytes(), version.as_str().as_bytes()])
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bytes::Bytes;
    use xdstp_cache::{Cache, Interest, Options, Resource, TypeUrl};

    use super::*;
    use crate::Frame;

    struct World {
        cache: Cache<Frame>,
        routes: TypeUrl,
        id: SubscriberId,
        now: Instant,
    }

    impl World {
        fn new() -> Self {
            #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
            let now = Instant::now();
            let (mut cache, routes) = (Cache::new(Options::default()), TypeUrl::from("routes"));
            let id = cache.open(&routes);
            cache.subscribe(id, &Interest::Wildcard);
            Self { cache, routes, id, now }
        }

        fn put(&mut self, name: &str, version: &str) {
            let resource = Resource::new(Version::from(version), 0, Frame::new(Bytes::from_static(b"body")));
            let mut edit = self.cache.edit(self.now);
            edit.put(&self.routes, &name.parse().unwrap(), resource);
            let _ = edit.finish();
        }

        fn of(&mut self, running: &mut RunningHash) -> TypeHash {
            running.of(self.id, &[], &mut self.cache)
        }
    }

    fn sum(told: &[(&str, &str)]) -> TypeHash {
        let mut sum = TypeHash::default();
        told.iter().for_each(|(name, version)| sum.add(&name.parse().unwrap(), &Version::from(*version)));
        sum
    }

    /// The first part has `a`, and more is to come.
    fn begun(world: &mut World) -> RunningHash {
        world.put("a", "1");
        world.put("b", "1");
        let mut running = RunningHash::default();
        running.put(&"a".parse().unwrap(), &Version::from("1"), &[]);
        running.told(false, Some(world.cache.changes()));
        assert_eq!(world.of(&mut running), sum(&[("a", "1"), ("b", "1")]), "all that is to be told");
        running
    }

    #[test]
    fn an_answer_in_parts_is_summed_up_with_the_first_of_them() {
        let mut world = World::new();
        let mut running = begun(&mut world);
        for all in [false, true, true] {
            running.told(all, Some(world.cache.changes()));
            assert!(!running.stale);
        }
        // A source that does not say whether it changed may have.
        running.told(false, None);
        assert!(running.stale);
    }

    #[test]
    fn rule_033_what_changes_between_two_parts_is_summed_up_with_the_second() {
        for all in [false, true] {
            let mut world = World::new();
            let mut running = begun(&mut world);
            world.put("b", "2");
            running.told(all, Some(world.cache.changes()));
            assert_eq!(world.of(&mut running), sum(&[("a", "1"), ("b", "2")]));
        }
    }

    #[test]
    fn rule_033_what_goes_before_it_was_told_is_in_no_sum() {
        let mut world = World::new();
        let mut running = begun(&mut world);
        let mut edit = world.cache.edit(world.now);
        edit.remove(&world.routes, &"b".parse().unwrap());
        let _ = edit.finish();
        running.told(true, Some(world.cache.changes()));
        assert_eq!(world.of(&mut running), sum(&[("a", "1")]));
    }
}
