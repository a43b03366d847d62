//! Loops end (rule 159): a relay that is, through others, its own origin finds out by what they say with their streams.
//!
//! A relay says with every stream which relays there are behind it: towards an origin itself and those that come to it,
//! towards who comes to it itself and its origins. Whoever finds itself there, or somebody on both of its sides, does
//! without that stream. It is said when a stream is opened, and not again while it is open: a loop of up to three is
//! found with its last stream, and a longer one at the latest when its streams are opened anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tonic::metadata::MetadataMap;

use crate::relay_core::lock;
use crate::relay_core::relay_path::{Instance, KEY, MAX_TOLD, RelayPath, one_of};

/// How many relays may stand one behind the other at the far end of a stream.
const MAX_HOPS: usize = 8;

/// Why there must be no stream to a relay, or from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// It would close a loop.
    #[error("a loop of relays: {ring}")]
    Loop {
        /// `a → b → a`: each is followed by its origin, and `a` has found it.
        ring: String,
    },
    /// Too many relays stand one behind the other for one to be told from a loop.
    #[error("{hops} relays stand one behind the other, of at most {MAX_HOPS}")]
    TooFar {
        /// How many.
        hops: usize,
    },
    /// What is said cannot be read.
    #[error("{KEY} is no path of relays")]
    Unreadable,
}

/// Where a relay sees others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Downstream,
    Upstream,
}

/// This relay, and those it knows of.
#[derive(Debug)]
pub(crate) struct Relays {
    own: Instance,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    downstream: Hops,
    upstream: Hops,
}

/// By how many streams a relay is known at a distance.
#[derive(Debug, Default)]
struct Hops(BTreeMap<(usize, Instance), usize>);

/// A stream to a relay, or from one: those at its far end are known while this lives.
#[derive(Debug)]
pub struct Seen {
    relays: Arc<Relays>,
    side: Side,
    path: RelayPath,
}

impl Relays {
    pub(crate) fn new(own: Instance) -> Arc<Self> {
        Arc::new(Self { own, known: Mutex::default() })
    }

    pub(crate) fn own(&self) -> Instance {
        self.own
    }

    /// What to say with a stream on a side: who is on the other, the nearest of them. A loop through those that are too
    /// many to be told of is found in the other direction.
    pub(crate) fn say(&self, side: Side) -> MetadataMap {
        let known = lock(&self.known);
        let path = match side {
            Side::Upstream => known.downstream.behind(self.own),
            Side::Downstream => known.upstream.behind(self.own),
        };
        drop(known);
        let mut metadata = MetadataMap::new();
        path.write(&mut metadata);
        metadata
    }

    /// What is said with a stream on a side; `None` if not by a relay.
    ///
    /// # Errors
    /// The stream must not be.
    pub(crate) fn hear(self: &Arc<Self>, side: Side, metadata: &MetadataMap) -> Result<Option<Seen>, LoopError> {
        let Some(path) = RelayPath::read(metadata).map_err(|_| LoopError::Unreadable)? else { return Ok(None) };
        // Looked up and noted at once: of two streams at the same time, one sees the other.
        let mut known = lock(&self.known);
        let Known { downstream, upstream } = &mut *known;
        let (here, there) = match side {
            Side::Downstream => (downstream, upstream),
            Side::Upstream => (upstream, downstream),
        };
        check(self.own, side, &path, there)?;
        here.add(&path);
        drop(known);
        Ok(Some(Seen { relays: self.clone(), side, path }))
    }

    /// Adds this relay to what is said with a call that it hands on, if that comes from a relay or not.
    ///
    /// # Errors
    /// The call came by here before.
    pub(crate) fn hand_on(&self, metadata: &mut MetadataMap) -> Result<(), LoopError> {
        let path = RelayPath::read(metadata).map_err(|_| LoopError::Unreadable)?.unwrap_or_default();
        check(self.own, Side::Downstream, &path, &Hops::default())?;
        RelayPath([BTreeSet::from([self.own])].into_iter().chain(path.0).collect()).write(metadata);
        Ok(())
    }
}

impl Seen {
    /// The relays at the far end.
    pub(crate) fn path(&self) -> &RelayPath {
        &self.path
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let mut known = lock(&self.relays.known);
        match self.side {
            Side::Downstream => known.downstream.remove(&self.path),
            Side::Upstream => known.upstream.remove(&self.path),
        }
    }
}

/// Whether a relay that knows of `others` on the other side may have a stream with this path on a side. Who is on both
/// sides closes a loop, and so does the relay itself.
fn check(own: Instance, side: Side, path: &RelayPath, others: &Hops) -> Result<(), LoopError> {
    for (hop, relays) in path.0.iter().enumerate() {
        if let Some(found) = relays.iter().find(|relay| **relay == own || others.distance(**relay).is_some()) {
            return Err(LoopError::Loop { ring: ring(own, side, path, hop, *found, others) });
        }
    }
    let hops = path.0.len();
    if hops > MAX_HOPS { Err(LoopError::TooFar { hops }) } else { Ok(()) }
}

/// The relays of a loop, each followed by its origin, from this one back to it: some on the path up to the hop where one
/// was found, some on the other side.
fn ring(own: Instance, side: Side, path: &RelayPath, hop: usize, found: Instance, others: &Hops) -> String {
    let mut ring: Vec<String> = path.0.iter().take(hop).map(one_of).collect();
    if found != own {
        ring.push(found.to_string());
        // There, only the distance is known.
        ring.resize(ring.len() + others.distance(found).unwrap_or_default(), "…".to_owned());
    }
    if side == Side::Downstream {
        ring.reverse();
    }
    let ends = [own.to_string()];
    ends.iter().chain(&ring).chain(&ends).map(String::as_str).collect::<Vec<_>>().join(" → ")
}

impl Hops {
    fn add(&mut self, path: &RelayPath) {
        for at in places(path) {
            *self.0.entry(at).or_default() += 1;
        }
    }

    fn remove(&mut self, path: &RelayPath) {
        for at in places(path) {
            if let Some(streams) = self.0.get_mut(&at) {
                *streams -= 1;
                if *streams == 0 {
                    self.0.remove(&at);
                }
            }
        }
    }

    /// How many relays stand before it.
    fn distance(&self, relay: Instance) -> Option<usize> {
        (0..MAX_HOPS).find(|hop| self.0.contains_key(&(*hop, relay)))
    }

    fn behind(&self, own: Instance) -> RelayPath {
        let mut path = vec![BTreeSet::from([own])];
        // By distance, and there is nobody behind a hop without anybody.
        for (hop, relay) in self.0.keys().take(MAX_TOLD - 1) {
            path.resize_with(path.len().max(hop + 2), BTreeSet::new);
            path.get_mut(hop + 1).map(|relays| relays.insert(*relay));
        }
        RelayPath(path)
    }
}

fn places(path: &RelayPath) -> impl Iterator<Item = (usize, Instance)> {
    path.0.iter().enumerate().flat_map(|(hop, relays)| relays.iter().map(move |relay| (hop, *relay)))
}

#[cfg(test)]
mod tests;
