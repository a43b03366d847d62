//! Rule 148: a TTL is the origin's, and a relay passes on what remains of it.

use bytes::Bytes;
use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, Node, Resource};

use crate::support::*;

const MINUTE: u32 = 60;

fn world() -> World {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    let now = world.now;
    let frame = cluster("a", "1").with_wrapper(Bytes::new(), Some(MINUTE * SECOND), false);
    world.origins[0].put_frame(now, "", CLUSTERS, "a", "1", frame);
    world
}

/// A client that understands TTLs; the other ones have to be told.
fn understanding(world: &mut World) -> usize {
    let client_features = vec!["xds.config.supports-resource-ttl".into()];
    world.client_with(0, DELTA, &Node { id: "n".into(), cluster: "c".into(), client_features, ..Node::default() })
}

fn sent(world: &World, client: usize) -> Vec<Resource> {
    let responses = world.clients[client].chunks.iter();
    responses.flat_map(|chunks| DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap().resources).collect()
}

fn ttls(world: &World, client: usize) -> Vec<Option<i64>> {
    sent(world, client).into_iter().map(|resource| resource.ttl.map(|ttl| ttl.seconds)).collect()
}

#[test]
fn rule_148_who_comes_late_is_told_what_remains_and_a_lost_origin_is_not_stood_in_for() {
    let mut world = world();
    let (first, plain) = (understanding(&mut world), world.client(SOTW, "p"));
    for client in [first, plain] {
        world.subscribe(client, CLUSTERS, &["a"]);
    }
    world.settle();
    assert_eq!(ttls(&world, first), [Some(60)]);
    world.set_up(0, false);
    world.advance(30 * SECOND);
    let late = understanding(&mut world);
    world.subscribe(late, CLUSTERS, &["a"]);
    assert_eq!(ttls(&world, late), [Some(30)]);
    world.advance(29 * SECOND);
    for client in [first, plain, late] {
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"]);
    }
    world.advance(2 * SECOND);
    for client in [first, plain, late] {
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0]);
    }
    assert_eq!((ttls(&world, first).len(), ttls(&world, late).len()), (1, 1), "no heartbeats");
}

#[test]
fn rule_148_what_the_origin_refreshes_lives_on_at_every_client() {
    let mut world = world();
    let (one, plain) = (understanding(&mut world), world.client(SOTW, "p"));
    for client in [one, plain] {
        world.subscribe(client, CLUSTERS, &["a"]);
    }
    world.advance(10 * MINUTE * SECOND);
    for client in [one, plain] {
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"]);
        assert_eq!(world.told(client), ["Cluster a@1"], "and nobody is sent it again");
    }
    let sent = sent(&world, one);
    assert!(sent.len() > 10 && sent.iter().skip(1).all(|heartbeat| heartbeat.resource.is_none()));
    assert!(ttls(&world, one).iter().flatten().all(|ttl| (10..=60).contains(ttl)), "{:?}", ttls(&world, one));
}

#[test]
fn rule_148_all_live_on_however_many_are_refreshed_at_once() {
    let mut world = World::new(DELTA);
    let names: Vec<_> = (0..600).map(|at| format!("c{at:03}")).collect();
    for name in &names {
        let frame = cluster(name, "1").with_wrapper(Bytes::new(), Some(MINUTE * SECOND), false);
        let now = world.now;
        world.origins[0].put_frame(now, "", CLUSTERS, name, "1", frame);
    }
    let client = understanding(&mut world);
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(3 * MINUTE * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS).len(), 600);
}
