//! Any bytes, read as what an origin and a user do to the client's side of one stream.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::client::{Command, Event, Interest, Stream, Update, UpdateId, Verdict};
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, RESOURCE_TYPE_URL,
    Resource,
};
use xds_transport::{Rejected, Response, TypeRules};
use xdstp_uri::ResourceName;

use super::{NAMES, Script, TYPES};

pub(crate) fn client_stream(bytes: &[u8]) {
    let mut script = Script(bytes.iter());
    let protocol = if script.next().is_multiple_of(2) { Protocol::Delta } else { Protocol::Sotw };
    let mut user = User::new(protocol);
    while let Some(what) = script.0.next() {
        let (of, name) = (TYPES[usize::from(what >> 4) % TYPES.len()], NAMES[usize::from(script.next()) % NAMES.len()]);
        match (what % 8, name.parse::<ResourceName>()) {
            (0, Ok(name)) => user.subscribe(of, name.into()),
            (1, Ok(name)) => user.unsubscribe(of, &name.into()),
            (2, _) => user.finish(if what & 8 == 0 { None } else { Some(name) }),
            (3, _) => user.pass(Duration::from_millis(500) * u32::from(script.next())),
            (4, _) => {
                let length = usize::from(script.next());
                let message: Vec<_> = script.0.by_ref().take(length).copied().collect();
                user.receive(message.into());
            }
            (5, _) if what & 8 == 0 => user.reconnect(),
            _ => {
                let response = script.response(protocol, of, user.responses);
                user.receive(response);
            }
        }
        if what & 8 == 0 {
            user.drain();
        }
    }
    user.end();
}

impl Script<'_> {
    /// A response that an origin might send, of names that may or may not be asked for.
    fn response(&mut self, protocol: Protocol, of: &str, count: u64) -> Bytes {
        let (shape, version, names, removed) = (self.next(), self.next().to_string(), self.names(), self.names());
        let aliases = if shape & 8 != 0 { self.names() } else { Vec::new() };
        let any = |name: &String| Any { type_url: of.into(), value: named(name) };
        let resource = |name: &String| Resource {
            name: name.clone(),
            version: version.clone(),
            resource: (shape & 1 == 0).then(|| any(name)),
            aliases: aliases.clone(),
            ttl: (shape & 2 != 0).then_some(xds_transport::wire::Duration { seconds: i64::from(shape), nanos: 0 }),
            ..Resource::default()
        };
        let (type_url, nonce) = (of.to_owned(), format!("n{count}"));
        match protocol {
            Protocol::Delta => {
                let resources = names.iter().map(resource).collect();
                DeltaDiscoveryResponse { type_url, nonce, resources, removed_resources: removed, ..Default::default() }
                    .encode_to_vec()
                    .into()
            }
            Protocol::Sotw => {
                let wrapped = |name: &String| Any {
                    type_url: RESOURCE_TYPE_URL.into(),
                    value: resource(name).encode_to_vec().into(),
                };
                let resources =
                    names.iter().map(|name| if shape & 4 == 0 { any(name) } else { wrapped(name) }).collect();
                DiscoveryResponse { type_url, nonce, version_info: version.clone(), resources, ..Default::default() }
                    .encode_to_vec()
                    .into()
            }
        }
    }
}

/// The user of a stream, and the books of what its stream owes.
struct User {
    protocol: Protocol,
    stream: Stream,
    now: Instant,
    wants: BTreeSet<(String, Interest)>,
    /// What came, asked for by whatever name.
    seen: BTreeSet<(String, ResourceName)>,
    busy: VecDeque<UpdateId>,
    /// Types that were asked for on this stream, and what is to be answered of them.
    unanswered: BTreeMap<String, Vec<String>>,
    responses: u64,
}

