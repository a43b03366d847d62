//! Which of several servers a scope is fed by, and what becomes of what others of them gave (gRFC A71).
//!
//! The cache stays as it is whoever feeds it. What a server says counts while it is the one that answered last. A version is
//! the server's own: who answers in place of another is asked for all that is wanted as if nothing of it were here, and what is
//! equal to that is no news.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use xds_transport::Frame;
use xds_transport::client::Command;
use xdstp_cache::{Cache, Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

use super::several::Several;
use super::{Scope, State};
use crate::federation::choice::{Standing, Turn};
use crate::federation::demand::Wish;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::request_room::RequestRoom;

/// How the servers of a scope are doing, those that are asked, the highest first; and which counts.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) servers: Vec<Standing>,
    pub(crate) counts: Option<usize>,
    /// Why nothing more comes at present.
    pub(crate) trouble: Option<String>,
}

impl Scope {
    /// It is fed by one of these servers, of which the first is asked.
    pub(crate) fn choose_among(&self, names: &Arc<[Arc<str>]>) {
        let mut state = self.lock();
        let several = state.several.get_or_insert_with(|| Box::new(Several::new(names.clone())));
        let _ = several.choice.wanted();
    }

    /// How many of them are asked.
    pub(crate) fn asks(&self) -> usize {
        self.lock().several.as_ref().map_or(0, |several| several.choice.asked().len())
    }

    /// How those are doing.
    pub(crate) fn asked(&self) -> Asked {
        let state = self.lock();
        let of = |Several { choice, .. }: &Several| Asked {
            servers: choice.asked().to_vec(),
            counts: choice.counts(),
            trouble: choice.trouble().map(str::to_owned),
        };
        state.several.as_deref().map(of).unwrap_or_default()
    }

    /// The server that what is here was sent by last: none before one answered.
    pub(crate) fn sender(&self) -> Option<usize> {
        self.lock().several.as_ref().map_or(Some(0), |several| several.choice.counts())
    }

    /// The server that is waited for.
    #[cfg(feature = "lrs")]
    pub(crate) fn current(&self) -> usize {
        self.lock().several.as_ref().map_or(0, |several| several.current())
    }

    /// What requests to a server have room for.
    pub(crate) fn has_room(&self, server: usize, room: Option<Arc<RequestRoom>>) {
        if let Some(telling) = self.lock().demand.as_mut().and_then(|demand| demand.telling_mut(server)) {
            telling.room = room;
        }
    }

    /// A stream to a server ended without a response, or there is none: `anew`, or still. Where all that are asked fail, and
    /// something is wanted that nothing is known of, the next one is asked.
    pub(crate) fn failed(&self, server: usize, reason: &str, anew: bool) {
        let looks = self.lock().several.as_mut().is_some_and(|several| several.failed(server, reason, anew));
        if looks {
            let lacks = self.lacks_any();
            let mut state = self.lock();
            let State { several: Some(several), demand: Some(demand), .. } = &mut *state else { return };
            several.looked(lacks);
            // Meanwhile one of them may have answered.
            let opens = lacks && matches!(several.choice.unknown(true), Turn::Opens(_));
            if opens {
                demand.open();
            }
            drop(state);
            self.choose(opens);
        }
        self.tell_if_all_fail();
    }

    /// A server answered: those below it are left, and what others said counts no more than what it says. Whether another
    /// counted before.
    pub(crate) fn answered(&self, server: usize) -> bool {
        let mut state = self.lock();
        let State { several: Some(several), demand: Some(demand), cache, of_others, paused, .. } = &mut *state else {
            return false;
        };
        if !several.choice.is_asked(server) {
            return false;
        }
        let before = several.choice.counts();
        #[cfg(test)]
        if planted(Fault::StayBelow) && before.is_some_and(|before| before > server) {
            return false;
        }
        let closes = several.choice.answered(server) != Turn::Stays;
        demand.close_behind(server + 1);
        let mut turn = None;
        if before != Some(server) {
            turn = Some(of_others.begin());
            // How far another one answered says nothing of this one.
            cache.origin_lost();
            paused.clear();
            #[cfg(test)]
            let server = if planted(Fault::KeepWordsOfOthers) { 0 } else { server };
            (0..server).for_each(|above| demand.ask_anew(above));
        }
        drop(state);
        if let Some(turn) = turn {
            self.note_held(turn);
            self.ask();
        }
        self.tell_reachable();
        self.choose(closes);
        let switched = before.is_some_and(|before| before != server);
        if switched {
            self.tell_switched();
        }
        switched
    }

