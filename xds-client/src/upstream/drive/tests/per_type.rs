//! An origin that has a method for each type and none for all.

use std::collections::BTreeMap;

use tonic::metadata::MetadataMap;
use xds_transport::TypeRules;
use xds_transport::wire::{Any, DiscoveryRequest, DiscoveryResponse, Resource};
use xdstp_uri::ResourceName;

use super::*;

const BOTH: [Protocol; 2] = [Protocol::Delta, Protocol::Sotw];
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const OTHER: &str = "type.example.com/example.Limit";

/// What a consumer is told: an update by its type, what came and the errors of names; or what became of the streams.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Update(String, Vec<String>, Vec<(String, i32)>),
    Ended(Option<String>),
}

/// Wants all of these.
struct Wants {
    wants: Vec<(&'static str, Vec<String>)>,
    told: mpsc::UnboundedSender<Told>,
}

impl Consumer for Wants {
    fn commands(&mut self, _: Instant, apply: &mut dyn FnMut(Command)) {
        for (of, names) in self.wants.drain(..) {
            let names = names.iter().map(|name| ResourceName::parse(name).unwrap().into());
            names.for_each(|name| apply(Command::Subscribe(of.into(), name)));
        }
    }

    fn update(&mut self, _: Instant, update: Update) -> Verdict {
        let names = update.changed.iter().map(|changed| changed.name.as_str().to_owned()).collect();
        let errors = update.errors.iter().map(|(name, error)| (name.as_str().to_owned(), error.code)).collect();
        let _ = self.told.send(Told::Update(update.type_url.as_str().to_owned(), names, errors));
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        if let Connection::Disconnected { error, .. } = connection {
            let _ = self.told.send(Told::Ended(error));
        }
    }

    fn metadata(&mut self) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert("x-who", "me".parse().unwrap());
        metadata
    }
}

/// One stream at the origin.
struct Call {
    path: String,
    who: String,
    requests: h2::RecvStream,
    read: Vec<u8>,
    to: Option<SendResponse<Bytes>>,
    body: Option<SendStream<Bytes>>,
}

/// A request as either protocol has it.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    of: String,
    node: bool,
    nonce: String,
    names: usize,
}

impl Call {
    async fn asked(&mut self, protocol: Protocol) -> Asked {
        let message = loop {
            if let Some((head, rest)) = self.read.split_first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if rest.len() >= length {
                    let message = rest[..length].to_vec();
                    self.read.drain(..5 + length);
                    break message;
                }
            }
            let data = self.requests.data().await.expect("a request").expect("a sound stream");
            self.requests.flow_control().release_capacity(data.len()).unwrap();
            self.read.extend_from_slice(&data);
        };
        match protocol {
            Protocol::Delta => {
                let request = DeltaDiscoveryRequest::decode(&*message).unwrap();
                let names = request.resource_names_subscribe.len();
                Asked { of: request.type_url, node: !request.node.is_empty(), nonce: request.response_nonce, names }
            }
            Protocol::Sotw => {
                let request = DiscoveryRequest::decode(&*message).unwrap();
                let names = request.resource_names.len();
                Asked { of: request.type_url, node: !request.node.is_empty(), nonce: request.response_nonce, names }
            }
        }
    }

    fn says(&mut self, protocol: Protocol, of: &str, nonce: &str, name: &str) {
        let value = [&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let any = Any { type_url: of.into(), value: value.into() };
        let framed = match protocol {
            Protocol::Delta => {
                let resource = Resource { name: name.into(), resource: Some(any), ..Default::default() };
                let (type_url, nonce) = (of.into(), nonce.into());
                framed(&DeltaDiscoveryResponse { type_url, nonce, resources: vec![resource], ..Default::default() })
            }
            Protocol::Sotw => {
                let (type_url, nonce) = (of.into(), nonce.to_owned());
                let version_info = nonce.clone();
                framed(&DiscoveryResponse { type_url, nonce, version_info, resources: vec![any], ..Default::default() })
            }
        };
        let Self { to, body, .. } = self;
        body.get_or_insert_with(|| respond(to.take().unwrap())).send_data(framed, false).unwrap();
    }

    fn ends(mut self, code: &str) {
        let response = Response::builder().header("content-type", "application/grpc").header("grpc-status", code);
        self.to.take().unwrap().send_response(response.body(()).unwrap(), true).unwrap();
    }
}

