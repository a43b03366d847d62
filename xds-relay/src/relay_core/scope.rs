//! A scope: the resources of one authority or one node group, who wants them, and what to ask upstream.
//!
//! The unit of locking. The lock is held to store and mark, or to pull; nobody is woken under it,
//! and no two scopes are locked at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::client::{Changed, Command, name_size};
use xdstp_cache::{
    Cache, Edit, Failed, Interest, Options, Pull, Pulled, Removals, Resource, Subscribed, SubscriberId, TypeUrl,
    Unanswered, Version, Woken,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::relay_core::changes::Changes;
use crate::relay_core::demand::{Demand, Wish};
use crate::relay_core::lock;
use crate::relay_core::markers::is_marker;
use crate::relay_core::quotas::Share;
use crate::relay_core::request_room::RequestRoom;
use crate::relay_core::scope_key::ScopeKey;
use crate::relay_core::scopes::Seat;
use crate::relay_core::upstream::Upstream;

mod look;
#[cfg(test)]
mod tests;

/// How long what files had is remembered for who comes back: as long as tombstones are kept.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// How long the origin is not asked because a first request is being handled: one may follow on another without end.
const OPENING: Duration = Duration::from_millis(250);

/// How many names are stored under one hold of the lock.
const BATCH: usize = 256;

pub(crate) struct Scope {
    pub(crate) key: ScopeKey,
    /// Which origin it comes from, by position.
    pub(crate) origin: usize,
    /// The stream it comes over, and its seat there; none for an origin of files, and while nobody wants anything of it.
    upstream: Mutex<Option<(Arc<Upstream>, Seat)>>,
    /// Whether several streams may be served from it: not what forbids sharing, then.
    pub(crate) shared: bool,
    /// What requests for it have room for, with those of the scopes that come over the same stream.
    pub(crate) room: Option<Arc<RequestRoom>>,
    /// How many names are looked at under one hold of the lock.
    slice: usize,
    state: Mutex<State>,
    /// Its place among the groups or authorities that there may be.
    _place: Option<Share>,
}

struct State {
    cache: Cache<Frame>,
    wakers: Vec<Option<Waker>>,
    /// What to ask of the origin; an origin of files is not asked.
    demand: Option<Demand>,
    /// What a delta origin said last beside what is here, of types that are asked of it.
    system_versions: BTreeMap<TypeUrl, Version>,
    /// Subscribers that have not yet said all that their first request says: the origin is asked for all of it at once.
    opening: usize,
    /// When what others want waits for them no more.
    asks_at: Option<Instant>,
    /// Types of which somebody brought something along that the origin was not asked about.
    brought: BTreeSet<TypeUrl>,
    /// Since when nobody wants anything of it.
    rests_since: Option<Instant>,
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
        linger: Duration,
        room: Option<Arc<RequestRoom>>,
        slice: usize,
    ) -> Self {
        let mut options = Options::default();
        (options.authoritative, options.looks) = (false, slice);
        // All that comes over a group's own stream answers that group.
        options.wildcard_covers_xdstp = key.has_own_stream();
        Self::new(key, origin, options, Some(Demand::new(linger)), room)
    }

    /// A scope that holds all there is: what is not in it does not exist.
    pub(crate) fn of_files(key: ScopeKey, origin: usize, slice: usize) -> Self {
        let mut options = Options::default();
        options.looks = slice;
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
            demand,
            system_versions: BTreeMap::new(),
            opening: 0,
            asks_at: None,
            brought: BTreeSet::new(),
            rests_since: None,
        };
        let shared = !matches!(key, ScopeKey::Private(_));
        Self { key, origin, upstream: Mutex::default(), shared, room, slice, state: Mutex::new(state), _place: None }
    }

    /// It takes a place, for as long as it is there.
    pub(crate) fn counted(mut self, place: Option<Share>) -> Self {
        self._place = place;
        self
    }

    /// The stream it comes over.
    pub(crate) fn upstream(&self) -> Option<Arc<Upstream>> {
        lock(&self.upstream).as_ref().map(|(upstream, _)| upstream.clone())
    }

    /// It comes over this stream from now on.
    pub(crate) fn feed_from(self: &Arc<Self>, upstream: Arc<Upstream>) {
        let seat = upstream.scopes.insert(self);
        *lock(&self.upstream) = Some((upstream, seat));
        self.ask();
    }

    /// Nobody wants anything of it any more, and since when. It ends its stream, and remembers what went, and of files
    /// what goes, for those who come back (rule 100): none once there is nothing to remember.
    pub(crate) fn rest(&self, now: Instant) -> Option<Instant> {
        // Not under its lock.
        let upstream = lock(&self.upstream).take();
        if let Some((upstream, seat)) = upstream {
            upstream.scopes.remove(self, seat);
        }
        let State { cache, demand, rests_since, .. } = &mut *self.lock();
        let since = *rests_since.get_or_insert(now);
        cache.expire(now);
        let remembers = match demand {
            Some(_) => cache.next_expiry().is_some(),
            None => cache.resources().next().is_some() && now.saturating_duration_since(since) < REMEMBERED,
        };
        remembers.then_some(since)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, type_url: &TypeUrl, waker: Waker) -> SubscriberId {
        let mut state = self.lock();
        state.rests_since = None;
        let id = state.cache.open(type_url);
        let index = id.index();
        if state.wakers.len() <= index {
            state.wakers.resize(index + 1, None);
        }
        if let Some(slot) = state.wakers.get_mut(index) {
            *slot = Some(waker);
        }
        id
    }

    pub(crate) fn close(&self, type_url: &TypeUrl, id: SubscriberId) {
        let (mut nudge, mut closed) = (false, false);
        while !closed {
            let mut state = self.lock();
            if let Some(slot) = state.wakers.get_mut(id.index()) {
                *slot = None;
            }
            let (left, is_last) = state.cache.close_part(id, self.slice);
            (nudge, closed) = (nudge || !left.is_empty(), is_last);
            for interest in left {
                state.leave((type_url.clone(), interest));
            }
            drop(state);
            // Or who waits for the lock may not get it in between.
            std::thread::yield_now();
        }
        self.nudge(nudge);
    }

    /// Whether it is new to the subscriber.
    pub(crate) fn subscribe(&self, type_url: &TypeUrl, id: SubscriberId, interest: &Interest) -> bool {
        let mut state = self.lock();
        let subscribed = state.cache.subscribe(id, interest);
        let nudge = subscribed == Subscribed::First && state.want((type_url.clone(), interest.clone()));
        drop(state);
        self.nudge(nudge);
        subscribed != Subscribed::Again
    }

    /// The same, where a text is the canonical form of a name that is known here.
    pub(crate) fn subscribe_known(
        &self,
        type_url: &TypeUrl,
        id: SubscriberId,
        text: &CanonicalText<'_>,
    ) -> Option<(ResourceName, bool)> {
        let mut state = self.lock();
        let (subscribed, name) = state.cache.subscribe_known(id, text)?;
        let name = name.clone();
        let nudge = subscribed == Subscribed::First && state.want((type_url.clone(), Interest::Name(name.clone())));
        drop(state);
        self.nudge(nudge);
        Some((name, subscribed != Subscribed::Again))
    }

    /// Whether the subscriber had it.
    pub(crate) fn unsubscribe(&self, type_url: &TypeUrl, id: SubscriberId, interest: &Interest) -> bool {
        let mut state = self.lock();
        let held = state.cache.is_subscribed(id, interest);
        let last = state.cache.unsubscribe(id, interest);
        if last {
            state.leave((type_url.clone(), interest.clone()));
        }
        drop(state);
        self.nudge(last);
        held
    }

    /// Whether the subscriber asked for just this.
    pub(crate) fn wants(&self, id: SubscriberId, interest: &Interest) -> bool {
        self.lock().cache.is_subscribed(id, interest)
    }

    /// Whether the subscriber would still be sent a name.
    pub(crate) fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.lock().cache.covers(id, name)
    }

    /// The names that the subscriber may hold because of this interest.
    pub(crate) fn may_hold(&self, id: SubscriberId, interest: &Interest) -> BTreeSet<ResourceName> {
        self.lock().cache.may_hold(id, interest)
    }

    /// What is left to do for the subscriber.
    pub(crate) fn use_of(&self, id: SubscriberId) -> Use {
        let cache = &self.lock().cache;
        match cache.interests(id).next() {
            Some(_) => Use::Wanted,
            None if cache.has_work(id) => Use::Telling,
            None => Use::Over,
        }
    }

    /// A subscriber is about to say what it wants and what it has: the origin hears of it when all is said.
    pub(crate) fn begin_opening(&self) {
        self.lock().opening += 1;
    }

    pub(crate) fn end_opening(&self) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
        let nudge = state.opening == 0;
        if nudge {
            state.asks_at = None;
        }
        drop(state);
        self.nudge(nudge);
    }

    pub(crate) fn resume(&self, type_url: &TypeUrl, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        let mut held = held.into_iter();
        while held.len() > 0 {
            let mut state = self.lock();
            if state.demand.is_some() {
                state.brought.insert(type_url.clone());
            }
            state.cache.resume(id, held.by_ref().take(self.slice));
            drop(state);
            std::thread::yield_now();
        }
        self.nudge(true);
    }

    pub(crate) fn pull(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        self.lock().cache.pull(id, removals, visitor)
    }

    pub(crate) fn pull_errors(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        self.lock().cache.pull_errors(id, removals, visitor)
    }

    pub(crate) fn visit(
        &self,
        id: SubscriberId,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
    ) -> Unanswered {
        self.lock().cache.visit(id, visitor)
    }

    pub(crate) fn visit_leaving(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        self.lock().cache.visit_leaving(id, removals, visitor);
    }

    pub(crate) fn has_work(&self, id: SubscriberId) -> bool {
        self.lock().cache.has_work(id)
    }

    pub(crate) fn has_additions(&self, id: SubscriberId) -> bool {
        self.lock().cache.has_additions(id)
    }

    pub(crate) fn changes(&self) -> u64 {
        self.lock().cache.changes()
    }

    pub(crate) fn newest_removal(&self, id: SubscriberId) -> u64 {
        self.lock().cache.newest_removal(id)
    }

    pub(crate) fn resend(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.lock().cache.resend(id, name)
    }

    pub(crate) fn look_up(
        &self,
        id: SubscriberId,
        name: &ResourceName,
        look: &mut dyn FnMut(&Resource<Frame>),
    ) -> bool {
        let state = self.lock();
        state.cache.wanted(id, name).map(look).is_some()
    }

    pub(crate) fn type_version(&self, id: SubscriberId) -> Option<Version> {
        self.lock().cache.type_version(id).cloned()
    }

    /// What is told as `system_version_info`.
    pub(crate) fn system_version(&self, type_url: &TypeUrl, id: SubscriberId) -> Option<Version> {
        let state = self.lock();
        state.cache.type_version(id).or_else(|| state.system_versions.get(type_url)).cloned()
    }

    /// Stores what came from upstream, and wakes who is interested.
    pub(crate) fn store(&self, type_url: &TypeUrl, changes: Changes, now: Instant) {
        let Changes {
            changed,
            by_alias,
            mut removed,
            missing,
            errors,
            refreshed,
            begun,
            complete,
            version,
            system_version,
        } = changes;
        for part in missing.chunks(BATCH) {
            let cache = &self.lock().cache;
            let is_gone = |name: &&ResourceName| !is_marker(name) && !cache.is_brought_along(type_url, name);
            removed.extend(part.iter().filter(is_gone).cloned());
        }
        let (mut changed, mut removed) = (changed.into_iter(), removed.into_iter());
        let (mut errors, mut refreshed) = (errors.into_iter(), refreshed.into_iter());
        // What lost an alias: it may be all that it was wanted by. So may be what came as it was given up.
        let mut bereft = BTreeSet::new();
        let mut over = false;
        while !over {
            self.change(|state| {
                let State { cache, demand, system_versions, .. } = state;
                let mut edit = cache.edit(now);
                // Who asked for just this may have left, and decides how much of it there is.
                let is_asked =
                    |name: &ResourceName| demand.as_ref().is_some_and(|demand| demand.asks_for_itself(type_url, name));
                let gives_up = demand.as_ref().is_some_and(|demand| demand.gives_up(type_url));
                for Changed { name, resource, touched, .. } in changed.by_ref().take(BATCH) {
                    let aliases: Vec<_> = resource.value.aliases().filter(|_| by_alias).collect();
                    let resource = if self.shared && resource.value.do_not_cache() {
                        stub(&resource, edit.resource(type_url, &name).is_some_and(may_be_held))
                    } else {
                        resource
                    };
                    let (ttl, expires) = (resource.value.ttl(), resource.value.expires());
                    let owners = aliases.iter().filter_map(|alias| edit.canonical(type_url, alias));
                    bereft.extend(owners.filter(|owner| **owner != name).cloned());
                    if gives_up {
                        bereft.insert(name.clone());
                    }
                    edit.put_with_aliases(type_url, &name, aliases, resource);
                    if touched {
                        if let Some(held) = edit.value_mut(type_url, &name) {
                            held.refresh(ttl, expires);
                        }
                        edit.touch(type_url, &name);
                    }
                }
                if changed.len() == 0 {
                    for name in removed.by_ref().take(BATCH) {
                        bereft.extend(edit.canonical(type_url, &name).cloned());
                        if is_asked(&name) {
                            edit.deny(type_url, &name);
                        } else {
                            edit.remove(type_url, &name);
                        }
                    }
                }
                // What an error is about may be removed too, and a removal ends an error.
                if changed.len() == 0 && removed.len() == 0 {
                    for (name, error) in errors.by_ref().take(BATCH) {
                        if is_asked(&name) {
                            edit.fail_by_name(type_url, &name, error);
                        } else {
                            edit.fail(type_url, &name, error);
                        }
                    }
                }
                for (name, ttl) in refreshed.by_ref().take(BATCH) {
                    if let Some(held) = edit.value_mut(type_url, &name) {
                        held.refresh(Some(ttl), now.checked_add(ttl));
                    }
                }
                over = changed.len() + removed.len() + errors.len() + refreshed.len() == 0;
                if over {
                    for name in std::mem::take(&mut bereft) {
                        forget_unwanted(&mut edit, demand.as_ref(), type_url, name);
                    }
                    // An answer may come in as it is given up: nothing would end what is known then.
                    let is_wanted = |collection: &&Interest| {
                        demand.as_ref().is_none_or(|demand| demand.wants(type_url, collection))
                    };
                    begun.iter().filter(is_wanted).for_each(|collection| edit.begun(type_url, collection));
                    complete.iter().filter(is_wanted).for_each(|collection| edit.answered(type_url, collection));
                    // With the last of what it is the version of: nobody must see it beside older content.
                    if demand.as_ref().is_some_and(|demand| demand.wants_type(type_url)) {
                        if version.is_some() {
                            edit.set_type_version(type_url, version.clone());
                        }
                        if let Some(version) = &system_version {
                            system_versions.insert(type_url.clone(), version.clone());
                        }
                    }
                }
                edit.finish()
            });
        }
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
            self.change(|state| {
                let mut edit = state.cache.edit(now);
                for (type_url, name, resource) in batch {
                    edit.put(type_url, name, resource.clone());
                }
                edit.finish()
            });
        }
        for (type_url, name, _) in resources {
            if let Some(names) = gone.get_mut(type_url) {
                names.remove(name);
            }
        }
        for (type_url, names) in gone {
            self.store(&type_url, Changes { removed: names.into_iter().collect(), ..Changes::default() }, now);
        }
    }

    /// What to tell the origin, given that the stream to it is up or not: while it is down nothing that
    /// can still be served is dropped. Whether there is more: not all is told at once.
    pub(crate) fn take_asks(&self, now: Instant, connected: bool, tell: &mut dyn FnMut(Command)) -> bool {
        let mut commands = Vec::new();
        let more = self.lock().take_asks(now, self.slice, connected, self.room.as_deref(), &mut commands);
        commands.into_iter().for_each(tell);
        more
    }

    /// Whether the requests to its origin had no room for all it wants.
    pub(crate) fn is_short(&self) -> bool {
        self.lock().demand.as_ref().is_some_and(|demand| !demand.lacking().is_empty())
    }

    /// What the origin cannot be asked for, because a request has no room for it: how many bytes of each type.
    pub(crate) fn lacking(&self) -> BTreeMap<TypeUrl, usize> {
        self.lock().demand.as_ref().map_or_else(BTreeMap::new, |demand| demand.lacking().clone())
    }

    /// Gives up what nobody wants any more of a type, however long it lingered: how many bytes of names that is.
    pub(crate) fn forgo(&self, type_url: &TypeUrl, now: Instant) -> usize {
        let mut state = self.lock();
        let Some(demand) = &mut state.demand else { return 0 };
        let over = demand.forgo(now, |(of, _)| of != type_url);
        let size = over.iter().map(|(_, interest)| name_size(interest.as_str())).sum();
        state.evict(over, now);
        size
    }

    /// Has the origin asked for what there is room for now.
    pub(crate) fn ask(&self) {
        self.nudge(true);
    }

    /// How many bytes the names that a subscriber asked for take in a request.
    pub(crate) fn size_of(&self, id: SubscriberId) -> usize {
        self.lock().cache.interests(id).map(|interest| name_size(interest.as_str())).sum()
    }

    /// A stream begins: the origin is asked again for the fate of what clients brought along, and not for what nobody
    /// wants any more and is not here. In a loop of relays one would keep asking for what the next only asks for because
    /// of it (rule 159).
    pub(crate) fn begin_stream(&self, now: Instant) {
        let mut state = self.lock();
        let State { cache, demand: Some(demand), .. } = &mut *state else { return };
        let over = demand.forgo(now, |(type_url, interest)| cache.holds_any(type_url, interest));
        state.evict(over, now);
        let State { demand, brought, .. } = &mut *state;
        let collections = demand.iter().flat_map(Demand::wanted).filter(|(_, interest)| interest.is_collection());
        brought.extend(collections.map(|(type_url, _)| type_url.clone()));
    }

    /// The stream is over: what is here is served, and says nothing of what is not (rule 150).
    pub(crate) fn origin_lost(&self) {
        self.lock().cache.origin_lost();
    }

    /// Whether a resource is asked for here, by its name, a glob, or one of its aliases: also where nobody wants it any more
    /// and the origin is to hear of that.
    pub(crate) fn demands(&self, type_url: &TypeUrl, names: &[&ResourceName]) -> bool {
        let state = self.lock();
        let demand = state.demand.as_ref();
        demand.is_some_and(|demand| names.iter().any(|name| demand.asks_for(type_url, name)))
    }

    /// Whether anything was answered of a collection.
    pub(crate) fn is_known(&self, type_url: &TypeUrl, collection: &Interest) -> bool {
        self.lock().cache.is_known(type_url, collection)
    }

    /// What a subscriber is to be sent of a name.
    pub(crate) fn standing(&self, id: SubscriberId, name: &ResourceName) -> Standing {
        let cache = &self.lock().cache;
        if let Some(resource) = cache.wanted(id, name) {
            Standing::Present(resource.clone())
        } else if !cache.covers(id, name) || cache.is_absent(id, name) {
            Standing::Absent
        } else {
            Standing::Unknown
        }
    }

    /// Whether a name that the subscriber asked for stands for a resource that is here.
    pub(crate) fn is_alias(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.lock().cache.is_alias(id, name)
    }

    /// Whether some of what a subscriber brought along was not compared.
    pub(crate) fn brings(&self, id: SubscriberId) -> bool {
        self.lock().cache.brings(id)
    }

    /// Whether a name that the subscriber asked for was not answered.
    pub(crate) fn awaits_names(&self, id: SubscriberId) -> bool {
        self.lock().cache.awaits_names(id)
    }

    /// Whether the subscriber is yet to be told what became of a name that it brought along.
    pub(crate) fn will_tell(&self, id: SubscriberId, name: &ResourceName) -> bool {
        self.lock().cache.will_tell(id, name)
    }

    /// The subscriber was told that a name is gone, of which another scope had news, too.
    pub(crate) fn told_gone(&self, id: SubscriberId, name: &ResourceName) {
        self.lock().cache.told_gone(id, name);
    }

    /// When the next name has lingered long enough, or others have waited long enough for a first request.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let state = self.lock();
        state.demand.as_ref().and_then(Demand::poll_timeout).into_iter().chain(state.asks_at).min()
    }

    /// Whether nobody is served from it and nothing of it is subscribed upstream.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.cache.subscriber_count() == 0 && state.demand.as_ref().is_none_or(Demand::is_idle)
    }

    fn change(&self, change: impl FnOnce(&mut State) -> Woken) {
        let wakers: Vec<Waker> = {
            let mut state = self.lock();
            let woken = change(&mut state);
            woken.iter().filter_map(|id| state.wakers.get(id.index()).cloned().flatten()).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn nudge(&self, needed: bool) {
        let upstream = if needed { lock(&self.upstream).clone() } else { None };
        if let Some((upstream, seat)) = upstream {
            upstream.ask(seat);
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some((upstream, seat)) = lock(&self.upstream).take() {
            upstream.scopes.remove(self, seat);
        }
    }
}

impl State {
    fn take_asks(
        &mut self,
        now: Instant,
        most: usize,
        connected: bool,
        room: Option<&RequestRoom>,
        commands: &mut Vec<Command>,
    ) -> bool {
        let Self { cache, demand: Some(demand), .. } = self else { return false };
        if self.opening > 0 && !demand.is_telling() && now < *self.asks_at.get_or_insert(now + OPENING) {
            return false;
        }
        let (over, expires) = demand.expire(now, most, connected, |wish| can_be_served(cache, wish));
        self.evict(over, now);
        let Self { cache, demand: Some(demand), brought, .. } = self else { return false };
        let more = demand.take_asks(room, most, &mut |command| commands.push(command)) || expires;
        for type_url in if more { BTreeSet::new() } else { std::mem::take(brought) } {
            let undecided = cache.undecided(&type_url);
            if !undecided.is_empty() {
                commands.push(Command::Undecided(type_url, undecided.into_iter().collect()));
            }
        }
        self.asks_at = self.asks_at.filter(|_| more);
        more
    }

    /// Somebody is the first to want it. Whether the origin must be told.
    fn want(&mut self, wish: Wish) -> bool {
        let Self { cache, demand, .. } = self;
        let Some(demand) = demand else { return false };
        let known = cache.is_known(&wish.0, &wish.1);
        demand.want(wish, known)
    }

    fn leave(&mut self, wish: Wish) {
        if let Some(demand) = &mut self.demand {
            demand.leave(wish);
        }
    }

    /// Forgets what is not demanded any more.
    fn evict(&mut self, over: Vec<Wish>, now: Instant) {
        let Self { cache, demand, system_versions, .. } = self;
        for (type_url, interest) in over {
            if !demand.as_ref().is_some_and(|demand| demand.wants_type(&type_url)) {
                cache.set_type_version(&type_url, None);
                system_versions.remove(&type_url);
            }
            // What was given up may have been here by another name, too.
            let keeps = |name: &_| demand.as_ref().is_some_and(|demand| demand.wants_by(&type_url, name));
            cache.evict_unless(&type_url, &interest, now, &keeps);
        }
    }
}

/// Forgets a resource that nothing asks for by any of its names.
fn forget_unwanted(edit: &mut Edit<'_, Frame>, demand: Option<&Demand>, type_url: &TypeUrl, name: ResourceName) {
    let (Some(demand), Some(resource)) = (demand, edit.resource(type_url, &name)) else { return };
    let aliases = resource.value.aliases().filter(|alias| edit.canonical(type_url, alias) == Some(&name));
    if !aliases.chain([name.clone()]).any(|name| demand.wants_by(type_url, &name)) {
        edit.evict(type_url, &Interest::Name(name));
    }
}

/// What a shared scope keeps of a resource that must not be shared: that there is one, when it changes, and whether it was
/// `once_shared`. No client holds it at this version, so whoever comes back is sent to the origin too (rule 121).
fn stub(resource: &Resource<Frame>, once_shared: bool) -> Resource<Frame> {
    let version = Version::from(format!("do_not_cache {}", resource.version));
    let body = Bytes::from_static(if once_shared { ONCE_SHARED } else { b"" });
    let frame = Frame::new(body).with_wrapper(Bytes::new(), None, true);
    Resource::new(version, resource.digest(), frame)
}

/// The body of a stub for what clients may hold from before.
const ONCE_SHARED: &[u8] = b"once shared";

/// Whether clients may hold what was shared under the name of what is here.
pub(crate) fn may_be_held(here: &Resource<Frame>) -> bool {
    !here.value.do_not_cache() || here.value.any() == ONCE_SHARED
}

/// Whether there is anything to tell who wants this.
fn can_be_served(cache: &Cache<Frame>, (type_url, interest): &Wish) -> bool {
    match interest {
        Interest::Name(name) if !name.is_glob() => cache.resource(type_url, name).is_some(),
        collection => cache.is_known(type_url, collection),
    }
}
