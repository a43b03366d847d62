//! A scope: the resources of one authority or one node group, who wants them, and what to ask upstream.
//!
//! The unit of locking. The lock is held to store and mark, or to pull; nobody is woken under it,
//! and no two scopes are locked at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::server::Images;
use xdstp_cache::{Cache, Options, Resource, SubscriberId, TypeUrl, Version, Woken};

use crate::federation::demand::{Demand, Linger};
use crate::federation::lock::lock;
use crate::federation::place::Place;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::of_others::OfOthers;
use crate::federation::scope::recall::Recall;
use crate::federation::scope::said_gone::SaidGone;
use crate::federation::scope::several::Several;
use crate::federation::scope_key::ScopeKey;
use crate::federation::share::Share;
use crate::federation::supply::Supply;
use crate::federation::terms::Terms;
use crate::federation::turns::Turns;

pub(crate) use self::hearing::{Heard, News, Shown};

mod alike;
mod another_origin;
mod another_server;
mod asking;
mod batch;
mod choosing;
mod filling;
mod hearing;
pub(crate) mod look;
mod moving;
mod of_others;
mod other_names;
mod recall;
mod recalling;
pub(crate) mod restated;
mod said_gone;
mod serving;
mod several;
mod store;
pub(crate) mod stub;
#[cfg(test)]
mod tests;
pub(crate) mod unsaved;
mod watching;

/// How long what an authoritative origin had is remembered for who comes back: as long as tombstones are kept.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// How many names are stored under one hold of the lock.
const BATCH: usize = 256;

/// The resources of one authority, or of one node group, and who wants them.
pub struct Scope {
    /// Which names it is of.
    pub key: ScopeKey,
    /// Which origin it comes from, by position.
    origin: AtomicUsize,
    connection: Mutex<Connection>,
    /// Who has its origin feed it.
    feeding: Turns,
    /// Whether several streams may be served from it: not what forbids sharing, then.
    pub shared: bool,
    /// Who uses it is one program, on these terms.
    terms: Option<Terms>,
    /// What requests for it have room for, with those of the scopes that come over the same stream.
    pub(crate) room: Option<Arc<RequestRoom>>,
    /// How many names are looked at under one hold of the lock.
    slice: usize,
    /// What it knows is kept where it survives a restart.
    is_kept: bool,
    /// Who asks for a hundred thousand names takes it as often: a lock that lets others in between, which that of the standard
    /// library need not.
    state: parking_lot::Mutex<State>,
    /// Its place among the groups or authorities that there may be.
    _place: Option<Share>,
}

/// How it is connected with its origin.
#[derive(Default)]
struct Connection {
    /// What it comes over; none from an authoritative origin, and while nobody wants anything of it.
    supply: Option<Arc<dyn Supply>>,
    /// Whose nodes may speak for it to the supply that is being made.
    joining: BTreeMap<u64, Bytes>,
}

struct State {
    cache: Cache<Frame>,
    wakers: Vec<Option<Waker>>,
    /// When what a subscriber was woken for came, by its index, until it is pulled.
    heard_at: Vec<Option<Instant>>,
    /// What is being sent to several alike.
    images: Images,
    /// What to ask of the origin; an authoritative one is not asked.
    demand: Option<Demand>,
    /// What a delta origin said last beside what is here, of types that are asked of it.
    system_versions: BTreeMap<TypeUrl, Version>,
    /// Subscribers that have not yet said all that their first request says: the origin is asked for all of it at once.
    opening: usize,
    /// When what others want waits for them no more.
    asks_at: Option<Instant>,
    /// Since when nobody wants anything of it.
    rests_since: Option<Instant>,
    /// What was known of it before a restart.
    recall: Option<Box<Recall>>,
    /// What is to be taken of what went, by who keeps it.
    said_gone: SaidGone,
    /// Whether a server can be reached, for watches.
    reach: hearing::Reach,
    /// Its servers, where there are several.
    several: Option<Box<Several>>,
    of_others: OfOthers,
    /// Types whose stream ended while others went on, as the stream said last that feeds it: as if their origin were away.
    paused: BTreeSet<TypeUrl>,
    /// When its origin said last what all there is is, if it does.
    filled_at: Option<Instant>,
}

