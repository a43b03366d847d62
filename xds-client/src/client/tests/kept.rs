//! What is known survives a restart of the program.

mod alias_histories;
mod deletions;
mod histories;
mod meanwhile;
mod opening;
mod own_store;
mod records;
mod selected;
mod silences;
mod successors;
mod unwanted;

use std::time::SystemTime;

use prost::Message as _;
use xds_transport::wire::DeltaDiscoveryResponse;

use self::records::Checked;
use super::*;
use crate::ResourceStatus;
use crate::state::Store;

const SECOND: Duration = Duration::from_secs(1);
const SECOND_SERVER: &str = "second:1";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

/// A program that keeps what it knows, and starts again.
struct Program {
    world: World,
    store: Checked,
    began: (Instant, SystemTime),
    features: Features,
    servers: &'static [&'static str],
}

impl Program {
    fn new(protocol: Protocol) -> Self {
        Self::of(protocol, KEEPS)
    }

    fn of(protocol: Protocol, features: Features) -> Self {
        Self::at(protocol, features, &[TOP])
    }

    /// Of several servers, in order of preference.
    fn at(protocol: Protocol, features: Features, servers: &'static [&'static str]) -> Self {
        let network = Network::speaking(protocol, now());
        // A client looks at the clock when it reads what was kept.
        let (store, began) = (Checked::default(), (network.now(), SystemTime::now()));
        let client = client(&network, &store, protocol, (features, servers));
        let program = Self { world: World { network, client }, store, began, features, servers };
        program.save();
        program
    }

    /// Ends without a word, and starts again: what was kept is read before anybody looks.
    fn restart(&mut self, protocol: Protocol) {
        self.world.client = client(&self.world.network, &self.store, protocol, (self.features, self.servers));
        self.world.network.settle();
        self.save();
    }

    fn save(&self) {
        let now = self.world.network.now();
        let wall = self.began.1 + now.duration_since(self.began.0);
        while self.world.client.save(now, wall).unwrap().more {}
    }

    fn keys(&self) -> Vec<String> {
        self.store.list("").unwrap().entries.into_iter().map(|entry| entry.key).collect()
    }

    /// Whether anything is kept of a name.
    fn keeps(&self, name: &str) -> bool {
        self.keys().iter().any(|key| key.ends_with(&format!("\0{name}")))
    }

    fn top(&self) -> crate::test::Server {
        self.world.top()
    }
}

