//! Routes as what a server session pulls from.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use xds_transport::Frame;
use xds_transport::server::{
    Answer, Image, NodeError, ProtocolError, Refused, Source, Tally, Took, held_weight, weight,
};
use xdstp_cache::{
    Failed, Interest, Place, Pull, Pulled, Removals, Resource, ResourceError, Selector, SubscriberId, TypeUrl,
    Unanswered, Version,
};
use xdstp_uri::{CanonicalText, ResourceName};

use super::{Routes, close_part, leave_part};
use crate::federation::part::Part;
use crate::federation::scope::Use;
use crate::federation::subscriber::{News, Subscriber, authority_of, fetched_for};

impl Source for Routes {
    fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
        self.group = Some(self.client.identify(node)?);
        self.node = node.clone();
        self.selector = shared(&self.client.selector(node));
        Ok(())
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.open_by(type_url, self.selector.clone())
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        self.open_by(type_url, shared(selector))
    }

    fn selects(&self, id: SubscriberId) -> bool {
        self.subscribers.get(id.index()).is_some_and(|subscriber| subscriber.selector.is_some())
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        let Some(mut subscriber) = self.subscribers.try_remove(id.index()) else { return };
        subscriber.end_opening();
        for part in subscriber.all_parts() {
            leave_part(&self.view, &*self.client, &subscriber.type_url, part);
        }
        self.shrink_names(subscriber.names + subscriber.beside);
        self.shrink_brought(subscriber.brought);
        self.leave_selected(subscriber.selector.take());
        self.client.closed(&subscriber.type_url, tally);
    }

    fn answered(&mut self, id: SubscriberId, answer: &Answer<'_>) {
        if let Some(words) = answer.error
            && let Some(subscriber) = self.subscribers.get(id.index())
        {
            self.client.rejected(&subscriber.type_url, answer.resources, words);
        }
    }

    fn refused(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    fn ends(&mut self, error: &ProtocolError) {
        self.client.ends(error);
    }

    fn words(&self, error: &ProtocolError) -> String {
        self.client.words(error)
    }

    fn too_long_name(&mut self) {
        self.client.named_too_long();
    }

    fn keeps(&mut self, id: SubscriberId, names: usize) {
        self.keeps_beside(id, names);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        // No origin hears of what stands behind that for which the stream ends.
        if self.refused.is_some() {
            return false;
        }
        if let Some(new) = self.deny(id, interest) {
            return new;
        }
        if let Err(error) = self.may_grow(interest.as_str())
            && !self.wants(id, interest)
        {
            self.refuse(&error);
            return false;
        }
        let Some(part) = self.part(id, interest) else { return false };
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return false };
        let new = part.scope.subscribe(&subscriber.type_url, part.id, interest);
        subscriber.asks_anew(interest);
        subscriber.asks_again |= !new;
        if new {
            let room = part.scope.room.clone();
            self.grows(id, room, interest.as_str());
        }
        new
    }

    fn subscribe_known(&mut self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
        // Of names that are known one may be too much before the stream ends: it is one that others ask for, or have.
        if self.refused.is_some() {
            return None;
        }
        let subscriber = self.subscribers.get(id.index())?;
        // What is said of a name that several parts may have is looked up by that name.
        if subscriber.looks_again() || subscriber.moved.is_some() {
            return None;
        }
        let is_limited = self.client.is_limited() || self.client.refuses_some();
        if is_limited && !subscriber.may_ask(&self.denying(), text) {
            return None;
        }
        let subscriber = self.subscribers.get_mut(id.index())?;
        let part = subscriber.parts.of_text(&self.federation, text)?;
        let (name, new) = part.scope.subscribe_known(&subscriber.type_url, part.id, text)?;
        let room = part.scope.room.clone();
        subscriber.asks_again |= !new;
        if new {
            self.grows(id, room, text.as_str());
        }
        Some((name, new))
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if self.leave_denied(id, interest) {
            return true;
        }
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        let Some(part) = subscriber.part(&self.federation, interest) else { return false };
        let left = subscriber.left_to_others(&self.federation, part, interest);
        let moves = *interest == Interest::Wildcard && subscriber.has_of_wildcard(part);
        let (scope, part_id) = (part.scope.clone(), part.id);
        let brings = subscriber.brought > 0 && scope.brings(part_id);
        let private = subscriber.private.len();
        let held = scope.unsubscribe(&subscriber.type_url, part_id, interest);
        let weight = weight(interest.as_str());
        if held {
            self.shrink_names(weight);
        }
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return held };
        subscriber.moves |= moves;
        if held {
            subscriber.names = subscriber.names.saturating_sub(weight);
            subscriber.shrinks(&scope, interest);
            subscriber.contested.extend(left.into_iter().map(|name| (name, News::OtherGone)));
            // Nobody waits for the answer of what was left.
            for (name, news) in std::mem::take(&mut subscriber.unanswered) {
                subscriber.contest(name, news);
            }
        }
        if !subscriber.private.is_empty() {
            self.drop_private(id, |name, shared, parts| match fetched_for(parts, name, shared) {
                Some(part) => {
                    *shared = part.scope.clone();
                    false
                }
                None => true,
            });
        }
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return held };
        match scope.use_of(part_id) {
            Use::Wanted => {}
            Use::Telling => subscriber.may_close = true,
            Use::Over => {
                let over = subscriber.parts.remove(self.federation.place(authority_of(interest)));
                over.iter().for_each(|part| close_part(&self.view, &*self.client, subscriber, part));
            }
        }
        // It may have been the last that had any; a look at all of them for each name that is left would be too many.
        if brings && !scope.brings(part_id) || subscriber.private.len() < private {
            self.give_back_brought(id);
        }
        held
    }

    fn resume(&mut self, id: SubscriberId, mut held: Vec<(ResourceName, Version)>) {
        if self.refused.is_some() {
            return;
        }
        self.leave_out_denied(id, &mut held);
        if let Some(subscriber) = self.subscribers.get_mut(id.index()) {
            subscriber.brings = !held.is_empty();
            // What it was sent here, and is said to hold later, is no more than was on its way at once.
            if subscriber.opening {
                let weight = held.iter().map(|(name, version)| held_weight(name, version.as_str())).sum();
                match self.grow_brought(weight) {
                    Ok(()) => self.brings(id, weight),
                    Err(error) => self.refuse(&error),
                }
            }
        }
        let mut parts: BTreeMap<usize, (Part, Vec<(ResourceName, Version)>)> = BTreeMap::new();
        for (name, version) in held {
            for part in self.parts_holding(id, &name) {
                let (_, all) = parts.entry(part.seat).or_insert_with(|| (part, Vec::new()));
                all.push((name.clone(), version.clone()));
            }
        }
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        for (part, held) in parts.into_values() {
            part.scope.resume(&subscriber.type_url, part.id, held);
        }
        subscriber.end_opening();
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        self.judge();
        self.pull_all(id, removals, visitor)
    }

    fn image(&mut self, id: SubscriberId) -> Option<(Place, Option<Arc<Image>>)> {
        self.image_of(id)
    }

    fn pass(&mut self, id: SubscriberId, image: &Image) -> Option<bool> {
        self.pass_image(id, image)
    }

    fn keep(&mut self, id: SubscriberId, image: &Arc<Image>) {
        self.keep_image(id, image);
    }

    fn heard_at(&mut self, id: SubscriberId) -> Option<Instant> {
        self.subscribers.get_mut(id.index())?.heard_at.take()
    }

    fn took(&mut self, id: SubscriberId, took: Took) {
        let timings = self.subscribers.get(id.index()).and_then(|subscriber| subscriber.timings.as_ref());
        timings.into_iter().for_each(|timings| timings.took(took));
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        if self.pull_denied(id, removals, visitor).is_break() {
            return true;
        }
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return false };
        let mut gone = HashSet::new();
        let known = subscriber.contested.len();
        let more = subscriber.pull_errors(&self.federation, removals, &mut gone, visitor);
        if subscriber.contested.len() > known {
            // Errors are asked for last: this is for the next round.
            self.waker.wake_by_ref();
        }
        if !gone.is_empty() {
            self.drop_private(id, |name, _, _| gone.contains(name));
        }
        // What is gone with its error was told.
        self.give_back_brought(id);
        more
    }

    fn pull_refusals(
        &mut self,
        id: SubscriberId,
        collections: Option<&[Interest]>,
        visitor: &mut dyn FnMut(&ResourceName, &ResourceError),
    ) {
        let parts = self.subscribers.get(id.index()).into_iter().flat_map(Subscriber::all_parts);
        parts.for_each(|part| part.scope.pull_refusals(part.id, collections, visitor));
    }

    fn refusals(&self, id: SubscriberId) -> usize {
        let parts = self.subscribers.get(id.index()).into_iter().flat_map(Subscriber::all_parts);
        parts.map(|part| part.scope.refusals(part.id)).sum()
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        self.visit_all(id, visitor)
    }

    fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        self.visit_leaving_all(id, removals, visitor);
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        // What there is most often comes first. Every update asks this: one walk over both, as elsewhere, costs it more than two.
        subscriber.parts.iter().any(|part| part.scope.has_work(part.id))
            || subscriber.private_parts.iter().any(|part| part.scope.has_work(part.id))
            || !subscriber.contested.is_empty()
            || subscriber.denied.as_ref().is_some_and(|denied| denied.has_untold())
            || subscriber.moved.as_ref().is_some_and(|moved| !moved.waits())
            || self.view.looks_anew.load(Ordering::Relaxed)
            || self.is_to_be_judged()
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        subscriber.parts.iter().any(|part| part.scope.has_additions(part.id))
            || subscriber.private_parts.iter().any(|part| part.scope.has_additions(part.id))
            || self.view.looks_anew.load(Ordering::Relaxed)
            || subscriber.has_settled(&self.federation)
    }

    fn changes(&self, id: SubscriberId) -> Option<u64> {
        let parts = self.subscribers.get(id.index()).into_iter().flat_map(Subscriber::all_parts);
        Some(sum_of(parts.map(|part| (part, part.scope.changes()))))
    }

    fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        let parts = self.subscribers.get(id.index()).into_iter().flat_map(Subscriber::all_parts);
        parts.into_iter().any(|part| part.scope.covers(part.id, name))
    }

    fn newest_removal(&self, id: SubscriberId) -> u64 {
        let parts = self.subscribers.get(id.index()).into_iter().flat_map(Subscriber::all_parts);
        sum_of(parts.map(|part| (part, part.scope.newest_removal(part.id))).filter(|(_, newest)| *newest > 0))
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        // What this stream fetches for itself is asked for in a shared scope, too.
        subscriber.all_parts().filter(|part| part.scope.resend(part.id, name)).count() > 0
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return };
        // A stream's own resource counts before the stub that stands for it in a shared scope.
        let found = subscriber.private_parts.iter().any(|part| part.scope.look_up(part.id, name, look));
        if !found {
            let _ = subscriber.parts.iter().any(|part| part.scope.look_up(part.id, name, look));
        }
    }

    fn has_sotw_origin(&self) -> bool {
        self.federation.is_sotw(self.federation.place(None).origin())
    }

    fn type_version(&self, id: SubscriberId) -> Option<Version> {
        let (_, only) = self.only_part(id)?;
        only.scope.type_version(only.id)
    }

    fn system_version(&self, id: SubscriberId) -> Option<Version> {
        let (type_url, only) = self.only_part(id)?;
        only.scope.system_version(type_url, only.id)
    }
}

/// Numbers of several parts in one. Each scope counts for itself: what is newest here may be as new there.
fn sum_of<'a>(numbers: impl Iterator<Item = (&'a Part, u64)>) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    numbers.map(|(part, number)| hasher.hash_one((Arc::as_ptr(&part.scope), number))).fold(0, u64::wrapping_add)
}

/// What selects nothing in particular is no selector.
fn shared(selector: &Selector) -> Option<Arc<Selector>> {
    (!selector.is_default()).then(|| Arc::new(selector.clone()))
}
