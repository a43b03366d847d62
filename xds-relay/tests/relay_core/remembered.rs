//! An origin that has all there is, after a restart: what it had is served before it has said what it has.

use std::sync::Arc;

use xds_relay::config::Rollout;
use xds_relay::releases::Stages;
use xds_relay::state::Memory;
use xds_transport::Protocol;

use crate::support::*;

const BOTH: [Protocol; 2] = [DELTA, SOTW];
const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const KV: &str = "origins: [{ name: kv, etcd: { endpoints: ['127.0.0.1:1'], prefix: kv/ }, authorities: [a] }]\nstate: { path: . }\n";

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

fn all(of: &[&str]) -> Vec<xds_relay::relay_core::Held> {
    let one = |named: &&str| {
        let (name, body) = named.rsplit_once('@').unwrap();
        file(CLUSTERS, name, body)
    };
    of.iter().map(one).collect()
}

struct Kv {
    world: World,
}

impl Kv {
    fn new() -> Self {
        let mut world = World::empty();
        world.add_relay(KV, Vec::new());
        world.restart(0, KV, Memory::default());
        Self { world }
    }

    /// It had these before the relay was restarted.
    fn remembering(of: &[&str]) -> Self {
        let mut kv = Self::new();
        kv.remember(of);
        kv
    }

    fn remember(&mut self, of: &[&str]) {
        self.world.relays[0].core.remember_files(0, all(of), self.world.now);
        self.world.settle();
    }

    fn set(&mut self, of: &[&str]) {
        self.world.relays[0].core.set_files(0, all(of), self.world.now);
        self.world.settle();
        self.world.advance(5 * SECOND);
    }

    fn client(&mut self, protocol: Protocol, names: &[&str]) -> usize {
        let client = self.world.client(protocol, "n");
        self.world.subscribe(client, CLUSTERS, names);
        self.world.advance(5 * SECOND);
        client
    }

    fn held(&self, client: usize) -> Vec<String> {
        self.world.clients[client].held(CLUSTERS)
    }

    /// The versions that a client was sent since the last call.
    fn sent(&mut self, client: usize) -> Vec<String> {
        std::mem::take(&mut self.world.clients[client].versions)
    }

    fn stale(&self) -> u64 {
        self.world.counted(0, "stale_resources{origin=\"kv\"}")
    }

    fn is_ready(&self) -> bool {
        self.world.relays[0].core.readiness() == xds_relay::admin::Readiness::Ready
    }
}

#[test]
fn clients_that_wait_and_that_come_are_served_what_it_had_and_told_of_nothing_that_it_is_not_there() {
    for protocol in BOTH {
        let mut kv = Kv::new();
        let early = kv.client(protocol, &["*", "not"]);
        assert!(!kv.is_ready());
        kv.remember(&["a@1", "b@1"]);
        let late = kv.client(protocol, &["*"]);
        assert!(kv.is_ready());
        for client in [early, late] {
            assert_eq!(kv.held(client), ["a@1", "b@1"]);
        }
        let told: Vec<_> = kv.world.told(early);
        assert!(!told.iter().any(|line| line.contains('-')), "{told:?}");
        assert_eq!(kv.stale(), 2);
    }
}

#[test]
fn what_it_has_as_before_is_not_sent_again_and_what_it_has_not_is_removed() {
    for protocol in BOTH {
        let mut kv = Kv::remembering(&["a@1", "b@1", &format!("{}@1", member("m"))]);
        let client = kv.client(protocol, &["*", GLOB]);
        let single = kv.client(protocol, &["a"]);
        assert!([client, single].iter().all(|client| !kv.sent(*client).is_empty()));
        kv.set(&["a@1", "b@1", &format!("{}@1", member("m"))]);
        assert_eq!([client, single].map(|client| kv.sent(client).len()), [0, 0], "{protocol:?}");
        assert_eq!((kv.held(client).len(), kv.stale(), kv.is_ready()), (3, 0, true));
        kv.set(&["a@2", &format!("{}@1", member("m"))]);
        assert_eq!(kv.held(client), ["a@2".to_owned(), format!("{}@1", member("m"))]);

        let mut kv = Kv::remembering(&["a@1", "b@1", &format!("{}@1", member("m"))]);
        let client = kv.client(protocol, &["*", GLOB]);
        kv.set(&["b@2"]);
        assert_eq!((kv.held(client), kv.stale()), (vec!["b@2".to_owned()], 0));
    }
}

/// Such as from another relay, or from this one just before it was killed.
#[test]
fn who_holds_what_is_newer_keeps_it_until_the_origin_has_said_which_counts() {
    for protocol in BOTH {
        let mut kv = Kv::new();
        kv.set(&["a@2", "b@1", "new@1"]);
        let client = kv.client(protocol, &["*", "a", "b", "new"]);
        assert_eq!(kv.held(client), ["a@2", "b@1", "new@1"]);
        kv.world.restart(0, KV, Memory::default());
        kv.remember(&["a@1", "b@1"]);
        kv.sent(client);
        kv.world.connect(client, 0);
        kv.world.advance(60 * SECOND);
        assert_eq!(kv.held(client), ["a@2", "b@1", "new@1"], "{protocol:?}");
        kv.set(&["a@2", "b@1", "new@1"]);
        assert_eq!(kv.held(client), ["a@2", "b@1", "new@1"]);
        kv.set(&["a@1"]);
        assert_eq!(kv.held(client), ["a@1"]);
    }
}

#[test]
fn what_a_part_of_it_says_meanwhile_is_sent() {
    for protocol in BOTH {
        let mut kv = Kv::remembering(&["a@1", "b@1"]);
        let client = kv.client(protocol, &["*"]);
        kv.remember(&["a@2", "c@1"]);
        kv.world.advance(5 * SECOND);
        assert_eq!((kv.held(client), kv.stale()), (vec!["a@2".into(), "b@1".into(), "c@1".into()], 2));
        kv.set(&["a@2"]);
        assert_eq!(kv.held(client), ["a@2"]);
        kv.remember(&["a@1", "b@1"]);
        kv.world.advance(5 * SECOND);
        assert_eq!((kv.held(client), kv.stale()), (vec!["a@2".to_owned()], 0), "all was said");
    }
}

/// It is not all that there is: a release of it would take the rest away.
#[test]
fn what_it_had_is_no_release() {
    for protocol in BOTH {
        let (mut kv, store) = (Kv::remembering(&["a@1"]), Arc::<Memory>::default());
        let stages = Stages::new([]);
        let roll_out = |kv: &Kv| {
            let rollout = Rollout::new(None, stages.clone());
            kv.world.relays[0].core.roll_out(rollout, store.clone(), kv.world.now).unwrap();
        };
        roll_out(&kv);
        kv.world.advance(60 * SECOND);
        let client = kv.client(protocol, &["*"]);
        assert_eq!(kv.held(client), [""; 0]);
        kv.set(&["a@1", "b@1"]);
        kv.world.advance(60 * SECOND);
        assert_eq!(kv.held(client), ["a@1", "b@1"]);
        // And what was released is served on, whatever it had.
        kv.world.restart(0, KV, Memory::default());
        kv.remember(&["a@1"]);
        roll_out(&kv);
        let client = kv.client(protocol, &["*"]);
        kv.world.advance(60 * SECOND);
        assert_eq!(kv.held(client), ["a@1", "b@1"]);
    }
}
