//! What a scope wants of its origin: the union of its subscribers' interest, and what lingers (rule 141).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds_transport::client::Command;
use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::request_room::RequestRoom;
use crate::federation::share::{Quota, Share};
use crate::federation::telling::Telling;
pub(crate) use crate::federation::telling::Wish;

pub(crate) struct Demand {
    linger: Linger,
    /// What nobody wants any more is given up while its origin is away, too, though it could be served still.
    forgets: bool,
    /// What is subscribed upstream, or will be when the asks are taken.
    wanted: BTreeSet<Wish>,
    /// What its first server is told of that.
    first: Telling,
    /// What further servers are, that are asked because those before them fail.
    others: Vec<Telling>,
    /// What those are to be told yet that are not asked any more, where their streams go on for others: each with how often it was
    /// led elsewhere when it was asked.
    ended: BTreeMap<(usize, usize), Telling>,
    /// How often another origin is asked than before.
    leads: usize,
    /// What nobody wants any more since the last look at the clock.
    left: BTreeSet<Wish>,
    /// What nobody wants any more, until when it stays subscribed, and its room among all that lingers.
    lingering: BTreeMap<Wish, (Instant, Share)>,
    /// The same by time, but for those that stay because the origin is away.
    due: BTreeSet<(Instant, Wish)>,
}

/// What nobody wants any more stays subscribed: for so long, and so much of it in all scopes together.
#[derive(Clone)]
pub(crate) struct Linger {
    pub(crate) time: Duration,
    pub(crate) room: Arc<Quota>,
}

impl From<Duration> for Linger {
    /// However much it is.
    fn from(time: Duration) -> Self {
        Self { time, room: Quota::new("lingering_names", "lingering names", usize::MAX) }
    }
}

