//! What comes over one stream from an origin, on its way to the scopes it belongs to; and what they want, to the origin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::upstream::{Connection, Consumer};
use bytes::Bytes;
use tonic::metadata::MetadataMap;
use xds_transport::Protocol;
use xds_transport::client::{Command, Intern, Update, Verdict};
use xdstp_cache::{ResourceError, Selector, TypeUrl, Version};

use self::reachable::Reachable;
use crate::federation::alike::Unsaid;
use crate::federation::lock::lock;
use crate::federation::markers::Markers;
use crate::federation::places::{Elsewhere, Part, Places};
use crate::federation::scope::restated::Restated;
use crate::federation::scopes::{Due, Scopes, Seat};
use crate::federation::server::{Server, StreamState};
use crate::federation::settling::Settling;
use crate::federation::speakers::Speakers;

/// An origin that has a stream and requests, and says nothing for this long, may want them asked in another way.
const SILENT: Duration = Duration::from_secs(15);

/// An origin may have nothing to say to who returns with all it has. A balancer without an origin does not keep a stream
/// open for this long.
const STEADY: Duration = Duration::from_secs(30);

mod paused;
mod program;
mod reachable;
mod sort;
mod work;

pub(crate) struct Feed {
    label: String,
    /// By what everything is asked for.
    selector: Option<Arc<Selector>>,
    /// What has what other streams to the origin carry for other nodes held once: to be named to the stream.
    intern: Option<Arc<dyn Intern>>,
    server: Arc<Server>,
    scopes: Arc<Scopes>,
    /// When scopes have something to tell the origin by themselves.
    due: Due,
    /// The requests to the origin had no room for all that these want.
    short: BTreeSet<Seat>,
    /// Some scope has more to tell the origin than was taken at once.
    more: bool,
    /// The origin was there when they were looked at last, all of them.
    was_there: Option<bool>,
    state: Arc<Mutex<StreamState>>,
    speakers: Arc<Mutex<Speakers>>,
    settling: Settling,
    markers: Markers,
    elsewhere: Elsewhere,
    /// Types whose stream ended while others go on, and that were not answered since: until when the next may end, too.
    paused: BTreeMap<TypeUrl, Instant>,
    reachable: Reachable,
    /// When a stream that was not answered is remarkable.
    silent_at: Option<Instant>,
    /// What is to be said of what is not in use any more, because something was refused.
    dropped: Vec<Command>,
    /// When a stream that was not answered is still taken for one to the origin; `steady` once it is.
    steady_at: Option<Instant>,
    steady: bool,
}

impl Feed {
    pub(crate) fn new(
        label: String,
        by_node: bool,
        selector: Option<Arc<Selector>>,
        server: Arc<Server>,
        scopes: Arc<Scopes>,
        state: Arc<Mutex<StreamState>>,
        speakers: Arc<Mutex<Speakers>>,
    ) -> Self {
        let markers = Markers::new(server.loops.instance());
        // What one stream carries for all clients is here once as it is.
        let intern = by_node.then(|| server.interner.clone() as Arc<dyn Intern>);
        Self {
            label,
            selector,
            intern,
            reachable: Reachable::new(server.clone()),
            server,
            scopes,
            due: Due::default(),
            short: BTreeSet::new(),
            more: false,
            was_there: None,
            state,
            speakers,
            settling: Settling::new(markers.wait()),
            markers,
            elsewhere: Elsewhere::default(),
            paused: BTreeMap::new(),
            silent_at: None,
            dropped: Vec::new(),
            steady_at: None,
            steady: false,
        }
    }

    fn answered(&mut self, now: Instant) {
        let was_answered = lock(&self.state).answered;
        if !was_answered {
            if self.says("connected", now) {
                tracing::info!(origin = %self.server.origin, stream = %self.label, "connected");
            }
            // Not under the lock: who counts is anybody's code.
            let guard = self.server.observer.connected(&self.server.origin);
            let mut state = lock(&self.state);
            (state.answered, state.hint, state.lost_since) = (true, None, None);
            let before = state.guard.replace(guard);
            drop(state);
            drop(before);
            self.silent_at = None;
        }
        self.tell_back(false);
    }

    /// A version that stays what it was is to say that the content did: a client that comes back with it may not be sent this.
    fn tell_restated(&self, type_url: &TypeUrl, restated: &Restated) {
        if let Some(name) = &restated.first {
            let origin = &self.server.origin;
            self.server.observer.restated(origin, type_url, restated.resources);
            tracing::warn!(%origin, %type_url, %name, resources = restated.resources, "changed without its version");
        }
    }

    /// Whether this stream is to say so, of many that have to.
    fn says(&self, words: &str, now: Instant) -> bool {
        let (says, unsaid) = self.server.alike.say(words, now);
        if let Some(Unsaid { words, streams }) = unsaid {
            tracing::info!(origin = %self.server.origin, streams, "more of the same: {words}");
        }
        says
    }
}

