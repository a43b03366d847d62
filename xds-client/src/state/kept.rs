//! The last that origins said, as it was read from a store, and as it is written there.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use xdstp_cache::Known;

use crate::federation::{LastKnownGood, Recollection, Scope, ScopeKey, lock};
use crate::state::format::{Moment, ScopeId};
use crate::state::identity::Identities;
use crate::state::keys::Keys;
use crate::state::lent::Lent;
use crate::state::passed_on::PassedOn;
use crate::state::read::Read;
use crate::state::saver::{Saved, Saver};
use crate::state::store::{Store, StoreError};
use crate::state::values::OwnedValues;
use crate::state::watched::Watched;

/// How many scopes that are not there any more wait to be written.
const DROPPED: usize = 1024;
/// How often a store is opened anew that could not be.
const AGAIN: Duration = Duration::from_secs(10);

/// What is known of origins, kept in a [`Store`]: it is served after a restart while they are away, and marked as stale.
///
/// It is written by whoever calls [`keep`](Self::keep), from time to time.
pub struct State {
    pub(crate) identities: Identities,
    inner: Mutex<Inner>,
    /// What is kept beside scopes.
    pub(crate) values: OwnedValues,
    pub(crate) saver: Lent<Saver>,
    opener: Option<Opener>,
    /// Whether a disk answers.
    watched: Watched,
    /// What is noted of it for others.
    pub(crate) passed_on: PassedOn,
}

/// Opens the store: called until it succeeds, and again when the store is lost.
/// What can only be read need not be once it was.
pub(crate) type Opener = Box<dyn Fn(&Identities, Moment, WasRead) -> Result<Opened, StoreError> + Send + Sync>;
pub(crate) type WasRead = bool;

/// A store, and what is in it; none if that can be read and not written.
pub(crate) struct Opened {
    pub(crate) store: Result<Arc<dyn Store>, StoreError>,
    pub(crate) read: Read,
    pub(crate) saver: Saver,
}

struct Inner {
    /// None before it is opened.
    store: Option<Arc<dyn Store>>,
    read: Read,
    /// When that was read, and now.
    read_at: Instant,
    now: Moment,
    /// What was asked for, and is there or was not read yet.
    asked: HashSet<ScopeId>,
    /// What of that was not looked for in the store that is open now.
    unread: HashSet<ScopeId>,
    /// Scopes that are not there any more, and noted something that was not written.
    dropped: Vec<Arc<Scope>>,
    opening: Opening,
    /// Why what is known could not be written, the last time.
    unwritten: Option<String>,
}

#[derive(Default)]
struct Opening {
    is_under_way: bool,
    /// There was one, or what could only be read.
    was_read: WasRead,
    next: Option<Instant>,
    /// Why there is no store, as it was said last.
    said: Option<String>,
}

impl Opened {
    pub(crate) fn of(
        store: Arc<dyn Store>,
        identities: &Identities,
        keys: Option<Arc<Keys>>,
        at: Moment,
    ) -> Result<Self, StoreError> {
        let mut saver = Saver::new(keys);
        let read = Read::of(&*store, identities, at, &mut saver)?;
        Ok(Self { store: Ok(store), read, saver })
    }
}

impl State {
    /// Reads what is kept. Secrets are if there are keys. `now` and `wall` are the same moment.
    ///
    /// # Errors
    /// It cannot be read, or is of a later format. What is damaged of it is left out, and [counted](Self::damaged).
    pub fn open(
        store: impl Store,
        identities: Identities,
        keys: Option<Arc<Keys>>,
        now: Instant,
        wall: SystemTime,
    ) -> Result<Self, StoreError> {
        let at = Moment { now, wall };
        let opened = Opened::of(Arc::new(store), &identities, keys, at)?;
        let state = Self::new(identities, None, at);
        state.install(opened, at);
        Ok(state)
    }

    /// The same of a store that need not be there yet: it is opened by [`keep`](Self::keep), which tries that every ten seconds,
    /// and again when the store says that it is [gone](StoreError::Gone). What is read then is served where nothing is known
    /// yet.
    pub fn later<S: Store>(
        open: impl Fn() -> Result<S, StoreError> + Send + Sync + 'static,
        identities: Identities,
        keys: Option<Arc<Keys>>,
        now: Instant,
        wall: SystemTime,
    ) -> Self {
        let opener: Opener =
            Box::new(move |identities, at, _| Opened::of(Arc::new(open()?), identities, keys.clone(), at));
        Self::opened_by(opener, identities, Moment { now, wall })
    }

    /// The same of one that is there, and may take its time to be read.
    pub(crate) fn read_later(store: Arc<dyn Store>, identities: Identities) -> Self {
        let opener: Opener = Box::new(move |identities, at, _| Opened::of(store.clone(), identities, None, at));
        Self::opened_by(opener, identities, Moment::of_the_system())
    }

    /// The same, opened by [`try_open`](Self::try_open) for the first time.
    pub(crate) fn opened_by(opener: Opener, identities: Identities, at: Moment) -> Self {
        Self::new(identities, Some(opener), at)
    }

