//! What a cache with a capacity may evict, found by looking at everything.

use std::collections::BTreeMap;

use xdstp_uri::ResourceName;

use super::{COLLECTIONS, Client, Model, TYPES};
use crate::Interest;
use crate::tests::interest;

/// Something that goes as a whole: a resource nobody is subscribed to, or an answered collection.
type Unit = (usize, Interest);

/// When what was last wanted or changed.
#[derive(Default)]
pub(super) struct Capacity {
    step: u64,
    renewed: BTreeMap<Unit, u64>,
}

impl Capacity {
    pub(super) fn step(&mut self) {
        self.step += 1;
    }

    fn renew(&mut self, unit: Unit) {
        self.renewed.insert(unit, self.step);
    }
}

impl Model {
    pub(super) fn is_watched(&self, of: usize, interest: &Interest) -> bool {
        self.clients.iter().flatten().any(|client| client.of == of && client.interests.contains(interest))
    }

    /// What goes with a name: the answered collections it is in, or else the name; nothing if somebody is subscribed.
    fn units_of(&self, of: usize, name: &ResourceName) -> Vec<Unit> {
        let own = Interest::Name(name.clone());
        let collections = COLLECTIONS.iter().map(|text| interest(text));
        let within: Vec<_> = collections.filter(|collection| self.matches(collection, name)).collect();
        if self.is_watched(of, &own) || within.iter().any(|collection| self.is_watched(of, collection)) {
            return Vec::new();
        }
        let known: Vec<_> = within.into_iter().filter(|it| self.known[of].contains(it)).collect();
        if known.is_empty() { vec![(of, own)] } else { known.into_iter().map(|it| (of, it)).collect() }
    }

    /// A name changed, or lost its last subscriber.
    pub(super) fn renew(&mut self, of: usize, name: &ResourceName) {
        if self.resources[of].contains_key(name) {
            self.units_of(of, name).into_iter().for_each(|unit| self.capacity.renew(unit));
        }
    }

    /// Something lost its last subscriber, or a collection was answered.
    pub(super) fn renew_interest(&mut self, of: usize, left: &Interest) {
        if self.is_watched(of, left) {
            return;
        }
        if left.is_collection() && self.known[of].contains(left) {
            return self.capacity.renew((of, left.clone()));
        }
        let names: Vec<_> = self.resources[of].keys().filter(|name| self.matches(left, name)).cloned().collect();
        names.iter().for_each(|name| self.renew(of, name));
    }

    /// Takes over what the cache evicted of its own accord, if it was right to.
    pub(super) fn sync_evictions(&mut self) {
        let Some(capacity) = self.options.capacity.filter(|_| !self.options.authoritative) else { return };
        let names = |of: usize| self.resources[of].keys().map(move |name| (of, name));
        let is_there = |of: usize, name: &ResourceName| self.cache.resource(&TYPES[of].into(), name).is_some();
        let evicted: Vec<(usize, ResourceName)> = (0..TYPES.len())
            .flat_map(names)
            .filter(|(of, name)| !is_there(*of, name))
            .map(|(of, name)| (of, name.clone()))
            .collect();
        let mut units: BTreeMap<Unit, usize> = BTreeMap::new();
        for (of, name) in &evicted {
            let with = self.units_of(*of, name);
            assert!(!with.is_empty(), "{name} is evicted though somebody is subscribed");
            for unit in with {
                *units.entry(unit).or_default() += 1;
            }
        }
        for (of, name) in &evicted {
            self.resources[*of].remove(name);
        }
        for (of, url) in TYPES.iter().enumerate() {
            let known = self.known[of].clone();
            self.known[of].retain(|collection| self.cache.is_known(&(*url).into(), collection));
            for collection in known.difference(&self.known[of]) {
                assert!(!self.is_watched(of, collection), "{collection} is forgotten though somebody is subscribed");
            }
            let (kept, over): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.errors[of])
                .into_iter()
                .partition(|(name, _)| self.cache.error(&(*url).into(), name).is_some());
            self.errors[of] = kept;
            let lost = over.keys().find(|name| self.is_error_of_interest(of, name));
            assert_eq!(lost, None, "an error is forgotten though somebody is subscribed");
        }
        let present: usize = self.resources.iter().map(BTreeMap::len).sum();
        let left: Vec<Unit> = (0..TYPES.len())
            .flat_map(|of| self.resources[of].keys().map(move |name| (of, name)))
            .flat_map(|(of, name)| self.units_of(of, name))
            .collect();
        assert!(present <= capacity || left.is_empty(), "{present} resources, and {left:?} could go");
        let age = |unit: &Unit| self.capacity.renewed[unit];
        let newest = units.iter().max_by_key(|(unit, _)| age(unit));
        if let Some((newest, freed)) = newest {
            let older = left.iter().find(|unit| age(unit) < age(newest));
            assert_eq!(older, None, "stays though it was wanted before {newest:?}");
            let same_age = units.keys().filter(|unit| age(unit) == age(newest)).count();
            assert!(same_age > 1 || present + freed > capacity, "{newest:?} need not have gone");
        }
    }

    /// Whether somebody is told of the error of a name, or may be. What nobody is told but who asked for just the name, is of
    /// interest to nobody else.
    pub(super) fn is_error_of_interest(&self, of: usize, name: &ResourceName) -> bool {
        match self.unlisted[of].contains(name) {
            true => self.is_watched(of, &Interest::Name(name.clone())),
            false => self.is_of_interest(of, name),
        }
    }

    /// Whether a relay keeps an error of a name.
    pub(super) fn is_of_interest(&self, of: usize, name: &ResourceName) -> bool {
        let glob = if name.is_glob() { Some(name.clone()) } else { name.glob_parent() };
        let glob = glob.map(Interest::Name);
        let named = |client: &Client| client.of == of && Self::named(client, name);
        self.resources[of].contains_key(name)
            || self.clients.iter().flatten().any(named)
            || glob.is_some_and(|glob| self.is_watched(of, &glob) || self.known[of].contains(&glob))
    }
}