impl Consumer for Feed {
    fn too_long(&mut self) {
        self.server.observer.too_long(&self.server.origin);
    }

    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        self.intern.take().into_iter().for_each(|intern| apply(Command::Intern(intern)));
        self.dropped.drain(..).for_each(&mut *apply);
        let (answered, is_lost, fails, trouble) = {
            let state = lock(&self.state);
            (state.answered, state.is_lost(), state.fails, state.trouble.clone())
        };
        let there = answered || self.steady || self.steady_at.is_some_and(|at| at <= now);
        let lost = !there && is_lost;
        if self.see_off(apply) {
            self.short.iter().for_each(|seat| self.scopes.ask(*seat));
        }
        let mut work = self.with_work(now, there);
        let mut goes_on = BTreeSet::new();
        while !work.is_empty() {
            let mut left = false;
            for (seat, scope) in work {
                if lost {
                    scope.lost(now);
                }
                if seat.of_several {
                    // It may have a seat here only now.
                    self.stands(seat, &scope, fails);
                } else {
                    trouble.iter().for_each(|trouble| scope.tell_unreachable(trouble));
                }
                scope.pause(seat.key(), &self.paused);
                let more = scope.take_asks(now, seat.key(), there, &mut |command| {
                    left |= self.note(&command);
                    apply(command);
                });
                if more {
                    scope.ask();
                    goes_on.insert(seat);
                }
                self.due.set(seat, scope.poll_timeout());
                match scope.is_short(seat.server) {
                    true => _ = self.short.insert(seat),
                    false => _ = self.short.remove(&seat),
                }
            }
            // What is left makes room for others.
            let waits: Vec<_> = self.short.difference(&goes_on).copied().filter(|_| left).collect();
            let short = waits.into_iter().filter(|seat| self.short.remove(seat)).collect();
            work = self.seated(short);
        }
        self.more = !goes_on.is_empty() || self.scopes.is_left();
        // Over SotW a full state is all there is.
        let asks = self.server.protocol == Protocol::Delta && self.server.loops.asks_for_ends();
        for wish in self.settling.doubtful(now).into_iter().filter(|_| asks) {
            self.markers.ask(wish);
        }
        self.markers.take_commands().into_iter().for_each(apply);
    }

    fn has_more_commands(&self) -> bool {
        self.more
    }

    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        let (responses, resources) = (u64::from(!update.unsaid), update.changed.len() as u64);
        self.server.observer.received(&self.server.origin, &update.type_url, responses, resources);
        if !update.unsaid {
            self.server.observer.spoke(&self.server.origin, now);
            self.resume_type(&update.type_url);
        }
        self.refuse(&update.rejected);
        let as_they_were = (update.repeated.len() + update.unchanged) as u64;
        let (nacks, came) = (update.rejected.len() as u64, resources + as_they_were);
        let ends = self.server.protocol == Protocol::Delta || self.server.rules.of(&update.type_url).full_state_in_sotw;
        let mut complete = self.settling.update(now, &update, ends);
        complete.iter().for_each(|collection| self.markers.forget(&update.type_url, collection));
        update.withheld().for_each(|collection| self.markers.forget(&update.type_url, &collection));
        for collection in self.markers.answered(&mut update) {
            self.settling.complete(&update.type_url, &collection);
            complete.push(collection);
        }
        let (type_url, unsaid) = (update.type_url.clone(), update.unsaid);
        let said = Some(update.version.as_str()).filter(|version| !version.is_empty()).map(Version::from);
        // Rule 33: equal versions of a type mean equal content, and what a delta origin says beside it means nothing.
        let protocol = self.server.protocol;
        let replaces = self.server.replaces.load(Ordering::Relaxed);
        let versions = |of_several: bool| match protocol {
            Protocol::Sotw if !of_several && !replaces => (said.clone(), None),
            Protocol::Sotw | Protocol::Delta => (None, said.clone()),
        };
        let (scopes, server) = (self.scopes.clone(), self.server.clone());
        let mut places = Places::of(&scopes, &server.authorities);
        self.tell_rejected(&type_url, &update.rejected, &mut places);
        let mut refused = self.sort(update, complete, &mut places);
        let mut restated = Restated::default();
        // What is not in it is as it was, and so is the version of that.
        for Part { scope, of_origin, mut changes } in places.into_parts() {
            changes.by_alias = server.protocol == Protocol::Delta;
            let has_moved = server.authorities.has_moved(scope.key.authority());
            let of_others = of_origin.has_several || has_moved || scope.may_hold_of_others();
            (changes.version, changes.system_version) = versions(of_others);
            changes.unsaid = unsaid;
            refused.extend(scope.validate(&type_url, &mut changes));
            self.dropped.extend(scope.dropped_by(&type_url, &changes));
            if !changes.is_empty() {
                restated.add(scope.store(&type_url, changes, now));
            }
        }
        self.tell_restated(&type_url, &restated);
        self.refuse(&refused);
        let bad = refused.len() as u64;
        self.server.observer.judged(&self.server.name, &type_url, came.saturating_sub(bad), nacks + bad);
        if nacks + bad > 0 {
            self.server.observer.nacked(&self.server.origin, &type_url);
        }
        // Rule 145: what could be read is accepted; a downstream NACK stays downstream.
        if refused.is_empty() { Verdict::Accept } else { Verdict::Reject { reasons: refused } }
    }

    fn connection(&mut self, now: Instant, connection: Connection) {
        match connection {
            Connection::Connected => {
                let mut state = lock(&self.state);
                (state.open, state.fails, state.retry_at) = (true, false, None);
                drop(state);
                self.reachable.opened();
                (self.silent_at, self.steady_at) = (now.checked_add(SILENT), now.checked_add(STEADY));
                self.scopes.all().iter().for_each(|(seat, scope)| scope.begin_stream(seat.server, now));
                self.was_there = None;
            }
            Connection::Answered => {
                self.answered(now);
                self.reachable.answered();
                let of_several = self.scopes.all().into_iter().filter(|(seat, _)| seat.of_several);
                of_several.for_each(|(seat, scope)| self.stands(seat, &scope, false));
            }
            Connection::Disconnected { error, retry_at } => {
                let words = error.as_ref().map(|error| format!("disconnected: {error}"));
                let words = words.as_deref().unwrap_or("the origin ended the stream");
                match (self.says(words, now), &error) {
                    (true, Some(_)) => tracing::warn!(origin = %self.server.origin, stream = %self.label, "{words}"),
                    (true, None) => tracing::info!(origin = %self.server.origin, stream = %self.label, "{words}"),
                    (false, _) => tracing::debug!(origin = %self.server.origin, stream = %self.label, "{words}"),
                }
                self.tell_lost(error.as_deref());
                (self.silent_at, self.steady_at, self.steady) = (None, None, false);
                self.paused.clear();
                self.markers.forget_all();
                let settled = self.settling.pause();
                self.settle(settled, now);
                let mut state = lock(&self.state);
                state.lost_since.get_or_insert(now);
                let fails = !state.answered;
                state.fails = fails;
                (state.open, state.answered) = (false, false);
                (state.last_error, state.retry_at) = (error.or(state.last_error.take()), Some(retry_at));
                let over = (state.guard.take(), state.relays.take());
                drop(state);
                drop(over);
                if fails {
                    self.reachable.failed();
                }
                for (seat, scope) in self.scopes.all() {
                    scope.origin_lost(seat.server, now);
                    if fails && seat.of_several {
                        self.tell_failed(seat, &scope, true);
                    }
                }
            }
        }
    }

    fn type_ended(&mut self, now: Instant, type_url: &TypeUrl, error: &ResourceError) {
        let again = self.paused.contains_key(type_url);
        self.pause_type(now, type_url, &error.message);
        // A balancer without an origin may hold one stream while it ends another. One that ends again says nothing of those that last.
        if !again && !lock(&self.state).answered {
            self.steady_at = now.checked_add(STEADY);
        }
    }

    fn type_opened(&mut self, now: Instant, type_url: &TypeUrl) {
        self.type_lasts(now, type_url);
    }

    /// Nothing that the one before said of itself says anything of this one; what it gave is served on.
    fn another_server(&mut self, _: Instant) {
        self.server.replaces.store(true, Ordering::Relaxed);
        self.settling.another_server();
        self.dropped.clear();
        self.reachable.forget();
        let before = std::mem::take(&mut *lock(&self.state));
        drop(before);
        self.was_there = None;
        self.scopes.all().iter().for_each(|(seat, scope)| scope.another_server(seat.server));
    }

    fn selector(&self) -> Selector {
        self.selector.as_deref().cloned().unwrap_or_default()
    }

    fn node(&mut self) -> Option<Bytes> {
        lock(&self.speakers).speaker()
    }

    fn metadata(&mut self) -> MetadataMap {
        self.server.loops.say()
    }

    fn opened(&mut self, metadata: &MetadataMap) -> Result<(), String> {
        let heard = self.server.loops.hear(metadata);
        let heard = heard.inspect_err(|_| self.server.observer.looped(&self.server.origin))?;
        let by_relay = heard.is_some() && self.server.protocol == Protocol::Delta;
        self.settling.connected(by_relay, self.markers.wait());
        if heard.is_some() {
            let before = std::mem::replace(&mut lock(&self.state).relays, heard);
            drop(before);
        }
        Ok(())
    }

    fn received(&mut self, at: Instant) {
        self.settling.received(at);
        self.server.observer.spoke(&self.server.origin, at);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let paused = self.paused.values().min().copied();
        let own = [self.due.next(), self.settling.poll_timeout(), self.silent_at, self.steady_at, paused];
        own.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        let is_idle = || self.scopes.all().iter().all(|(_, scope)| scope.is_idle());
        if self.silent_at.take_if(|at| *at <= now).is_some() && !is_idle() {
            tracing::warn!(origin = %self.server.origin, stream = %self.label, "{}", self.server.silent_hint);
            lock(&self.state).hint = Some(self.server.silent_hint);
        }
        if self.steady_at.take_if(|at| *at <= now).is_some() {
            self.steady = true;
            self.tell_back(true);
        }
        self.resume_steady(now);
        // What lingers is looked at with the commands.
        let settled = self.settling.settled(now);
        self.settle(settled, now);
    }
}