    /// Writes down what these scopes heard since the last time, and opens the store before if that was not done: to be called
    /// every second or so. It may take as long as the store takes. `now` and `wall` are the same moment.
    ///
    /// Who calls it while another does, be it from the store that is being written to, finds that there is [more](Saved::more): no
    /// lock is held while the store is asked.
    ///
    /// # Errors
    /// It could not be written: it is the next time.
    pub fn keep(&self, scopes: &[Arc<Scope>], now: Instant, wall: SystemTime) -> Result<Saved, StoreError> {
        let _busy = self.watched.begin(now);
        self.try_open(Moment { now, wall });
        let saved = self.save(scopes, now, wall);
        lock(&self.inner).unwritten = saved.as_ref().err().map(ToString::to_string);
        saved
    }

    /// Why nothing is kept now, if nothing is, for people.
    pub fn trouble(&self) -> Option<String> {
        let inner = lock(&self.inner);
        let unopened = || inner.store.is_none().then(|| inner.opening.said.clone()).flatten();
        inner.unwritten.clone().or_else(unopened)
    }

    /// Says once that the store has not answered for long, if it has not: to be called every second or so.
    pub fn look(&self, now: Instant) {
        self.watched.look(now);
    }

    fn new(identities: Identities, opener: Option<Opener>, at: Moment) -> Self {
        let inner = Inner {
            store: None,
            read: Read::default(),
            read_at: at.now,
            now: at,
            asked: HashSet::new(),
            unread: HashSet::new(),
            dropped: Vec::new(),
            opening: Opening::default(),
            unwritten: None,
        };
        Self {
            identities,
            inner: Mutex::new(inner),
            values: OwnedValues::default(),
            saver: Lent::default(),
            opener,
            watched: Watched::default(),
            passed_on: PassedOn::default(),
        }
    }

    /// Opens the store, if there is none and it is time to. It takes as long as the disk takes, and says what is wrong.
    pub(crate) fn try_open(&self, at: Moment) {
        let Some(opener) = &self.opener else { return };
        let was_read;
        {
            let Inner { store, opening, .. } = &mut *lock(&self.inner);
            was_read = opening.was_read;
            if store.is_some() || opening.is_under_way || opening.next.is_some_and(|next| at.now < next) {
                return;
            }
            (opening.is_under_way, opening.next) = (true, Some(at.now + AGAIN));
        }
        let opened = opener(&self.identities, at, was_read);
        let failed = match opened {
            Ok(opened) => self.install(opened, at),
            Err(error) => Some(error),
        };
        let opening = &mut lock(&self.inner).opening;
        opening.is_under_way = false;
        let words = failed.map(|error| error.to_string());
        match &words {
            Some(words) if opening.said.as_ref() != Some(words) => {
                tracing::error!("nothing is kept, which is tried every {} s: {words}", AGAIN.as_secs());
            }
            None if opening.said.is_some() => tracing::info!("what is known is kept from now on"),
            _ => {}
        }
        opening.said = words;
    }

    /// Why it is not written, if it is only read.
    fn install(&self, opened: Opened, at: Moment) -> Option<StoreError> {
        let Opened { store, mut read, saver } = opened;
        // Before the store is there, which who saves looks for once it has the other.
        self.saver.replace(saver);
        self.values.opened(std::mem::take(&mut read.values));
        let inner = &mut *lock(&self.inner);
        let scopes = read.loaded.len();
        if scopes > 0 || read.damaged > 0 {
            let seconds = at.seconds().saturating_sub(read.saved);
            tracing::info!(scopes, seconds, "what was known before was read");
        }
        if read.damaged > 0 {
            tracing::warn!(damaged = read.damaged, "some of it is not what was written, and is left out");
        }
        // What was read of a store that is lost counts as long as nobody knows better.
        for (id, known) in inner.read.loaded.drain() {
            read.loaded.entry(id).or_insert(known);
        }
        for (id, since) in inner.read.since.drain() {
            read.since.entry(id).or_insert(since);
        }
        read.of_another.extend(inner.read.of_another.drain());
        read.origins.append(&mut inner.read.origins);
        (inner.read, inner.read_at) = (read, at.now);
        inner.unread.clone_from(&inner.asked);
        inner.opening.was_read = true;
        match store {
            Ok(store) => {
                inner.store = Some(store);
                None
            }
            Err(error) => Some(error),
        }
    }

    /// Where it is written, once that is open.
    pub(crate) fn store(&self) -> Option<Arc<dyn Store>> {
        lock(&self.inner).store.clone()
    }

    /// The store is not there any more: all that is known is written to the next.
    pub(crate) fn lose(&self) {
        if self.opener.is_some() {
            lock(&self.inner).store = None;
            self.values.lost();
        }
    }

    /// Gives scopes that were made before the store was read what is kept of them.
    pub(crate) fn catch_up(&self, scopes: &[Arc<Scope>], now: Instant) {
        let unread = std::mem::take(&mut lock(&self.inner).unread);
        for scope in scopes.iter().filter(|_| !unread.is_empty()) {
            let Some(id) = self.identities.of(&scope.key, scope.origin()).filter(|id| unread.contains(id)) else {
                continue;
            };
            scope.recall(self.recollect(scope.origin(), &id), now);
        }
    }

