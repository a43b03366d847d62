//! Faults that are planted to see them found: around the machines, so that the machines stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::server::{Source, Tally, Variant};
use xds_transport::{Frame, TypeRule, TypeRules};
use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::ResourceName;

use crate::messages::{Failed as ErrorTold, Request, Response};
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    // A server's books.
    DropUnsubscribe,
    SubscribeToMore,
    ForgetInitialVersions,
    LoseTombstone,
    SwallowResubscribe,
    LeakSubscriber,
    ForgetDependents,
    LoseWake,
    ServeBeforeLoaded,
    // A server's order.
    PassOverFullWindow,
    RemoveBeforeOthersAdd,
    RemoveWithAdditions,
    ForgetRanks,
    HoldNobody,
    // A server's messages.
    LeaveOutOfFullState,
    ReuseNonce,
    ResendAfterNack,
    NameTwice,
    DoNotWaitForAcks,
    HonourStaleNonce,
    WildcardAfterTheLastName,
    // Errors, what lives for a time, and the versions of an origin.
    TellNoErrors,
    RepeatErrors,
    ErrorOfOtherCode,
    ErrorWithoutRemoval,
    RefreshNothing,
    RefreshOfOtherVersion,
    KeepTtlBack,
    StaleTypeVersion,
    // A client's messages.
    ForgetNameOnReconnect,
    KeepNonceOnReconnect,
    LoseAck,
    AckTwice,
    VersionOfRejected,
    ForgetNode,
}

impl Fault {
    pub(crate) const ALL: [Self; 35] = [
        Self::DropUnsubscribe,
        Self::SubscribeToMore,
        Self::ForgetInitialVersions,
        Self::LoseTombstone,
        Self::SwallowResubscribe,
        Self::LeakSubscriber,
        Self::ForgetDependents,
        Self::LoseWake,
        Self::ServeBeforeLoaded,
        Self::PassOverFullWindow,
        Self::RemoveBeforeOthersAdd,
        Self::RemoveWithAdditions,
        Self::ForgetRanks,
        Self::HoldNobody,
        Self::LeaveOutOfFullState,
        Self::ReuseNonce,
        Self::ResendAfterNack,
        Self::NameTwice,
        Self::DoNotWaitForAcks,
        Self::HonourStaleNonce,
        Self::WildcardAfterTheLastName,
        Self::TellNoErrors,
        Self::RepeatErrors,
        Self::ErrorOfOtherCode,
        Self::ErrorWithoutRemoval,
        Self::RefreshNothing,
        Self::RefreshOfOtherVersion,
        Self::KeepTtlBack,
        Self::StaleTypeVersion,
        Self::ForgetNameOnReconnect,
        Self::KeepNonceOnReconnect,
        Self::LoseAck,
        Self::AckTwice,
        Self::VersionOfRejected,
        Self::ForgetNode,
    ];
}

/// A cache whose books are wrong in one way.
pub(crate) struct Books<'a> {
    pub(crate) cache: &'a mut Cache<Frame>,
    pub(crate) fault: Option<Fault>,
}

impl Books<'_> {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

impl Source for Books<'_> {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.cache.open(type_url)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        if !self.has(Fault::LeakSubscriber) {
            Source::close(self.cache, id, tally);
        }
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if let Interest::Name(name) = interest
            && let Some(glob) = name.glob_parent()
            && self.has(Fault::SubscribeToMore)
        {
            self.cache.subscribe(id, &Interest::Name(glob));
        }
        let again = self.cache.is_subscribed(id, interest);
        !(again && self.has(Fault::SwallowResubscribe)) && Source::subscribe(self.cache, id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        self.has(Fault::DropUnsubscribe) || Source::unsubscribe(self.cache, id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        if !self.has(Fault::ForgetInitialVersions) {
            Source::resume(self.cache, id, held);
        }
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        let loses = self.has(Fault::LoseTombstone);
        let removals = if self.has(Fault::RemoveBeforeOthersAdd) { Removals::Include } else { removals };
        let mut visitor = |pull: Pull<'_, Frame>| match pull {
            Pull::Removed { .. } if loses => ControlFlow::Continue(()),
            pull => visitor(pull),
        };
        Source::pull(self.cache, id, removals, &mut visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Source::visit(self.cache, id, visitor)
    }

    fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
    ) {
        if !self.has(Fault::RemoveWithAdditions) {
            Source::visit_leaving(self.cache, id, removals, visitor);
        }
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        self.cache.has_work(id)
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        !self.has(Fault::PassOverFullWindow) && self.cache.has_additions(id)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        !self.has(Fault::TellNoErrors) && Source::pull_errors(self.cache, id, removals, visitor)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        if !self.has(Fault::RefreshNothing) {
            Source::look_up(self.cache, id, name, look);
        }
    }

    fn type_version(&self, id: SubscriberId) -> Option<Version> {
        let version = Source::type_version(self.cache, id);
        if self.has(Fault::StaleTypeVersion) { version.map(|_| "t1".into()) } else { version }
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        !self.has(Fault::ForgetDependents) && self.cache.resend(id, name)
    }
}

/// The rules that a server goes by.
pub(crate) fn rules(world: &World, fault: Option<Fault>) -> Arc<TypeRules> {
    let mut rules = TypeRules::clone(&world.rules);
    for kind in &world.kinds {
        let rule = kind.rule.clone();
        match fault {
            Some(Fault::ForgetRanks) => rules.insert(kind.url.clone(), TypeRule { rank: 0, ..rule }),
            Some(Fault::HoldNobody) => {
                rules.insert(kind.url.clone(), TypeRule { waits_for_lower_ranks: false, ..rule });
            }
            _ => return world.rules.clone(),
        }
    }
    Arc::new(rules)
}

