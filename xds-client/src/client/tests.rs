//! Scenarios of `client.md`, in a time of their own: S is that of grpc-go's tests, R one of the rules.

mod alternatives;
mod beside;
mod brought;
mod cascades;
mod counted;
mod defects;
mod documents;
mod dpds;
mod dpds_histories;
mod errors;
mod exact;
mod fallback;
mod fallback_absence;
mod introductions;
mod kept;
mod lifecycle;
mod lists;
#[cfg(feature = "lrs")]
mod load;
#[cfg(feature = "lrs")]
mod load_bounds;
mod logs;
mod metrics;
mod names;
mod one_stream;
mod one_stream_collections;
mod one_stream_histories;
mod own_code;
mod panics;
mod progress;
#[cfg(feature = "metrics")]
mod recorded;
mod redirects;
mod resources;
mod response_table;
mod responses;
mod scale;
mod selecting;
mod sharing;
mod simulation;
mod status;
mod streams;
mod switches;
mod table;
mod tp1;
mod trust;
mod wire;
mod withheld;

use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Protocol;

use crate::bootstrap::{Authority, Bootstrap, ChannelCreds, Features, Server};
use crate::test::Network;
use crate::{Client, Content, Error, Event, Reason, Resource, Watch};

const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const TYPES: [&str; 4] = [LDS, RDS, CDS, EDS];

/// The server of everything but what has its own.
const TOP: &str = "top:1";
/// That of the authority `other`.
const OTHER: &str = "other:1";

const PATIENCE: Duration = Duration::from_secs(15);
const KEEPS: Features = Features { fail_on_data_errors: false, ..features(false, false) };
const DROPS: Features = features(true, false);
const WAITS: Features = features(false, true);

const fn features(fail_on_data_errors: bool, resource_timer_is_transient_error: bool) -> Features {
    Features {
        ignore_resource_deletion: false,
        trusted_xds_server: false,
        fail_on_data_errors,
        resource_timer_is_transient_error,
        draft_dynamic_parameters: false,
    }
}

struct World {
    network: Network,
    client: Client,
}

impl World {
    fn new() -> Self {
        Self::of(Protocol::Delta, KEEPS)
    }

    fn of(protocol: Protocol, features: Features) -> Self {
        let server = |uri| Server::new(uri, ChannelCreds::Insecure).with_features(features);
        let bootstrap = Bootstrap::new(server(TOP))
            .with_node(xds_transport::wire::Node { id: "me".into(), ..Default::default() })
            .with_authority("", Authority::default())
            .with_authority("a", Authority::default())
            .with_authority("b", Authority::default())
            .with_authority("other", Authority::default().with_server(server(OTHER)));
        Self::with(protocol, bootstrap)
    }

    fn with(protocol: Protocol, bootstrap: Bootstrap) -> Self {
        let network = Network::speaking(protocol, now());
        let client = Client::builder(bootstrap).protocol(protocol).transport(network.clone()).build().unwrap();
        Self { network, client }
    }

    fn top(&self) -> crate::test::Server {
        self.network.server(TOP)
    }

    fn put(&self, type_url: &str, name: &str, version: &str) {
        self.top().put(type_url, name, version, &message(name, version));
        self.network.settle();
    }

    /// A typed watch, of clusters.
    fn watch(&self, name: &str) -> Watch<Cluster> {
        let watch = self.client.watch_as(name);
        self.network.settle();
        watch
    }

    fn watch_raw(&self, type_url: &str, name: &str) -> Watch {
        let watch = self.client.watch(type_url, name);
        self.network.settle();
        watch
    }
}

/// The version that it was put with, unless that says that it is bad.
#[derive(Debug, PartialEq)]
struct Cluster(String);

impl Resource for Cluster {
    fn type_url() -> String {
        CDS.into()
    }

    fn decode(message: Bytes) -> Result<Self, Reason> {
        let text = String::from_utf8_lossy(&message);
        let version = text.rsplit('=').next().unwrap_or_default();
        if version.starts_with("bad") {
            Err(Reason::new(format!("{version} is bad")))
        } else {
            Ok(Self(version.into()))
        }
    }
}

/// A message with its name in field 1, and a version in one that nobody knows.
fn message(name: &str, version: &str) -> Vec<u8> {
    let version = format!("={version}");
    let field = |number: u32, text: &str| {
        let mut field = Vec::new();
        prost::encoding::string::encode(number, &text.to_owned(), &mut field);
        field
    };
    [field(1, name), field(1000, &version)].concat()
}

fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "any moment will do as the first")]
    Instant::now()
}

/// What a watch hears, in words.
fn heard<R: Content>(watch: &mut Watch<R>) -> Vec<String> {
    std::iter::from_fn(|| watch.try_next()).map(|event| words(&event)).collect()
}

fn words<T>(event: &Event<T>) -> String {
    let of = |name: &Option<xdstp_uri::ResourceName>| name.as_ref().map_or("all".to_owned(), ToString::to_string);
    match event {
        Event::Put { name, version, .. } => format!("put {name} {version}"),
        Event::Removed { name } => format!("removed {name}"),
        Event::Failed { name, error } => format!("failed {}: {}", of(name), kind(error)),
        Event::Ambient { name, error: Some(error) } => format!("ambient {}: {}", of(name), kind(error)),
        Event::Ambient { name, error: None } => format!("cleared {}", of(name)),
        Event::Answered => "answered".into(),
    }
}

fn kind(error: &Error) -> String {
    match error {
        Error::Unreachable { reason, .. } => format!("unreachable ({reason})"),
        Error::Invalid { version, reason } => format!("invalid at {version:?} ({reason})"),
        Error::Refused { code, reason } => format!("refused ({code}, {reason})"),
        Error::Absent => "absent".into(),
        Error::Timeout { is_absence: true, .. } => "timeout, an absence".into(),
        Error::Timeout { .. } => "timeout".into(),
        error => format!("{error}"),
    }
}

/// An `xdstp:` name of a type.
fn xdstp(authority: &str, type_url: &str, id: &str) -> String {
    format!("xdstp://{authority}/{}/{id}", type_url.rsplit('/').next().unwrap())
}

/// Does it over both protocols, with a resource of each type, old-style and not.
fn everywhere(scenario: impl Fn(&World, &str, &str)) {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for type_url in TYPES {
            for name in ["x".to_owned(), xdstp("a", type_url, "x")] {
                scenario(&World::of(protocol, KEEPS), type_url, &name);
            }
        }
    }
}
