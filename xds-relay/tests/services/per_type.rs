//! An origin that has a method for each type and no aggregated one, behind a relay whose client asks for all on one stream.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use prost::Message as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::transport::Server;
use xds_transport::Protocol;
use xds_transport::grpc::server::{Accept, Accepted, ControlPlane, Opened, Service, Shared, SharedSource};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

use crate::Running;
use crate::stream::{Call, framed};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const SECRETS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const OTHER: &str = "type.example.com/example.Limit";

#[derive(Clone, PartialEq, prost::Message)]
struct Cluster {
    #[prost(string, tag = "1")]
    name: String,
}

impl prost::Name for Cluster {
    const NAME: &'static str = "Cluster";
    const PACKAGE: &'static str = "envoy.config.cluster.v3";
}

#[derive(Clone, PartialEq, prost::Message)]
struct ClusterLoadAssignment {
    #[prost(string, tag = "1")]
    cluster_name: String,
}

impl prost::Name for ClusterLoadAssignment {
    const NAME: &'static str = "ClusterLoadAssignment";
    const PACKAGE: &'static str = "envoy.config.endpoint.v3";
}

/// A control plane with only some methods, and those that were called.
#[derive(Clone)]
struct Partly {
    has: &'static [&'static str],
    shared: Shared,
    called: Arc<Mutex<BTreeSet<String>>>,
}

impl Accept for Partly {
    type Source = SharedSource;

    async fn accept(&self, opened: Opened) -> Result<Accepted<SharedSource>, Status> {
        let method = opened.request.uri.path().rsplit('/').next().unwrap().to_owned();
        self.called.lock().unwrap().insert(method.clone());
        if !self.has.iter().any(|has| method.ends_with(has)) {
            return Err(Status::unimplemented("no such method"));
        }
        self.shared.accept(opened).await
    }
}

struct Origin {
    plane: ControlPlane,
    called: Arc<Mutex<BTreeSet<String>>>,
    address: SocketAddr,
}

impl Origin {
    async fn with(has: &'static [&'static str]) -> Self {
        let plane = ControlPlane::new();
        plane.put("cart", &Cluster { name: "cart".into() }).unwrap();
        plane.put("cart", &ClusterLoadAssignment { cluster_name: "cart".into() }).unwrap();
        let called = Arc::default();
        let partly = Partly { has, shared: plane.shared().clone(), called: Arc::clone(&called) };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Service::new(partly).into_routes();
        tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(TcpListenerStream::new(listener)));
        Self { plane, called, address }
    }

    fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().iter().cloned().collect()
    }
}

/// What was asked for of each type, on one stream.
async fn ask(relay: &Running, all: &[(&str, &[&str])]) -> Call {
    let mut call = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    for (of, names) in all {
        let request = DeltaDiscoveryRequest {
            node: Bytes::from_static(b"\x0a\x01n"),
            type_url: (*of).into(),
            resource_names_subscribe: names.iter().map(|name| (*name).into()).collect(),
            ..Default::default()
        };
        call.sending.send_data(framed(&request.encode_to_vec()), false).unwrap();
    }
    call
}

/// What the client is told of each type next, until there were as many names: what came, and what is wrong with what did not.
async fn told(call: &mut Call, names: usize) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    while all.values().flatten().count() < names {
        let response = DeltaDiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
        let errors = response.resource_errors.into_iter();
        let errors = errors.map(|error| (error.resource_name.unwrap().name, error.error_detail.unwrap().code));
        let errors: BTreeMap<_, _> = errors.collect();
        // Rule 117: beside the error, for clients that do not read it.
        let gone = response.removed_resources;
        assert!(gone.iter().all(|name| errors.contains_key(name)), "{gone:?}");
        let errors = errors.into_iter().map(|(name, code)| format!("{name}: {code}"));
        let came = response.resources.into_iter().map(|resource| resource.name);
        let of = response.type_url.rsplit('.').next().unwrap().to_owned();
        all.entry(of).or_default().extend(came.chain(errors));
    }
    all
}

fn names(all: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    all.iter().map(|(of, names)| ((*of).to_owned(), owned(names))).collect()
}

#[tokio::test]
async fn what_an_origin_has_is_served_and_what_it_has_no_method_for_is_an_error() {
    for (protocol, verb) in [("delta", "Delta"), ("sotw", "Stream")] {
        let origin = Origin::with(&["Clusters", "Endpoints"]).await;
        let address = origin.address;
        let config = format!("[{{ name: up, server: '{address}', protocol: {protocol}, methods: per_type }}]");
        let relay = Running::start(&config).await;
        let asks: [(&str, &[&str]); 4] = [(CDS, &["*"]), (EDS, &["cart"]), (SECRETS, &["s"]), (OTHER, &["x", "*"])];
        let mut client = ask(&relay, &asks).await;
        let expected = names(&[
            ("Cluster", &["cart"]),
            ("ClusterLoadAssignment", &["cart"]),
            ("Secret", &["s: 12"]),
            ("Limit", &["x: 12", "*: 12"]),
        ]);
        assert_eq!(told(&mut client, 5).await, expected, "{protocol}");
        assert_eq!(origin.called(), ["Clusters", "Endpoints", "Secrets"].map(|of| format!("{verb}{of}")));
        // The others go on.
        origin.plane.put("till", &Cluster { name: "till".into() }).unwrap();
        assert_eq!(told(&mut client, 1).await, names(&[("Cluster", &["till"])]), "{protocol}");
    }
}

#[tokio::test]
async fn client_rule_069_a_server_that_has_none_of_the_methods_is_one_that_fails() {
    let (of_all, apart) = (Origin::with(&["AggregatedResources"]).await, Origin::with(&["Clusters"]).await);
    let servers = format!("['{}', '{}']", of_all.address, apart.address);
    let relay = Running::start(&format!("[{{ name: up, servers: {servers}, methods: per_type }}]")).await;
    let mut client = ask(&relay, &[(CDS, &["cart"])]).await;
    assert_eq!(told(&mut client, 1).await, names(&[("Cluster", &["cart"])]));
    assert_eq!((of_all.called(), apart.called()), (vec!["DeltaClusters".to_owned()], vec!["DeltaClusters".to_owned()]));
}
