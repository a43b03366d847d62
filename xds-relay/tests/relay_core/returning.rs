//! Clients that come back as Envoy does: they list no members of globs, and hold what they held (rule 100).

use std::collections::BTreeSet;
use std::task::Waker;

use prost::Message;
use xds_transport::server::{Source, Stream};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use xdstp_cache::Interest;

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

fn member(at: usize) -> String {
    GLOB.replace('*', &format!("c{at:04}"))
}

/// What a client holds of the glob after a stream on which it says nothing of what it held.
fn come_and_go(world: &mut World, relay: usize, held: &mut BTreeSet<String>) {
    let core = world.relays[relay].core.clone();
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
    let mut stream = Stream::new(DELTA, core.settings());
    let subscribe = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_names_subscribe: vec![GLOB.into()],
        ..Default::default()
    };
    stream.handle_message(world.now, subscribe.encode_to_vec().into(), &mut routes).unwrap();
    for _ in 0..20 {
        world.settle();
        while let Some(transmit) = stream.poll_transmit(world.now, &mut routes).unwrap() {
            let response = DeltaDiscoveryResponse::decode(transmit.into_bytes()).unwrap();
            held.extend(response.resources.into_iter().map(|resource| resource.name));
            response.removed_resources.iter().for_each(|name| _ = held.remove(name));
            let ack = DeltaDiscoveryRequest {
                type_url: CLUSTERS.into(),
                response_nonce: response.nonce,
                ..Default::default()
            };
            stream.handle_message(world.now, ack.encode_to_vec().into(), &mut routes).unwrap();
        }
        world.advance(SECOND);
    }
    stream.close(&mut routes);
}

/// A lone Envoy kept hundreds of 1499 removed members, because the scope went with its last client.
#[test]
fn rule_100_who_comes_back_to_files_alone_keeps_no_zombies() {
    let mut world = World::empty();
    let relay = world.add_relay("origins: [{name: files, files: .}]\n", Vec::new());
    let core = world.relays[relay].core.clone();
    let files = |names: &[usize]| names.iter().map(|at| file(CLUSTERS, &member(*at), "1")).collect::<Vec<_>>();
    let all: Vec<_> = (0..900).collect();
    core.set_files(0, files(&all), world.now);
    let mut held = BTreeSet::new();
    come_and_go(&mut world, relay, &mut held);
    assert_eq!(held.len(), 900);
    for left in [3, 2, 1] {
        world.advance(600 * SECOND);
        core.set_files(0, files(&all[..left]), world.now);
        world.advance(600 * SECOND);
        come_and_go(&mut world, relay, &mut held);
        assert_eq!(held, all[..left].iter().map(|at| member(*at)).collect());
    }
}

#[test]
fn rule_100_who_comes_back_after_its_glob_was_given_up_upstream_keeps_no_zombies() {
    let mut world = World::of(&[DELTA], &[&["a"]], "linger: 1s");
    for at in 0..3 {
        world.put(0, CLUSTERS, &member(at), "1");
    }
    let mut held = BTreeSet::new();
    come_and_go(&mut world, 0, &mut held);
    world.advance(60 * SECOND);
    assert_eq!((world.scopes_of(0).len(), world.streams_of(0)), (0, 0));
    world.remove(0, CLUSTERS, &member(1));
    come_and_go(&mut world, 0, &mut held);
    assert_eq!(held, [0, 2].map(member).into());
}

/// What is remembered goes with time.
#[test]
fn a_scope_that_nobody_comes_back_to_is_forgotten() {
    let mut world = World::empty();
    let relay = world.add_relay("origins: [{name: files, files: .}]\n", Vec::new());
    let core = world.relays[relay].core.clone();
    core.set_files(0, vec![file(CLUSTERS, &member(0), "1")], world.now);
    let mut held = BTreeSet::new();
    come_and_go(&mut world, relay, &mut held);
    world.advance(600 * SECOND);
    assert_eq!(world.scopes_of(relay), ["xdstp://a"]);
    world.advance(3600 * SECOND);
    assert_eq!(world.scopes_of(relay), [""; 0]);
}

#[test]
fn of_too_many_scopes_that_nobody_uses_those_that_rested_longest_go() {
    let names: Vec<_> = (0..1030).map(|at| endpoints(&format!("a{at:04}"), "x")).collect();
    let mut world = World::empty();
    let limits = "limits: { authorities_per_stream: 1030 }";
    let relay = world.add_relay(&format!("origins: [{{name: files, files: .}}]\n{limits}\n"), Vec::new());
    world.relays[relay].core.set_files(0, names.iter().map(|name| file(ENDPOINTS, name, "1")).collect(), world.now);
    let (last, first) = names.split_at(5);
    for asked in [first, last] {
        let client = world.client_of(relay, DELTA, "n");
        world.subscribe(client, ENDPOINTS, &asked.iter().map(String::as_str).collect::<Vec<_>>());
        world.disconnect(client);
        world.advance(2 * SECOND);
    }
    let resting = world.scopes_of(relay);
    assert_eq!(resting.len(), 1024);
    assert!((0..5).all(|at| resting.contains(&format!("xdstp://a{at:04}"))), "{resting:?}");
}

/// Nothing is shown of a scope that only remembers what went; but it takes the place of another.
#[test]
fn what_is_remembered_of_what_went_is_forgotten_with_time() {
    let mut world = World::of(&[DELTA], &[&[]], "linger: 1s\nlimits: { authorities: 1 }");
    world.put(0, CLUSTERS, &member(0), "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &[GLOB]);
    world.remove(0, CLUSTERS, &member(0));
    world.disconnect(client);
    world.advance(3600 * SECOND);
    let core = world.relays[0].core.clone();
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
    let id = routes.open(&CLUSTERS.into());
    routes.subscribe(id, &Interest::Name(GLOB.replace("//a", "//b").parse().unwrap()));
    assert!(routes.refused().is_none());
}

/// The answer that was on its way as it was given up counted for the next one.
#[test]
fn rule_151_what_came_as_it_was_given_up_is_no_answer_to_who_asks_for_it_again() {
    let mut world = World::of(&[SOTW], &[&[]], "linger: 1ms");
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(SOTW, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    let other = world.client(DELTA, "n");
    world.subscribe(other, LISTENERS, &["*"]);
    world.advance(20 * SECOND);
    world.set_up(0, false);
    world.disconnect(client);
    world.put(0, CLUSTERS, "a", "2");
    world.advance(SECOND);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    world.connect(client, 0);
    world.advance(20 * SECOND);
    assert_eq!(world.clients[client].held(CLUSTERS), ["a@2"]);
}
