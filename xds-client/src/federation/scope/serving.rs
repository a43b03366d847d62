//! What a subscriber says of a scope, and what it is sent.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::task::Waker;
use std::time::Instant;

use xds_transport::Frame;
use xds_transport::client::name_size;
use xdstp_cache::{
    Failed, Interest, Pull, Pulled, Removals, Resource, ResourceError, Subscribed, SubscriberId, TypeUrl, Unanswered,
    Version,
};
use xdstp_uri::{CanonicalText, ResourceName};

use super::{Scope, Standing, State, Use};
use crate::federation::demand::Demand;

impl Scope {
    pub(crate) fn open(&self, type_url: &TypeUrl, waker: Waker) -> SubscriberId {
        let mut state = self.lock();
        state.rests_since = None;
        let id = state.cache.open(type_url);
        let index = id.index();
        if state.wakers.len() <= index {
            state.wakers.resize(index + 1, None);
        }
        if state.heard_at.len() <= index {
            state.heard_at.resize(index + 1, None);
        }
        state.forget_heard(id);
        let before = state.wakers.get_mut(index).and_then(|slot| slot.replace(waker));
        drop(state);
        drop(before);
        id
    }

    pub(crate) fn close(&self, type_url: &TypeUrl, id: SubscriberId) {
        let (mut nudge, mut closed) = (false, false);
        while !closed {
            let mut state = self.lock();
            let waker = state.wakers.get_mut(id.index()).and_then(Option::take);
            let (left, is_last) = state.cache.close_part(id, self.slice);
            (nudge, closed) = (nudge || !left.is_empty(), is_last);
            for interest in left {
                state.leave((type_url.clone(), interest));
            }
            drop(state);
            // Not under the lock: it may be all that a task is held by, which may hold a watch.
            drop(waker);
            if !closed {
                // Or who waits for the lock may not get it in between.
                std::thread::yield_now();
            }
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
        // What it was woken for, it may want no more.
        if !state.cache.has_work(id) {
            state.forget_heard(id);
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
            let tellings = state.demand.iter_mut().flat_map(Demand::tellings_mut);
            tellings.for_each(|telling| _ = telling.brought.insert(type_url.clone()));
            state.cache.resume(id, held.by_ref().take(self.slice));
            drop(state);
            std::thread::yield_now();
        }
        self.nudge(true);
    }

    /// With when what the subscriber was woken for came.
    pub(crate) fn pull(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> (Pulled, Option<Instant>) {
        let mut state = self.lock();
        let heard = state.heard_at.get_mut(id.index()).and_then(Option::take);
        (state.cache.pull(id, removals, visitor), heard)
    }

    pub(crate) fn pull_errors(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        self.lock().cache.pull_errors(id, removals, visitor)
    }

    pub(crate) fn pull_refusals(
        &self,
        id: SubscriberId,
        collections: Option<&[Interest]>,
        visitor: &mut dyn FnMut(&ResourceName, &ResourceError),
    ) {
        self.lock().cache.pull_refusals(id, collections, visitor);
    }

    pub(crate) fn refusals(&self, id: SubscriberId) -> usize {
        self.lock().cache.refusals(id)
    }

    pub(crate) fn visit(
        &self,
        id: SubscriberId,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
    ) -> Unanswered {
        self.lock().cache.visit(id, visitor)
    }

    pub(crate) fn unanswered_collections(&self, id: SubscriberId) -> Unanswered {
        self.lock().cache.unanswered_collections(id)
    }

    pub(crate) fn visit_leaving(
        &self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        self.lock().cache.visit_leaving(id, removals, visitor);
    }

    /// Whether anything is known of what a subscriber asked for, whether there is something to tell it of that or not: who comes
    /// back may hold all of it. Of many names the first are looked at.
    pub(crate) fn knows_any(&self, type_url: &TypeUrl, id: SubscriberId) -> bool {
        let cache = &self.lock().cache;
        cache.has_work(id) || cache.interests(id).take(self.slice).any(|interest| cache.is_known(type_url, &interest))
    }

    /// Whether there is something that a subscriber was not told yet.
    pub fn has_work(&self, id: SubscriberId) -> bool {
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

    /// How many bytes the names that a subscriber asked for take in a request.
    pub(crate) fn size_of(&self, id: SubscriberId) -> usize {
        self.lock().cache.interests(id).map(|interest| name_size(interest.as_str())).sum()
    }

    /// What a subscriber asked for.
    pub(crate) fn interests_of(&self, id: SubscriberId) -> Vec<Interest> {
        self.lock().cache.interests(id).collect()
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

    /// What a name is an alias of that is here.
    pub(crate) fn stands_for(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<ResourceName> {
        self.lock().cache.canonical(type_url, name).filter(|own| *own != name).cloned()
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
}

impl State {
    /// Nothing is left to pull of what the subscriber was woken for.
    fn forget_heard(&mut self, id: SubscriberId) {
        if let Some(at) = self.heard_at.get_mut(id.index()) {
            *at = None;
        }
    }
}