/// Whether a subscriber is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is interested in something.
    Wanted,
    /// It is not, and was not told everything.
    Telling,
    /// It can go.
    Over,
}

/// What a scope has of a name for a subscriber.
pub(crate) enum Standing {
    Present(Resource<Frame>),
    /// It is not there, or not asked for here.
    Absent,
    /// Its origin has not answered.
    Unknown,
}

impl Scope {
    /// A scope fed over a stream, from which what nobody wants any more is dropped after `linger`.
    pub(crate) fn streamed(
        key: ScopeKey,
        origin: usize,
        linger: impl Into<Linger>,
        room: Option<Arc<RequestRoom>>,
        slice: usize,
    ) -> Self {
        let mut options = Options::default();
        (options.authoritative, options.looks) = (false, slice);
        // All that comes over a group's own stream answers that group.
        options.wildcard_covers_xdstp = key.has_own_stream();
        Self::new(key, origin, options, Some(Demand::new(linger)), room)
    }

    /// The same for the watches of one program.
    pub(crate) fn watched(
        key: ScopeKey,
        origin: usize,
        room: Option<Arc<RequestRoom>>,
        slice: usize,
        terms: Terms,
    ) -> Self {
        let mut options = Options::default();
        (options.authoritative, options.looks) = (false, slice);
        // A program is told all that its wildcard brings.
        options.wildcard_covers_xdstp = true;
        // What must not be shared between clients is one's own.
        let own = Self::new(key, origin, options, Some(Demand::of_a_program()), room);
        own.on(terms)
    }

    /// The same scope for the watches of one program, on these terms.
    pub(crate) fn on(self, terms: Terms) -> Self {
        Self { shared: false, terms: Some(terms), ..self }
    }

    /// A scope that is to hold all there is. Nothing is known of what is not in it before its origin has
    /// [filled](Self::replace) it; from then on that does not exist.
    pub fn authoritative(key: ScopeKey, origin: usize, slice: usize) -> Self {
        let mut options = Options::default();
        (options.filled, options.looks) = (false, slice);
        Self::new(key, origin, options, None, None)
    }

    fn new(
        key: ScopeKey,
        origin: usize,
        options: Options,
        demand: Option<Demand>,
        room: Option<Arc<RequestRoom>>,
    ) -> Self {
        let slice = options.looks.max(1);
        let cache = Cache::new(options);
        let state = State {
            cache,
            wakers: Vec::new(),
            heard_at: Vec::new(),
            images: Images::default(),
            demand,
            system_versions: BTreeMap::new(),
            opening: 0,
            asks_at: None,
            rests_since: None,
            recall: None,
            paused: BTreeSet::new(),
            said_gone: SaidGone::default(),
            reach: hearing::Reach::default(),
            several: None,
            of_others: OfOthers::default(),
            filled_at: None,
        };
        let shared = !matches!(key.of_all(), ScopeKey::Private(_));
        Self {
            key,
            origin: AtomicUsize::new(origin),
            connection: Mutex::default(),
            feeding: Turns::default(),
            shared,
            terms: None,
            room,
            slice,
            is_kept: false,
            state: parking_lot::Mutex::new(state),
            _place: None,
        }
    }

    /// It takes a place, for as long as it is there.
    pub(crate) fn counted(mut self, place: Option<Share>) -> Self {
        self._place = place;
        self
    }

    /// Which origin it comes from, by position.
    pub fn origin(&self) -> usize {
        self.origin.load(Ordering::Acquire)
    }

    /// Whether it is the scope of a place, for the one node group that the asking stream is of.
    pub(crate) fn is_at(&self, place: Place<'_>) -> bool {
        self.key.is_at(place, self.origin())
    }