/// The streams of a connection, by what their methods are called.
struct Origin(mpsc::UnboundedReceiver<Call>);

impl Origin {
    async fn accept(connections: &mut mpsc::UnboundedReceiver<DuplexStream>) -> Self {
        // What one stream is not read of is not all that there is room for.
        let mut server = h2::server::Builder::new();
        let handshake = server.initial_connection_window_size(1 << 20).handshake(connections.recv().await.unwrap());
        let mut connection = handshake.await.unwrap();
        let (calls, called) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok((request, to))) = connection.accept().await {
                let (head, requests) = request.into_parts();
                let path = head.uri.path().to_owned();
                let who = head.headers.get("x-who").map(|who| who.to_str().unwrap().to_owned()).unwrap_or_default();
                let _ = calls.send(Call { path, who, requests, read: Vec::new(), to: Some(to), body: None });
            }
        });
        Self(called)
    }

    async fn calls(&mut self, number: usize) -> BTreeMap<String, Call> {
        let mut calls = BTreeMap::new();
        for _ in 0..number {
            let call = self.0.recv().await.unwrap();
            calls.insert(call.path.rsplit('/').next().unwrap().to_owned(), call);
        }
        calls
    }
}

type Connections = mpsc::UnboundedReceiver<DuplexStream>;

