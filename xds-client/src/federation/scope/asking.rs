//! What a scope tells its origin that it wants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use xds_transport::Frame;
use xds_transport::client::{Command, name_size};
use xdstp_cache::{Cache, Interest, TypeUrl};
use xdstp_uri::ResourceName;

use super::{Scope, State};
use crate::federation::demand::{Demand, Wish};
use crate::federation::request_room::RequestRoom;

/// How long the origin is not asked because a first request is being handled: one may follow on another without end.
pub(crate) const OPENING: Duration = Duration::from_millis(250);

impl Scope {
    /// What to tell the origin, given that the stream to it is up or not: while it is down nothing that
    /// can still be served is dropped. Whether there is more: not all is told at once.
    pub(crate) fn take_asks(&self, now: Instant, connected: bool, tell: &mut dyn FnMut(Command)) -> bool {
        let looks = self.look_back(now, connected);
        let mut commands = Vec::new();
        let more = self.lock().take_asks(now, self.slice, connected, self.room.as_deref(), &mut commands);
        commands.into_iter().for_each(tell);
        more || looks
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
    pub(crate) fn origin_lost(&self, now: Instant) {
        // What it said counts, while that is known to be complete.
        self.fall_back(now);
        self.lock().cache.origin_lost();
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
        let Self { demand: Some(demand), .. } = self else { return false };
        let more = demand.take_asks(room, most, &mut |command| commands.push(command)) || expires;
        let more = self.hold(most, commands) || more;
        let Self { cache, brought, .. } = self;
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
    pub(super) fn want(&mut self, wish: Wish) -> bool {
        let Self { cache, demand, .. } = self;
        let Some(demand) = demand else { return false };
        let known = cache.is_known(&wish.0, &wish.1);
        demand.want(wish, known)
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