impl Demand {
    pub(crate) fn new(linger: impl Into<Linger>) -> Self {
        Self {
            linger: linger.into(),
            forgets: false,
            wanted: BTreeSet::new(),
            first: Telling::default(),
            others: Vec::new(),
            ended: BTreeMap::new(),
            leads: 0,
            left: BTreeSet::new(),
            lingering: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// That of a program, whose watches find nothing of those before them (rule 27 of gRPC's clients).
    pub(crate) fn of_a_program() -> Self {
        Self { forgets: true, ..Self::new(Duration::ZERO) }
    }

    /// Somebody wants it. Whether the origin must be told: not when it lingers, unless the answer to a name is
    /// not `known` any more: nothing is remembered of a name that nobody wants and that does not exist.
    pub(crate) fn want(&mut self, wish: Wish, known: bool) -> bool {
        let lingered = self.left.remove(&wish) | self.forget_time(&wish);
        let is_new = self.wanted.insert(wish.clone());
        let again = lingered && !known && !wish.1.is_collection();
        let others = self.others.iter_mut().map(|telling| telling.want(wish.clone(), is_new, again));
        let others = others.fold(false, |any, needed| any | needed);
        self.first.want(wish, is_new, again) || others
    }

    /// Whether the server was never told of what is wanted.
    pub(crate) fn is_untold(&self, wish: &Wish) -> bool {
        self.first.is_untold(wish)
    }

    /// Nobody wants it any more.
    pub(crate) fn leave(&mut self, wish: Wish) {
        self.left.insert(wish);
    }

    /// Gives up what lingered long enough, unless it `stays`, and notes what was left: of either not more than `most` at
    /// once. What is given up is returned, and whether there may be more to do. What there is no room for is given up
    /// whether it stays or not. Of a type that is paused the origin is as if it were not connected.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        most: usize,
        (connected, paused): (bool, &BTreeSet<TypeUrl>),
        stays: impl Fn(&Wish) -> bool,
    ) -> (Vec<Wish>, bool) {
        let is_there = |(of, _): &Wish| connected && !paused.contains(of);
        let mut crowded_out = self.note_left(now, most);
        let mut over = Vec::new();
        if connected && self.due.len() < self.lingering.len() {
            // The origin is back.
            let overdue = self.lingering.iter().filter(|(wish, (until, _))| *until <= now && is_there(wish));
            over.extend(overdue.map(|(wish, _)| wish.clone()).take(most));
        }
        while over.len() < most
            && let Some((_, wish)) = self.due.first().filter(|(until, _)| *until <= now).cloned()
        {
            self.due.pop_first();
            over.push(wish);
        }
        let more = over.len() >= most || !self.left.is_empty();
        over.retain(|wish| {
            let gives_up = is_there(wish) || self.forgets || !stays(wish);
            gives_up && self.give_up(wish)
        });
        crowded_out.append(&mut over);
        (crowded_out, more)
    }

    /// Gives up what lingers and does not `stay`, however long it has: what that is, is returned.
    pub(crate) fn forgo(&mut self, now: Instant, stays: impl Fn(&Wish) -> bool) -> Vec<Wish> {
        let mut crowded_out = self.note_left(now, usize::MAX);
        let mut over: Vec<_> = self.lingering.keys().filter(|wish| !stays(wish)).cloned().collect();
        over.retain(|wish| self.give_up(wish));
        crowded_out.append(&mut over);
        crowded_out
    }

    /// What there is no room for then is returned: it is given up, what would be soonest first.
    fn note_left(&mut self, now: Instant, most: usize) -> Vec<Wish> {
        let (until, mut crowded_out) = (now + self.linger.time, Vec::new());
        for _ in 0..most {
            let Some(wish) = self.left.pop_first() else { break };
            self.due.insert((until, wish.clone()));
            if let Some(share) = self.make_room(&wish, &mut crowded_out) {
                self.lingering.insert(wish, (until, share));
            }
        }
        crowded_out
    }

    /// Room for what is due, too: none if that is what is given up first.
    fn make_room(&mut self, wish: &Wish, crowded_out: &mut Vec<Wish>) -> Option<Share> {
        loop {
            if let Ok(share) = self.linger.room.take() {
                return Some(share);
            }
            // It is among them itself, so that this ends.
            let (_, soonest) = self.due.pop_first()?;
            self.lingering.remove(&soonest);
            self.end(&soonest);
            let is_it = soonest == *wish;
            crowded_out.push(soonest);
            if is_it {
                return None;
            }
        }
    }

    /// Whether it was lingering.
    fn give_up(&mut self, wish: &Wish) -> bool {
        let lingered = self.forget_time(wish);
        if lingered {
            self.end(wish);
        }
        lingered
    }

    fn end(&mut self, wish: &Wish) {
        self.wanted.remove(wish);
        self.tellings_mut().for_each(|telling| telling.give_up(wish));
    }

    fn forget_time(&mut self, wish: &Wish) -> bool {
        let lingering = self.lingering.remove(wish);
        if let Some((until, _)) = &lingering {
            self.due.remove(&(*until, wish.clone()));
        }
        lingering.is_some()
    }

    /// What a server must be told, once, and its requests have room for: `most` at a time. Whether there is more.
    pub(crate) fn take_asks(
        &mut self,
        server: usize,
        room: Option<&RequestRoom>,
        most: usize,
        tell: &mut dyn FnMut(Command),
    ) -> bool {
        // It may be asked again before it was told that it is not.
        let ends = self.take_left((self.leads, server), most, tell);
        ends || self.telling_mut(server).is_some_and(|telling| telling.take_asks(room, most, tell))
    }

    /// What a server must be told of what it was asked for before it was not asked any more. Whether there is more.
    pub(crate) fn take_left(&mut self, server: (usize, usize), most: usize, tell: &mut dyn FnMut(Command)) -> bool {
        let more = self.ended.get_mut(&server).is_some_and(|telling| telling.take_asks(None, most, tell));
        if !more {
            self.ended.remove(&server);
        }
        more
    }

    /// Whether there is anything of that.
    pub(crate) fn leaves_any(&self, server: (usize, usize)) -> bool {
        self.ended.contains_key(&server)
    }

    /// Its stream ended, and with it all that it was asked for there.
    pub(crate) fn has_left(&mut self, server: (usize, usize)) {
        self.ended.remove(&server).into_iter().for_each(Telling::give_back);
    }

    /// What one of its servers is told.
    pub(crate) fn telling_mut(&mut self, server: usize) -> Option<&mut Telling> {
        match server.checked_sub(1) {
            None => Some(&mut self.first),
            Some(other) => self.others.get_mut(other),
        }
    }

    fn telling(&self, server: usize) -> Option<&Telling> {
        match server.checked_sub(1) {
            None => Some(&self.first),
            Some(other) => self.others.get(other),
        }
    }

    /// The same of each that is asked.
    pub(crate) fn tellings_mut(&mut self) -> impl Iterator<Item = &mut Telling> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    fn tellings(&self) -> impl Iterator<Item = &Telling> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// One more server is asked, for all that is wanted.
    pub(crate) fn open(&mut self) {
        #[cfg(test)]
        if planted(Fault::AskNextForTheNew) {
            let new = self.wanted.iter().filter(|wish| self.first.is_untold(wish)).cloned().collect();
            return self.others.push(Telling::of_all(new));
        }
        self.others.push(Telling::of_all(self.wanted.clone()));
    }

    /// Those behind so many servers are not asked any more.
    pub(crate) fn close_behind(&mut self, servers: usize) {
        let stay = servers.saturating_sub(1).min(self.others.len());
        for (at, telling) in self.others.drain(stay..).enumerate() {
            let telling = telling.end(&self.wanted);
            // What it was to be told before is to be told still, as it was told nothing since.
            if !telling.is_done() {
                self.ended.insert((self.leads, stay + 1 + at), telling);
            }
        }
    }

    /// How often that was so.
    pub(crate) fn leads(&self) -> usize {
        self.leads
    }

    /// Another origin is asked, for all that is wanted; the one before is to be told to forget what it was told of.
    pub(crate) fn lead_elsewhere(&mut self) {
        self.close_behind(1);
        let first = std::mem::take(&mut self.first).end(&self.wanted);
        if !first.is_done() {
            self.ended.insert((self.leads, 0), first);
        }
        self.leads += 1;
        self.first = Telling::of_all(self.wanted.clone());
    }

    /// What was said on behalf of all that is wanted does not count any more: a server is asked for all of it anew.
    pub(crate) fn ask_anew(&mut self, server: usize) {
        let Self { wanted, first, others, .. } = self;
        let telling = server.checked_sub(1).map_or(Some(first), |other| others.get_mut(other));
        if let Some(telling) = telling {
            telling.ask_anew(wanted);
        }
    }

    /// Whether several servers are asked.
    pub(crate) fn asks_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// Whether only a part of what there is was told to a server.
    pub(crate) fn is_telling(&self, server: usize) -> bool {
        self.telling(server).is_some_and(Telling::is_telling)
    }

    /// How many bytes of names there was no room for in the requests to a server, by type.
    pub(crate) fn lacking(&self, server: usize) -> Option<&BTreeMap<TypeUrl, usize>> {
        self.telling(server).map(Telling::lacking)
    }

    /// Whether nobody wants it any more, though it stays subscribed.
    pub(crate) fn lingers(&self, wish: &Wish) -> bool {
        self.lingering.contains_key(wish) || self.left.contains(wish)
    }

    /// When the next one has lingered long enough.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }

    /// What is subscribed upstream.
    pub(crate) fn wanted(&self) -> &BTreeSet<Wish> {
        &self.wanted
    }

    /// Whether just this is subscribed upstream.
    pub(crate) fn wants(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        self.wanted.contains(&(type_url.clone(), interest.clone()))
    }

    /// Whether anything that covers a name is subscribed upstream.
    pub(crate) fn wants_by(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        covering(name).any(|interest| self.wants(type_url, &interest))
    }

    /// Whether the origin was asked for anything that covers a name, and was not told otherwise: it may answer still.
    pub(crate) fn asks_for(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        covering(name).any(|interest| self.may_answer(&(type_url.clone(), interest)))
    }

    /// The same of just this name.
    pub(crate) fn asks_for_itself(&self, type_url: &TypeUrl, name: &ResourceName) -> bool {
        self.may_answer(&(type_url.clone(), Interest::from(name.clone())))
    }

    fn may_answer(&self, wish: &Wish) -> bool {
        let mut tellings = self.tellings().chain(self.ended.values());
        self.wanted.contains(wish) || tellings.any(|telling| telling.has_asked(wish))
    }

    /// Whether anything of a type is subscribed upstream.
    pub(crate) fn wants_type(&self, type_url: &TypeUrl) -> bool {
        // The wildcard is the first interest in their order.
        let first = (type_url.clone(), Interest::Wildcard);
        self.wanted.range(first..).next().is_some_and(|(wanted, _)| wanted == type_url)
    }

    /// Whether anything of a type was given up, and the origin was not told yet: it may answer still.
    pub(crate) fn gives_up(&self, type_url: &TypeUrl) -> bool {
        self.tellings().any(|telling| telling.gives_up(type_url))
    }

    /// Whether nothing is subscribed upstream and the origin knows it.
    pub(crate) fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.ended.is_empty() && self.tellings().all(Telling::is_done)
    }
}

/// What may ask for a name: it itself, its glob, the wildcard.
fn covering(name: &ResourceName) -> impl Iterator<Item = Interest> {
    let names = [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
    names.chain([Interest::Wildcard])
}

#[cfg(test)]
mod tests;
