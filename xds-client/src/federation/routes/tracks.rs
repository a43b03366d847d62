//! Moving to where a client is served from now on.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use xds_transport::Frame;
use xdstp_cache::{Interest, Pull, Pulled, SubscriberId, TypeUrl};

use super::{Routes, close_part};
use crate::federation::moved::is_unknown;
use crate::federation::part::Part;
use crate::federation::scope::Scope;
use crate::federation::subscriber::{News, authority_of};

impl Routes {
    /// Moves what is served from elsewhere by now, if that is to be looked at.
    pub(super) fn look_anew(&mut self) {
        if !self.view.looks_anew.load(Ordering::Relaxed) || !self.view.looks_anew.swap(false, Ordering::Relaxed) {
            return;
        }
        let subscribers: Vec<_> = self.subscribers.iter().map(|(at, _)| at).collect();
        for at in subscribers {
            let id = SubscriberId::from_index(at as u32);
            let parts = self.subscribers.get(at).map(|subscriber| subscriber.parts.to_vec()).unwrap_or_default();
            parts.iter().for_each(|part| self.look_at_track(id, part));
        }
        // Whoever subscribes must pull.
        self.waker.wake_by_ref();
    }

    /// Where what would be served from a scope, which the client has entered, is served from now. One of another key is entered by
    /// nobody, and costs nothing.
    pub(super) fn tracked(&self, type_url: &TypeUrl, scope: Arc<Scope>) -> Arc<Scope> {
        let Some(track) = self.client.track(type_url, &scope) else { return scope };
        if track.key != scope.key {
            self.client.leaves(&scope.key);
        }
        track
    }

    /// Moves a part if it is served from elsewhere by now. One that nothing is wanted of any more has only to say what it has to.
    fn look_at_track(&mut self, id: SubscriberId, before: &Part) {
        let Some(interest) = before.scope.any_interest(before.id) else { return };
        let Some(subscriber) = self.subscribers.get(id.index()) else { return };
        let (type_url, selector) = (subscriber.type_url.clone(), subscriber.selector.clone());
        let Some(scope) = self.route(&type_url, selector, &interest) else { return };
        let scope = self.tracked(&type_url, scope);
        if Arc::ptr_eq(&scope, &before.scope) {
            // It had been there.
            self.client.leaves(&scope.key);
        } else {
            let part = self.view.open(scope, &type_url, &self.waker);
            self.move_part(id, &interest, part);
        }
    }

    /// Another part goes on with what the one that serves an interest did.
    fn move_part(&mut self, id: SubscriberId, interest: &Interest, part: Part) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let Some(before) = subscriber.parts.remove(self.federation.place(authority_of(interest))) else { return };
        let along = before.scope.along(before.id);
        if subscriber.opening {
            part.scope.begin_opening();
        }
        part.scope.go_on(&subscriber.type_url, part.id, &along);
        subscriber.moved.get_or_insert_default().goes_on(&before, &along, &part);
        // What was said to be gone, and is untold, this part has not said.
        let untold = subscriber.contested.iter_mut().chain(&mut subscriber.unanswered);
        for (name, news) in untold.filter(|(_, news)| **news == News::OwnGone) {
            if part.scope.is_at(self.federation.place(name.authority())) {
                *news = News::OtherGone;
            }
        }
        subscriber.parts.push(part);
        close_part(&self.view, &*self.client, subscriber, &before);
    }

    /// All that the parts of a subscriber have to say was said: what they did not know to be gone is, once they know what there is: one
    /// that is not filled, or whose origin has not answered, says nothing by what it lacks (rule 151). Whatever a full state said of it
    /// before, it may be told now.
    pub(super) fn end_move(
        &mut self,
        id: SubscriberId,
        pulled: &mut Pulled,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let Some(mut moved) = subscriber.moved.take() else { return };
        let mut unknown = BTreeMap::new();
        while let Some((name, resource)) = moved.next_leaving() {
            // First: what is known later, the others see.
            let has = |part: &Part| part.scope.look_up(part.id, &name, &mut |_| {});
            let covers = |part: &Part| part.scope.covers(part.id, &name);
            if is_unknown(subscriber.all_parts(), &name) {
                unknown.insert(name, resource);
            } else if !subscriber.all_parts().any(has)
                && subscriber.all_parts().any(covers)
                && visitor(Pull::removed(&name)).is_break()
            {
                pulled.more = true;
                break;
            }
        }
        let is_over = unknown.is_empty() && !pulled.more;
        moved.wait_for(unknown, pulled.more);
        subscriber.moved = Some(moved).filter(|_| !is_over);
    }
}
