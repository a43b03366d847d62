//! The lives of updates, as a collector of OpenTelemetry is told them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};
use xds_transport::Protocol;
use xds_transport::grpc::tls::{ServerFiles, ServerTls};
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryResponse, Node};

use crate::Running;
use crate::pages::page;
use crate::stream::{Call, Origin, framed, in_time};
use crate::tls::{Authority, Files};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

#[derive(Clone, Default)]
pub(crate) struct Collector(pub(crate) Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let spans = request.into_inner().resource_spans.into_iter().flat_map(|of| of.scope_spans);
        self.0.lock().unwrap().extend(spans.flat_map(|of| of.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Where it is told.
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(self.serve(listener));
        format!("http://{address}")
    }

    /// Is told there until it is dropped.
    pub(crate) fn serve(&self, listener: TcpListener) -> impl Future<Output = ()> + Send + use<> {
        let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(self.clone()));
        async move { server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap() }
    }
}

pub(crate) fn say(answers: &mut h2::SendStream<Bytes>, version: &str) {
    let value = [&[0x0a, 1, b'c', 0x12, u8::try_from(version.len()).unwrap()], version.as_bytes()].concat();
    let response = DiscoveryResponse {
        type_url: CLUSTERS.into(),
        version_info: version.into(),
        nonce: version.into(),
        resources: vec![Any { type_url: CLUSTERS.into(), value: value.into() }],
        ..DiscoveryResponse::default()
    };
    answers.send_data(framed(&response.encode_to_vec()), false).unwrap();
}

pub(crate) async fn client(relay: &Running, node: &str) -> Call {
    let mut call = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let request = DeltaDiscoveryRequest {
        node: Node { id: node.into(), cluster: "all".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_names_subscribe: vec!["c".into()],
        ..Default::default()
    };
    call.sending.send_data(framed(&request.encode_to_vec()), false).unwrap();
    call
}

/// Takes what comes, and accepts it or not.
pub(crate) async fn answer(call: &mut Call, accepts: bool) {
    let Some(message) = call.message().await else { panic!("{:?}", call.status().await) };
    let response = DeltaDiscoveryResponse::decode(message).unwrap();
    let error_detail = (!accepts).then(|| xds_transport::wire::Status { code: 3, ..Default::default() });
    let (type_url, response_nonce) = (response.type_url, response.nonce);
    let request = DeltaDiscoveryRequest { type_url, response_nonce, error_detail, ..Default::default() };
    call.sending.send_data(framed(&request.encode_to_vec()), false).unwrap();
}

/// The relay has read so many ACKs. What comes on another connection may be read before what was sent earlier.
async fn has_heard(relay: &Running, acks: u32) {
    let is_heard = async || {
        let (_, metrics) = page(relay, "/metrics").await;
        let counts = metrics.lines().filter(|line| line.starts_with("xds_relay_downstream_acks_total{"));
        let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok());
        counts.sum::<u32>() >= acks
    };
    in_time(async { while !is_heard().await {} }).await;
}

fn said(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|of| of.key == key).and_then(|of| of.value.clone()?.value);
    found
        .map_or_else(String::new, |value| if let Value::StringValue(text) = value { text } else { panic!("{value:?}") })
}

