//! What is counted (gRFC A78, rules 76–78): S77 to S84.

use std::sync::{Arc, Mutex};

use super::*;
use crate::Metrics;

#[derive(Default)]
struct Counted(Mutex<Vec<String>>);

impl Metrics for Counted {
    fn connected(&self, server: &str, is: Option<bool>) {
        let is = is.map_or("left", |is| if is { "connected" } else { "lost" });
        self.0.lock().unwrap().push(format!("{server} {is}"));
    }

    fn server_failure(&self, server: &str) {
        self.0.lock().unwrap().push(format!("{server} failed"));
    }

    fn resource_updates(&self, server: &str, type_url: &str, valid: u64, invalid: u64) {
        let message = type_url.rsplit('.').next().unwrap();
        if valid + invalid > 0 {
            self.0.lock().unwrap().push(format!("{server} {message} +{valid} -{invalid}"));
        }
    }
}

impl Counted {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn world() -> (World, Arc<Counted>) {
    let counted = Arc::<Counted>::default();
    let network = Network::new(now());
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure)).with_authority("a", Authority::default());
    let client = Client::builder(bootstrap).transport(network.clone()).metrics(counted.clone()).build().unwrap();
    (World { network, client }, counted)
}

fn counts(world: &World) -> Vec<String> {
    let words = |count: crate::ResourceCount| format!("{} {} {}", count.authority, count.state, count.count);
    world.client.resource_counts().into_iter().map(words).collect()
}

#[test]
fn s077_each_resource_that_comes_is_of_use_or_not() {
    let (world, counted) = world();
    for name in ["x", "y"] {
        world.put(CDS, name, "1");
    }
    let _watches = [world.watch("x"), world.watch("y")];
    assert_eq!(counted.take(), ["top:1 connected", "top:1 Cluster +1 -0", "top:1 Cluster +1 -0"]);
    world.put(CDS, "x", "bad");
    assert_eq!(counted.take(), ["top:1 Cluster +0 -1"]);
}

#[test]
fn s078_and_s079_a_server_fails_once_and_not_after_it_answered() {
    let (world, counted) = world();
    world.top().go_down("away");
    let _watch = world.watch("x");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(counted.take(), ["top:1 lost", "top:1 failed"], "however often it is tried");
    world.top().come_up();
    world.put(CDS, "x", "1");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(counted.take(), ["top:1 connected", "top:1 Cluster +1 -0"]);
    world.top().end_streams();
    world.network.pass(Duration::from_secs(2));
    assert!(!counted.take().iter().any(|told| told.ends_with("failed") || told.ends_with("lost")));
}

#[test]
fn s080_and_s081_a_stream_that_is_not_answered_does_not_make_a_failed_server_good() {
    let (world, counted) = world();
    world.top().be_silent(true);
    let watch = world.watch("x");
    assert_eq!(counted.take(), ["top:1 connected"], "a stream is enough at first");
    world.top().end_streams();
    world.network.settle();
    assert_eq!(counted.take(), ["top:1 lost", "top:1 failed"]);
    world.network.pass(Duration::from_secs(200));
    assert!(counted.take().is_empty(), "there is a stream again, and no answer");
    drop(watch);
    // The first look sees that nobody is left, and the second that nobody came.
    for _ in 0..2 {
        world.client.sweep(world.network.now());
        world.network.pass(Duration::from_secs(60));
    }
    world.network.settle();
    assert_eq!(counted.take(), ["top:1 left"]);
}

/// Each set of parameters has a stream of its own.
#[test]
fn s079_a_server_of_several_streams_is_connected_while_one_of_them_is_and_fails_once() {
    let (world, counted) = world();
    world.put(CDS, "x", "1");
    let plain = world.watch("x");
    let selecting = world.client.selecting([("env", "prod")]).watch(CDS, "x");
    world.network.settle();
    assert_eq!(world.top().streams(), 2);
    let connected = |told: &[String]| told.iter().filter(|told| !told.contains('+')).cloned().collect::<Vec<_>>();
    assert_eq!(connected(&counted.take()), ["top:1 connected"]);
    drop(selecting);
    let sweep = || {
        for _ in 0..2 {
            world.client.sweep(world.network.now());
            world.network.pass(Duration::from_secs(200));
        }
    };
    sweep();
    assert_eq!((world.top().streams(), connected(&counted.take())), (1, vec![]), "one is left");
    let selecting = world.client.selecting([("env", "prod")]).watch(CDS, "x");
    world.network.settle();
    world.top().go_down("away");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(connected(&counted.take()), ["top:1 lost", "top:1 failed"]);
    // A stream more that is not answered does not make it good.
    world.top().be_silent(true);
    world.top().come_up();
    let another = world.client.selecting([("env", "test")]).watch(CDS, "x");
    world.network.settle();
    world.top().end_streams();
    world.network.pass(Duration::from_secs(200));
    assert_eq!(connected(&counted.take()), [""; 0]);
    drop((plain, selecting, another));
    sweep();
    assert_eq!(connected(&counted.take()), ["top:1 left"]);
}

#[test]
fn s082_to_s084_resources_are_counted_by_authority_and_state() {
    let (world, _) = world();
    let of_a = xdstp("a", CDS, "x");
    world.put(CDS, "x", "1");
    world.put(CDS, &of_a, "1");
    let names = ["x", &of_a, "bad", "none"];
    let _watches = names.map(|name| world.watch(name));
    world.put(CDS, "bad", "bad");
    world.put(CDS, &of_a, "bad");
    assert_eq!(counts(&world), ["#old acked 1", "#old does_not_exist 1", "#old nacked 1", "a nacked_but_cached 1"]);
    world.top().fail(CDS, &of_a, 14, "busy");
    world.top().fail(CDS, "none", 7, "secret");
    world.top().be_silent(false);
    world.network.settle();
    assert_eq!(
        counts(&world),
        ["#old acked 1", "#old nacked 1", "#old received_error 1", "a received_error_but_cached 1"]
    );
}
