//! What holds for any bytes: shared by the tests and the fuzz targets.

pub(crate) mod client;
pub(crate) mod locator;
pub(crate) mod subject;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource, Status,
};
use xds_transport::{Frame, Protocol, Response, TypeRules};
use xdstp_cache::{Cache, Options};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const TYPES: [&str; 3] = [CLUSTERS, "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "t/T"];
const NAMES: [&str; 8] = ["*", "a", "b", "xdstp://x/T/d/*", "xdstp://x/T/d/1", "xdstp://x/T/d/2?b=1&a=2", "xdstp:", ""];

/// Any bytes, read as a response: what prost reads too is read alike, and what is accepted prost reads.
pub(crate) fn wire_walk(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let walks = [Response::from_delta(bytes.clone()), Response::from_sotw(bytes.clone(), &TypeRules::envoy())];
    for frame in
        walks.iter().flatten().flat_map(|walked| &walked.resources).filter_map(|received| received.frame.as_ref())
    {
        // What is passed on as it is can be decoded by whoever it is passed to.
        Any::decode(frame.any().clone()).unwrap();
        Resource::decode(frame.wrapper().clone()).unwrap();
    }
    if let (Ok(prost), Ok(walked)) =
        (DeltaDiscoveryResponse::decode(bytes.clone()), Response::from_delta(bytes.clone()))
    {
        assert_eq!(
            (prost.nonce, prost.type_url, prost.system_version_info),
            (walked.nonce, walked.type_url, walked.version)
        );
        assert!(walked.resources.len() <= prost.resources.len());
        assert!(walked.resources.len() + walked.rejected.len() >= prost.resources.len());
        for received in &walked.resources {
            let named = |name: &str| name.parse() == Ok(received.name.clone());
            // A name may also stand in `resource_name`, which prost does not read here.
            assert!(prost.resources.iter().any(|one| named(&one.name) || !one.resource_name.is_empty()));
        }
    }
    if let (Ok(prost), Ok(walked)) =
        (DiscoveryResponse::decode(bytes.clone()), Response::from_sotw(bytes, &TypeRules::envoy()))
    {
        assert_eq!((prost.nonce, prost.type_url, prost.version_info), (walked.nonce, walked.type_url, walked.version));
        assert!(walked.resources.len() <= prost.resources.len());
        assert!(walked.resources.len() + walked.rejected.len() >= prost.resources.len());
    }
}

/// Any bytes, read as what clients and a control plane do to one stream.
pub(crate) fn server_stream(bytes: &[u8]) {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    let mut now = Instant::now();
    let mut script = Script(bytes.iter());
    let mut options = Options::default();
    options.authoritative = script.next().is_multiple_of(2);
    options.wildcard_covers_xdstp = script.next().is_multiple_of(2);
    let protocol = if script.next().is_multiple_of(2) { Protocol::Delta } else { Protocol::Sotw };
    let mut cache = Cache::<Frame>::new(options);
    let mut stream = Stream::new(protocol, Settings::default());
    let mut heard = Heard { protocol, nonces: BTreeMap::new(), seen: BTreeSet::new() };
    while let Some(what) = script.0.next() {
        let (of, name) = (TYPES[usize::from(what >> 4) % TYPES.len()], NAMES[usize::from(script.next()) % NAMES.len()]);
        match (what % 8, name.parse()) {
            (0, Ok(name)) => {
                let version = script.next().to_string();
                let frame = Frame::of_message(&of.into(), version.as_bytes());
                let mut edit = cache.edit(now);
                edit.put(&of.into(), &name, frame.into_resource(Some(version.into())));
                let _ = edit.finish();
            }
            (1, Ok(name)) => {
                let mut edit = cache.edit(now);
                edit.remove(&of.into(), &name);
                let _ = edit.finish();
            }
            (2, Ok(name)) => {
                let mut edit = cache.edit(now);
                edit.answered(&of.into(), &xdstp_cache::Interest::from(name));
                let _ = edit.finish();
            }
            (3, _) => now += Duration::from_millis(500),
            (4, _) => {
                let length = usize::from(script.next());
                let message: Vec<_> = script.0.by_ref().take(length).copied().collect();
                if stream.handle_message(now, message.into(), &mut cache).is_err() {
                    break;
                }
            }
            _ => {
                let request = script.request(of, &mut heard);
                if stream.handle_message(now, request, &mut cache).is_err() {
                    break;
                }
            }
        }
        if what & 8 == 0 {
            let mut responses = 0;
            while let Ok(Some(transmit)) = stream.poll_transmit(now, &mut cache) {
                heard.response(transmit.into_bytes());
                responses += 1;
                assert!(responses < 100, "it never comes to rest");
            }
        }
    }
    stream.close(&mut cache);
    assert_eq!(cache.subscriber_count(), 0);
}

struct Script<'a>(std::slice::Iter<'a, u8>);

impl Script<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    fn names(&mut self) -> Vec<String> {
        let bits = self.next();
        NAMES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| (*name).to_owned()).collect()
    }

    /// A request that a client might send; it answers everything up to the nonce it chooses.
    fn request(&mut self, of: &str, heard: &mut Heard) -> Bytes {
        let kind = self.next();
        let unanswered = heard.nonces.entry(of.into()).or_default();
        let answered = usize::from(kind & 7).min(unanswered.len());
        let nonce = unanswered.drain(..answered).next_back().unwrap_or_default();
        let error_detail = (kind & 8 != 0).then(|| Status { code: 13, message: "bad".into() });
        let (type_url, response_nonce) = (of.to_owned(), nonce);
        match heard.protocol {
            Protocol::Delta => {
                let held = self.names().into_iter().filter(|name| !name.is_empty());
                let entry = |name: String| [&[10, name.len() as u8], name.as_bytes(), b"\x12\x011"].concat().into();
                let request = DeltaDiscoveryRequest {
                    type_url,
                    response_nonce,
                    error_detail,
                    initial_resource_versions: held.map(entry).collect(),
                    resource_names_subscribe: self.names(),
                    resource_names_unsubscribe: self.names(),
                    ..Default::default()
                };
                request.encode_to_vec().into()
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest {
                    type_url,
                    response_nonce,
                    error_detail,
                    resource_names: self.names(),
                    ..Default::default()
                };
                request.encode_to_vec().into()
            }
        }
    }
}

/// What a client was told, and has not answered.
struct Heard {
    protocol: Protocol,
    nonces: BTreeMap<String, Vec<String>>,
    seen: BTreeSet<String>,
}

impl Heard {
    fn response(&mut self, bytes: Bytes) {
        let (type_url, nonce, names) = match self.protocol {
            Protocol::Delta => {
                let response = DeltaDiscoveryResponse::decode(bytes).unwrap();
                let names = response.resources.into_iter().map(|one| one.name).chain(response.removed_resources);
                (response.type_url, response.nonce, names.collect::<Vec<_>>())
            }
            Protocol::Sotw => {
                let response = DiscoveryResponse::decode(bytes).unwrap();
                (response.type_url, response.nonce, Vec::new())
            }
        };
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "rule 69: {names:?}");
        assert!(!nonce.is_empty() && self.seen.insert(nonce.clone()), "rule 13");
        let unanswered = self.nonces.entry(type_url).or_default();
        unanswered.push(nonce);
        let limit = if self.protocol == Protocol::Sotw { 1 } else { 8 };
        assert!(unanswered.len() <= limit, "rule 129");
    }
}
