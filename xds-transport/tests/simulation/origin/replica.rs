//! A server that has what the origin has.

use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Cache, Edit, Options, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::faults::Memory;
use crate::variants::Varied;
use crate::world::World;

pub(crate) struct Replica {
    pub(crate) cache: Cache<Frame>,
    pub(crate) woken: Vec<SubscriberId>,
    pub(crate) memory: Memory,
}

impl Replica {
    pub(super) fn new(world: &World) -> Self {
        let mut options = Options::default();
        options.wildcard_covers_xdstp = world.setup.wildcard_covers_xdstp;
        options.tombstones = world.setup.tombstones;
        options.looks = world.setup.looks;
        let mut memory = Memory::default();
        let by_itself = world.setup.variants.filter(|form| !form.on_wire);
        memory.selector = by_itself.map(|form| form.selector().clone()).unwrap_or_default();
        Self { cache: Cache::new(options), woken: Vec::new(), memory }
    }

    /// Changes what it has, and notes who is to be told.
    pub(super) fn edit(&mut self, now: Instant, change: impl FnOnce(&mut Edit<'_, Frame>)) {
        let mut edit = self.cache.edit(now);
        change(&mut edit);
        self.woken.extend(edit.finish());
    }

    /// What a change of a name's variants needs.
    pub(super) fn varied<'a>(&'a mut self, url: &'a TypeUrl, name: &'a ResourceName, now: Instant) -> Varied<'a> {
        Varied { cache: &mut self.cache, woken: &mut self.woken, url, name, now }
    }
}