/// By trace: each span as its name and node, below that of its parent.
fn lives(spans: &[Span]) -> BTreeSet<BTreeSet<String>> {
    let words = |span: &Span| format!("{} {}", span.name, said(span, "xds.node")).trim_end().to_owned();
    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (&span.span_id, words(span))).collect();
    let mut lives: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for span in spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert_eq!(said(span, "xds.type"), CLUSTERS);
        let parent = by_id.get(&span.parent_span_id).map_or_else(String::new, |parent| format!("{parent} > "));
        lives.entry(&span.trace_id).or_default().insert(parent + &words(span));
    }
    lives.into_values().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_a_trace_with_a_span_for_each_client_it_is_sent_to_and_each_that_accepts_it() {
    for one_in in [1, u32::MAX] {
        let (collector, origin) = (Collector::default(), Origin::listen().await);
        let more = format!(
            "traces: {{ otlp: '{}', one_in: {one_in} }}\nshare_by: [cluster]\ndrain_delay: 0s",
            collector.listen().await
        );
        let up = format!("[{{ name: up, server: '{}', protocol: sotw }}]", origin.address());
        let mut relay = Running::start_with(&up, &more).await;
        let mut a = client(&relay, "a").await;
        let mut served = origin.accept().await;
        let mut answers = served.respond();
        say(&mut answers, "1");
        answer(&mut a, true).await;
        has_heard(&relay, 1).await;
        let mut b = client(&relay, "b").await;
        // It was there when this one came: nothing that anybody waited for.
        answer(&mut b, true).await;
        has_heard(&relay, 2).await;
        say(&mut answers, "2");
        answer(&mut a, true).await;
        has_heard(&relay, 3).await;
        answer(&mut b, false).await;
        relay.stop();
        in_time(async {
            while a.message().await.is_some() {}
            while b.message().await.is_some() {}
        })
        .await;
        drop((a, b, answers, served));
        relay.stopped().await;
        let told = lives(&collector.0.lock().unwrap());
        let spans = |spans: &[&str]| spans.iter().map(|span| (*span).to_owned()).collect::<BTreeSet<_>>();
        let of_a = ["xds.update", "xds.update > xds.send a", "xds.send a > xds.accept a"];
        let expected = [spans(&of_a), spans(&[&of_a[..], &["xds.update > xds.send b"]].concat())];
        let expected = if one_in == 1 { BTreeSet::from(expected) } else { BTreeSet::new() };
        assert_eq!(told, expected, "one in {one_in}");
    }
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nobody_up() {
    let origin = Origin::listen().await;
    let up = format!("[{{ name: up, server: '{}', protocol: sotw }}]", origin.address());
    let relay = Running::start_with(&up, "traces: { otlp: 'http://127.0.0.1:1', one_in: 1 }\ndrain_delay: 0s").await;
    let mut a = client(&relay, "a").await;
    let mut served = origin.accept().await;
    let mut answers = served.respond();
    for version in ["1", "2", "3"] {
        say(&mut answers, version);
        answer(&mut a, true).await;
    }
    drop(a);
    let mut relay = relay;
    relay.stop();
    in_time(relay.stopped()).await;
}

/// TLS in front of who speaks clear text there.
async fn secured(tls: ServerTls, there: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let there = there.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((io, _)) = listener.accept().await {
            let (tls, there) = (tls.clone(), there.clone());
            tokio::spawn(async move {
                let Ok(mut io) = tls.accept(io).await else { return };
                let mut there = TcpStream::connect(there).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut io, &mut there).await;
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_is_told_by_tls_if_it_is_vouched_for_and_not_otherwise() {
    let (files, ca, stranger) = (Files::new(), Authority::new("ours"), Authority::new("stranger"));
    files.write("ca.pem", &ca.pem);
    files.write("stranger.pem", &stranger.pem);
    files.identity("collector", ca.vouches_for("otlp.example.com", None));
    files.identity("relay", ca.vouches_for("relay", None));
    for (tls, is_told) in [
        ("{ ca: $ca.pem, server_name: otlp.example.com, certificate: $relay.pem, key: $relay.key }", true),
        ("{ ca: $ca.pem, server_name: otlp.example.com }", false),
        ("{ ca: $ca.pem, certificate: $relay.pem, key: $relay.key }", false),
        ("{ ca: $stranger.pem, server_name: otlp.example.com, certificate: $relay.pem, key: $relay.key }", false),
    ] {
        let (collector, origin) = (Collector::default(), Origin::listen().await);
        let shown = ServerFiles::new(files.path("collector.pem"), files.path("collector.key"));
        let shown = shown.with_client_ca(files.path("ca.pem")).with_alpn(vec![b"h2".to_vec()]);
        let port = secured(ServerTls::load(shown).unwrap(), collector.listen().await).await;
        let tls = files.filled(tls);
        let more = format!("traces: {{ otlp: 'https://127.0.0.1:{port}', tls: {tls}, one_in: 1 }}\ndrain_delay: 0s");
        let up = format!("[{{ name: up, server: '{}', protocol: sotw }}]", origin.address());
        let mut relay = Running::start_with(&up, &more).await;
        let mut a = client(&relay, "a").await;
        let mut served = origin.accept().await;
        let mut answers = served.respond();
        say(&mut answers, "1");
        answer(&mut a, true).await;
        has_heard(&relay, 1).await;
        relay.stop();
        in_time(async { while a.message().await.is_some() {} }).await;
        drop((a, answers, served));
        relay.stopped().await;
        assert_eq!(!collector.0.lock().unwrap().is_empty(), is_told, "{tls}");
    }
}
