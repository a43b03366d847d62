//! What an origin has something of that this relay cannot read, and others can or could: clients that come from those keep what they
//! hold.

use xds_relay::relay_core::Unreadable;
use xds_relay::releases::{Stage, Stages, Who};
use xds_transport::Protocol;

use crate::support::replicas::Replicas;
use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const KV: &str = "origins: [{ name: kv, etcd: { endpoints: ['127.0.0.1:1'], prefix: kv/ }, authorities: [a] }]\n";

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

fn unread(name: &str) -> Unreadable {
    let reason = format!("res/{name}: no").into();
    Unreadable { type_url: CLUSTERS.into(), name: name.parse().unwrap(), reason }
}

fn all(of: &[&str]) -> Vec<xds_relay::relay_core::Held> {
    let one = |named: &&str| {
        let (name, body) = named.rsplit_once('@').unwrap();
        file(CLUSTERS, name, body)
    };
    of.iter().map(one).collect()
}

/// One relay has all that is served, and a later one cannot read some of it.
struct Two {
    world: World,
}

impl Two {
    fn new() -> Self {
        let mut world = World::empty();
        for _ in 0..2 {
            world.add_relay(KV, Vec::new());
        }
        let mut two = Self { world };
        two.set(0, &["a@1", "b@1", &format!("{}@1", member("m")), &format!("{}@1", member("n"))], &[]);
        two.set(1, &["b@1", &format!("{}@1", member("n"))], &["a", &member("m")]);
        two
    }

    fn set(&mut self, relay: usize, of: &[&str], unreadable: &[&str]) {
        let unreadable = unreadable.iter().map(|name| unread(name)).collect();
        self.world.relays[relay].core.set_files_but(0, all(of), unreadable, self.world.now);
        self.world.settle();
        self.world.advance(5 * SECOND);
    }

    /// What it is told from now on.
    fn move_to(&mut self, client: usize, relay: usize) -> Vec<String> {
        self.world.disconnect(client);
        self.world.told(client);
        self.world.connect(client, relay);
        self.world.advance(60 * SECOND);
        self.world.told(client)
    }

    fn client(&mut self, relay: usize, protocol: Protocol, names: &[&str]) -> usize {
        let client = self.world.client_of(relay, protocol, "n");
        self.world.subscribe(client, CLUSTERS, names);
        self.world.advance(60 * SECOND);
        client
    }

    fn held(&self, client: usize) -> String {
        self.world.clients[client].held(CLUSTERS).join(" ")
    }
}

#[test]
fn rule_150_who_comes_from_where_it_was_read_keeps_it_and_is_told_of_everything_else() {
    for protocol in [DELTA, SOTW] {
        for asked in [&["*"][..], &["a", "b"], &["a"], &[GLOB], &["*", GLOB]] {
            let mut two = Two::new();
            let client = two.client(0, protocol, asked);
            let before = two.held(client);
            let told = two.move_to(client, 1);
            assert!(!told.join(" ").contains(" -a") && !told.join(" ").contains(" -xdstp"), "{asked:?}: {told:?}");
            assert_eq!(two.held(client), before, "{protocol:?} {asked:?}");
            // It can be read again, and is something else; what is deleted is gone.
            let m = member("m");
            two.set(1, &["a@2", "b@2"], &[]);
            let after = two.held(client);
            let has = |name: &str| after.split(' ').any(|held| held == name);
            assert_eq!(has("a@2"), before.contains("a@1"), "{protocol:?} {asked:?}: {after}");
            assert!(!after.contains(&m), "{protocol:?} {asked:?}: {after}");
        }
    }
}

/// It may ask for somebody who holds it.
#[test]
fn rule_117_who_asks_for_it_anew_is_told_why_and_not_that_it_is_gone() {
    let mut two = Two::new();
    let client = two.client(1, DELTA, &["a", "none"]);
    assert_eq!(two.world.told(client), ["Cluster -none", "Cluster -!a:3"]);
}

#[test]
fn a_release_has_it_as_what_is_stable_does() {
    let mut relays = Replicas::new(1, |_| {});
    relays.set(&["a@1", "b@1"]);
    let client = relays.node(0, "c", "canary");
    relays.advance(10);
    relays.start();
    relays.set_at(0, &["a@1", "b@1"]);
    let set = |relays: &mut Replicas, relay: usize, of: &[&str], unreadable: &[&str]| {
        let (unreadable, now) = (unreadable.iter().map(|name| unread(name)).collect(), relays.world.now);
        relays.world.relays[relay].core.set_files_but(0, all(of), unreadable, now);
    };
    set(&mut relays, 1, &["b@2"], &["a"]);
    relays.world.stop(0);
    relays.expire();
    relays.world.disconnect(client);
    relays.world.connect(client, 1);
    relays.advance(20);
    assert_eq!(relays.held([client]), ["a@1 b@2"]);
    relays.advance(150);
    let other = relays.node(1, "d", "others");
    relays.advance(5);
    assert_eq!(relays.held([client, other]), ["a@1 b@2", "a@1 b@2"]);
    // That its key is gone is a change, though nothing that is there changed.
    set(&mut relays, 1, &["b@2"], &[]);
    relays.advance(10);
    assert_eq!(relays.held([client, other]), ["b@2", "a@1 b@2"]);
}

#[test]
fn who_cannot_read_what_only_a_candidate_has_leaves_it_to_another_to_publish() {
    let canaries = Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into());
    let stages = Stages::new([Stage { who: canaries, hold: 3600 * SECOND }]);
    let mut relays = Replicas::new(2, |rollout| rollout.stages = stages);
    relays.set(&["b@1"]);
    let client = relays.node(0, "c", "canary");
    relays.advance(10);
    relays.set(&["a@1", "b@1"]);
    relays.advance(10);
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
    let first = relays.publisher();
    let now = relays.world.now;
    relays.world.relays[first].core.set_files_but(0, all(&["b@1"]), vec![unread("a")], now);
    for _ in 0..12 {
        relays.advance(10);
        assert_eq!(relays.held([client]), ["a@1 b@1"]);
    }
    assert_eq!(relays.publisher(), 1 - first);
}

/// Who has no release has clients that hold what there was before.
#[test]
fn the_first_release_waits_until_all_can_be_read() {
    let mut relays = Replicas::new(1, |_| {});
    let now = relays.world.now;
    relays.world.relays[0].core.set_files_but(0, all(&["b@1"]), vec![unread("a")], now);
    relays.advance(60);
    assert!(relays.control(0).stable().is_none());
    relays.set(&["a@1", "b@1"]);
    relays.advance(10);
    assert!(relays.control(0).stable().is_some());
}
