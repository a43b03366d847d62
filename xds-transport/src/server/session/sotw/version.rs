//! The version of a whole type, where the origin gave none: the same on every relay.

use std::collections::HashMap;
use std::fmt;

use xdstp_cache::{SubscriberId, Variant, Version};
use xdstp_uri::ResourceName;

use crate::frame::digest;
use crate::server::session::sotw::shares::share;
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

    fn change(&mut self, name: &ResourceName, before: Option<&Version>, version: &Version) {
        before.into_iter().for_each(|before| self.subtract(name, before));
        self.add(name, version);
    }
}

/// The hash of what one session is interested in, moved by what changes: to tell a client of many names one of them
/// costs the same whatever the others are.
#[derive(Default)]
pub(crate) struct RunningHash {
    sum: TypeHash,
    /// What is in the sum: of each name that is asked for, in their order. There are none before it is summed up.
    versions: Vec<Option<Version>>,
    /// And of names that are not asked for: what has an alias that is, or is a member.
    others: HashMap<ResourceName, Version>,
    /// Where a name is looked for first: most come in the order that they were asked for.
    next: usize,
    /// Not every change was noted.
    stale: bool,
    /// It has what was not told then.
    ahead: bool,
    /// How far its source had changed when it was summed up.
    at: Option<u64>,
}

impl RunningHash {
    /// A resource was sent to who asks for `names`, which are in order.
    pub(crate) fn put(&mut self, name: &ResourceName, version: &Version, names: &[ResourceName]) {
        // Or all of it is to be summed up.
        if self.stale {
            return;
        }
        let before = match self.position(name, names) {
            Some(at) => {
                if self.versions.len() < names.len() {
                    self.versions.resize(names.len(), None);
                }
                let Some(before) = self.versions.get_mut(at).filter(|before| before.as_ref() != Some(version)) else {
                    return;
                };
                before.replace(version.clone())
            }
            None if self.others.get(name) == Some(version) => return,
            None => self.others.insert(name.clone(), version.clone()),
        };
        self.sum.change(name, before.as_ref(), version);
    }

    pub(crate) fn remove(&mut self, name: &ResourceName, names: &[ResourceName]) {
        if self.stale {
            return;
        }
        let listed = self.position(name, names).and_then(|at| self.versions.get_mut(at)?.take());
        match listed.or_else(|| self.others.remove(name)) {
            Some(before) => self.sum.subtract(name, &before),
            // It may be an alias of what is in the sum.
            None => self.stale = !self.others.is_empty(),
        }
    }

    /// The client asks for `names` from now on, and asked for those `before`. Both are in order.
    pub(crate) fn ask(&mut self, before: &[ResourceName], names: &[ResourceName]) {
        self.stale = true;
        if self.versions.is_empty() {
            return;
        }
        let mut known = before.iter().zip(std::mem::take(&mut self.versions)).peekable();
        self.versions.reserve_exact(names.len());
        for name in names {
            while let Some((left, version)) = known.next_if(|(known, _)| *known < name) {
                version.into_iter().for_each(|version| self.sum.subtract(left, &version));
            }
            let version = known.next_if(|(known, _)| *known == name).and_then(|(_, version)| version);
            self.versions.push(version);
        }
        for (left, version) in known {
            version.into_iter().for_each(|version| self.sum.subtract(left, &version));
        }
    }

    /// Where a name is among those that are asked for.
    fn position(&mut self, name: &ResourceName, names: &[ResourceName]) -> Option<usize> {
        let at = match names.get(self.next) {
            Some(next) if next == name => self.next,
            _ => names.binary_search(name).ok()?,
        };
        self.next = at + 1;
        Some(at)
    }

    /// More is to be told than was noted, or all is by now: where the source did not change since the last part, that has
    /// summed it up already.
    pub(crate) fn told(&mut self, all: bool, at: Option<u64>) {
        let was_ahead = std::mem::replace(&mut self.ahead, !all);
        self.stale |= (was_ahead || !all) && (at.is_none() || at != self.at);
    }

    /// No version is computed for now.
    pub(crate) fn rest(&mut self) {
        *self = Self { stale: true, ..Self::default() };
    }

