//! What the origins of a relay are called, by position.

use std::sync::Mutex;

use crate::config;
use crate::lock::lock;

/// Those that there are, and those that there were: one that is gone keeps its position, and no other takes it.
pub(crate) struct OriginNames(Mutex<Vec<Known>>);

struct Known {
    name: String,
    has_several: bool,
    is_there: bool,
}

impl OriginNames {
    pub(crate) fn new(origins: &[config::Origin]) -> Self {
        Self(Mutex::new(origins.iter().map(Known::of).collect()))
    }

    /// One more, at the next position.
    pub(crate) fn add(&self, origin: &config::Origin) -> usize {
        let mut all = lock(&self.0);
        all.push(Known::of(origin));
        all.len() - 1
    }

    /// It is there no more.
    pub(crate) fn remove(&self, position: usize) {
        lock(&self.0).get_mut(position).into_iter().for_each(|known| known.is_there = false);
    }

    /// Of those that are there.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        lock(&self.0).iter().position(|known| known.is_there && known.name == name)
    }

    /// Of one that is or was there.
    pub(crate) fn of(&self, position: usize) -> Option<String> {
        lock(&self.0).get(position).map(|known| known.name.clone())
    }

    /// Whether it has several servers.
    pub(crate) fn has_several(&self, position: usize) -> bool {
        lock(&self.0).get(position).is_some_and(|known| known.has_several)
    }

    /// Those that are there, with their positions.
    pub(crate) fn there(&self) -> Vec<(usize, String)> {
        let all = lock(&self.0);
        let there = all.iter().enumerate().filter(|(_, known)| known.is_there);
        there.map(|(position, known)| (position, known.name.clone())).collect()
    }
}

impl Known {
    fn of(origin: &config::Origin) -> Self {
        let has_several = origin.kind.servers().is_some_and(|servers| servers.len() > 1);
        Self { name: origin.name.clone(), has_several, is_there: true }
    }
}
