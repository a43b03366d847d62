//! Loops end (rule 159): a relay that is, through others, its own origin finds out by what they say with their streams.
//!
//! A relay says with every stream which relays there are behind it: towards an origin itself and those that come to it,
//! towards who comes to it itself and its origins. Whoever finds itself there, or somebody on both of its sides, does
//! without that stream. It is said when a stream is opened, and not again while it is open: a loop of up to three is
//! found with its last stream, and a longer one at the latest when its streams are opened anew.
//!
//! Whom a relay asks, its configuration says; who comes to it, anybody may be, and what they say is said on to its origin.
//! So what is told upstream are tokens, which nobody else is told: who claims to have a relay before it that it has not
//! closes no loop, and takes no origin away from others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use tonic::metadata::MetadataMap;
use xdstp_client::federation::{Behind, LoopGuard};

use crate::lock::lock;
use crate::relay_core::relay_path::{Call, Instance, KEY, MAX_TOLD, RelayPath, Token, one_of};

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
    token: Token,
    own: Instance,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    downstream: Hops<Token>,
    upstream: Hops<Instance>,
}

/// The relays on a side, each at its distances.
#[derive(Debug)]
struct Hops<T>(BTreeMap<(usize, Instance), Told<T>>);

/// What a relay was called, and by how many streams.
#[derive(Debug)]
struct Told<T> {
    call: T,
    streams: usize,
}

/// A stream to a relay, or from one: those at its far end are known while this lives.
#[derive(Debug)]
pub struct Seen {
    relays: Arc<Relays>,
    side: Side,
    path: RelayPath<Instance>,
}

/// Relays as the streams to origins see them.
pub(crate) struct Upwards(pub(crate) Arc<Relays>);

impl Relays {
    pub(crate) fn new(token: Token) -> Arc<Self> {
        Arc::new(Self { token, own: token.instance(), known: Mutex::default() })
    }

    pub(crate) fn own(&self) -> Instance {
        self.own
    }

    /// What to say with a stream on a side: who is on the other, the nearest of them. A loop through those that are too
    /// many or too far to be told of is found in the other direction.
    pub(crate) fn say(&self, side: Side) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        match side {
            Side::Upstream => {
                let path = lock(&self.known).downstream.behind(self.token);
                path.write(&mut metadata);
            }
            Side::Downstream => {
                let path = lock(&self.known).upstream.behind(self.own);
                path.write(&mut metadata);
            }
        }
        metadata
    }

    /// What is said with a stream on a side; `None` if not by a relay.
    ///
    /// # Errors
    /// The stream must not be.
    pub(crate) fn hear(self: &Arc<Self>, side: Side, metadata: &MetadataMap) -> Result<Option<Seen>, LoopError> {
        let path = match side {
            Side::Downstream => self.enter(side, metadata, |known| (&mut known.downstream, &known.upstream))?,
            Side::Upstream => self.enter(side, metadata, |known| (&mut known.upstream, &known.downstream))?,
        };
        Ok(path.map(|path| Seen { relays: self.clone(), side, path }))
    }

    /// Notes who is at the far end of a stream on the first of two sides, if that may be.
    fn enter<T: Call, U>(
        &self,
        side: Side,
        metadata: &MetadataMap,
        sides: impl FnOnce(&mut Known) -> (&mut Hops<T>, &Hops<U>),
    ) -> Result<Option<RelayPath<Instance>>, LoopError> {
        let Some(path) = read::<T>(metadata)? else { return Ok(None) };
        let (instances, places) = (path.instances(), places(&path).collect::<Vec<_>>());
        // Looked up and noted at once: of two streams at the same time, one sees the other.
        let mut known = lock(&self.known);
        let (here, there) = sides(&mut known);
        check(self.own, side, &instances, there)?;
        here.add(places);
        Ok(Some(instances))
    }

    /// Adds this relay to what is said with a call that it hands on, if that comes from a relay or not.
    ///
    /// # Errors
    /// The call came by here before.
    pub(crate) fn hand_on(&self, metadata: &mut MetadataMap) -> Result<(), LoopError> {
        let path = read::<Token>(metadata)?.unwrap_or_default();
        check(self.own, Side::Downstream, &path.instances(), &Hops::<Instance>::default())?;
        RelayPath([BTreeSet::from([self.token])].into_iter().chain(path.0).collect()).write(metadata);
        Ok(())
    }
}

