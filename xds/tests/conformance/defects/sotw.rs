//! What becomes of SotW messages.

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use xds_transport::wire::{Any, DiscoveryRequest, DiscoveryResponse, RESOURCE_TYPE_URL, Resource, walk};

use super::delta::with_feature;
use super::{CLUSTERS, Defect, ENDPOINTS, Hand, LISTENERS, ROUTES, encoded};

impl Hand {
    pub(super) fn sotw_request(&mut self, mut request: DiscoveryRequest) -> Result<(), Status> {
        let type_url = request.type_url.clone();
        if self.refuse(&type_url, &request.resource_names)? {
            return Ok(());
        }
        self.spoil_sotw_names(&mut request);
        let (nonce, version) = (self.of(&type_url).nonce.clone(), self.of(&type_url).version.clone());
        let is_answer = !request.response_nonce.is_empty() && request.response_nonce == nonce;
        self.of(&type_url).is_acked |= is_answer;
        let is_nack = request.error_detail.is_some();
        let again = match self.defect {
            Some(Defect::NackIsAnswered) => is_answer && is_nack,
            Some(Defect::VersionIsTheVerdict) => is_answer && !is_nack && request.version_info != version,
            _ => false,
        };
        // Several are in flight: an answer to one that is not the last counts, unless a later one was answered.
        let answered = request.response_nonce.strip_prefix('n').and_then(|number| number.parse().ok()).unwrap_or(0);
        let of = self.of(&type_url);
        let in_flight = answered > 0 && answered >= of.answered;
        of.answered = of.answered.max(answered);
        let many = self.has(Defect::ManyInFlight) && in_flight;
        match self.nonces.get(&request.response_nonce) {
            // The origin has its answer to that, and to a newer one: the names count all the same.
            Some(_) if !is_answer && many => {
                request.response_nonce = self.of(&type_url).origin_nonce.clone();
                request.error_detail = None;
            }
            // A response of ours: the origin sent nothing since.
            Some(None) => {
                request.response_nonce = self.of(&type_url).origin_nonce.clone();
                request.error_detail = None;
            }
            Some(Some(origin)) => request.response_nonce.clone_from(origin),
            None => {}
        }
        let is_stale = !nonce.is_empty() && !is_answer;
        let is_current = match self.defect {
            Some(Defect::StaleIsCurrent) => is_stale && !request.response_nonce.is_empty(),
            Some(Defect::NoNonceIsCurrent) => is_stale && request.response_nonce.is_empty(),
            _ => false,
        };
        let of = self.of(&type_url);
        if is_current || (!request.response_nonce.is_empty() && is_answer) {
            request.response_nonce.clone_from(&of.origin_nonce);
        }
        of.requests += 1;
        if !is_stale || is_current || many {
            of.request = request.clone();
        }
        self.up.push(encoded(&request));
        if again {
            let last = self.of(&type_url).last_sotw.clone();
            self.send_sotw(last.unwrap_or_default(), None);
        }
        if type_url == CLUSTERS {
            let held: Vec<_> = self.held.drain(..).collect();
            self.down.extend(held);
        }
        Ok(())
    }

    fn spoil_sotw_names(&mut self, request: &mut DiscoveryRequest) {
        let had_names = !self.of(&request.type_url).request.resource_names.is_empty();
        let is_first = self.of(&request.type_url).requests == 0;
        let is = |type_url: &str| request.type_url == type_url;
        match self.defect {
            Some(Defect::NoEndpointsAreAll) if is(ENDPOINTS) && is_first && request.resource_names.is_empty() => {
                request.resource_names.push("*".into());
            }
            Some(Defect::NothingIsEverything) if is(CLUSTERS) && had_names && request.resource_names.is_empty() => {
                request.resource_names.push("*".into());
            }
            Some(Defect::WrapsForEverybody) => {
                request.node = with_feature(&request.node, "xds.config.resource-in-sotw");
            }
            _ => {}
        }
    }

    pub(super) fn sotw_response(&mut self, mut response: DiscoveryResponse) {
        let type_url = response.type_url.clone();
        let origin = response.nonce.clone();
        let was_empty = response.resources.is_empty();
        if self.is_not_complete(&response) {
            return self.acknowledge(&response);
        }
        self.spoil_sotw_resources(&mut response);
        if response.resources.is_empty() && !was_empty {
            return self.acknowledge(&DiscoveryResponse { nonce: origin, ..response });
        }
        let of = self.of(&type_url);
        for any in &response.resources {
            of.sent.insert(name_of(any), any.encode_to_vec());
        }
        self.send_sotw(response.clone(), Some(origin));
        if self.has(Defect::ManyInFlight) {
            self.acknowledge(&response);
        }
        let follow = self.has(Defect::RoutesFollowListeners) && type_url == LISTENERS;
        if let Some(routes) = self.types.get(ROUTES).and_then(|of| of.last_sotw.clone()).filter(|_| follow) {
            self.send_sotw(routes, None);
        }
    }

