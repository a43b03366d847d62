//! An origin that has a method for each type and none for all.

use std::collections::BTreeMap;

use tonic::metadata::MetadataMap;
use xds_transport::TypeRules;
use xds_transport::wire::{Any, DiscoveryRequest, DiscoveryResponse, Resource};
use xdstp_uri::ResourceName;

use super::*;

pub(super) const BOTH: [Protocol; 2] = [Protocol::Delta, Protocol::Sotw];
pub(super) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
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

    fn type_ended(&mut self, _: Instant, _: &TypeUrl, _: &ResourceError) {}

    fn type_opened(&mut self, _: Instant, _: &TypeUrl) {}

    fn metadata(&mut self) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert("x-who", "me".parse().unwrap());
        metadata
    }
}

/// One stream at the origin.
pub(super) struct Call {
    pub(super) path: String,
    pub(super) who: String,
    requests: h2::RecvStream,
    read: Vec<u8>,
    to: Option<SendResponse<Bytes>>,
    body: Option<SendStream<Bytes>>,
}

/// A request as either protocol has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    of: String,
    node: bool,
    pub(super) nonce: String,
    names: usize,
}

impl Call {
    pub(super) async fn asked(&mut self, protocol: Protocol) -> Asked {
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

    pub(super) fn says(&mut self, protocol: Protocol, of: &str, nonce: &str, name: &str) {
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

    /// After it was opened, if it was.
    pub(super) fn trails(mut self, code: &str) {
        let trailers = [("grpc-status".parse().unwrap(), code.parse().unwrap())];
        self.body.take().unwrap().send_trailers(trailers.into_iter().collect()).unwrap();
    }

    pub(super) fn ends(mut self, code: &str) {
        if self.body.is_some() {
            return self.trails(code);
        }
        let response = Response::builder().header("content-type", "application/grpc").header("grpc-status", code);
        self.to.take().unwrap().send_response(response.body(()).unwrap(), true).unwrap();
    }
}

/// The streams of a connection, by what their methods are called.
/// With it goes their connection; and one that takes no more of them, if it is told.
pub(super) struct Origin(pub(super) mpsc::UnboundedReceiver<Call>, AbortHandle, Arc<Notify>);

impl Origin {
    pub(super) async fn accept(connections: &mut Connections) -> Self {
        Self::accept_most(connections, 100).await
    }

    /// So many streams at a time.
    async fn accept_most(connections: &mut Connections, most: u32) -> Self {
        // What one stream is not read of is not all that there is room for.
        let mut server = h2::server::Builder::new();
        server.initial_connection_window_size(1 << 20).max_concurrent_streams(most);
        let handshake = server.handshake(connections.recv().await.unwrap());
        let mut connection = handshake.await.unwrap();
        let (calls, called) = mpsc::unbounded_channel();
        let leaves = Arc::new(Notify::new());
        let tell = leaves.clone();
        let serving = tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = connection.accept() => accepted,
                    () = tell.notified() => {
                        connection.graceful_shutdown();
                        continue;
                    }
                };
                let Some(Ok((request, to))) = accepted else { break };
                let (head, requests) = request.into_parts();
                let path = head.uri.path().to_owned();
                let who = head.headers.get("x-who").map(|who| who.to_str().unwrap().to_owned()).unwrap_or_default();
                let _ = calls.send(Call { path, who, requests, read: Vec::new(), to: Some(to), body: None });
            }
        });
        Self(called, serving.abort_handle(), leaves)
    }

    pub(super) async fn calls(&mut self, number: usize) -> BTreeMap<String, Call> {
        let mut calls = BTreeMap::new();
        for _ in 0..number {
            let call = self.0.recv().await.unwrap();
            calls.insert(call.path.rsplit('/').next().unwrap().to_owned(), call);
        }
        calls
    }
}

pub(super) type Connections = mpsc::UnboundedReceiver<DuplexStream>;