fn wanting(protocol: Protocol, wants: &[(&'static str, &[&str])]) -> (Connections, mpsc::UnboundedReceiver<Told>) {
    let (told, tells) = mpsc::unbounded_channel();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let wants = wants.iter().map(|(of, all)| (*of, names(all))).collect();
    let endpoint = endpoint().with_protocol(protocol).with_per_type_methods().with_encoded_node(encoded_node("n"));
    (run_at(endpoint, Wants { wants, told }), tells)
}

fn methods(protocol: Protocol) -> [&'static str; 2] {
    match protocol {
        Protocol::Delta => ["DeltaClusters", "DeltaEndpoints"],
        Protocol::Sotw => ["StreamClusters", "StreamEndpoints"],
    }
}

fn update(of: &str, names: &[&str], errors: &[(&str, i32)]) -> Told {
    let errors = errors.iter().map(|(name, code)| ((*name).to_owned(), *code)).collect();
    Told::Update(of.to_owned(), names.iter().map(|name| (*name).to_owned()).collect(), errors)
}

fn asked(of: &str, node: bool, nonce: &str, names: usize) -> Asked {
    Asked { of: of.to_owned(), node, nonce: nonce.to_owned(), names }
}

#[tokio::test(start_paused = true)]
async fn rule_001_each_type_is_asked_for_by_its_own_method_on_one_connection() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let mut calls = origin.calls(2).await;
        for ((of, name), method) in [(CDS, "a"), (EDS, "b")].into_iter().zip(methods(protocol)) {
            let call = calls.get_mut(method).unwrap();
            let rules = TypeRules::envoy();
            assert_eq!(rules.served(&call.path), Some((protocol, Some(of.into()))));
            // What calls carry, each does; and who asks.
            assert_eq!(call.who, "me");
            assert_eq!(call.asked(protocol).await, asked(of, true, "", 1));
            call.says(protocol, of, "n1", name);
            assert_eq!(told.recv().await.unwrap(), update(of, &[name], &[]));
            let ack = call.asked(protocol).await;
            assert_eq!((ack.of.as_str(), ack.node, ack.nonce.as_str()), (of, false, "n1"), "{protocol:?}");
        }
        pass(60).await;
        assert!(origin.0.try_recv().is_err() && connections.try_recv().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn when_one_ends_all_are_opened_again() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let [clusters, endpoints] = methods(protocol);
        let mut calls = origin.calls(2).await;
        let mut kept = calls.remove(clusters).unwrap();
        kept.asked(protocol).await;
        calls.remove(endpoints).unwrap().ends("14");
        let Told::Ended(Some(error)) = told.recv().await.unwrap() else { panic!("it ended") };
        assert!(error.starts_with("Unavailable"), "{error}");
        assert!(kept.requests.data().await.is_none_or(|data| data.is_err()), "the other is over, too");
        let mut origin = Origin::accept(&mut connections).await;
        for call in origin.calls(2).await.values_mut() {
            assert!(call.asked(protocol).await.node, "{protocol:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_the_origin_has_not_is_an_error_of_its_names_while_it_has_others() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let [clusters, endpoints] = methods(protocol);
        let mut calls = origin.calls(2).await;
        calls.remove(endpoints).unwrap().ends("12");
        pass(5).await;
        assert!(told.try_recv().is_err(), "it may have none");
        let clusters = calls.get_mut(clusters).unwrap();
        clusters.asked(protocol).await;
        clusters.says(protocol, CDS, "n1", "a");
        assert_eq!(told.recv().await.unwrap(), update(EDS, &[], &[("b", 12)]));
        assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
        assert_eq!(clusters.asked(protocol).await.nonce, "n1");
        pass(60).await;
        assert!(told.try_recv().is_err(), "{protocol:?}: nothing is gone, and nothing has ended");
    }
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_has_none_of_the_methods_is_one_that_fails() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        for _ in 0..2 {
            let mut origin = Origin::accept(&mut connections).await;
            origin.calls(2).await.into_values().for_each(|call| call.ends("12"));
            // Another server may have them: of no name it is an error.
            let Told::Ended(Some(error)) = told.recv().await.unwrap() else { panic!("{protocol:?}: it ended") };
            assert!(error.starts_with("the origin has no method for any type that is asked for"), "{error}");
            assert!(error.contains("(methods: ads)"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_without_a_method_is_an_error_of_its_names_and_others_go_on() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(OTHER, &["x"]), (CDS, &["a"])]);
        assert_eq!(told.recv().await.unwrap(), update(OTHER, &[], &[("x", 12)]));
        let mut origin = Origin::accept(&mut connections).await;
        let mut calls = origin.calls(1).await;
        let clusters = calls.get_mut(methods(protocol)[0]).unwrap();
        clusters.asked(protocol).await;
        clusters.says(protocol, CDS, "n1", "a");
        assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
        pass(60).await;
        assert!(told.try_recv().is_err() && origin.0.try_recv().is_err(), "{protocol:?}");
    }
}

/// One request may be more than the window of its stream has room for, and waits for the origin to read it.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_holds_up_no_other() {
    let long: Vec<_> = (0..20_000).map(|number| format!("{number:0>60}")).collect();
    let names: Vec<_> = long.iter().map(String::as_str).collect();
    let (mut connections, _told) = wanting(Protocol::Delta, &[(CDS, &["a"]), (EDS, &names)]);
    let mut origin = Origin::accept(&mut connections).await;
    let mut calls = origin.calls(2).await;
    let [clusters, endpoints] = methods(Protocol::Delta);
    let clusters = calls.get_mut(clusters).unwrap();
    clusters.asked(Protocol::Delta).await;
    for nonce in ["n1", "n2", "n3"] {
        clusters.says(Protocol::Delta, CDS, nonce, "a");
        assert_eq!(clusters.asked(Protocol::Delta).await.nonce, nonce);
    }
    let endpoints = calls.get_mut(endpoints).unwrap();
    let mut read = 0;
    while read < names.len() {
        read += endpoints.asked(Protocol::Delta).await.names;
    }
    assert_eq!(read, names.len());
}
