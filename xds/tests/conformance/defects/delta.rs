//! What becomes of delta messages.

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use xds_transport::Dialect;
use xds_transport::wire::parameters::Locator;
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Resource};

use xdstp_cache::Selector;

use super::{CLUSTERS, Defect, ENDPOINTS, Hand, LISTENERS, ROUTES, encoded};

impl Hand {
    pub(super) fn delta_request(&mut self, mut request: DeltaDiscoveryRequest) -> Result<(), Status> {
        let type_url = request.type_url.clone();
        if self.refuse(&type_url, &request.resource_names_subscribe)? {
            return Ok(());
        }
        let is_range =
            |one: &Bytes| Locator::decode(Dialect::Draft, one).unwrap().selector.to_string().contains(" in ");
        if self.has(Defect::RefusesWithoutWords) && request.resource_locators_subscribe.iter().any(is_range) {
            return Err(Status::invalid_argument("not supported"));
        }
        let is_first = self.of(&type_url).requests == 0;
        self.of(&type_url).requests += 1;
        if self.gates(&mut request) {
            return Ok(());
        }
        self.spoil_delta_names(&mut request, is_first);
        let names = request.resource_names_subscribe.clone();
        let holds: Vec<_> = request.initial_resource_versions.iter().filter_map(|entry| key(entry)).collect();
        let of = self.of(&type_url);
        of.subscribed.extend(names.iter().cloned());
        of.ever.extend(names.iter().cloned());
        of.asked.extend(names);
        of.holds.extend(holds);
        self.delta_answer(request);
        Ok(())
    }

    /// Whether a request is dropped for its nonce.
    fn gates(&mut self, request: &mut DeltaDiscoveryRequest) -> bool {
        let last = self.of(&request.type_url).nonce.clone();
        if request.response_nonce.is_empty() {
            return false;
        }
        if self.has(Defect::AckIsNothingElse) {
            request.resource_names_subscribe.clear();
            request.resource_names_unsubscribe.clear();
        }
        self.has(Defect::NonceGatesDelta) && request.response_nonce != last
    }

    fn spoil_delta_names(&mut self, request: &mut DeltaDiscoveryRequest, is_first: bool) {
        let is = |type_url: &str| request.type_url == type_url;
        let subscribed = self.of(&request.type_url).subscribed.clone();
        let asks_for_nothing =
            request.resource_names_subscribe.is_empty() && request.resource_locators_subscribe.is_empty();
        let is_legacy = !subscribed.iter().any(|name| name == "*" || name.contains("xdstp"));
        match self.defect {
            Some(Defect::SubscribedAgainIsSilent) => {
                request.resource_names_subscribe.retain(|name| !subscribed.contains(name));
            }
            Some(Defect::NoEndpointsAreAll) if is(ENDPOINTS) && is_first && asks_for_nothing => {
                request.resource_names_subscribe.push("*".into());
            }
            Some(Defect::NothingIsEverything) if is(CLUSTERS) && !request.resource_names_unsubscribe.is_empty() => {
                let left = &request.resource_names_unsubscribe;
                if !left.contains(&"*".to_owned()) && subscribed.iter().all(|name| left.contains(name)) {
                    request.resource_names_subscribe.push("*".into());
                }
            }
            Some(Defect::VersionsAreIgnored) => request.initial_resource_versions.clear(),
            Some(Defect::EndpointsAreForgotten) if is(ENDPOINTS) && is_first => {
                let held: Vec<_> = request.initial_resource_versions.iter().filter_map(|entry| key(entry)).collect();
                request.resource_names_subscribe.retain(|name| !held.contains(name));
            }
            Some(Defect::LeavingIsIgnored) => request.resource_names_unsubscribe.clear(),
            Some(Defect::LeavingEndsTheWildcard)
                if is(CLUSTERS) && is_legacy && !request.resource_names_unsubscribe.is_empty() =>
            {
                request.resource_names_unsubscribe.push("*".into());
            }
            Some(Defect::TtlForEverybody) => {
                request.node = with_feature(&request.node, "xds.config.supports-resource-ttl");
            }
            Some(Defect::RangesAreIgnored | Defect::InvertIsIgnored) => {
                let of = if self.has(Defect::RangesAreIgnored) { " in " } else { "or not " };
                for one in &mut request.resource_locators_subscribe {
                    let Locator { name, selector, .. } = Locator::decode(Dialect::Draft, one).unwrap();
                    if selector.to_string().contains(of) {
                        *one = Locator::new(name, Selector::default()).encode(Dialect::Draft).unwrap();
                    }
                }
            }
            Some(Defect::NamesBesideLocatorsCount) => {
                let names = std::mem::take(&mut request.resource_names_subscribe);
                let locator = |name| Locator::new(name, Selector::default()).encode(Dialect::Draft).unwrap();
                request.resource_locators_subscribe.extend(names.into_iter().map(locator));
            }
            Some(Defect::NamesBesideLocatorsAreIgnored) if !request.resource_locators_subscribe.is_empty() => {
                request.resource_names_subscribe.clear();
            }
            _ => {}
        }
        for name in &request.resource_names_unsubscribe {
            self.of(&request.type_url).subscribed.remove(name);
        }
    }