fn client(
    network: &Network,
    store: &Checked,
    protocol: Protocol,
    (features, servers): (Features, &[&'static str]),
) -> Client {
    let server = |uri: &&str| Server::new(*uri, ChannelCreds::Insecure).with_features(features);
    let mut servers = servers.iter().map(server);
    let first = Bootstrap::new(servers.next().unwrap());
    let bootstrap = servers.fold(first, Bootstrap::with_server);
    let by_dpds = Authority::default().with_dpds(dpds::dpds("said").parse().unwrap());
    let bootstrap = bootstrap.with_authority("a", Authority::default()).with_authority("said", by_dpds);
    let builder = Client::builder(bootstrap).protocol(protocol).store(store.clone());
    builder.transport(network.clone()).build().unwrap()
}

/// What is said next to nobody's question: a name of a type of its own.
fn speak(server: &crate::test::Server, protocol: Protocol, name: &str) {
    server.send(&responses::response(protocol, EDS, &[wire::wrapper(name, "1", wire::body(EDS, name, "1"))]));
}

/// A server says that these are gone, over delta.
fn say_gone(program: &Program, names: &[&str]) {
    let response = DeltaDiscoveryResponse {
        type_url: CDS.into(),
        nonce: "gone".into(),
        removed_resources: names.iter().map(ToString::to_string).collect(),
        ..DeltaDiscoveryResponse::default()
    };
    program.top().send(&response.encode_to_vec());
    program.world.network.settle();
}

/// Over both protocols.
fn whatever(scenario: impl Fn(Program, Protocol)) {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        scenario(Program::new(protocol), protocol);
    }
}

#[test]
fn who_starts_while_every_server_is_away_has_what_was_there_and_it_is_stale_until_one_has_spoken() {
    whatever(|mut program, protocol| {
        for name in ["x".to_owned(), xdstp("a", CDS, "x")] {
            program.world.put(CDS, &name, "1");
            let mut watch = program.world.watch(&name);
            assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
            assert!(!watch.is_stale());
            program.save();
            program.top().go_down("away");
            drop(watch);

            program.restart(protocol);
            let mut watch = program.world.watch(&name);
            assert_eq!(heard(&mut watch), [format!("put {name} 1"), "ambient all: unreachable (away)".to_owned()]);
            assert!(watch.is_stale());
            assert_eq!(watch.status(), Some(ResourceStatus::Acked));

            program.top().come_up();
            program.world.network.pass(100 * SECOND);
            assert_eq!(heard(&mut watch), ["cleared all"], "it is as it was: {protocol:?}");
            assert!(!watch.is_stale());
            program.world.put(CDS, &name, "2");
            assert_eq!(heard(&mut watch), [format!("put {name} 2")]);
        }
    });
}

#[test]
fn what_was_there_counts_where_a_server_is_silent_and_is_no_absence_later() {
    whatever(|mut program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("x");
        program.save();
        drop(watch);
        program.top().be_silent(true);
        program.restart(protocol);
        let (mut known, mut unknown) = (program.world.watch("x"), program.world.watch("y"));
        assert_eq!(heard(&mut known), [""; 0], "it may be about to answer");
        program.world.network.pass(SECOND);
        assert_eq!((heard(&mut known), known.is_stale()), (vec!["put x 1".to_owned()], true));
        program.world.network.pass(2 * PATIENCE);
        assert_eq!((heard(&mut known), known.is_stale()), (vec![], true), "{protocol:?}");
        assert_eq!(heard(&mut unknown), ["failed y: timeout, an absence"]);
    });
}

#[test]
fn what_a_server_says_at_once_is_all_that_is_told() {
    whatever(|mut program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("x");
        program.save();
        drop(watch);
        program.world.put(CDS, "x", "2");
        program.restart(protocol);
        let mut watch = program.world.watch("x");
        program.world.network.pass(SECOND);
        assert_eq!((heard(&mut watch), watch.is_stale()), (vec!["put x 2".to_owned()], false), "{protocol:?}");
    });
}

#[test]
fn a_collection_is_there_with_its_members_and_loses_those_that_went_meanwhile() {
    whatever(|mut program, protocol| {
        for name in ["x", "y"] {
            program.world.put(CDS, name, "1");
        }
        let watch = program.world.watch("*");
        program.save();
        program.top().go_down("away");
        drop(watch);
        program.restart(protocol);
        let mut watch = program.world.watch("*");
        let mut said = heard(&mut watch);
        said.retain(|said| said != "answered");
        said.sort();
        assert_eq!(said, ["ambient all: unreachable (away)", "put x 1", "put y 1"], "{protocol:?}");
        assert!(watch.is_stale());
        program.top().remove(CDS, "y");
        program.top().come_up();
        program.world.network.pass(100 * SECOND);
        let said = heard(&mut watch);
        assert!(said.contains(&"removed y".to_owned()) && !said.iter().any(|said| said.contains(" x")), "{said:?}");
        assert!(!watch.is_stale());
    });
}

#[test]
fn who_lets_go_of_his_watches_before_he_ends_finds_what_they_had() {
    whatever(|mut program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("x");
        program.save();
        drop(watch);
        program.world.network.settle();
        for _ in 0..60 {
            program.world.network.pass(SECOND);
            program.save();
        }
        program.top().go_down("away");
        program.restart(protocol);
        let mut watch = program.world.watch("x");
        assert_eq!(heard(&mut watch).first().map(String::as_str), Some("put x 1"), "{protocol:?}");
    });
}

