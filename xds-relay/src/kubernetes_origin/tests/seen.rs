//! What is told of an origin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use xdstp_client::federation::{Held, Unreadable};

use super::TYPES;
use crate::keyed_origin::{Standing, Told};
use crate::lock::lock;

/// Clones share what was told.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    /// The names and the times of the clusters that are served.
    served: Option<Vec<(String, u32)>>,
    /// Those that were served before, and then not, since that was asked for.
    removed: Vec<String>,
    standing: Standing,
    /// All that was ever wrong: it may be over before somebody looks.
    troubles: Vec<String>,
    contents: usize,
    refused: u64,
    /// All that there is is known.
    is_all: bool,
}

impl Seen {
    pub(super) fn served(&self) -> Option<Vec<(String, u32)>> {
        lock(&self.0).served.clone()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.0).standing.trouble()
    }

    /// What was wrong once, in words that have these.
    pub(super) fn trouble_with(&self, words: &str) -> Option<String> {
        lock(&self.0).troubles.iter().find(|trouble| trouble.contains(words)).cloned()
    }

    pub(super) fn held_back(&self) -> usize {
        lock(&self.0).standing.held_back
    }

    /// How often all was told.
    pub(super) fn contents(&self) -> usize {
        lock(&self.0).contents
    }

    pub(super) fn refused(&self) -> u64 {
        lock(&self.0).refused
    }

    pub(super) fn take_removed(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0).removed)
    }

    /// Whether what is served is all that there is, and not from before a restart.
    pub(super) fn is_all(&self) -> bool {
        lock(&self.0).is_all
    }

    fn clusters(held: &[Held]) -> Vec<(String, u32)> {
        let timeout = |(type_url, name, resource): &Held| {
            let any = <xds_transport::wire::Any as prost::Message>::decode(resource.value.any().clone()).unwrap();
            let json = TYPES.to_json(type_url.as_str(), &any.value);
            let seconds = json["connect_timeout"].as_str().unwrap_or("0s").trim_end_matches('s').parse().unwrap();
            (name.as_str().to_owned(), seconds)
        };
        let mut served: Vec<_> = held.iter().map(timeout).collect();
        served.sort();
        served
    }
}

impl Told for Seen {
    fn content(&mut self, held: Vec<Held>, _: Vec<Unreadable>) {
        let all = &mut *lock(&self.0);
        let served = Self::clusters(&held);
        let is_there = |name: &str| served.iter().any(|(other, _)| other == name);
        let gone = all.served.iter().flatten().map(|(name, _)| name.clone()).filter(|name| !is_there(name));
        all.removed.extend(gone);
        (all.served, all.is_all) = (Some(served), true);
        all.contents += 1;
    }

    fn remembered(&mut self, held: Vec<Held>) {
        let all = &mut *lock(&self.0);
        assert!(!all.is_all, "all is known");
        // What is not among it is not known to be gone.
        let mut served: BTreeMap<_, _> = all.served.take().unwrap_or_default().into_iter().collect();
        served.extend(Self::clusters(&held));
        all.served = Some(served.into_iter().collect());
        all.contents += 1;
    }

    fn standing(&mut self, standing: &Standing) {
        let all = &mut *lock(&self.0);
        all.standing = standing.clone();
        all.troubles.extend(standing.trouble());
    }

    fn refused(&mut self, values: u64) {
        lock(&self.0).refused += values;
    }
}
