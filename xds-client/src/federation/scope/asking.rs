//! What a scope tells its origin that it wants.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use xds_transport::Frame;
use xds_transport::client::{Command, name_size};
use xdstp_cache::{Cache, Interest, TypeUrl};
use xdstp_uri::ResourceName;

use super::several::Several;
use super::{Scope, State};
use crate::federation::demand::{Demand, Wish};
use crate::federation::request_room::RequestRoom;

/// How long the origin is not asked because a first request is being handled: one may follow on another without end.
pub(crate) const OPENING: Duration = Duration::from_millis(250);

impl Scope {
    /// What to tell a server, given that the stream to it is up or not: while it is down nothing that
    /// can still be served is dropped. Whether there is more: not all is told at once.
    pub(crate) fn take_asks(
        &self,
        now: Instant,
        (leads, server): (usize, usize),
        connected: bool,
        tell: &mut dyn FnMut(Command),
    ) -> bool {
        if self.leads() != leads {
            return self.take_left((leads, server), tell);
        }
        let (there, all_there) = {
            let state = self.lock();
            let there = connected || state.is_there(connected);
            (there, there && state.paused.is_empty())
        };
        let looks = self.look_back(now, all_there);
        let (mut commands, mut told) = (Vec::new(), true);
        let more =
            self.lock().take_asks(now, (server, self.slice), there, self.room.as_deref(), &mut commands, &mut told);
        commands.into_iter().for_each(tell);
        // What one server is told is over, others are to be told, too.
        self.nudge(!told);
        more || looks
    }

    /// What to tell a server that is not asked any more, and whose stream goes on. Whether there is more.
    pub(crate) fn take_left(&self, server: (usize, usize), tell: &mut dyn FnMut(Command)) -> bool {
        let mut commands = Vec::new();
        let mut state = self.lock();
        let demand = state.demand.as_mut();
        let more =
            demand.is_some_and(|demand| demand.take_left(server, self.slice, &mut |command| commands.push(command)));
        drop(state);
        commands.into_iter().for_each(tell);
        more
    }

    /// Whether there is anything of that.
    pub(crate) fn leaves_any(&self, server: (usize, usize)) -> bool {
        self.lock().demand.as_ref().is_some_and(|demand| demand.leaves_any(server))
    }

    /// Its stream ended.
    pub(crate) fn has_left(&self, server: (usize, usize)) {
        self.lock().demand.iter_mut().for_each(|demand| demand.has_left(server));
    }

    /// Whether the requests to a server had no room for all it wants.
    pub(crate) fn is_short(&self, server: usize) -> bool {
        let state = self.lock();
        let lacking = state.demand.as_ref().and_then(|demand| demand.lacking(server));
        lacking.is_some_and(|lacking| !lacking.is_empty())
    }

