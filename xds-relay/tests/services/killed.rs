//! A relay, the program, that is killed and started again while its origin is away.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use xds_transport::Protocol;
use xds_transport::wire::walk::text_at;
use xds_transport::wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Node, Resource,
};

use crate::stream::{Call, Origin, Served, framed, in_time};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A process that ends with this, as the system kills it: it hears nothing of that.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The program.
struct Program {
    _process: Process,
    listen: SocketAddr,
    admin: SocketAddr,
}

impl Program {
    fn start(config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
        command.arg("--config").arg(config).env_remove("XDS_RELAY_LOG");
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut process = Process(process);
        let (mut listen, mut admin) = (None, None);
        for line in BufReader::new(process.0.stdout.take().unwrap()).lines().map(Result::unwrap) {
            let word = |key: &str| line.trim().strip_prefix(key).map(|rest| rest.trim().to_owned());
            listen = listen.or(word("xDS").map(|address| address.parse().unwrap()));
            let page = word("admin").map(|page| page.trim_start_matches("http://").trim_end_matches('/').to_owned());
            admin = admin.or(page.map(|address| address.parse().unwrap()));
            if let (Some(listen), Some(admin)) = (listen, admin) {
                return Self { _process: process, listen, admin };
            }
        }
        panic!("it says no address")
    }

    /// A number on `/metrics`.
    async fn counted(&self, what: &str) -> u64 {
        let mut connection = TcpStream::connect(self.admin).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.admin);
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut page = String::new();
        connection.read_to_string(&mut page).await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no {what}: {page}")).trim().parse().unwrap()
    }

    async fn until(&self, what: &str, is_so: impl Fn(u64) -> bool) -> u64 {
        in_time(async {
            loop {
                let counted = self.counted(what).await;
                if is_so(counted) {
                    return counted;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

const COMMITS: &str = "xds_relay_state_commits_total{result=\"ok\"}";
const STALE: &str = "xds_relay_stale_resources{origin=\"up\"}";

fn all(nonce: &str, resources: &[(&str, &str)], removed: &[&str]) -> Bytes {
    let resource = |(name, version): &(&str, &str)| {
        let mut value = vec![0x0a, u8::try_from(name.len()).unwrap()];
        value.extend(name.bytes());
        let any = Any { type_url: CLUSTERS.into(), value: value.into() };
        Resource { name: (*name).into(), version: (*version).into(), resource: Some(any), ..Resource::default() }
    };
    let response = DeltaDiscoveryResponse {
        type_url: CLUSTERS.into(),
        nonce: nonce.into(),
        resources: resources.iter().map(resource).collect(),
        removed_resources: removed.iter().map(|name| (*name).into()).collect(),
        ..DeltaDiscoveryResponse::default()
    };
    framed(&response.encode_to_vec())
}

async fn asked(served: &mut Served) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest::decode(served.receiving.message().await.unwrap().unwrap()).unwrap()
}

/// A client that asks for all clusters: an Envoy over delta, or a gRPC client over SotW.
async fn client(relay: &Program, protocol: Protocol) -> Call {
    let mut call = Call::open(relay.listen, protocol.aggregated_method()).await;
    let node = Node { id: protocol.as_str().into(), cluster: "fleet".into(), ..Node::default() }.encode_to_vec().into();
    let request = match protocol {
        Protocol::Delta => {
            DeltaDiscoveryRequest { type_url: CLUSTERS.into(), node, ..Default::default() }.encode_to_vec()
        }
        Protocol::Sotw => DiscoveryRequest { type_url: CLUSTERS.into(), node, ..Default::default() }.encode_to_vec(),
    };
    call.sending.send_data(framed(&request), false).unwrap();
    call
}

/// What it is told next: names, and what is gone.
async fn told(call: &mut Call, protocol: Protocol) -> BTreeSet<String> {
    let message = call.message().await.unwrap();
    match protocol {
        Protocol::Delta => {
            let response = DeltaDiscoveryResponse::decode(message).unwrap();
            let there =
                response.resources.into_iter().map(|resource| format!("{}@{}", resource.name, resource.version));
            there.chain(response.removed_resources.into_iter().map(|name| format!("-{name}"))).collect()
        }
        Protocol::Sotw => {
            let resources = DiscoveryResponse::decode(message).unwrap().resources;
            resources.into_iter().map(|any| text_at(&any.value, &[1]).unwrap().to_owned()).collect()
        }
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_relay_that_was_killed_serves_what_it_knew_while_its_origin_is_away_and_then_what_changed() {
    let directory = tempfile::tempdir().unwrap();
    let origin = Origin::listen().await;
    let address = origin.address();
    let config = directory.path().join("relay.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nshare_by: [cluster]\nstate: {{ path: state }}\n\
         origins: [{{ name: up, server: '{address}' }}]\n"
    );
    std::fs::write(&config, &text).unwrap();

    let relay = Program::start(&config);
    let commits = relay.until(COMMITS, |commits| commits > 0).await;
    let mut first = client(&relay, Protocol::Delta).await;
    let mut served = origin.accept().await;
    assert!(asked(&mut served).await.initial_resource_versions.is_empty());
    let mut answers = served.respond();
    answers.send_data(all("1", &[("a", "1"), ("b", "1"), ("c", "1")], &[]), false).unwrap();
    assert_eq!(told(&mut first, Protocol::Delta).await, names(&["a@1", "b@1", "c@1"]));
    relay.until(COMMITS, |now| now > commits).await;
    served.cut();
    drop((relay, origin, answers));

    std::fs::write(&config, text + "ready_when: last_known_good\n").unwrap();
    let relay = Program::start(&config);
    relay.until("xds_relay_ready ", |ready| ready == 1).await;
    let (mut envoy, mut grpc) = (client(&relay, Protocol::Delta).await, client(&relay, Protocol::Sotw).await);
    assert_eq!(told(&mut envoy, Protocol::Delta).await, names(&["a@1", "b@1", "c@1"]));
    assert_eq!(told(&mut grpc, Protocol::Sotw).await, names(&["a", "b", "c"]));
    assert_eq!(relay.counted(STALE).await, 3);

    let origin = Origin::listen_at(address).await;
    let mut served = origin.accept().await;
    let versions = asked(&mut served).await.initial_resource_versions;
    let held = versions.iter().map(|entry| text_at(entry, &[1]).unwrap().to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(held, names(&["a", "b", "c"]));
    let mut answers = served.respond();
    answers.send_data(all("1", &[("b", "2")], &["c"]), false).unwrap();
    let mut news = BTreeSet::new();
    while news.len() < 2 {
        news.extend(told(&mut envoy, Protocol::Delta).await);
    }
    assert_eq!(news, names(&["b@2", "-c"]), "and nothing that it has");
    relay.until(STALE, |stale| stale == 1).await;
}
