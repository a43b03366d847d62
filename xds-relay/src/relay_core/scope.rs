//! A scope: the resources of one authority or one node group, who wants them, and what to ask upstream.
//!
//! The unit of locking. The lock is held to store and mark, or to pull; nobody is woken under it,
//! and no two scopes are locked at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use xds_transport::Frame;
use xds_transport::client::{Changed, Command};
use xds_transport::grpc::server::Wake;
use xdstp_cache::{
    Cache, Interest, Options, Pull, Pulled, Removals, Resource, Subscribed, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::ResourceName;

use crate::relay_core::node_group::NodeGroup;
use crate::relay_core::upstream::Upstream;

/// How many names are stored under one hold of the lock.
const BATCH: usize = 256;

/// Which scope a name belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ScopeKey {
    /// `xdstp:` names of one authority, in canonical spelling.
    Authority(String),
    /// Old-style names of one node group.
    Group(NodeGroup),
    /// Old-style names of an origin that answers every node alike.
    EveryNode,
    /// What one stream does not share (rule 121).
    Private(u64),
}

impl fmt::Display for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority(authority) => write!(f, "xdstp://{authority}"),
            Self::Group(group) => write!(f, "{group}"),
            Self::EveryNode => f.write_str("every node"),
            Self::Private(stream) => write!(f, "stream {stream}"),
        }
    }
}

pub(crate) struct Scope {
    pub(crate) key: ScopeKey,
    /// Which origin it comes from, by position.
    pub(crate) origin: usize,
    /// The stream it comes over; none for an origin of files.
    pub(crate) upstream: OnceLock<Arc<Upstream>>,
    /// Whether several streams may be served from it: not what forbids sharing, then.
    pub(crate) shared: bool,
    linger: Duration,
    state: Mutex<State>,
}

struct State {
    cache: Cache<Frame>,
    wakes: Vec<Option<Wake>>,
    /// What must be asked upstream, in the order it came up.
    asks: BTreeMap<(TypeUrl, Interest), Ask>,
    /// What nobody wants any more, and until when it stays subscribed: the time is set by the next look.
    leaving: BTreeMap<(TypeUrl, Interest), Option<Instant>>,
    /// What is subscribed upstream, or will be when the asks are taken.
    wanted: BTreeSet<(TypeUrl, Interest)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Subscribe,
    Unsubscribe,
    /// It was dropped, and wanted again before the origin was told.
    Again,
}

impl Scope {
    pub(crate) fn new(key: ScopeKey, origin: usize, authoritative: bool, linger: Duration) -> Self {
        let mut options = Options::default();
        options.authoritative = authoritative;
        // All that comes over a group's own stream answers that group.
        options.wildcard_covers_xdstp = matches!(key, ScopeKey::Group(_) | ScopeKey::Private(_));
        let state = State {
            cache: Cache::new(options),
            wakes: Vec::new(),
            asks: BTreeMap::new(),
            leaving: BTreeMap::new(),
            wanted: BTreeSet::new(),
        };
        let shared = !matches!(key, ScopeKey::Private(_));
        Self { key, origin, upstream: OnceLock::new(), shared, linger, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, type_url: &TypeUrl, wake: Wake) -> SubscriberId {
        let mut state = self.lock();
        let id = state.cache.open(type_url);
        let index = id.index();
        if state.wakes.len() <= index {
            state.wakes.resize(index + 1, None);
        }
        if let Some(slot) = state.wakes.get_mut(index) {
            *slot = Some(wake);
        }
        id
    }

    pub(crate) fn close(&self, type_url: &TypeUrl, id: SubscriberId) {
        let mut state = self.lock();
        if let Some(slot) = state.wakes.get_mut(id.index()) {
            *slot = None;
        }
        let left = state.cache.close(id);
        let nudge = !left.is_empty();
        for interest in left {
            state.leave(type_url, interest);
        }
        drop(state);
        self.nudge(nudge);
    }

    /// Whether it is new to the subscriber.
    pub(crate) fn subscribe(&self, type_url: &TypeUrl, id: SubscriberId, interest: &Interest) -> bool {
        let mut state = self.lock();
        let subscribed = state.cache.subscribe(id, interest);
        let nudge = subscribed == Subscribed::First && state.want(type_url, interest);
        drop(state);
        self.nudge(nudge);
        subscribed != Subscribed::Again
    }

    /// Whether the subscriber had it.
    pub(crate) fn unsubscribe(&self, type_url: &TypeUrl, id: SubscriberId, interest: &Interest) -> bool {
        let mut state = self.lock();
        let held = state.cache.is_subscribed(id, interest);
        let last = state.cache.unsubscribe(id, interest);
        if last {
            state.leave(type_url, interest.clone());
        }
        drop(state);
        self.nudge(last);
        held
    }

    /// Whether the subscriber would still be sent a name.
    pub(crate) fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let state = self.lock();
        let wants = |interest: &Interest| state.cache.is_subscribed(id, interest);
        wants(&Interest::Name(name.clone()))
            || name.glob_parent().is_some_and(|glob| wants(&Interest::Name(glob)))
            || name.is_opaque() && wants(&Interest::Wildcard)
    }