    /// What the origin cannot be asked for, because a request has no room for it: how many bytes of each type.
    pub(crate) fn lacking(&self) -> BTreeMap<TypeUrl, usize> {
        self.lock().demand.as_ref().and_then(|demand| demand.lacking(0)).cloned().unwrap_or_default()
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

    /// A stream begins: the origin is asked again for the fate of what clients brought along, and not for what nobody
    /// wants any more and is not here. In a loop of relays one would keep asking for what the next only asks for because
    /// of it (rule 159).
    pub(crate) fn begin_stream(&self, server: usize, now: Instant) {
        let mut state = self.lock();
        state.connects(server);
        let State { cache, demand: Some(demand), .. } = &mut *state else { return };
        let over = demand.forgo(now, |(type_url, interest)| cache.holds_any(type_url, interest));
        state.evict(over, now);
        let Some(demand) = &mut state.demand else { return };
        let collections = demand.wanted().iter().filter(|(_, interest)| interest.is_collection());
        let types: Vec<_> = collections.map(|(type_url, _)| type_url.clone()).collect();
        if let Some(telling) = demand.telling_mut(server) {
            telling.brought.extend(types);
        }
    }

    /// The stream is over: what is here is served, and says nothing of what is not (rule 150).
    pub(crate) fn origin_lost(&self, server: usize, now: Instant) {
        if !self.lock().loses(server) {
            return;
        }
        // What it said counts, while that is known to be complete.
        self.lost(now);
        self.lock().cache.origin_lost();
    }

    /// The stream of one type is over, and the next one is asked again for the fate of what clients brought along of it.
    pub(crate) fn type_lost(&self, server: usize, type_url: &TypeUrl) {
        {
            let mut state = self.lock();
            let loses = state.loses(server);
            let State { cache, demand: Some(demand), .. } = &mut *state else { return };
            let mut wanted = demand.wanted().iter().filter(|(of, _)| of == type_url);
            let is_collected = wanted.any(|(_, interest)| interest.is_collection());
            if let Some(telling) = demand.telling_mut(server).filter(|_| is_collected) {
                telling.brought.insert(type_url.clone());
            }
            if loses && demand.wants_type(type_url) {
                cache.type_lost(type_url);
            }
        }
        // The first request of the next stream says that.
        self.ask();
    }

    /// Of these types the stream to a server is over while others go on: if it is the one that counts, then until it says otherwise
    /// they are as if there were none.
    pub(crate) fn pause(&self, (leads, server): (usize, usize), types: &BTreeMap<TypeUrl, Instant>) {
        let mut state = self.lock();
        if types.is_empty() && state.paused.is_empty() || state.leads() != leads || !state.loses(server) {
            return;
        }
        let State { demand, paused, .. } = &mut *state;
        let is_wanted = |of: &&TypeUrl| demand.as_ref().is_some_and(|demand| demand.wants_type(of));
        *paused = types.keys().filter(is_wanted).cloned().collect();
    }

    /// Whether a resource is asked for here, by its name, a glob, or one of its aliases: also where nobody wants it any more
    /// and the origin is to hear of that.
    pub(crate) fn demands(&self, type_url: &TypeUrl, names: &[&ResourceName]) -> bool {
        let state = self.lock();
        let demand = state.demand.as_ref();
        demand.is_some_and(|demand| names.iter().any(|name| demand.asks_for(type_url, name)))
    }

    /// When the next name has lingered long enough, or others have waited long enough for a first request.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let state = self.lock();
        let recall = state.recall.as_ref().and_then(|recall| recall.poll_timeout());
        state.demand.as_ref().and_then(Demand::poll_timeout).into_iter().chain(state.asks_at).chain(recall).min()
    }
}

impl State {
    fn take_asks(
        &mut self,
        now: Instant,
        (server, most): (usize, usize),
        connected: bool,
        room: Option<&RequestRoom>,
        commands: &mut Vec<Command>,
        others_told: &mut bool,
    ) -> bool {
        let Self { cache, demand: Some(demand), paused, .. } = self else { return false };
        if self.opening > 0 && !demand.is_telling(server) && now < *self.asks_at.get_or_insert(now + OPENING) {
            return false;
        }
        let (over, expires) = demand.expire(now, most, (connected, paused), |wish| can_be_served(cache, wish));
        *others_told = over.is_empty() || !demand.asks_several();
        self.evict(over, now);
        let Self { demand: Some(demand), several, .. } = self else { return false };
        let more = demand.take_asks(server, room, most, &mut |command| commands.push(command)) || expires;
        let more = match several {
            None => self.hold(most, commands),
            Some(_) => self.hold_of_others(server, most, commands),
        } || more;
        let Self { cache, demand, .. } = self;
        let brought = demand.as_mut().and_then(|demand| demand.telling_mut(server)).map(|telling| &mut telling.brought);
        for type_url in brought.filter(|_| !more).map(std::mem::take).unwrap_or_default() {
            let undecided = cache.undecided(&type_url);
            if !undecided.is_empty() {
                commands.push(Command::Undecided(type_url, undecided.into_iter().collect()));
            }
        }
        self.asks_at = self.asks_at.filter(|_| more);
        more
    }

    /// Somebody is the first to want it. Whether the origin must be told.
    pub(super) fn want(&mut self, wish: Wish) -> bool {
        let Self { cache, demand, several, recall, .. } = self;
        let Some(demand) = demand else { return false };
        recall.iter_mut().for_each(|recall| recall.is_wanted());
        let known = cache.is_known(&wish.0, &wish.1);
        let lacks = several.as_deref_mut().filter(|_| !known).map(Several::lacks).is_some();
        demand.want(wish, known) || lacks
    }

    pub(super) fn leave(&mut self, wish: Wish) {
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

/// Whether there is anything to tell who wants this.
fn can_be_served(cache: &Cache<Frame>, (type_url, interest): &Wish) -> bool {
    match interest {
        Interest::Name(name) if !name.is_glob() => cache.resource(type_url, name).is_some(),
        collection => cache.is_known(type_url, collection),
    }
}