    /// Whether it is held back for what it lacks.
    fn is_not_complete(&mut self, response: &DiscoveryResponse) -> bool {
        let is_it = self.has(Defect::SilentUntilAllAreThere) && response.type_url == ENDPOINTS;
        let of = self.of(&response.type_url);
        let there: Vec<_> = response.resources.iter().map(name_of).collect();
        let is_missing = |name: &String| !there.contains(name) && !of.sent.contains_key(name);
        is_it && of.request.resource_names.iter().any(is_missing)
    }

    /// In the name of the client, which never sees it.
    fn acknowledge(&mut self, response: &DiscoveryResponse) {
        let of = self.of(&response.type_url);
        of.origin_nonce.clone_from(&response.nonce);
        let request = DiscoveryRequest {
            response_nonce: response.nonce.clone(),
            version_info: response.version_info.clone(),
            error_detail: None,
            ..of.request.clone()
        };
        self.up.push(encoded(&request));
    }

    fn spoil_sotw_resources(&mut self, response: &mut DiscoveryResponse) {
        let type_url = response.type_url.clone();
        let is_first = self.of(&type_url).last_sotw.is_none();
        let sent = self.of(&type_url).sent.clone();
        let wanted = self.of(&type_url).request.resource_names.clone();
        let is_known = |any: &Any| sent.get(&name_of(any)) == Some(&any.encode_to_vec());
        let is_full = type_url == CLUSTERS || type_url == LISTENERS;
        let resources = &mut response.resources;
        match self.defect {
            Some(Defect::SotwComingBackIsSilent) if !is_full => resources.retain(|any| !is_known(any)),
            Some(Defect::FullStateIsAPart) if is_full => resources.retain(|any| !is_known(any)),
            Some(Defect::SotwSendsAll) if type_url == ENDPOINTS => {
                let there: Vec<_> = resources.iter().map(name_of).collect();
                let others = sent.iter().filter(|(name, _)| wanted.contains(name) && !there.contains(name));
                resources.extend(others.map(|(_, any)| Any::decode(&any[..]).unwrap()));
            }
            Some(Defect::SendsTwice) => resources.extend(resources.first().cloned()),
            Some(Defect::HasAStranger) if is_first && !resources.is_empty() => {
                let other = if type_url == CLUSTERS { ENDPOINTS } else { CLUSTERS };
                resources.push(Any { type_url: other.into(), value: Bytes::from_static(b"\x0a\x08stranger") });
            }
            Some(Defect::NoIdentifier) => response.control_plane = None,
            Some(Defect::OneVersion) => response.version_info = "1".into(),
            // Of whoever asks for another type first, and said there who he is.
            Some(Defect::NodeIsForgotten) if type_url == ENDPOINTS && self.types.contains_key(CLUSTERS) => {
                for any in resources.iter_mut().filter(|any| any.type_url == RESOURCE_TYPE_URL) {
                    *any = Resource::decode(any.value.clone()).unwrap().resource.unwrap();
                }
            }
            _ => {}
        }
    }

    fn send_sotw(&mut self, mut response: DiscoveryResponse, origin: Option<String>) {
        let type_url = response.type_url.clone();
        response.nonce = self.new_nonce(&type_url, origin);
        let of = self.of(&type_url);
        of.version.clone_from(&response.version_info);
        of.last_sotw = Some(response.clone());
        let waits = self.has(Defect::EndpointsWaitForClusters) && type_url == ENDPOINTS;
        let unacked = self.types.get(CLUSTERS).is_some_and(|of| !of.is_acked && of.last_sotw.is_some());
        let is_early = self.has(Defect::RoutesFirst) && type_url == CLUSTERS && self.has_all_types();
        if (waits && unacked) || (is_early && !response.resources.is_empty()) {
            return self.held.push(encoded(&response));
        }
        self.down.push(encoded(&response));
        if self.has(Defect::RoutesFirst) && type_url == ROUTES {
            let held: Vec<_> = self.held.drain(..).collect();
            self.down.extend(held);
        }
    }
}

/// What a resource calls itself.
fn name_of(any: &Any) -> String {
    let path: &[u32] = if any.type_url == RESOURCE_TYPE_URL { &[3] } else { &[1] };
    walk::text_at(&any.value, path).unwrap_or_default().to_owned()
}