    /// Works with what was read, with what of that was asked for, and with what of that is to be looked for again.
    pub(crate) fn with_read(&self, work: impl FnOnce(&mut Read, &HashSet<ScopeId>, &mut HashSet<ScopeId>)) {
        let Inner { read, asked, unread, .. } = &mut *lock(&self.inner);
        work(read, asked, unread);
    }

    /// Whether what is known is kept now.
    pub fn is_kept(&self) -> bool {
        lock(&self.inner).store.is_some() && !self.watched.hangs()
    }

    /// How many resources, collections and scopes were not what was written: they count as unknown.
    pub fn damaged(&self) -> usize {
        lock(&self.inner).read.damaged
    }

    /// How many scopes were read that nobody asked for yet.
    pub fn waiting(&self) -> usize {
        lock(&self.inner).read.loaded.len()
    }

    /// How long ago the relay of before knew what was read: none, if nothing was.
    pub fn age(&self) -> Option<Duration> {
        let inner = lock(&self.inner);
        let saved = inner.read.saved;
        (saved > 0).then(|| Duration::from_secs(inner.now.seconds().saturating_sub(saved)))
    }

    /// Whether anything was read that an origin said, by its position in the configuration.
    pub fn has_read(&self, origin: usize) -> bool {
        lock(&self.inner).read.origins.contains(&origin) || self.values.had_any(origin)
    }

    /// How long nobody has said that what is known of a scope is so, over as many restarts as there were.
    pub fn stale_for(&self, scope: &Scope) -> Option<Duration> {
        let id = self.identities.of(&scope.key, scope.origin());
        let of_values = self.values.stale_since(scope.origin());
        let inner = lock(&self.inner);
        let since = id.and_then(|id| inner.read.since.get(&id).copied()).or(of_values)?;
        Some(Duration::from_secs(inner.now.seconds().saturating_sub(since)))
    }

    /// The same by what it is kept as, in seconds since 1970: since when.
    pub(crate) fn is_stale_since(&self, id: &ScopeId) -> Option<u64> {
        lock(&self.inner).read.since.get(id).copied()
    }

    /// Since when, in seconds since 1970; and whether that is over just now.
    pub(crate) fn stale_since(&self, id: &ScopeId, scope: &Scope) -> (Option<u64>, bool) {
        let since = &mut lock(&self.inner).read.since;
        match since.get(id) {
            Some(_) if !scope.is_recalled() => {
                since.remove(id);
                (None, true)
            }
            since => (since.copied(), false),
        }
    }

    /// It is this time.
    pub(crate) fn set_time(&self, at: Moment) {
        lock(&self.inner).now = at;
    }

    /// The scopes that are not there any more, to be written once.
    pub(crate) fn take_dropped(&self) -> Vec<Arc<Scope>> {
        std::mem::take(&mut lock(&self.inner).dropped)
    }

    /// Some of what these noted is to be written still: it is older than what others noted that went meanwhile.
    pub(crate) fn drop_again(&self, scopes: Vec<Arc<Scope>>) {
        let dropped = &mut lock(&self.inner).dropped;
        dropped.splice(0..0, scopes);
        dropped.truncate(DROPPED);
    }

    /// Others speak for an origin from now on, by its position in the configuration: of what is kept of it, it is known no more who
    /// said it. To be called before they are heard.
    pub fn lead_elsewhere(&self, origin: usize) {
        self.identities.moves(origin);
    }

    /// What was read of a scope, once.
    fn recollect(&self, origin: usize, id: &ScopeId) -> Recollection {
        let mut inner = lock(&self.inner);
        let is_of_another = inner.read.of_another.contains(id) || self.identities.has_moved(origin);
        let mut known = inner.read.loaded.remove(id).unwrap_or_default();
        let now = inner.now.now;
        let since = now.saturating_duration_since(inner.read_at);
        drop(inner);
        known.retain_mut(|known| match known {
            Known::Present { resource, .. } => resource.value.expires().is_none_or(|expires| expires > now),
            Known::Gone { ago, .. } => {
                *ago += since;
                true
            }
            _ => true,
        });
        Recollection { known, is_of_another }
    }
}

impl LastKnownGood for State {
    fn load(&self, key: &ScopeKey, origin: usize) -> Option<Recollection> {
        let id = self.identities.of(key, origin)?;
        {
            let inner = &mut *lock(&self.inner);
            inner.asked.insert(id.clone());
            if inner.store.is_none() {
                inner.unread.insert(id.clone());
            }
        }
        Some(self.recollect(origin, &id))
    }

    fn dropped(&self, scope: Arc<Scope>) {
        let Some(id) = self.identities.of(&scope.key, scope.origin()) else { return };
        let inner = &mut *lock(&self.inner);
        inner.asked.remove(&id);
        inner.unread.remove(&id);
        // Of more, what is kept is there until nobody has asked for it for long.
        if inner.dropped.len() < DROPPED {
            inner.dropped.push(scope);
        }
    }
}