impl User {
    fn new(protocol: Protocol) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
        let now = Instant::now();
        let node = Bytes::from_static(b"\x0a\x02me");
        let mut stream = Stream::new(protocol, node, Arc::new(TypeRules::envoy()));
        stream.connected(now);
        let (wants, busy, unanswered) = (BTreeSet::new(), VecDeque::new(), BTreeMap::new());
        Self { protocol, stream, now, wants, seen: BTreeSet::new(), busy, unanswered, responses: 0 }
    }

    fn subscribe(&mut self, of: &str, interest: Interest) {
        self.stream.apply(Command::Subscribe(of.into(), interest.clone()));
        self.wants.insert((of.into(), interest));
    }

    fn unsubscribe(&mut self, of: &str, interest: &Interest) {
        self.stream.apply(Command::Unsubscribe(of.into(), interest.clone()));
        self.wants.remove(&(of.into(), interest.clone()));
    }

    fn receive(&mut self, message: Bytes) {
        self.responses += 1;
        let read = match self.protocol {
            Protocol::Delta => Response::from_delta(message.clone()),
            Protocol::Sotw => Response::from_sotw(message.clone(), &TypeRules::envoy()),
        };
        if self.stream.handle_message(self.now, message).is_err() {
            return self.reconnect();
        }
        // Rules 8, 9: what was not asked for is not answered.
        let Response { type_url, nonce, .. } = read.unwrap();
        if let Some(unanswered) = self.unanswered.get_mut(type_url.as_str()) {
            if self.protocol == Protocol::Sotw {
                unanswered.clear();
            }
            unanswered.push(nonce);
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        while let Some(Event::Update(update)) = self.stream.poll_event() {
            let Update { id, type_url, changed, removed, answered, .. } = update;
            let wanted = |name: &ResourceName| {
                self.wants.iter().any(|(of, interest)| {
                    of == type_url.as_str()
                        && match interest {
                            Interest::Wildcard => true,
                            Interest::Name(asked) => name.answers(asked),
                        }
                })
            };
            for changed in &changed {
                let aliases = || changed.resource.value.aliases();
                let by_alias = self.protocol == Protocol::Delta && aliases().any(|alias| wanted(&alias));
                assert!(wanted(&changed.name) || by_alias, "rules 62, 105");
                self.seen.insert((type_url.to_string(), changed.name.clone()));
            }
            let was_seen = |name: &ResourceName| self.seen.contains(&(type_url.to_string(), name.clone()));
            assert!(removed.iter().all(|name| wanted(name) || was_seen(name)), "rule 62");
            let asked = |interest| self.wants.contains(&(type_url.to_string(), interest));
            assert!(answered.into_iter().all(asked), "an answer to what is not wanted");
            self.busy.push_back(id);
        }
    }

    /// The user is done with its oldest update, and refuses a name of it.
    fn finish(&mut self, refused: Option<&str>) {
        let Some(id) = self.busy.pop_front() else { return };
        let verdict = match refused {
            Some(name) => Verdict::Reject { reasons: vec![Rejected::new(name, "bad")] },
            None => Verdict::Accept,
        };
        self.stream.apply(Command::Finish(id, verdict));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.stream.handle_timeout(self.now);
        self.deliver();
        assert!(self.stream.poll_timeout().is_none_or(|due| due > self.now), "the same timeout again");
    }

    fn reconnect(&mut self) {
        self.stream.disconnected(self.now);
        self.unanswered.clear();
        self.stream.connected(self.now);
    }

    /// Sends all there is to send.
    fn drain(&mut self) {
        let mut requests = 0;
        while let Some(request) = self.stream.poll_transmit(self.now) {
            requests += 1;
            assert!(requests < 5000, "it never comes to rest");
            let (type_url, nonce) = match self.protocol {
                Protocol::Delta => {
                    let request = DeltaDiscoveryRequest::decode(request).unwrap();
                    (request.type_url, request.response_nonce)
                }
                Protocol::Sotw => {
                    let request = DiscoveryRequest::decode(request).unwrap();
                    (request.type_url, request.response_nonce)
                }
            };
            let unanswered = self.unanswered.entry(type_url).or_default();
            let answered = unanswered.iter().position(|one| *one == nonce);
            // A SotW request repeats the newest nonce.
            assert!(answered.is_some() || nonce.is_empty() || self.protocol == Protocol::Sotw, "rule 25: {nonce:?}");
            answered.map(|at| unanswered.remove(at));
        }
    }

    /// Everything is answered in the end, and who wants nothing keeps nothing.
    fn end(mut self) {
        while !self.busy.is_empty() {
            self.finish(None);
        }
        self.drain();
        let owed: Vec<_> = self.unanswered.values().flatten().filter(|nonce| !nonce.is_empty()).collect();
        assert!(owed.is_empty(), "rule 25: {owed:?}");
        for (of, interest) in std::mem::take(&mut self.wants) {
            self.stream.apply(Command::Unsubscribe(of.into(), interest));
        }
        self.drain();
        self.reconnect();
        assert!(self.stream.poll_transmit(self.now).is_none(), "rule 61");
        assert_eq!(self.stream.poll_timeout(), None);
    }
}

/// A message whose first field is a name.
fn named(name: &str) -> Bytes {
    [&[10, name.len() as u8], name.as_bytes()].concat().into()
}