    /// Others are asked than before, if that is `otherwise`: its supply does it.
    fn choose(&self, otherwise: bool) {
        if let Some(supply) = self.supply().filter(|_| otherwise) {
            supply.choose();
        }
    }

    /// Whether anything is wanted that nothing is known of, or nothing of this run.
    fn lacks_any(&self) -> bool {
        let mut after = Bound::Unbounded;
        #[cfg(test)]
        if planted(Fault::FallBackForNothing) {
            return true;
        }
        loop {
            let state = self.lock();
            let State { cache, demand: Some(demand), .. } = &*state else { return false };
            let part: Vec<_> = demand.wanted().range((after, Bound::Unbounded)).take(self.slice).collect();
            // What was known before a restart is not what a server has now.
            let is_known = |(type_url, interest): &Wish| cache.stale_count() == 0 && cache.is_known(type_url, interest);
            if part.iter().any(|wish| !demand.lingers(wish) && !is_known(wish)) {
                return true;
            }
            let Some(last) = part.last().filter(|_| part.len() == self.slice) else { return false };
            after = Bound::Excluded((*last).clone());
        }
    }
}

impl State {
    /// Whether what a server says counts.
    pub(super) fn heeds(&self, server: usize) -> bool {
        self.several.as_ref().is_none_or(|several| several.heeds(server))
    }

    /// Whether this server is one that is waited for, and nothing came of it: its silence is told, where time is.
    pub(super) fn waits_for(&self, server: usize) -> bool {
        self.several.as_ref().is_some_and(|several| several.current() == server && several.choice.is_asked(server))
    }

    /// Whether what feeds it is there, if not by the server that is asked about, then by another.
    pub(super) fn is_there(&self, connected: bool) -> bool {
        connected || self.several.as_ref().is_some_and(|several| several.choice.any_answers())
    }

    /// Whether the end of a stream to this server is that of what feeds it.
    pub(super) fn loses(&self, server: usize) -> bool {
        let counts = self.several.as_ref().and_then(|several| several.choice.counts());
        counts.is_none_or(|counts| counts == server)
    }

    /// There is a stream to a server. Its first request asks what became of what is held of others.
    pub(super) fn connects(&mut self, server: usize) {
        let Self { several: Some(several), demand: Some(demand), recall, .. } = self else { return };
        several.choice.connected(server);
        #[cfg(test)]
        if planted(Fault::KeepWordsOfOthers) {
            return;
        }
        if (recall.is_some() || several.choice.counts().is_some_and(|counts| counts != server))
            && let Some(telling) = demand.telling_mut(server)
        {
            telling.holds = Some(0);
        }
    }

    /// Adds to what a server is told what is held that others gave, without their versions: of each name it says that it is
    /// there, or that it is gone. Whether there is more.
    pub(super) fn hold_of_others(&mut self, server: usize, most: usize, commands: &mut Vec<Command>) -> bool {
        let Self { demand: Some(demand), cache, .. } = self else { return false };
        let Some(telling) = demand.telling_mut(server) else { return false };
        let Some(from) = telling.holds else { return false };
        if telling.is_telling() {
            return true;
        }
        let (held, next) = held_from(cache, from, most);
        telling.holds = next;
        commands.extend(held.into_iter().map(|(type_url, held)| Command::Hold(type_url, held, Vec::new())));
        next.is_some()
    }
}

/// So much of what is held, without versions, and where to go on.
#[expect(clippy::type_complexity, reason = "by type, what a command holds")]
fn held_from(
    cache: &Cache<Frame>,
    from: usize,
    most: usize,
) -> (BTreeMap<TypeUrl, Vec<(ResourceName, Resource<Frame>)>>, Option<usize>) {
    let mut held: BTreeMap<TypeUrl, Vec<_>> = BTreeMap::new();
    let (part, next) = cache.resources_from(from, most);
    for stored in part {
        if let Some(resource) = stored.resource {
            let unversioned = Resource::new(Version::from(""), resource.digest(), resource.value.clone());
            held.entry(stored.type_url.clone()).or_default().push((stored.name.clone(), unversioned));
        }
    }
    (held, next)
}