    pub(crate) fn resume(&self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        self.lock().cache.resume(id, held);
    }

    pub(crate) fn pull(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        self.lock().cache.pull(id, removals, visitor)
    }

    pub(crate) fn visit(
        &self,
        id: SubscriberId,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
    ) -> Unanswered {
        self.lock().cache.visit(id, visitor)
    }

    pub(crate) fn has_work(&self, id: SubscriberId) -> bool {
        self.lock().cache.has_work(id)
    }

    pub(crate) fn resend(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.lock().cache.resend(id, name)
    }

    pub(crate) fn type_version(&self, id: SubscriberId) -> Option<Version> {
        self.lock().cache.type_version(id).cloned()
    }

    /// Stores what came from upstream, and wakes who is interested.
    pub(crate) fn store(&self, type_url: &TypeUrl, changed: Vec<Changed>, now: Instant) {
        let mut changed = changed.into_iter().peekable();
        while changed.peek().is_some() {
            self.change(|state, woken| {
                for Changed { name, resource, touched, .. } in changed.by_ref().take(BATCH) {
                    let resource = if self.shared && resource.value.do_not_cache() { stub(resource) } else { resource };
                    state.cache.upsert(type_url, &name, resource, now, woken);
                    if touched {
                        state.cache.touch(type_url, &name, woken);
                    }
                }
            });
        }
    }

    /// Records what does not exist, and wakes who is interested.
    pub(crate) fn remove(&self, type_url: &TypeUrl, removed: &[ResourceName], now: Instant) {
        for batch in removed.chunks(BATCH) {
            self.change(|state, woken| {
                for name in batch {
                    state.cache.remove(type_url, name, now, woken);
                }
            });
        }
    }

    /// Records that collections are complete.
    pub(crate) fn answered(&self, type_url: &TypeUrl, collections: &[Interest]) {
        self.change(|state, woken| {
            for collection in collections {
                state.cache.answered(type_url, collection, woken);
            }
        });
    }

    /// Records the version a SotW origin gave to the type.
    pub(crate) fn set_type_version(&self, type_url: &TypeUrl, version: Version) {
        self.lock().cache.set_type_version(type_url, Some(version));
    }

    /// Makes the scope hold exactly this: what an origin of files does.
    pub(crate) fn replace(&self, resources: &[(TypeUrl, ResourceName, Resource<Frame>)], now: Instant) {
        let mut gone: BTreeMap<TypeUrl, BTreeSet<ResourceName>> = BTreeMap::new();
        for stored in self.lock().cache.resources() {
            if stored.resource.is_some() {
                gone.entry(stored.type_url.clone()).or_default().insert(stored.name.clone());
            }
        }
        for batch in resources.chunks(BATCH) {
            self.change(|state, woken| {
                for (type_url, name, resource) in batch {
                    state.cache.upsert(type_url, name, resource.clone(), now, woken);
                }
            });
        }
        for (type_url, name, _) in resources {
            if let Some(names) = gone.get_mut(type_url) {
                names.remove(name);
            }
        }
        for (type_url, names) in gone {
            self.remove(&type_url, &names.into_iter().collect::<Vec<_>>(), now);
        }
    }