    /// Answers travel by the names that the origin has for its responses.
    fn delta_answer(&mut self, mut request: DeltaDiscoveryRequest) {
        let type_url = request.type_url.clone();
        let is_nack = request.error_detail.is_some();
        if !request.response_nonce.is_empty() {
            self.of(&type_url).is_acked = true;
            if is_nack && self.has(Defect::NackIsAnswered) {
                let last = self.of(&type_url).last_delta.clone();
                self.send_delta(last.unwrap_or_default(), None);
            }
            match self.nonces.get(&request.response_nonce) {
                Some(Some(origin)) => request.response_nonce.clone_from(origin),
                Some(None) => {
                    request.response_nonce.clear();
                    request.error_detail = None;
                }
                None => {}
            }
        }
        if type_url == CLUSTERS {
            let held: Vec<_> = self.held.drain(..).collect();
            self.down.extend(held);
        }
        self.up.push(encoded(&request));
    }

    pub(super) fn delta_response(&mut self, mut response: DeltaDiscoveryResponse) {
        let type_url = response.type_url.clone();
        let is_something = |response: &DeltaDiscoveryResponse| {
            !response.resources.is_empty() || !response.removed_resources.is_empty()
        };
        let was_something = is_something(&response);
        self.spoil_delta_resources(&mut response);
        self.spoil_delta_removals(&mut response);
        let origin = response.nonce.clone();
        let of = self.of(&type_url);
        for resource in response.resources.iter().filter(|resource| resource.resource.is_some()) {
            of.asked.remove(&resource.name);
            of.sent.insert(resource.name.clone(), resource.version.clone().into_bytes());
        }
        of.missing.extend(response.removed_resources.iter().cloned());
        if was_something && !is_something(&response) {
            return self.acknowledge_delta(type_url, origin);
        }
        if self.has(Defect::RemovalsFirst) && type_url == ENDPOINTS && self.hold_back(&response) {
            return self.acknowledge_delta(type_url, origin);
        }
        self.send_delta(response, Some(origin));
        let follow = self.has(Defect::RoutesFollowListeners) && type_url == LISTENERS;
        if let Some(routes) = self.types.get(ROUTES).and_then(|of| of.last_delta.clone()).filter(|_| follow) {
            self.send_delta(routes, None);
        }
    }

    /// In the name of the client, which does not see it now.
    fn acknowledge_delta(&mut self, type_url: String, response_nonce: String) {
        self.up.push(encoded(&DeltaDiscoveryRequest { type_url, response_nonce, ..Default::default() }));
    }

    /// Whether it waits for a removal: what was told as missing, and is there.
    fn hold_back(&mut self, response: &DeltaDiscoveryResponse) -> bool {
        let missing = self.of(&response.type_url).missing.clone();
        let comes = response.resources.iter().any(|one| missing.contains(&one.name));
        if comes {
            let nonce = self.new_nonce(&response.type_url, None);
            self.held.push(encoded(&DeltaDiscoveryResponse { nonce, ..response.clone() }));
        }
        comes
    }

