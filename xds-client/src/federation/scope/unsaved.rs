//! What is known of a scope, for who keeps it where it survives a restart.

use std::collections::BTreeSet;
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Interest, Known, TypeUrl};
use xdstp_uri::ResourceName;

use super::{BATCH, Scope, State};
use crate::federation::demand::{Demand, Wish};

/// What is known of a name, or of a collection.
#[derive(Clone)]
#[non_exhaustive]
pub struct Knows {
    /// The type, and which.
    pub of: (TypeUrl, Interest),
    /// What.
    pub known: Vec<Known<Frame>>,
    /// Why nothing is, if that is so.
    pub lack: Lack,
    /// The origin said that there is no such name, be it an alias of what is there.
    pub is_said: bool,
    /// By what else it could be asked for at last, if nothing is known because it was left, and that was not taken before.
    pub aliases: Option<BTreeSet<ResourceName>>,
}

/// Why nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lack {
    /// The origin said so, or whoever serves others forgot it after all of them left.
    Gone,
    /// The origin did not say so. Nobody watches it any more.
    Left,
    /// Nor this: it is watched.
    Unanswered,
}

/// What may be other than it was.
pub enum Unsaved {
    /// Of these, this is known now.
    Some(Vec<Knows>),
    /// All of it.
    All,
}

impl Scope {
    /// Takes some of what may be other than it was when that was taken last: `None` if nothing is.
    pub fn take_unsaved(&self, now: Instant) -> Option<Unsaved> {
        let state = &mut *self.lock();
        if !state.cache.has_noted() {
            return None;
        }
        let Some(noted) = state.cache.take_noted(BATCH) else { return Some(Unsaved::All) };
        Some(Unsaved::Some(noted.into_iter().map(|wish| self.known_in(state, wish, now)).collect()))
    }

    /// Whether anything is.
    pub fn is_unsaved(&self) -> bool {
        self.lock().cache.has_noted()
    }

    /// Has all of it taken anew: what was taken is not kept after all.
    pub fn unsave(&self) {
        self.lock().cache.note_all();
    }

    /// All of which anything may be known, and in parts of that what is; `others` is what was known before. What stands aside
    /// still is not in it: it is known as it was.
    pub fn known(&self, others: impl IntoIterator<Item = Wish>, now: Instant, mut visitor: impl FnMut(Knows)) {
        let mut wishes: BTreeSet<Wish> = others.into_iter().collect();
        self.visit_stored(
            |stored| (stored.type_url.clone(), Interest::Name(stored.name.clone())),
            |wish| {
                wishes.insert((wish.0.clone(), Interest::Wildcard));
                wishes.insert(wish);
            },
        );
        wishes.extend(self.subscriptions().into_iter().filter(|(_, interest)| interest.is_collection()));
        let aside = {
            let State { recall, said_gone, .. } = &*self.lock();
            wishes.extend(said_gone.all().cloned());
            recall.as_ref().map(|recall| recall.stands_aside()).unwrap_or_default()
        };
        wishes.retain(|wish| !aside.contains(wish));
        let wishes: Vec<_> = wishes.into_iter().collect();
        for part in wishes.chunks(BATCH) {
            let known: Vec<Knows> = {
                let state = &mut *self.lock();
                part.iter().map(|wish| self.known_in(state, wish.clone(), now)).collect()
            };
            known.into_iter().for_each(&mut visitor);
        }
    }

    fn known_in(&self, state: &mut State, of: Wish, now: Instant) -> Knows {
        let known = state.cache.known_of(&of.0, &of.1, now);
        let known: Vec<_> = known.into_iter().map(|known| known.map(Frame::clone)).collect();
        let is_unknown = known.is_empty();
        let wants = |demand: &Demand| match &of.1 {
            Interest::Name(name) if !name.is_glob() => demand.wants_by(&of.0, name),
            collection => demand.wants(&of.0, collection),
        };
        let is_said = state.said_gone.take(&of);
        let lack = match is_said || !self.is_watched() {
            true => Lack::Gone,
            false if state.demand.as_ref().is_some_and(wants) => Lack::Unanswered,
            false => Lack::Left,
        };
        let evicted = match &of.1 {
            Interest::Name(name) => state.cache.take_evicted(&of.0, name),
            Interest::Wildcard => None,
        };
        let aliases = evicted.filter(|_| lack != Lack::Gone && is_unknown);
        Knows { of, known, lack, is_said, aliases }
    }
}
