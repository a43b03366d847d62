//! Recorded traces of real clients, replayed against the server side.
//!
//! The traces are those of Envoy 1.40.0 and gRPC C-core 58.0.0 with a scripted origin. The server
//! here stands where a relay would: it learns what the origin held from the recorded responses, gets
//! the recorded requests, and its own responses must leave the client with the same resources.
//! It need not send the same responses: a SotW origin that repeats itself at a new version says
//! nothing new, and what is acknowledged then was never sent here.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use bytes::Bytes;
use prost::Message;
use serde_json::Value;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest};
use xds_transport::{Frame, Protocol, Response, TypeRules};
use xdstp_cache::{Cache, Interest, Options, TypeUrl, Version};
use xdstp_uri::ResourceName;

/// What a client holds: version (delta only) and body, by type and name.
type View = BTreeMap<(String, ResourceName), (Option<Version>, Bytes)>;

#[test]
fn envoy_delta() {
    assert_eq!(replay("envoy-delta"), 9);
}

#[test]
fn envoy_sotw() {
    assert_eq!(replay("envoy-sotw"), 9);
}

#[test]
fn envoy_xdstp_delta() {
    assert_eq!(replay("envoy-xdstp-delta"), 9);
}

#[test]
fn grpc_plain() {
    assert_eq!(replay("grpc-python-plain"), 9);
}

#[test]
fn grpc_xdstp() {
    assert_eq!(replay("grpc-python-xdstp"), 9);
}

#[test]
fn grpc_mixed() {
    assert_eq!(replay("grpc-python-mixed"), 9);
}

#[test]
fn grpc_server_plain() {
    assert_eq!(replay("grpc-python-server-plain"), 0);
}

#[test]
fn grpc_server_xdstp() {
    assert_eq!(replay("grpc-python-server-xdstp"), 0);
}

/// Replays a trace. Returns how many notes were passed.
fn replay(name: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name).with_extension("jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut replay = Replay::new();
    let mut notes = 0;
    for (number, line) in text.lines().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        let at = format!("{name}.jsonl:{}", number + 1);
        let stream = event["stream"].as_u64().unwrap_or_default();
        match event["ev"].as_str().unwrap() {
            "open" => replay.open(stream, if event["method"] == "delta" { Protocol::Delta } else { Protocol::Sotw }),
            "req" => replay.request(stream, raw(&event)),
            "resp" => replay.response(stream, raw(&event), &event),
            "close" => replay.close(stream),
            "note" => {
                notes += 1;
                replay.compare(&at);
            }
            _ => {}
        }
    }
    replay.compare(name);
    assert!(replay.compared > 0, "nothing was ever held");
    notes
}

fn raw(event: &Value) -> Bytes {
    base64::engine::general_purpose::STANDARD.decode(event["raw_b64"].as_str().unwrap()).unwrap().into()
}

struct Replay {
    cache: Cache<Frame>,
    rules: TypeRules,
    now: Instant,
    streams: BTreeMap<u64, Replayed>,
    /// As the recorded responses have it, and as ours do.
    recorded: View,
    ours: View,
    compared: usize,
}

struct Replayed {
    stream: Stream,
    types: BTreeMap<String, Type>,
}

#[derive(Default)]
struct Type {
    /// What the client subscribes to.
    wanted: BTreeSet<Interest>,
    /// Recorded nonces, and ours that stand for them.
    nonces: BTreeMap<String, String>,
    /// Our nonces that were not answered.
    unanswered: VecDeque<String>,
    last: String,
}

impl Replay {
    fn new() -> Self {
        let mut options = Options::default();
        options.authoritative = false;
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        Self {
            cache: Cache::new(options),
            rules: TypeRules::envoy(),
            now,
            streams: BTreeMap::new(),
            recorded: View::new(),
            ours: View::new(),
            compared: 0,
        }
    }

    fn open(&mut self, stream: u64, protocol: Protocol) {
        let stream_of = Replayed { stream: Stream::new(protocol, Settings::default()), types: BTreeMap::new() };
        assert!(self.streams.insert(stream, stream_of).is_none());
    }

    fn close(&mut self, stream: u64) {
        self.streams.remove(&stream).unwrap().stream.close(&mut self.cache);
    }