impl LoopGuard for Upwards {
    fn instance(&self) -> String {
        self.0.own().to_string()
    }

    fn say(&self) -> MetadataMap {
        self.0.say(Side::Upstream)
    }

    fn hear(&self, said: &MetadataMap) -> Result<Option<Box<dyn Behind>>, String> {
        let seen = self.0.hear(Side::Upstream, said).map_err(|error| error.to_string())?;
        Ok(seen.map(|seen| Box::new(seen) as Box<dyn Behind>))
    }
}

/// The relays at the far end.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
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

fn read<T: Call>(metadata: &MetadataMap) -> Result<Option<RelayPath<T>>, LoopError> {
    RelayPath::read(metadata).map_err(|_| LoopError::Unreadable)
}

/// Whether a relay that knows of `others` on the other side may have a stream with this path on a side. Who is on both
/// sides closes a loop, and so does the relay itself.
fn check<T>(own: Instance, side: Side, path: &RelayPath<Instance>, others: &Hops<T>) -> Result<(), LoopError> {
    for (hop, relays) in path.0.iter().enumerate() {
        if let Some(found) = relays.iter().find(|relay| **relay == own || others.distance(**relay).is_some()) {
            return Err(LoopError::Loop { ring: ring(own, side, path, hop, *found, others) });
        }
    }
    let most = match side {
        // What an origin says is so. What comes from downstream is as long as somebody likes, and is cut when it is said on.
        Side::Upstream => MAX_HOPS,
        Side::Downstream => MAX_HOPS + 1,
    };
    let hops = path.0.len();
    if hops > most { Err(LoopError::TooFar { hops }) } else { Ok(()) }
}

/// The relays of a loop, each followed by its origin, from this one back to it: some on the path up to the hop where one
/// was found, some on the other side.
fn ring<T>(
    own: Instance,
    side: Side,
    path: &RelayPath<Instance>,
    hop: usize,
    found: Instance,
    others: &Hops<T>,
) -> String {
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

impl<T> Hops<T> {
    fn remove(&mut self, path: &RelayPath<Instance>) {
        for (at, _) in places(path) {
            if let Some(told) = self.0.get_mut(&at) {
                told.streams -= 1;
                if told.streams == 0 {
                    self.0.remove(&at);
                }
            }
        }
    }

    /// How many relays stand before it.
    fn distance(&self, relay: Instance) -> Option<usize> {
        (0..=MAX_HOPS).find(|hop| self.0.contains_key(&(*hop, relay)))
    }
}

impl<T: Call> Hops<T> {
    fn add(&mut self, places: impl IntoIterator<Item = ((usize, Instance), T)>) {
        for (at, call) in places {
            self.0.entry(at).or_insert(Told { call, streams: 0 }).streams += 1;
        }
    }

    fn behind(&self, own: T) -> RelayPath<T> {
        let mut path = vec![BTreeSet::from([own])];
        // By distance, and there is nobody behind a hop without anybody.
        let near = self.0.iter().take_while(|((hop, _), _)| *hop < MAX_HOPS);
        for ((hop, _), told) in near.take(MAX_TOLD - 1) {
            path.resize_with(path.len().max(hop + 2), BTreeSet::new);
            path.get_mut(hop + 1).map(|relays| relays.insert(told.call));
        }
        RelayPath(path)
    }
}

fn places<T: Call>(path: &RelayPath<T>) -> impl Iterator<Item = ((usize, Instance), T)> {
    let relays = path.0.iter().enumerate().flat_map(|(hop, relays)| relays.iter().map(move |relay| (hop, *relay)));
    relays.map(|(hop, relay)| ((hop, relay.instance()), relay))
}

impl<T> Default for Hops<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests;