    /// What to tell the origin, given that the stream to it is up or not: while it is down nothing is
    /// dropped, so that what is held can still be served.
    pub(crate) fn take_asks(&self, now: Instant, connected: bool, apply: &mut dyn FnMut(Command)) {
        let mut state = self.lock();
        let State { cache, asks, leaving, wanted, .. } = &mut *state;
        for until in leaving.values_mut() {
            until.get_or_insert(now + self.linger);
        }
        if connected {
            leaving.retain(|(type_url, interest), until| {
                let over = until.is_some_and(|until| until <= now);
                if over {
                    cache.evict(type_url, interest);
                    let key = (type_url.clone(), interest.clone());
                    wanted.remove(&key);
                    // What the origin was never told of, it need not be told to forget.
                    if asks.remove(&key) != Some(Ask::Subscribe) {
                        asks.insert(key, Ask::Unsubscribe);
                    }
                }
                !over
            });
        }
        for ((type_url, interest), ask) in std::mem::take(asks) {
            if ask != Ask::Subscribe {
                apply(Command::Unsubscribe(type_url.clone(), interest.clone()));
            }
            if ask != Ask::Unsubscribe {
                apply(Command::Subscribe(type_url, interest));
            }
        }
    }

    /// When the next name has lingered long enough.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.lock().leaving.values().flatten().min().copied()
    }

    /// Whether nobody is served from it and nothing of it is subscribed upstream.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.cache.subscriber_count() == 0 && state.wanted.is_empty() && state.asks.is_empty()
    }

    /// How many names and collections are subscribed upstream.
    pub(crate) fn subscriptions(&self) -> Vec<(TypeUrl, Interest)> {
        self.lock().wanted.iter().cloned().collect()
    }

    /// Looks at what is held.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&Cache<Frame>) -> T) -> T {
        look(&self.lock().cache)
    }

    fn change(&self, change: impl FnOnce(&mut State, &mut Vec<SubscriberId>)) {
        let mut woken = Vec::new();
        let wakes: Vec<Wake> = {
            let mut state = self.lock();
            change(&mut state, &mut woken);
            woken.iter().filter_map(|id| state.wakes.get(id.index()).cloned().flatten()).collect()
        };
        for wake in wakes {
            wake.wake();
        }
    }

    fn nudge(&self, needed: bool) {
        if let (true, Some(upstream)) = (needed, self.upstream.get()) {
            upstream.nudge();
        }
    }
}

impl State {
    /// Whether the origin must be asked.
    fn want(&mut self, type_url: &TypeUrl, interest: &Interest) -> bool {
        let key = (type_url.clone(), interest.clone());
        self.leaving.remove(&key);
        if !self.wanted.insert(key.clone()) {
            return false;
        }
        let ask = if self.asks.contains_key(&key) { Ask::Again } else { Ask::Subscribe };
        self.asks.insert(key, ask);
        true
    }

    fn leave(&mut self, type_url: &TypeUrl, interest: Interest) {
        self.leaving.insert((type_url.clone(), interest), None);
    }
}

/// What a shared scope keeps of a resource that must not be shared: that there is one, and its version.
fn stub(resource: Resource<Frame>) -> Resource<Frame> {
    let frame = Frame::new(bytes::Bytes::new()).with_wrapper(bytes::Bytes::new(), None, true);
    Resource::new(resource.version, resource.digest, frame)
}

/// The scopes fed by one upstream stream.
#[derive(Default)]
pub(crate) struct Scopes(Mutex<BTreeMap<ScopeKey, Weak<Scope>>>);

impl Scopes {
    pub(crate) fn insert(&self, scope: &Arc<Scope>) {
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.retain(|_, scope| scope.strong_count() > 0);
        scopes.insert(scope.key.clone(), Arc::downgrade(scope));
    }

    /// Those still in use. The lock is not held while they are looked at.
    pub(crate) fn all(&self) -> Vec<Arc<Scope>> {
        let scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.values().filter_map(Weak::upgrade).collect()
    }
}