    fn request(&mut self, stream: u64, raw: Bytes) {
        let replayed = self.streams.get_mut(&stream).unwrap();
        let request = match replayed.stream.protocol() {
            Protocol::Delta => replayed.delta_request(&raw, &self.rules),
            Protocol::Sotw => replayed.sotw_request(&raw, &self.rules),
        };
        if let Some(request) = request {
            replayed.stream.handle_message(self.now, request, &mut self.cache).unwrap();
        }
        self.poll(stream);
    }

    /// What the origin answered: the server here learns it and passes it on.
    fn response(&mut self, stream: u64, raw: Bytes, event: &Value) {
        let protocol = self.streams[&stream].stream.protocol();
        let response = match protocol {
            Protocol::Delta => Response::from_delta(raw),
            Protocol::Sotw => Response::from_sotw(raw, &self.rules),
        };
        let response = response.unwrap();
        assert_eq!(response.rejected, []);
        assert_eq!(response.nonce, event["nonce"].as_str().unwrap());
        let of = TypeUrl::from(response.type_url.as_str());
        let wanted = self.streams[&stream].types[of.as_str()].wanted.clone();
        apply(&mut self.recorded, protocol, &self.rules, &wanted, &response);

        let held: BTreeSet<_> = response.resources.iter().map(|received| received.name.clone()).collect();
        let mut edit = self.cache.edit(self.now);
        for received in &response.resources {
            let resource = received.frame.clone().unwrap().into_resource(received.version.clone());
            edit.put(&of, &received.name, resource);
        }
        for name in &response.removed {
            edit.remove(&of, name);
        }
        if protocol == Protocol::Sotw {
            edit.set_type_version(&of, Some(response.version.as_str().into()));
            if self.rules.of(&of).full_state_in_sotw {
                let gone: Vec<_> = edit.resources().filter(|stored| *stored.type_url == of).collect();
                let gone: Vec<_> = gone.into_iter().map(|stored| stored.name.clone()).collect();
                for name in gone.into_iter().filter(|name| covers(&wanted, name) && !held.contains(name)) {
                    edit.remove(&of, &name);
                }
            }
        }
        for collection in wanted.iter().filter(|interest| interest.is_collection()) {
            edit.answered(&of, collection);
        }
        let _ = edit.finish();
        let before = self.streams[&stream].types[of.as_str()].last.clone();
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            self.poll(stream);
        }
        let sub = self.streams.get_mut(&stream).unwrap().types.get_mut(of.as_str()).unwrap();
        if sub.last != before {
            sub.nonces.insert(response.nonce, sub.last.clone());
        }
    }

    /// Takes what the server has to say and gives it to the client.
    fn poll(&mut self, stream: u64) {
        let replayed = self.streams.get_mut(&stream).unwrap();
        let protocol = replayed.stream.protocol();
        while let Some(transmit) = replayed.stream.poll_transmit(self.now, &mut self.cache).unwrap() {
            let bytes = transmit.into_bytes();
            let response = match protocol {
                Protocol::Delta => Response::from_delta(bytes),
                Protocol::Sotw => Response::from_sotw(bytes, &self.rules),
            };
            let response = response.unwrap();
            assert_eq!(response.rejected, []);
            let sub = replayed.types.get_mut(&response.type_url).unwrap();
            let asked_for = response.resources.iter().all(|received| covers(&sub.wanted, &received.name));
            assert!(asked_for, "rule 63: {response:?}");
            apply(&mut self.ours, protocol, &self.rules, &sub.wanted, &response);
            sub.unanswered.push_back(response.nonce.clone());
            sub.last = response.nonce;
        }
    }

    /// Both views are equal once the client has accepted what it has.
    fn compare(&mut self, at: &str) {
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            loop {
                let replayed = self.streams.get_mut(&stream).unwrap();
                let answers = replayed.answers();
                if answers.is_empty() {
                    break;
                }
                for answer in answers {
                    replayed.stream.handle_message(self.now, answer, &mut self.cache).unwrap();
                }
                self.now += Duration::from_secs(1);
                self.poll(stream);
            }
        }
        let names = |view: &View| view.keys().map(|(of, name)| format!("{of} {name}")).collect::<Vec<_>>();
        assert_eq!(names(&self.ours), names(&self.recorded), "{at}");
        assert!(self.ours == self.recorded, "{at}: a body or a version differs");
        self.compared += self.ours.len();
    }
}