    fn spoil_delta_resources(&mut self, response: &mut DeltaDiscoveryResponse) {
        let type_url = response.type_url.clone();
        let number = self.number;
        let is_first = self.of(&type_url).last_delta.is_none();
        let (sent, asked) = (self.of(&type_url).sent.clone(), self.of(&type_url).asked.clone());
        let resources = &mut response.resources;
        match self.defect {
            Some(Defect::HeartbeatIsAnotherVersion) => {
                let beats = resources.iter_mut().filter(|one| one.resource.is_none() && one.ttl.is_some());
                beats.for_each(|beat| beat.version += "-beat");
            }
            Some(Defect::NoHeartbeats) => resources.retain(|one| one.resource.is_some() || one.ttl.is_none()),
            Some(Defect::SendsTwice) => resources.extend(resources.first().cloned()),
            Some(Defect::HasAStranger) if is_first && !resources.is_empty() => {
                let other = if type_url == CLUSTERS { ENDPOINTS } else { CLUSTERS };
                let any = Any { type_url: other.into(), value: Bytes::from_static(b"\x0a\x08stranger") };
                let name = "stranger".to_owned();
                resources.push(Resource { name, resource: Some(any), version: "1".into(), ..Default::default() });
            }
            Some(Defect::NameOutsideIsAnother) if type_url == LISTENERS => {
                resources.iter_mut().for_each(|one| one.name.insert(0, '/'));
            }
            Some(Defect::NoIdentifier) => response.control_plane = None,
            Some(Defect::VariantsAreNotSaid) => resources.iter_mut().for_each(|one| one.resource_name.clear()),
            Some(Defect::VersionsOfTheStream) => {
                resources.iter_mut().for_each(|one| one.version += &format!("#{number}"));
            }
            Some(Defect::EndpointsDoNotFollow) if type_url == ENDPOINTS => resources.retain(|one| {
                let is_known = sent.get(&one.name).is_some_and(|version| version == one.version.as_bytes());
                !is_known || asked.contains(&one.name) || one.resource.is_none()
            }),
            Some(Defect::VirtualHostsAreRemoved) => {
                let (there, missing) = std::mem::take(resources).into_iter().partition(|one| one.resource.is_some());
                *resources = there;
                response.removed_resources.extend(Vec::<Resource>::into_iter(missing).map(|one| one.name));
            }
            _ => {}
        }
    }

    fn spoil_delta_removals(&mut self, response: &mut DeltaDiscoveryResponse) {
        let defect = self.defect;
        let of = self.of(&response.type_url);
        let removed = &mut response.removed_resources;
        match defect {
            Some(Defect::MissingIsSilent) => removed.retain(|name| {
                let is_asked = of.subscribed.contains(name) && !name.ends_with('*');
                !is_asked || of.sent.contains_key(name) || of.holds.contains(name)
            }),
            Some(Defect::NoTombstones) => removed.retain(|name| {
                let is_known = of.sent.contains_key(name) || of.holds.contains(name) || of.ever.contains(name);
                is_known || !name.starts_with("xdstp:")
            }),
            Some(Defect::RemovalsSayNoVariant) => {
                let variants = std::mem::take(&mut response.removed_resource_names);
                removed.extend(variants.iter().filter_map(|one| key(one)));
            }
            Some(Defect::EmptyGlobIsSilent) => removed.retain(|name| !name.ends_with('*')),
            _ => {}
        }
    }

    fn send_delta(&mut self, mut response: DeltaDiscoveryResponse, origin: Option<String>) {
        let type_url = response.type_url.clone();
        response.nonce = self.new_nonce(&type_url, origin);
        self.of(&type_url).last_delta = Some(response.clone());
        let waits = self.has(Defect::EndpointsWaitForClusters) && type_url == ENDPOINTS;
        let unacked = self.types.get(CLUSTERS).is_some_and(|of| !of.is_acked && of.last_delta.is_some());
        let is_early = self.has(Defect::RoutesFirst) && type_url == CLUSTERS && self.has_all_types();
        if (waits && unacked) || (is_early && response.removed_resources.is_empty()) {
            return self.held.push(encoded(&response));
        }
        self.down.push(encoded(&response));
        let goes = self.has(Defect::RemovalsFirst) && type_url == ENDPOINTS && !response.removed_resources.is_empty();
        if goes || (self.has(Defect::RoutesFirst) && type_url == ROUTES) {
            let held: Vec<_> = self.held.drain(..).collect();
            self.down.extend(held);
        }
    }
}

/// The key of an entry of a map.
fn key(entry: &[u8]) -> Option<String> {
    xds_transport::wire::walk::text_at(entry, &[1]).map(str::to_owned)
}

pub(super) fn with_feature(node: &Bytes, feature: &str) -> Bytes {
    if node.is_empty() {
        return node.clone();
    }
    let mut node = Node::decode(node.clone()).unwrap();
    node.client_features.push(feature.into());
    encoded(&node)
}
