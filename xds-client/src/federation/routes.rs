//! Routes: one subscriber's view of a federation, a source over as many scopes as its names need.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use slab::Slab;
use xds_transport::server::{Refused, weight};
use xdstp_cache::{Interest, Selector, SubscriberId, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::client::{Client, OfGroup};
use crate::federation::core::Federation;
use crate::federation::judged::Judging;
use crate::federation::node_group::NodeGroup;
use crate::federation::part::{Part, View};
use crate::federation::parts::Parts;
use crate::federation::place::Place;
use crate::federation::request_room::RequestRoom;
use crate::federation::scope::{Scope, Use};
use crate::federation::scope_key::ScopeKey;
use crate::federation::share::{OverLimit, Share};
use crate::federation::subscriber::{Subscriber, authority_of};

mod alike;
mod aside;
mod contested;
mod counted;
mod denied;
mod full_state;
mod judging;
mod private;
mod pull;
mod source;
mod tracks;

/// How many names that are not simply passed on are noted under one hold of a scope's lock: those that several parts may
/// have, and stubs.
const MAX_NOTED: usize = 256;

/// Which scope of a node's groups: by origin, by type where groups go by it, and by what is selected.
type GroupScopeKey = (usize, Option<TypeUrl>, Option<Arc<Selector>>);

/// Routes one stream's interest: `xdstp:` names by authority, old-style names by node group.
pub struct Routes {
    federation: Arc<Federation>,
    /// What they go by there.
    number: u64,
    client: Box<dyn Client>,
    waker: Waker,
    node: Bytes,
    /// The group of the node; none before the stream has said who it is.
    group: Option<NodeGroup>,
    /// By what its client selects where it does not say so itself.
    selector: Option<Arc<Selector>>,
    /// The scopes of this node's groups, once something of them was asked for.
    group_scopes: HashMap<GroupScopeKey, Arc<Scope>>,
    /// What this stream fetches for itself, by origin, and by what is selected of it (rule 121).
    private: HashMap<(usize, Option<Arc<Selector>>), Arc<Scope>>,
    subscribers: Slab<Subscriber>,
    view: Arc<View>,
    /// What it asked for, among what all streams together may.
    names: Share,
    /// What it brought along of what it holds. Of its client's names it counts no second time.
    brought: Share,
    /// Why the stream is to end, once its request is handled.
    refused: Option<Refused>,
    judging: Judging,
}

impl Routes {
    /// Routes for a client, under a number [of their own](Federation::number_routes). The waker says that there is something
    /// to pull.
    pub fn new(
        federation: Arc<Federation>,
        number: u64,
        client: Box<dyn Client>,
        waker: Waker,
        view: Arc<View>,
    ) -> Self {
        Self {
            names: federation.limits.names.none(),
            brought: federation.limits.names.none(),
            refused: None,
            judging: Judging::by(client.judged()),
            federation,
            number,
            client,
            waker,
            node: Bytes::new(),
            group: None,
            selector: None,
            group_scopes: HashMap::new(),
            private: HashMap::new(),
            // Many streams have one type, and of so large ones a slab makes room for four at once.
            subscribers: Slab::with_capacity(1),
            view,
        }
    }

    /// A subscriber for one type, by what it selects if by anything.
    fn open_by(&mut self, type_url: &TypeUrl, selector: Option<Arc<Selector>>) -> SubscriberId {
        let subscriber = Subscriber {
            type_url: type_url.clone(),
            selector,
            parts: Parts::default(),
            private_parts: Vec::new(),
            private: HashMap::new(),
            brings: false,
            moves: false,
            names: 0,
            beside: 0,
            brought: 0,
            sizes: Vec::new(),
            heard_at: None,
            timings: self.client.opened(type_url),
            may_close: false,
            asks_again: false,
            opening: true,
            contested: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            denied: None,
            moved: None,
        };
        SubscriberId::from_index(self.subscribers.insert(subscriber) as u32)
    }

    /// None for old-style names of who has not said who it is, and where there are too many. Its client has entered it.
    fn route(
        &mut self,
        type_url: &TypeUrl,
        selector: Option<Arc<Selector>>,
        interest: &Interest,
    ) -> Option<Arc<Scope>> {
        // It ends, and a request may list a hundred thousand names that would each be looked at for nothing.
        if self.refused.is_some() {
            return None;
        }
        let place = self.federation.place(authority_of(interest));
        let selector = self.selects(place.origin(), selector, interest)?;
        let scope = match place {
            Place::Authority { authority, origin } => {
                let key = ScopeKey::Authority(authority.to_owned()).selected(selector.as_ref());
                self.enter(&key, || self.federation.authority_scope(authority, origin, selector.as_ref()))
            }
            Place::Group { origin } => {
                let is_alike = self.federation.is_alike(origin);
                self.group_scope(&OfGroup { type_url, origin, is_alike, name: interest.as_str() }, selector)?
            }
        };
        scope.map_err(|error| self.refuse(&error)).ok()
    }

    /// By what an origin is asked, for who selects; the stream ends where it cannot be.
    fn selects(
        &mut self,
        origin: usize,
        selector: Option<Arc<Selector>>,
        interest: &Interest,
    ) -> Option<Option<Arc<Selector>>> {
        let Some(selector) = selector else { return Some(None) };
        match self.federation.selects(origin, &selector) {
            Ok(selects) => Some(selects.then_some(selector)),
            Err(error) => {
                let reason = format!("the origin of {:?} cannot be asked with {selector}: {error}", interest.as_str());
                self.refused.get_or_insert(Refused::invalid(reason));
                None
            }
        }
    }

    fn group_scope(
        &mut self,
        asked: &OfGroup<'_>,
        selector: Option<Arc<Selector>>,
    ) -> Option<Result<Arc<Scope>, OverLimit>> {
        let for_all = self.group.as_ref()?;
        let own = match self.client.group_for(&self.node, asked) {
            Ok(own) => own,
            Err(error) => {
                self.refused.get_or_insert(Refused::denied(error.to_string()));
                return None;
            }
        };
        let OfGroup { type_url, origin, .. } = *asked;
        let by = (origin, own.is_some().then(|| type_url.clone()), selector);
        if let Some(scope) = self.group_scopes.get(&by) {
            return Some(self.client.enters(&scope.key).map(|()| scope.clone()));
        }
        let group = own.as_ref().unwrap_or(for_all);
        let key = self.federation.group_key(origin, group, by.2.as_ref());
        let speaks = (&self.node, self.number);
        let scope = self.enter(&key, || self.federation.group_scope(origin, group, by.2.as_ref(), speaks));
        Some(scope.inspect(|scope| _ = self.group_scopes.insert(by, scope.clone())))
    }

    /// The stream ends once its request is handled.
    fn refuse(&mut self, error: &OverLimit) {
        if self.refused.is_none() {
            self.refused = Some(Refused::new(self.client.refused(error)));
        }
    }

    /// A subscriber asks for one more name, of a scope whose requests have so much room.
    fn grows(&mut self, id: SubscriberId, room: Option<Arc<RequestRoom>>, name: &str) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let weight = weight(name);
        subscriber.names += weight;
        let fits = room.map_or(Ok(()), |room| subscriber.grows(room, name));
        if let Err(error) = self.grow_names(weight).and(fits) {
            self.refuse(&error);
        }
    }

    /// The part of a subscriber that serves an interest, opened when there is none yet.
    fn part(&mut self, id: SubscriberId, interest: &Interest) -> Option<Part> {
        let subscriber = self.subscribers.get(id.index())?;
        if let Some(part) = subscriber.part(&self.federation, interest) {
            return Some(part.clone());
        }
        if self.refused.is_some() {
            return None;
        }
        let (type_url, selector) = (subscriber.type_url.clone(), subscriber.selector.clone());
        let most = self.federation.limits.authorities_per_stream;
        if subscriber.parts.len() >= most {
            self.refuse(&OverLimit { key: "authorities_per_stream", what: "authorities on one stream", most });
            return None;
        }
        let scope = self.route(&type_url, selector, interest)?;
        let scope = self.tracked(&type_url, scope);
        let subscriber = self.subscribers.get_mut(id.index())?;
        let part = self.view.open(scope, &subscriber.type_url, &self.waker);
        if subscriber.opening {
            part.scope.begin_opening();
        }
        subscriber.parts.push(part.clone());
        Some(part)
    }

    /// The parts that a name which the client brought along may be from: a wildcard of a node group may hold `xdstp:`
    /// names, too.
    fn parts_holding(&mut self, id: SubscriberId, name: &ResourceName) -> Vec<Part> {
        let own = Interest::Name(name.clone());
        let Some(subscriber) = self.subscribers.get(id.index()) else { return Vec::new() };
        let place = self.federation.place(name.authority());
        let covers = |part: &&Part| part.scope.covers(part.id, name);
        let by_authority = subscriber.part(&self.federation, &own).filter(covers);
        let wildcard = subscriber.part(&self.federation, &Interest::Wildcard).filter(covers);
        // Rule 153: no other origin's wildcard may hold it, but to say that of what nobody else is asked of.
        let wildcard = wildcard.filter(|part| by_authority.is_none() || part.scope.origin() == place.origin());
        let parts: Vec<_> = by_authority.into_iter().chain(wildcard.filter(|_| !name.is_opaque())).cloned().collect();
        if !parts.is_empty() {
            return parts;
        }
        let part = self.part(id, &own);
        if let Some(subscriber) = self.subscribers.get_mut(id.index()) {
            subscriber.may_close = true;
        }
        part.into_iter().collect()
    }

    /// It brought so many names along, by their weight.
    fn brings(&mut self, id: SubscriberId, weight: usize) {
        self.subscribers.get_mut(id.index()).into_iter().for_each(|subscriber| subscriber.brought += weight);
    }

    /// What the client brought along counts no more once all of it was compared, told, or left.
    #[inline]
    fn give_back_brought(&mut self, id: SubscriberId) {
        if let Some(subscriber) = self.subscribers.get_mut(id.index())
            && subscriber.brought > 0
            && !subscriber.all_parts().any(|part| part.scope.brings(part.id))
        {
            let brought = std::mem::take(&mut subscriber.brought);
            self.shrink_brought(brought);
        }
    }

    /// Closes the parts of a subscriber that do nothing any more, so that their scopes can go.
    fn close_done(&mut self, id: SubscriberId) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let mut telling = false;
        let over = subscriber.parts.remove_all(|part| {
            let of = part.scope.use_of(part.id);
            telling |= of == Use::Telling;
            of == Use::Over
        });
        subscriber.may_close = telling;
        over.iter().for_each(|part| close_part(&self.view, &*self.client, subscriber, part));
    }

    /// Nobody here selects by this any more: what was asked with it can go.
    fn leave_selected(&mut self, selector: Option<Arc<Selector>>) {
        if selector.is_none() || self.subscribers.iter().any(|(_, of)| of.selector == selector) {
            return;
        }
        let left: Vec<_> = self.group_scopes.extract_if(|(_, _, of), _| *of == selector).collect();
        left.iter().for_each(|(_, scope)| scope.leave(self.number));
        self.private.retain(|(_, of), _| *of != selector);
    }

    /// What serves all of a subscriber: what comes from two has a version that neither of them gave.
    fn only_part(&self, id: SubscriberId) -> Option<(&TypeUrl, &Part)> {
        let subscriber = self.subscribers.get(id.index())?;
        match &*subscriber.parts {
            [only] if subscriber.private.is_empty() => Some((&subscriber.type_url, only)),
            _ => None,
        }
    }
}

fn close_part(view: &View, client: &dyn Client, subscriber: &Subscriber, part: &Part) {
    if subscriber.opening {
        part.scope.end_opening();
    }
    leave_part(view, client, &subscriber.type_url, part);
}

/// A part ends, and its client leaves where it was.
fn leave_part(view: &View, client: &dyn Client, type_url: &TypeUrl, part: &Part) {
    view.close(type_url, part);
    client.leaves(&part.scope.key);
}

impl Drop for Routes {
    fn drop(&mut self) {
        // A driver that failed before it closed its stream leaves nothing behind either.
        for (_, subscriber) in &mut self.subscribers {
            subscriber.end_opening();
            subscriber.all_parts().for_each(|part| leave_part(&self.view, &*self.client, &subscriber.type_url, part));
        }
        self.client.shrinks(self.names.used());
        self.client.brought(self.brought.used());
        self.group_scopes.values().for_each(|scope| scope.leave(self.number));
    }
}
