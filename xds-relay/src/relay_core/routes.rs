//! Routes: one downstream stream's view of the relay, a source over as many scopes as its names need.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use bytes::Bytes;
use slab::Slab;
use xds_transport::Frame;
use xds_transport::server::{NodeError, ProtocolError, Refused, Source, Tally, held_weight, weight};
use xdstp_cache::{Failed, Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::relay_core::node_group::NodeGroup;
use crate::relay_core::parts::Parts;
use crate::relay_core::quotas::{self, LimitError, Share};
use crate::relay_core::request_room::RequestRoom;
use crate::relay_core::scope::{Scope, Use, may_be_held};
use crate::relay_core::streams::{Part, View};
use crate::relay_core::subscriber::{
    Awaiting, Counts, News, Said, Stub, Subscriber, authority_of, contests, fetched_for, news_of,
};
use crate::relay_core::{Place, RelayCore, lock};

/// How many names that are not simply passed on are noted under one hold of a scope's lock: those that several parts may
/// have, and stubs.
const MAX_NOTED: usize = 256;

/// Routes one stream's interest: `xdstp:` names by authority, old-style names by node group.
pub struct Routes {
    relay: Arc<RelayCore>,
    stream: u64,
    waker: Waker,
    node: Bytes,
    /// The group of the node; none before the stream has said who it is.
    group: Option<NodeGroup>,
    /// The scopes of this node's group, by origin, once something of them was asked for.
    group_scopes: HashMap<usize, Arc<Scope>>,
    /// What this stream fetches for itself, by origin (rule 121).
    private: HashMap<usize, Arc<Scope>>,
    subscribers: Slab<Subscriber>,
    view: Arc<View>,
    /// What it asked for, among what all streams together may.
    names: Share,
    refused: Option<LimitError>,
}

impl Routes {
    pub(crate) fn new(relay: Arc<RelayCore>, stream: u64, waker: Waker, view: Arc<View>) -> Self {
        Self {
            names: relay.quotas.names.none(),
            refused: None,
            relay,
            stream,
            waker,
            node: Bytes::new(),
            group: None,
            group_scopes: HashMap::new(),
            private: HashMap::new(),
            subscribers: Slab::new(),
            view,
        }
    }

    /// None for old-style names of who has not said who it is, and where there are too many.
    fn route(&mut self, interest: &Interest) -> Option<Arc<Scope>> {
        let Self { relay, node, group, group_scopes, stream, .. } = self;
        let scope = match relay.place(authority_of(interest)) {
            Place::Authority { authority, origin } => relay.authority_scope(authority, origin),
            Place::Group { origin } => match group_scopes.get(&origin) {
                Some(scope) => Ok(scope.clone()),
                None => relay
                    .group_scope(origin, group.as_ref()?, node, *stream)
                    .inspect(|scope| _ = group_scopes.insert(origin, scope.clone())),
            },
        };
        scope.map_err(|error| self.refuse(error)).ok()
    }

    /// The stream ends once its request is handled.
    fn refuse(&mut self, error: LimitError) {
        self.refused.get_or_insert(error);
    }

    /// A subscriber asks for one more name, of a scope whose requests have so much room.
    fn grows(&mut self, id: SubscriberId, room: Option<Arc<RequestRoom>>, name: &str) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let weight = weight(name);
        subscriber.names += weight;
        let fits = room.map_or(Ok(()), |room| subscriber.grows(room, name));
        if let Err(error) = self.names.grow(weight).and(fits) {
            self.refuse(error);
        }
    }

    /// The part of a subscriber that serves an interest, opened when there is none yet.
    fn part(&mut self, id: SubscriberId, interest: &Interest) -> Option<Part> {
        let subscriber = self.subscribers.get(id.index())?;
        if let Some(part) = subscriber.part(&self.relay, interest) {
            return Some(part.clone());
        }
        let most = self.relay.limits.authorities_per_stream;
        if subscriber.parts.len() >= most {
            self.refuse(LimitError { key: "authorities_per_stream", what: "authorities on one stream", most });
            return None;
        }
        let scope = self.route(interest)?;
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
        let place = self.relay.place(name.authority());
        let covers = |part: &&Part| part.scope.covers(part.id, name);
        let by_authority = subscriber.part(&self.relay, &own).filter(covers);
        let wildcard = subscriber.part(&self.relay, &Interest::Wildcard).filter(covers);
        // Rule 153: no other origin's wildcard may hold it, but to say that of what nobody else is asked of.
        let wildcard = wildcard.filter(|part| by_authority.is_none() || part.scope.origin == place.origin());
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

    /// Asks an origin for a name on a stream of this client's own. What the client may hold of it stays until that stream
    /// says otherwise (rule 150).
    fn fetch_privately(&mut self, id: SubscriberId, Stub { name, shared, once_shared }: Stub) {
        let Self { relay, stream, node, private, subscribers, view, waker, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return };
        let origin = shared.origin;
        if subscriber.private.contains_key(&name) {
            let part = subscriber.private_parts.iter().find(|part| part.scope.origin == origin);
            if let (true, Some(part)) = (subscriber.asks_again, part) {
                part.scope.resend(part.id, &name);
            }
            return;
        }
        let part = match subscriber.private_parts.iter().find(|part| part.scope.origin == origin) {
            Some(part) => part.clone(),
            None => {
                let scope = private.entry(origin).or_insert_with(|| relay.private_scope(*stream, origin, node));
                let part = view.open(scope.clone(), &subscriber.type_url, waker);
                subscriber.private_parts.push(part.clone());
                part
            }
        };
        part.scope.subscribe(&subscriber.type_url, part.id, &Interest::Name(name.clone()));
        if once_shared || subscriber.brings {
            part.scope.resume(&subscriber.type_url, part.id, vec![(name.clone(), Version::from(""))]);
        }
        subscriber.private.insert(name, shared);
    }

    /// Ends private interest in names that nothing asks for any more, and the streams that are not needed then.
    fn drop_private(&mut self, id: SubscriberId, unwanted: impl Fn(&ResourceName, &mut Arc<Scope>, &[Part]) -> bool) {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let Subscriber { type_url, parts, private_parts, private, .. } = subscriber;
        private.retain(|name, shared| {
            let drop = unwanted(name, shared, parts);
            if drop && let Some(part) = private_parts.iter().find(|part| part.scope.origin == shared.origin) {
                part.scope.unsubscribe(type_url, part.id, &Interest::Name(name.clone()));
            }
            !drop
        });
        let unused = |part: &mut Part| !private.values().any(|shared| shared.origin == part.scope.origin);
        for part in private_parts.extract_if(.., unused) {
            self.view.close(type_url, &part);
        }
        let Self { private, subscribers, .. } = self;
        private.retain(|origin, _| subscribers.iter().any(|(_, of)| of.fetches_from(*origin)));
    }

    /// What the client brought along counts no more once all of it was compared, told, or left.
    fn give_back_brought(&mut self, id: SubscriberId) {
        if let Some(subscriber) = self.subscribers.get_mut(id.index())
            && subscriber.brought > 0
            && !subscriber.all_parts().any(|part| part.scope.brings(part.id))
        {
            self.names.shrink(std::mem::take(&mut subscriber.brought));
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
        over.iter().for_each(|part| close_part(&self.view, subscriber, part));
    }

    /// Pulls the parts until the visitor has enough, or there is no more.
    fn pull_parts(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        said: &mut Said,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let mut pulled = Pulled::default();
        loop {
            let (round, again) = self.pull_round(id, removals, said, visitor);
            pulled = pulled.and(round);
            (pulled.more, pulled.paused) = (round.more, round.paused);
            if !again {
                return pulled;
            }
        }
    }

    /// One round over the parts: what is visited comes from the shared scopes, but for stubs of resources that must not
    /// be shared, which are noted instead. Whether another round is due, though the visitor has not enough.
    fn pull_round(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        said: &mut Said,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> (Pulled, bool) {
        let mut pulled = Pulled::default();
        let mut stubs: Vec<Stub> = Vec::new();
        let mut served: HashSet<ResourceName> = HashSet::new();
        let mut contested: Vec<(ResourceName, News)> = Vec::new();
        let Self { relay, subscribers, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return (pulled, false) };
        // What was left under a wildcard is settled with what that says of it, though nothing else is open any more.
        let several = subscriber.parts.len() > 1 || subscriber.looks_again();
        let Subscriber { parts, private_parts, private, .. } = subscriber;
        for part in parts.iter_mut().chain(private_parts) {
            let shared = part.scope.shared;
            let apart = contested.len() + stubs.len();
            let mut this = part.scope.pull(part.id, removals, &mut |pull| {
                let mut contest = |name: &ResourceName, news| {
                    contested.push((name.clone(), news));
                    // What waits to be looked at is bounded, too.
                    if contested.len() < MAX_NOTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                if several
                    && shared
                    && let Some((name, news)) = contests(relay, part, &pull, said)
                {
                    return contest(name, news);
                }
                let name = match &pull {
                    Pull::Put { name, resource, .. } if shared && resource.value.do_not_cache() => {
                        stubs.push(Stub::of(name, &part.scope, resource));
                        return if stubs.len() < MAX_NOTED {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        };
                    }
                    Pull::Put { name, .. } | Pull::Removed { name, .. } => name,
                    _ => return visitor(pull),
                };
                if shared && private.contains_key(*name) {
                    served.insert((*name).clone());
                    if !several && said.contains_key(*name) {
                        // What was fetched for this client went out a moment before: the rest is said in the next.
                        return contest(name, news_of(relay, part, &pull));
                    }
                } else if !shared {
                    // Rule 103: no name twice in a response.
                    if served.contains(*name) {
                        return ControlFlow::Continue(());
                    }
                    said.insert((*name).clone(), matches!(pull, Pull::Removed { .. }));
                }
                visitor(pull)
            });
            part.sets_aside |= contested.len() + stubs.len() > apart;
            this.empty |= this.answered && part.sets_aside;
            pulled = pulled.and(this);
            if pulled.more {
                break;
            }
        }
        if pulled.answered {
            self.view.served.store(true, Ordering::Relaxed);
        }
        if !served.is_empty() {
            self.drop_private(id, |name, _, _| served.contains(name));
        }
        let full = contested.len() >= MAX_NOTED || stubs.len() >= MAX_NOTED;
        let enough = self.settle_contested(id, contested, said, removals, &mut stubs, visitor);
        pulled.more |= enough;
        let fetches = !stubs.is_empty() && !pulled.more;
        for stub in stubs {
            self.fetch_privately(id, stub);
        }
        if let Some(subscriber) = self.subscribers.get_mut(id.index()) {
            subscriber.asks_again &= pulled.more || full;
        }
        // Whoever subscribes must pull, or it is not woken by the answer. An alias asked for now may stand for what was said:
        // rule 103 leaves that to the next response.
        if fetches && !said.is_empty() {
            pulled.more = true;
            self.waker.wake_by_ref();
        } else if fetches && let Some(subscriber) = self.subscribers.get(id.index()) {
            for part in &subscriber.private_parts {
                pulled = pulled.and(part.scope.pull(part.id, removals, visitor));
                if pulled.more {
                    break;
                }
            }
        }
        (pulled, full && !enough)
    }
}

impl Routes {
    /// Says which of several parts counts for names that they contest: the one of the name's own authority, if it has
    /// the name, or has not answered; else another that has it (rule 152). True when there is more.
    fn settle_contested(
        &mut self,
        id: SubscriberId,
        contested: Vec<(ResourceName, News)>,
        said: &mut Said,
        removals: Removals,
        stubs: &mut Vec<Stub>,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> bool {
        let Self { relay, subscribers, .. } = self;
        let Some(subscriber) = subscribers.get_mut(id.index()) else { return false };
        if contested.is_empty() && !subscriber.has_contested() {
            return false;
        }
        let fresh = !contested.is_empty();
        let unanswered = std::mem::take(&mut subscriber.unanswered);
        unanswered.into_iter().for_each(|(name, news)| subscriber.contest(name, news));
        for (name, news) in contested {
            let news = subscriber.as_asked(relay, &name, news);
            subscriber.contest(name, news);
        }
        let mut later = BTreeMap::new();
        let mut settled: HashSet<ResourceName> = HashSet::new();
        let (mut more, mut awaiting) = (false, Awaiting::default());
        while let Some((name, news)) = subscriber.contested.pop_first() {
            let counts = subscriber.counts(relay, &name, news, &mut awaiting);
            let gone = matches!(counts, Counts::Gone);
            match said.get(&name) {
                _ if matches!(counts, Counts::Own | Counts::Undecided) => continue,
                Some(false) if matches!(counts, Counts::ByAlias(..)) => continue,
                _ if matches!(counts, Counts::Unanswered) => {
                    subscriber.unanswered.insert(name, news);
                    continue;
                }
                // It was never told of it.
                _ if gone && news == News::OtherPut => continue,
                Some(true) if gone => {
                    // Its own stream said so, too.
                    settled.insert(name);
                    continue;
                }
                None if !gone || removals == Removals::Include => {}
                _ => {
                    later.insert(name, news);
                    continue;
                }
            }
            let visited = match counts {
                Counts::Own | Counts::Undecided | Counts::Unanswered => continue,
                Counts::Other(scope, resource) | Counts::ByAlias(scope, resource) if resource.value.do_not_cache() => {
                    stubs.push(Stub::of(&name, &scope, &resource));
                    continue;
                }
                Counts::Other(_, resource) | Counts::ByAlias(_, resource) => visitor(Pull::put(&name, &resource)),
                Counts::Gone => visitor(Pull::removed(&name)),
            };
            if gone {
                let place = relay.place(name.authority());
                let (own, others) = subscriber.parts.of_names_at(place, &relay.mixed(place.origin()));
                own.into_iter().chain(others).for_each(|part| part.scope.told_gone(part.id, &name));
            }
            settled.insert(name.clone());
            said.insert(name, gone);
            if visited.is_break() {
                more = true;
                break;
            }
        }
        more |= fresh && !subscriber.contested.is_empty();
        subscriber.contested.append(&mut later);
        if !subscriber.private.is_empty() {
            // What is gone for all, or shared, is not fetched for this client any more.
            self.drop_private(id, |name, _, _| settled.contains(name));
        }
        more
    }
}

impl Source for Routes {
    fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
        let (node, group) = self.relay.identify(node)?;
        lock(&self.view.node_id).clone_from(&node.message().id);
        self.node = node.encoded().clone();
        self.group = Some(group);
        Ok(())
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let subscriber = Subscriber {
            type_url: type_url.clone(),
            parts: Parts::default(),
            private_parts: Vec::new(),
            private: HashMap::new(),
            brings: false,
            moves: false,
            names: 0,
            brought: 0,
            sizes: Vec::new(),
            may_close: false,
            asks_again: false,
            opening: true,
            contested: BTreeMap::new(),
            unanswered: BTreeMap::new(),
        };
        SubscriberId::from_index(self.subscribers.insert(subscriber) as u32)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        let Some(mut subscriber) = self.subscribers.try_remove(id.index()) else { return };
        subscriber.end_opening();
        for part in subscriber.all_parts() {
            self.view.close(&subscriber.type_url, part);
        }
        self.names.shrink(subscriber.names + subscriber.brought);
        self.relay.count(&subscriber.type_url, tally);
    }

    fn refused(&mut self) -> Option<Refused> {
        let error = self.refused.take()?;
        self.relay.metrics.downstream_refused(error.key);
        Some(Refused::new(error.to_string()))
    }

    fn ends(&mut self, error: &ProtocolError) {
        if let Some(key) = quotas::key_of(error) {
            self.relay.metrics.downstream_refused(key);
        }
    }

    fn words(&self, error: &ProtocolError) -> String {
        quotas::key_of(error).map_or_else(|| error.to_string(), |key| format!("{error}{}", quotas::line(key)))
    }

    fn too_long_name(&mut self) {
        self.relay.metrics.downstream_refused("name_bytes");
        let node = lock(&self.view.node_id).clone();
        tracing::warn!(%node, "a name is longer than limits.name_bytes: it is answered as that of nothing");
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
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
        let subscriber = self.subscribers.get_mut(id.index())?;
        // What is said of a name that several parts may have is looked up by that name.
        if subscriber.looks_again() {
            return None;
        }
        let part = subscriber.part_of(&self.relay, text.authority())?;
        let (name, new) = part.scope.subscribe_known(&subscriber.type_url, part.id, text)?;
        let room = part.scope.room.clone();
        subscriber.asks_again |= !new;
        if new {
            self.grows(id, room, text.as_str());
        }
        Some((name, new))
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        let Some(part) = subscriber.part(&self.relay, interest) else { return false };
        let left = subscriber.left_to_others(&self.relay, part, interest);
        let moves = *interest == Interest::Wildcard && subscriber.has_of_wildcard(part);
        let (scope, part_id) = (part.scope.clone(), part.id);
        let brings = subscriber.brought > 0 && scope.brings(part_id);
        let private = subscriber.private.len();
        let held = scope.unsubscribe(&subscriber.type_url, part_id, interest);
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return held };
        subscriber.moves |= moves;
        if held {
            let weight = weight(interest.as_str());
            subscriber.names = subscriber.names.saturating_sub(weight);
            subscriber.shrinks(&scope, interest);
            self.names.shrink(weight);
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
                let over = subscriber.parts.remove(self.relay.place(authority_of(interest)));
                over.iter().for_each(|part| close_part(&self.view, subscriber, part));
            }
        }
        // It may have been the last that had any; a look at all of them for each name that is left would be too many.
        if brings && !scope.brings(part_id) || subscriber.private.len() < private {
            self.give_back_brought(id);
        }
        held
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        if let Some(subscriber) = self.subscribers.get_mut(id.index()) {
            subscriber.brings = !held.is_empty();
            // What it was sent here, and is said to hold later, is no more than was on its way at once.
            if subscriber.opening {
                let weight = held.iter().map(|(name, version)| held_weight(name, version.as_str())).sum();
                match self.names.grow(weight) {
                    Ok(()) => subscriber.brought += weight,
                    Err(error) => self.refuse(error),
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
        let view = self.view.clone();
        let visitor = &mut |pull: Pull<'_, Frame>| {
            view.served.store(true, Ordering::Relaxed);
            visitor(pull)
        };
        // Of names that several parts have, in this response.
        let mut said = Said::new();
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return Pulled::default() };
        subscriber.end_opening();
        let may_close = subscriber.may_close;
        if removals == Removals::Defer || subscriber.all_parts().count() <= 1 {
            let pulled = self.pull_parts(id, removals, &mut said, visitor);
            // Everything there is was said, but for what may be left of it if removals wait.
            if !pulled.more {
                self.give_back_brought(id);
            }
            if may_close && removals == Removals::Include && !pulled.more {
                self.close_done(id);
            }
            return pulled;
        }
        // Rule 134: no scope's removals before another's additions.
        let additions = self.pull_parts(id, Removals::Defer, &mut said, visitor);
        if additions.more {
            return additions;
        }
        let pulled = additions.and(self.pull_parts(id, Removals::Include, &mut said, visitor));
        if !pulled.more {
            self.give_back_brought(id);
            if may_close {
                self.close_done(id);
            }
        }
        pulled
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return false };
        let mut gone = HashSet::new();
        let known = subscriber.contested.len();
        let more = subscriber.pull_errors(&self.relay, removals, &mut gone, visitor);
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

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return Unanswered::default() };
        let several = subscriber.parts.len() > 1;
        // What the part of the name's own authority has, counts.
        let mut own: HashSet<ResourceName> = HashSet::new();
        let is_own = |part: &Part, name: &ResourceName| part.scope.key.is_at(self.relay.place(name.authority()));
        let mut unanswered = Unanswered::default();
        // What must not be shared, and whether the client may hold what was.
        let mut stubs: Vec<(ResourceName, bool)> = Vec::new();
        let mut others: Vec<(bool, ResourceName, Resource<Frame>)> = Vec::new();
        for part in subscriber.all_parts() {
            let shared = part.scope.shared;
            unanswered = unanswered.and(part.scope.visit(part.id, &mut |name, resource| {
                if shared && resource.value.do_not_cache() {
                    return stubs.push((name.clone(), may_be_held(resource)));
                }
                if several {
                    if shared && !is_own(part, name) {
                        let of_group = part.scope.key.authority().is_none();
                        return others.push((of_group, name.clone(), resource.clone()));
                    }
                    // What is fetched for this client is what that part has.
                    if !name.is_opaque() {
                        own.insert(name.clone());
                    }
                }
                visitor(name, resource);
            }));
        }
        others.sort_by_key(|(of_group, ..)| *of_group);
        for (_, name, resource) in others {
            if own.insert(name.clone()) {
                visitor(&name, &resource);
            }
        }
        for (_, held) in stubs.iter().filter(|(name, _)| subscriber.awaits_private(name)) {
            unanswered.names += 1;
            unanswered.held += usize::from(*held);
        }
        if let Some(subscriber) = self.subscribers.get_mut(id.index()).filter(|subscriber| subscriber.moves) {
            unanswered.held = unanswered.names + unanswered.collections;
            subscriber.moves = unanswered.any();
        }
        unanswered
    }

    fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return };
        for part in subscriber.all_parts() {
            let is_stub = |resource: &Resource<Frame>| part.scope.shared && resource.value.do_not_cache();
            part.scope
                .visit_leaving(part.id, removals, &mut |name, resource| !is_stub(resource) && visitor(name, resource));
        }
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        !subscriber.contested.is_empty() || subscriber.all_parts().any(|part| part.scope.has_work(part.id))
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return false };
        subscriber.all_parts().any(|part| part.scope.has_additions(part.id)) || subscriber.has_settled(&self.relay)
    }

    fn changes(&self, id: SubscriberId) -> Option<u64> {
        let parts = self.subscribers.get(id.index()).into_iter().flat_map(Subscriber::all_parts);
        Some(sum_of(parts.map(|part| (part, part.scope.changes()))))
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
        let (Place::Authority { origin, .. } | Place::Group { origin }) = self.relay.place(None);
        self.relay.is_sotw(origin)
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

impl Routes {
    /// What serves all of a subscriber: what comes from two has a version that neither of them gave.
    fn only_part(&self, id: SubscriberId) -> Option<(&TypeUrl, &Part)> {
        let subscriber = self.subscribers.get(id.index())?;
        match &*subscriber.parts {
            [only] if subscriber.private.is_empty() => Some((&subscriber.type_url, only)),
            _ => None,
        }
    }
}

fn close_part(view: &View, subscriber: &Subscriber, part: &Part) {
    if subscriber.opening {
        part.scope.end_opening();
    }
    view.close(&subscriber.type_url, part);
}

/// Numbers of several parts in one. Each scope counts for itself: what is newest here may be as new there.
fn sum_of<'a>(numbers: impl Iterator<Item = (&'a Part, u64)>) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    numbers.map(|(part, number)| hasher.hash_one((Arc::as_ptr(&part.scope), number))).fold(0, u64::wrapping_add)
}

impl Drop for Routes {
    fn drop(&mut self) {
        // A driver that failed before it closed its stream leaves nothing behind either.
        for (_, subscriber) in &mut self.subscribers {
            subscriber.end_opening();
            subscriber.all_parts().for_each(|part| self.view.close(&subscriber.type_url, part));
        }
        for scope in self.group_scopes.values() {
            if let Some(upstream) = scope.upstream() {
                lock(&upstream.speakers).leave(self.stream);
            }
        }
        self.relay.forget_stream(self.stream);
    }
}