    /// What it comes over.
    pub fn supply(&self) -> Option<Arc<dyn Supply>> {
        lock(&self.connection).supply.clone()
    }

    /// It comes over this from now on.
    pub fn feed_from(&self, supply: Arc<dyn Supply>) {
        let (before, joining) = {
            let connection = &mut *lock(&self.connection);
            (connection.supply.replace(supply.clone()), connection.joining.clone())
        };
        // Not under its lock: a supply is anybody's code.
        drop(before);
        for (routes, node) in joining {
            supply.join(routes, node);
            let stays = lock(&self.connection).joining.remove(&routes).is_some();
            if !stays {
                supply.leave(routes);
            }
        }
        self.tell_reachable();
        self.ask();
    }

    /// Has it fed by this, if it has no supply, and nobody is at that already.
    pub(crate) fn feed(&self, feed: impl FnOnce()) {
        if !self.has_supply() {
            self.feeding.take_free(|| {
                if !self.has_supply() {
                    feed();
                }
            });
        }
    }

    pub(crate) fn has_supply(&self) -> bool {
        lock(&self.connection).supply.is_some()
    }

    /// The node of some routes may speak for it from now on.
    pub(crate) fn join(&self, routes: u64, node: Bytes) {
        let mut connection = lock(&self.connection);
        match connection.supply.clone() {
            Some(supply) => {
                drop(connection);
                supply.join(routes, node);
            }
            None => _ = connection.joining.insert(routes, node),
        }
    }

    /// The node of these routes may not any more.
    pub(crate) fn leave(&self, routes: u64) {
        let mut connection = lock(&self.connection);
        connection.joining.remove(&routes);
        let supply = connection.supply.clone();
        drop(connection);
        supply.iter().for_each(|supply| supply.leave(routes));
    }

    /// Nobody wants anything of it any more: what it comes over is to be dropped, and not under a lock.
    pub(crate) fn disconnect(&self) -> Option<Arc<dyn Supply>> {
        lock(&self.connection).supply.take()
    }

    /// Nobody wants anything of it any more, and since when. It remembers what went, and of an authoritative origin what goes, for
    /// those who come back (rule 100): none once there is nothing to remember.
    pub(crate) fn rest(&self, now: Instant) -> Option<Instant> {
        let State { cache, demand, rests_since, several, of_others, .. } = &mut *self.lock();
        of_others.clear();
        several.iter_mut().for_each(|several| several.rest());
        demand.iter_mut().for_each(|demand| demand.close_behind(1));
        let since = *rests_since.get_or_insert(now);
        cache.expire(now);
        let remembers = match demand {
            Some(_) => cache.next_expiry().is_some(),
            // A document is open for as long as its scope is there, and read again when that is.
            None if matches!(self.key, ScopeKey::Document(..)) => false,
            None => cache.resources().next().is_some() && now.saturating_duration_since(since) < REMEMBERED,
        };
        remembers.then_some(since)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Whether nobody is served from it and nothing of it is subscribed upstream.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        let is_asked = state.demand.as_ref().is_some_and(|demand| !demand.is_idle());
        // What a program does not watch it need not hear confirmed: it stays on the disk as it is.
        state.cache.subscriber_count() == 0 && !is_asked && (state.recall.is_none() || self.is_watched())
    }

    /// Changes it, and wakes who has something to pull: because of what the origin said at this moment, if it did.
    fn change(&self, heard: Option<Instant>, change: impl FnOnce(&mut State) -> Woken) {
        let wakers: Vec<Waker> = {
            let mut state = self.lock();
            let woken = change(&mut state);
            let State { wakers, heard_at, .. } = &mut *state;
            let wake = |id: SubscriberId| {
                heard_at.get_mut(id.index()).into_iter().for_each(|at| *at = heard);
                wakers.get(id.index()).cloned().flatten()
            };
            woken.into_iter().filter_map(wake).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn nudge(&self, needed: bool) {
        let supply = if needed { self.supply() } else { None };
        if let Some(supply) = supply {
            supply.ask();
        }
    }
}