    pub(crate) fn of(&mut self, id: SubscriberId, names: &[ResourceName], source: &mut impl Source) -> TypeHash {
        if std::mem::take(&mut self.stale) {
            self.at = source.changes(id);
            let (mut listed, mut others) = (std::mem::take(&mut self.versions), std::mem::take(&mut self.others));
            self.versions.resize(names.len(), None);
            self.next = 0;
            source.visit(id, &mut |name, resource| {
                let version = &resource.version;
                let at = self.position(name, names);
                let known = at.and_then(|at| listed.get_mut(at)?.take());
                // It may not have been asked for before.
                let known = known.or_else(|| if others.is_empty() { None } else { others.remove(name) });
                if known.as_ref() != Some(version) {
                    self.sum.change(name, known.as_ref(), version);
                }
                match at.and_then(|at| self.versions.get_mut(at)) {
                    Some(place) => *place = Some(version.clone()),
                    None => _ = self.others.insert(name.clone(), version.clone()),
                }
            });
            let left = names.iter().zip(&listed).filter_map(|(name, version)| Some((name, version.as_ref()?)));
            left.chain(&others).for_each(|(name, version)| self.sum.subtract(name, version));
        }
        self.sum
    }
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::time::Instant;

    use bytes::Bytes;
    use proptest::prelude::*;
    use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource, TypeUrl};

    use super::*;
    use crate::Frame;

    /// The last of them is what one asks for that is not among `names`: a glob's member.
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "xdstp://x/T/d/1"];

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

        fn remove(&mut self, name: &str) {
            let mut edit = self.cache.edit(self.now);
            edit.remove(&self.routes, &name.parse().unwrap());
            let _ = edit.finish();
        }

        /// Asks for names by their bits, instead of those before, and for a glob.
        fn ask(&mut self, before: &[ResourceName], asked: u8) -> Vec<ResourceName> {
            let bits = NAMES.iter().enumerate().filter(|(at, _)| asked >> at & 1 != 0);
            let names: Vec<ResourceName> = bits.map(|(_, name)| name.parse().unwrap()).collect();
            for name in before.iter().filter(|name| !names.contains(name)) {
                self.cache.unsubscribe(self.id, &Interest::Name(name.clone()));
            }
            for name in names.iter().filter(|name| !before.contains(name)) {
                self.cache.subscribe(self.id, &Interest::Name(name.clone()));
            }
            let glob = Interest::Name("xdstp://x/T/d/*".parse().unwrap());
            match asked < 128 {
                true => _ = self.cache.unsubscribe(self.id, &glob),
                false => _ = self.cache.subscribe(self.id, &glob),
            }
            names
        }

        /// What is new is noted, up to so much.
        fn tell(&mut self, running: &mut RunningHash, names: &[ResourceName], most: usize) {
            let mut left = most;
            let pulled = self.cache.pull(self.id, Removals::Include, &mut |pull| {
                match pull {
                    Pull::Put { name, resource, .. } => running.put(name, &resource.version, names),
                    Pull::Removed { name, .. } => running.remove(name, names),
                    _ => {}
                }
                left -= 1;
                if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            let all = !pulled.more && !self.cache.has_work(self.id);
            running.told(all, Some(self.cache.changes()));
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

    proptest! {
        /// It is what it would be if all were summed up anew, whatever was noted of it.
        #[test]
        fn rule_033_the_sum_is_of_what_is_there_whatever_is_asked_for_and_changed(
            steps in proptest::collection::vec((0..5_u8, 0..NAMES.len(), any::<u8>()), 1..40),
        ) {
            let mut world = World::new();
            world.cache.unsubscribe(world.id, &Interest::Wildcard);
            let (mut running, mut names) = (RunningHash::default(), Vec::new());
            for (step, at, asked) in steps {
                let name = NAMES[at];
                match step {
                    0 => world.put(name, &asked.to_string()),
                    1 => world.remove(name),
                    2 => {
                        let asks = world.ask(&names, asked);
                        let before = std::mem::replace(&mut names, asks);
                        running.ask(&before, &names);
                    }
                    3 => {
                        // A part of what is new, or all of it.
                        world.tell(&mut running, &names, usize::from(asked % 3) + 1);
                    }
                    _ => {
                        world.tell(&mut running, &names, usize::MAX);
                        let anew = RunningHash { stale: true, ..RunningHash::default() }.of(world.id, &names, &mut world.cache);
                        prop_assert_eq!(running.of(world.id, &names, &mut world.cache), anew);
                    }
                }
            }
        }
    }
}
