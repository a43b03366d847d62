//! A cache of one type, and what is done with it and told of it, in words.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{digest, interest, name};
use crate::{Cache, Options, Outcome, Pull, Pulled, Removals, Resource, ResourceError, SubscriberId, TypeUrl};

/// A cache of one type, and a clock.
pub(super) struct World {
    pub(super) cache: Cache<u64>,
    pub(super) of: TypeUrl,
    pub(super) now: Instant,
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        Self { cache: Cache::new(options), of: "T".into(), now }
    }

    pub(super) fn authoritative() -> Self {
        Self::new(Options::default())
    }

    pub(super) fn relay() -> Self {
        Self::new(Options { authoritative: false, ..Options::default() })
    }

    pub(super) fn subscriber(&mut self, interests: &[&str]) -> SubscriberId {
        let id = self.cache.open(&self.of);
        for text in interests {
            self.cache.subscribe(id, &interest(text));
        }
        id
    }

    pub(super) fn upsert(&mut self, text: &str, version: &str, digest: u128) -> (Outcome, Vec<SubscriberId>) {
        let mut woken = Vec::new();
        let resource = Resource::new(version.into(), digest, 0);
        (self.cache.upsert_raw(&self.of, &name(text), resource, self.now, &mut woken), woken)
    }

    pub(super) fn put(&mut self, text: &str, version: &str) -> Vec<SubscriberId> {
        self.upsert(text, version, digest(version)).1
    }

    pub(super) fn remove(&mut self, text: &str) -> Vec<SubscriberId> {
        let mut woken = Vec::new();
        self.cache.remove(&self.of, &name(text), self.now, &mut woken);
        woken
    }

    pub(super) fn fail(&mut self, text: &str, code: i32) -> Vec<SubscriberId> {
        let mut woken = Vec::new();
        self.cache.fail(&self.of, &name(text), ResourceError::new(code, "why"), self.now, &mut woken);
        woken
    }

    pub(super) fn answered(&mut self, text: &str) -> Vec<SubscriberId> {
        let mut woken = Vec::new();
        self.cache.answered(&self.of, &interest(text), &mut woken);
        woken
    }

    pub(super) fn begun(&mut self, text: &str) -> Vec<SubscriberId> {
        let mut edit = self.cache.edit(self.now);
        edit.begun(&self.of, &interest(text));
        edit.finish().into_iter().collect()
    }

    /// What a pull visits: `name@version`, or `-name`.
    pub(super) fn pull(&mut self, id: SubscriberId) -> Vec<String> {
        self.pull_as(id, Removals::Include).0
    }

    pub(super) fn pull_as(&mut self, id: SubscriberId, removals: Removals) -> (Vec<String>, Pulled) {
        let mut said = Vec::new();
        let pulled = self.cache.pull(id, removals, &mut |pull| {
            said.push(match pull {
                Pull::Put { name, resource, .. } => format!("{name}@{}", resource.version),
                Pull::Removed { name, .. } => format!("-{name}"),
            });
            ControlFlow::Continue(())
        });
        (said, pulled)
    }

    pub(super) fn pull_one(&mut self, id: SubscriberId) -> String {
        let mut said = String::new();
        self.cache.pull(id, Removals::Include, &mut |pull| {
            said = match pull {
                Pull::Put { name, resource, .. } => format!("{name}@{}", resource.version),
                Pull::Removed { name, .. } => format!("-{name}"),
            };
            ControlFlow::Break(())
        });
        said
    }
}