/// What stands between a server and the wire.
#[derive(Default)]
pub(crate) struct ServerShim {
    asked: BTreeMap<String, BTreeSet<String>>,
    /// The last nonce of each type, and the names it brought.
    last: BTreeMap<String, (String, Vec<String>)>,
    last_nonce: String,
    /// The errors of each type that were told last.
    errors: BTreeMap<String, Vec<ErrorTold>>,
}

impl ServerShim {
    /// What the server reads.
    pub(crate) fn request(&mut self, fault: Option<Fault>, protocol: Variant, request: &mut Request) {
        let first = !self.asked.contains_key(&request.type_url);
        let asked = self.asked.entry(request.type_url.clone()).or_default();
        if protocol == Variant::Sotw {
            asked.clear();
        }
        asked.extend(request.names.iter().cloned());
        for name in &request.unsubscribe {
            asked.remove(name);
        }
        let asks_for_nothing = asked.is_empty();
        let last = self.last.get(&request.type_url);
        match (fault, last) {
            (Some(Fault::WildcardAfterTheLastName), _) if asks_for_nothing && !first => request.names.push("*".into()),
            (Some(Fault::ResendAfterNack), Some((_, names)))
                if request.error.is_some() && protocol == Variant::Delta =>
            {
                request.names.extend(names.iter().filter(|name| asked.contains(*name)).cloned());
            }
            (Some(Fault::HonourStaleNonce), Some((nonce, _))) => request.nonce.clone_from(nonce),
            _ => {}
        }
    }

    /// What the server writes, and what it takes for an answer to it.
    pub(crate) fn response(&mut self, fault: Option<Fault>, world: &World, response: &mut Response) -> Option<Request> {
        let sotw = world.setup.protocol == Variant::Sotw;
        let full_state = sotw && world.of(&response.type_url).is_some_and(|of| world.rule(of).full_state_in_sotw);
        let names = response.resources.iter().map(|sent| sent.name.clone()).collect();
        let type_url = response.type_url.clone();
        self.last.insert(type_url.clone(), (response.nonce.clone(), names));
        let last_nonce = std::mem::replace(&mut self.last_nonce, response.nonce.clone());
        match fault {
            Some(Fault::ReuseNonce) if !last_nonce.is_empty() => response.nonce = last_nonce,
            Some(Fault::LeaveOutOfFullState) if full_state && response.resources.len() > 1 => {
                response.resources.remove(0);
            }
            Some(Fault::RepeatErrors) => {
                let told = self.errors.insert(type_url, response.errors.clone()).unwrap_or_default();
                response.errors.extend(told);
            }
            Some(Fault::ErrorOfOtherCode) => response.errors.iter_mut().for_each(|failed| failed.code += 1),
            Some(Fault::ErrorWithoutRemoval) => {
                let Response { removed, errors, .. } = response;
                removed.retain(|name| errors.iter().all(|failed| failed.name != *name));
            }
            Some(Fault::RefreshOfOtherVersion) => {
                let heartbeats = response.resources.iter_mut().filter(|sent| sent.heartbeat);
                heartbeats.for_each(|sent| sent.version.push('x'));
            }
            Some(Fault::KeepTtlBack) => response.resources.iter_mut().for_each(|sent| sent.ttl = None),
            Some(Fault::NameTwice) => response.resources.extend(response.resources.last().cloned()),
            Some(Fault::DoNotWaitForAcks) => {
                // A delta request that names what was asked for asks for it again.
                let asked = self.asked.get(&type_url).filter(|_| sotw);
                let names = asked.into_iter().flatten().cloned().collect();
                return Some(Request { type_url, nonce: response.nonce.clone(), names, ..Request::default() });
            }
            _ => {}
        }
        None
    }
}

/// What stands between a client and the wire.
#[derive(Default)]
pub(crate) struct ClientShim {
    streams: u64,
    opened: BTreeSet<String>,
    last_nonce: BTreeMap<String, String>,
    last_version: BTreeMap<String, String>,
}

impl ClientShim {
    pub(crate) fn connected(&mut self) {
        self.streams += 1;
        self.opened.clear();
    }

    pub(crate) fn response(&mut self, response: &Response) {
        self.last_nonce.insert(response.type_url.clone(), response.nonce.clone());
        self.last_version.insert(response.type_url.clone(), response.version.clone());
    }

    /// What the client writes: nothing, the request, or more.
    pub(crate) fn request(&mut self, fault: Option<Fault>, protocol: Variant, mut request: Request) -> Vec<Request> {
        let first = self.opened.insert(request.type_url.clone());
        let again = first && self.streams > 1;
        match fault {
            Some(Fault::ForgetNameOnReconnect) if again && request.names.len() > 1 => drop(request.names.pop()),
            Some(Fault::KeepNonceOnReconnect) if again => {
                request.nonce = self.last_nonce.get(&request.type_url).cloned().unwrap_or_default();
            }
            Some(Fault::LoseAck) if protocol == Variant::Delta && !request.nonce.is_empty() => return Vec::new(),
            Some(Fault::AckTwice) if !request.nonce.is_empty() => return vec![request.clone(), request],
            Some(Fault::VersionOfRejected) if request.error.is_some() => {
                request.version = self.last_version.get(&request.type_url).cloned().unwrap_or_default();
            }
            Some(Fault::ForgetNode) if self.streams > 1 => request.node = Bytes::new(),
            _ => {}
        }
        vec![request]
    }
}