fn wanting(protocol: Protocol, wants: &[(&'static str, &[&str])]) -> (Connections, mpsc::UnboundedReceiver<Told>) {
    wanting_at(Backoff::new(Duration::from_secs(1), Duration::from_secs(1)), protocol, wants)
}

fn wanting_at(
    backoff: Backoff,
    protocol: Protocol,
    wants: &[(&'static str, &[&str])],
) -> (Connections, mpsc::UnboundedReceiver<Told>) {
    let (told, tells) = mpsc::unbounded_channel();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let wants = wants.iter().map(|(of, all)| (*of, names(all))).collect();
    let endpoint = endpoint().with_backoff(backoff).with_protocol(protocol);
    let endpoint = endpoint.with_per_type_methods().with_encoded_node(encoded_node("n"));
    (run_at(endpoint, Wants { wants, told }), tells)
}

pub(super) fn methods(protocol: Protocol) -> [&'static str; 2] {
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
async fn one_that_ends_is_opened_again_alone() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let [clusters, endpoints] = methods(protocol);
        let mut calls = origin.calls(2).await;
        let mut kept = calls.remove(clusters).unwrap();
        kept.asked(protocol).await;
        kept.says(protocol, CDS, "n1", "a");
        assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
        kept.asked(protocol).await;
        let mut ended = calls.remove(endpoints).unwrap();
        // Before it was answered, and in the middle, with what would be no method at the start.
        for (nonce, name) in [("n2", "b"), ("n3", "c")] {
            ended.ends("14");
            ended = origin.calls(1).await.remove(endpoints).unwrap();
            assert!(ended.asked(protocol).await.node, "{protocol:?}");
            ended.says(protocol, EDS, nonce, name);
            let answered = told.recv().await.unwrap();
            assert!(matches!(&answered, Told::Update(of, _, errors) if of == EDS && errors.is_empty()), "{answered:?}");
            ended.asked(protocol).await;
            ended.trails("12");
            ended = origin.calls(1).await.remove(endpoints).unwrap();
        }
        pass(5).await;
        assert!(told.try_recv().is_err(), "{protocol:?}: nothing is told of it");
        kept.says(protocol, CDS, "n4", "d");
        assert!(matches!(told.recv().await.unwrap(), Told::Update(of, _, _) if of == CDS));
        assert!(connections.try_recv().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_last_ends_or_the_connection_all_are_opened_again() {
    for protocol in BOTH {
        for connection_is_lost in [false, true] {
            let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
            let mut origin = Origin::accept(&mut connections).await;
            let calls = origin.calls(2).await;
            let expected = if connection_is_lost {
                origin.1.abort();
                ""
            } else {
                calls.into_values().for_each(|call| call.ends("14"));
                "Unavailable"
            };
            let ended = told.recv().await.unwrap();
            assert!(matches!(&ended, Told::Ended(Some(why)) if why.contains(expected)), "{ended:?}");
            let mut origin = Origin::accept(&mut connections).await;
            for call in origin.calls(2).await.values_mut() {
                assert!(call.asked(protocol).await.node, "{protocol:?}");
            }
            assert!(told.try_recv().is_err());
        }
    }
}

/// What was opened there anew would be over at once.
#[tokio::test(start_paused = true)]
async fn one_that_ends_on_a_connection_that_takes_no_more_ends_them_all() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let [clusters, endpoints] = methods(protocol);
        let mut calls = origin.calls(2).await;
        let kept = calls.get_mut(clusters).unwrap();
        kept.asked(protocol).await;
        kept.says(protocol, CDS, "n1", "a");
        assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
        origin.2.notify_one();
        pass(1).await;
        assert!(told.try_recv().is_err() && connections.try_recv().is_err(), "they go on there");
        calls.remove(endpoints).unwrap().ends("14");
        let over = tokio::time::timeout(Duration::from_secs(60), told.recv()).await;
        assert_eq!(over.expect("all are over").unwrap(), Told::Ended(None), "{protocol:?}");
        let mut origin = Origin::accept(&mut connections).await;
        assert_eq!(origin.calls(2).await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_brings_another_type_is_closed_and_its_type_asked_again() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let [_, endpoints] = methods(protocol);
        let mut calls = origin.calls(2).await;
        let mut wrong = calls.remove(endpoints).unwrap();
        wrong.asked(protocol).await;
        wrong.says(protocol, CDS, "n1", "a");
        let again = tokio::time::timeout(Duration::from_secs(60), origin.calls(1)).await.expect("another stream");
        let mut again = again.into_values().next().unwrap();
        again.asked(protocol).await;
        again.says(protocol, EDS, "n2", "b");
        assert_eq!(told.recv().await.unwrap(), update(EDS, &["b"], &[]), "{protocol:?}");
        assert!(wrong.requests.data().await.is_none_or(|data| data.is_err()));
    }
}

/// Who is not allowed one type, say.
#[tokio::test(start_paused = true)]
async fn a_type_that_always_fails_is_tried_ever_later_and_costs_the_others_nothing() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting_at(Backoff::default(), protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept(&mut connections).await;
        let [clusters, endpoints] = methods(protocol);
        let mut calls = origin.calls(2).await;
        let mut kept = calls.remove(clusters).unwrap();
        kept.asked(protocol).await;
        kept.says(protocol, CDS, "n1", "a");
        assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
        calls.remove(endpoints).unwrap().ends("7");
        let (until, mut tries) = (now() + Duration::from_secs(300), 0);
        while let Ok(call) = tokio::time::timeout_at(until.into(), origin.0.recv()).await {
            let call = call.unwrap();
            assert!(call.path.ends_with(endpoints), "{}", call.path);
            call.ends("7");
            tries += 1;
        }
        assert!((5..60).contains(&tries), "{tries}");
        // It is away, and nobody says anything of it.
        assert!(told.try_recv().is_err() && connections.try_recv().is_err(), "{protocol:?}");
    }
}

/// A moment without a route, as a proxy has it, or without the method.
#[tokio::test(start_paused = true)]
async fn a_method_that_is_there_after_a_while_is_asked_again() {
    for protocol in BOTH {
        for status in [404, 200] {
            let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
            let mut origin = Origin::accept(&mut connections).await;
            let [clusters, endpoints] = methods(protocol);
            let mut calls = origin.calls(2).await;
            let kept = calls.get_mut(clusters).unwrap();
            kept.asked(protocol).await;
            kept.says(protocol, CDS, "n1", "a");
            assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
            let mut call = calls.remove(endpoints).unwrap();
            let mut response = Response::builder().status(status);
            if status == 200 {
                response = response.header("content-type", "application/grpc").header("grpc-status", "12");
            }
            call.to.take().unwrap().send_response(response.body(()).unwrap(), true).unwrap();
            let mut again = origin.calls(1).await.remove(endpoints).unwrap();
            again.asked(protocol).await;
            again.says(protocol, EDS, "n2", "b");
            // Of a moment nothing was told.
            assert_eq!(told.recv().await.unwrap(), update(EDS, &["b"], &[]), "{protocol:?}: {status}");
            assert!(connections.try_recv().is_err());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_the_origin_has_not_is_an_error_of_its_names_and_no_absence() {
    for protocol in BOTH {
        for others_answer in [true, false] {
            let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
            let mut origin = Origin::accept(&mut connections).await;
            let [clusters, endpoints] = methods(protocol);
            let mut calls = origin.calls(2).await;
            let clusters = calls.get_mut(clusters).unwrap();
            clusters.asked(protocol).await;
            if others_answer {
                clusters.says(protocol, CDS, "n1", "a");
                assert_eq!(told.recv().await.unwrap(), update(CDS, &["a"], &[]));
                assert_eq!(clusters.asked(protocol).await.nonce, "n1");
            }
            calls.remove(endpoints).unwrap().ends("12");
            let (start, until) = (now(), now() + Duration::from_secs(120));
            let mut of_endpoints = Vec::new();
            loop {
                tokio::select! {
                    call = origin.0.recv() => call.unwrap().ends("12"),
                    update = told.recv() => match update.unwrap() {
                        Told::Update(of, _, _) if of == CDS => {}
                        update => of_endpoints.push((now() - start, update)),
                    },
                    () = tokio::time::sleep_until(until.into()) => break,
                }
            }
            if !others_answer {
                // It may be nobody, so long as none answers.
                assert!(of_endpoints.is_empty(), "{protocol:?}: {of_endpoints:?}");
                continue;
            }
            let [(after, only)] = &*of_endpoints else { panic!("{protocol:?}: {of_endpoints:?}") };
            assert_eq!(*only, update(EDS, &[], &[("b", 12)]));
            // A server that is being replaced may say it once, and once more.
            assert!((15..16).contains(&after.as_secs()), "{after:?}");
        }
    }
}

/// A request for it would wait in the transport for ever.
#[tokio::test(start_paused = true)]
async fn a_type_that_the_connection_has_no_stream_for_is_not_absent() {
    for protocol in BOTH {
        let (mut connections, mut told) = wanting(protocol, &[(CDS, &["a"]), (EDS, &["b"])]);
        let mut origin = Origin::accept_most(&mut connections, 1).await;
        let (method, mut call) = origin.calls(1).await.pop_first().unwrap();
        let is_clusters = methods(protocol)[0] == method;
        let (of, name) = if is_clusters { (CDS, "a") } else { (EDS, "b") };
        call.asked(protocol).await;
        call.says(protocol, of, "n1", name);
        assert_eq!(told.recv().await.unwrap(), update(of, &[name], &[]));
        pass(120).await;
        assert!(told.try_recv().is_err(), "{protocol:?}: it is away");
        // Once there is a place, it is asked for.
        call.ends("14");
        assert_eq!(origin.calls(1).await.len(), 1);
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