impl Replayed {
    fn delta_request(&mut self, raw: &Bytes, rules: &TypeRules) -> Option<Bytes> {
        let mut request = DeltaDiscoveryRequest::decode(raw.clone()).unwrap();
        let first = !self.types.contains_key(&request.type_url);
        let sub = self.types.entry(request.type_url.clone()).or_default();
        let subscribed = &request.resource_names_subscribe;
        if first && subscribed.is_empty() && rules.of(&request.type_url.as_str().into()).legacy_wildcard {
            sub.wanted.insert(Interest::Wildcard);
        }
        sub.wanted.extend(subscribed.iter().map(|name| interest(name)));
        for name in &request.resource_names_unsubscribe {
            sub.wanted.remove(&interest(name));
        }
        let changes = !subscribed.is_empty() || !request.resource_names_unsubscribe.is_empty();
        if !request.response_nonce.is_empty() {
            match sub.answer(&request.response_nonce) {
                Some(nonce) => request.response_nonce = nonce,
                None if changes => request.response_nonce.clear(),
                None => return None,
            }
        }
        Some(request.encode_to_vec().into())
    }

    fn sotw_request(&mut self, raw: &Bytes, rules: &TypeRules) -> Option<Bytes> {
        let mut request = DiscoveryRequest::decode(raw.clone()).unwrap();
        let first = !self.types.contains_key(&request.type_url);
        let sub = self.types.entry(request.type_url.clone()).or_default();
        let mut wanted: BTreeSet<_> = request.resource_names.iter().map(|name| interest(name)).collect();
        let legacy = rules.of(&request.type_url.as_str().into()).legacy_wildcard;
        if wanted.is_empty() && legacy && (first || sub.wanted.contains(&Interest::Wildcard)) {
            wanted.insert(Interest::Wildcard);
        }
        let changes = sub.wanted != wanted;
        sub.wanted = wanted;
        if !request.response_nonce.is_empty() {
            match sub.answer(&request.response_nonce) {
                Some(nonce) => request.response_nonce = nonce,
                None if changes => request.response_nonce = sub.last.clone(),
                None => return None,
            }
        }
        Some(request.encode_to_vec().into())
    }

    /// An ACK of the last response of every type that has one.
    fn answers(&mut self) -> Vec<Bytes> {
        let protocol = self.stream.protocol();
        let unanswered = self.types.iter_mut().filter(|(_, sub)| !sub.unanswered.is_empty());
        unanswered
            .map(|(of, sub)| {
                sub.unanswered.clear();
                let names = sub.wanted.iter().map(Interest::to_string);
                let (type_url, response_nonce) = (of.clone(), sub.last.clone());
                let request = match protocol {
                    Protocol::Delta => {
                        DeltaDiscoveryRequest { type_url, response_nonce, ..Default::default() }.encode_to_vec()
                    }
                    Protocol::Sotw => {
                        let resource_names = names.filter(|name| name != "*").collect();
                        DiscoveryRequest { type_url, response_nonce, resource_names, ..Default::default() }
                            .encode_to_vec()
                    }
                };
                request.into()
            })
            .collect()
    }
}

impl Type {
    /// Our nonce for a recorded one; `None` when what it answers was rightly not sent.
    fn answer(&mut self, recorded: &str) -> Option<String> {
        let nonce = self.nonces.get(recorded).cloned().or_else(|| self.unanswered.front().cloned())?;
        if let Some(position) = self.unanswered.iter().position(|ours| *ours == nonce) {
            self.unanswered.drain(..=position);
        }
        Some(nonce)
    }
}

fn interest(name: &str) -> Interest {
    Interest::from(name.parse::<ResourceName>().unwrap())
}

fn covers(wanted: &BTreeSet<Interest>, name: &ResourceName) -> bool {
    wanted.iter().any(|interest| match interest {
        Interest::Wildcard => name.is_opaque(),
        Interest::Name(asked) => name.answers(asked),
    })
}

/// What a response does to what a client holds.
fn apply(view: &mut View, protocol: Protocol, rules: &TypeRules, wanted: &BTreeSet<Interest>, response: &Response) {
    let of = &response.type_url;
    if protocol == Protocol::Sotw && rules.of(&of.as_str().into()).full_state_in_sotw {
        view.retain(|(held, name), _| held != of || !covers(wanted, name));
    }
    for received in &response.resources {
        let body = received.frame.as_ref().unwrap().any().clone();
        // Over SotW, whether a resource has a version of its own is a matter of wrapping.
        let version = received.version.clone().filter(|_| protocol == Protocol::Delta);
        view.insert((of.clone(), received.name.clone()), (version, body));
    }
    for name in &response.removed {
        view.remove(&(of.clone(), name.clone()));
    }
}