#[test]
fn what_nobody_watches_any_more_is_kept_for_ten_minutes() {
    whatever(|program, protocol| {
        program.world.put(CDS, "x", "1");
        let watch = program.world.watch("x");
        program.save();
        let is_kept = |program: &Program| program.keys().iter().any(|key| key.contains("/known/") && key.contains('x'));
        assert!(is_kept(&program));
        drop(watch);
        program.world.network.pass(SECOND);
        program.save();
        program.world.network.pass(595 * SECOND);
        program.save();
        assert!(is_kept(&program), "{protocol:?}");
        let again = program.world.watch("x");
        program.save();
        program.world.network.pass(595 * SECOND);
        program.save();
        assert!(is_kept(&program), "it was watched again: {protocol:?}");
        drop(again);
        program.world.network.pass(SECOND);
        program.save();
        program.world.network.pass(605 * SECOND);
        program.save();
        assert!(!is_kept(&program), "{protocol:?}");
    });
}

#[test]
fn what_went_is_not_there_after_a_restart() {
    whatever(|mut program, protocol| {
        for name in ["x", "y"] {
            program.world.put(CDS, name, "1");
        }
        let watch = program.world.watch("*");
        program.save();
        program.top().remove(CDS, "y");
        program.world.network.settle();
        program.save();
        program.top().go_down("away");
        drop(watch);
        program.restart(protocol);
        let said = heard(&mut program.world.watch("*"));
        assert!(said.contains(&"put x 1".to_owned()) && !said.iter().any(|said| said.contains(" y")), "{said:?}");
    });
}

#[test]
fn what_a_program_has_no_use_for_any_more_is_left_out() {
    whatever(|mut program, protocol| {
        for (name, version) in [("x", "bad"), ("y", "1")] {
            program.world.put(CDS, name, version);
        }
        // Whoever watches anything takes it as it comes.
        let watches = ["x", "y"].map(|name| program.world.watch_raw(CDS, name));
        program.save();
        program.top().go_down("away");
        drop(watches);
        program.restart(protocol);
        let [mut bad, mut good] = ["x", "y"].map(|name| program.world.watch(name));
        assert_eq!(heard(&mut bad), ["failed all: unreachable (away)"], "{protocol:?}");
        assert_eq!(heard(&mut good).first().map(String::as_str), Some("put y 1"));
    });
}

#[test]
fn a_redirect_that_was_kept_leads_where_it_did() {
    let mut program = Program::new(Protocol::Delta);
    let [first, second] = ["first", "second"].map(|id| xdstp("a", CDS, id));
    program.top().redirect(CDS, &first, "1", &second);
    program.world.put(CDS, &second, "1");
    let mut watch = program.world.watch(&first);
    assert_eq!(program.world.follow(&mut watch), [format!("put {first} 1")]);
    program.save();
    program.top().go_down("away");
    drop(watch);
    program.restart(Protocol::Delta);
    let mut watch = program.world.watch(&first);
    let said = program.world.follow(&mut watch);
    assert!(said.contains(&format!("put {first} 1")), "{said:?}");
}

#[test]
fn secrets_are_not_kept() {
    let program = Program::new(Protocol::Delta);
    let lists = format!("{SDS}Collection");
    for type_url in [SDS, &lists, CDS] {
        program.world.put(type_url, "x", "1");
    }
    let _watches = [SDS, &lists, CDS].map(|type_url| program.world.watch_raw(type_url, "x"));
    program.save();
    let keys = program.keys();
    assert!(keys.iter().any(|key| key.contains("Cluster")), "{keys:?}");
    assert!(!keys.iter().any(|key| key.contains("Secret")), "{keys:?}");
}

#[test]
fn another_node_or_server_is_not_served_what_is_kept() {
    let mut program = Program::new(Protocol::Delta);
    program.world.put(CDS, "x", "1");
    let watch = program.world.watch("x");
    program.save();
    program.top().go_down("away");
    drop(watch);
    let node = xds_transport::wire::Node { id: "another".into(), ..Default::default() };
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure)).with_node(node);
    let builder = Client::builder(bootstrap).store(program.store.clone());
    program.world.client = builder.transport(program.world.network.clone()).build().unwrap();
    program.save();
    assert_eq!(heard(&mut program.world.watch("x")), ["failed all: unreachable (away)"]);
}
