//! What watches cost: a count of bytes and of allocations, which are the same on every machine.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and has a clock"
)]

use std::time::Instant;

use allocation_counter::measure;
use xdstp_client::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
use xdstp_client::test::Network;
use xdstp_client::{Client, Event, Watch};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

struct World {
    network: Network,
    client: Client,
    watches: Vec<Watch>,
}

fn name(number: usize) -> String {
    format!("xdstp:///envoy.config.cluster.v3.Cluster/some/path/{number:06}")
}

impl World {
    fn new() -> Self {
        Self::of(Authority::default())
    }

    fn of(authority: Authority) -> Self {
        let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
        let bootstrap = bootstrap.with_authority("", authority);
        let network = Network::new(Instant::now());
        let client = Client::builder(bootstrap).transport(network.clone()).build().unwrap();
        Self { network, client, watches: Vec::new() }
    }

    fn open(&mut self, count: usize) {
        self.watches.extend((0..count).map(|number| self.client.watch(CLUSTERS, &name(number))));
    }

    fn put(&mut self, number: usize, version: &str) {
        let name = name(number);
        let message = [&[0x0a, u8::try_from(name.len()).unwrap()][..], name.as_bytes()].concat();
        self.network.server("xds:1").put(CLUSTERS, &name, version, &message);
    }

    /// How many allocations an update takes, from the server to a watch.
    fn update(&mut self, number: usize, version: &str) -> u64 {
        self.put(number, version);
        let count = measure(|| self.network.settle()).count_total;
        assert!(matches!(self.watches[number].try_next(), Some(Event::Put { .. })));
        count
    }
}

#[test]
fn a_watch_costs_less_than_a_kilobyte_with_its_name_and_one_among_many_no_more() {
    let mut each = Vec::new();
    for count in [10_000, 100_000] {
        let mut world = World::new();
        let opened = measure(|| world.open(count));
        each.push((opened.bytes_current as usize / count, opened.count_total as usize / count));
        println!("{count} watches: {:?} bytes and allocations each", each.last().unwrap());
    }
    for (bytes, allocations) in each {
        assert!(bytes <= 1024, "{bytes}");
        assert!(allocations <= 20, "{allocations}");
    }
}

#[test]
fn a_watch_with_parameters_costs_no_more_and_by_dpds_a_kilobyte() {
    const COUNT: usize = 10_000;
    let dpds = "xdstp:///envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap/d";
    let mut opened_and_looked_at = Vec::new();
    for by_dpds in [false, true] {
        let own = Authority::default().with_parameter("env", "prod");
        let own = if by_dpds { own.with_dpds(dpds.parse().unwrap()) } else { own };
        let mut world = World::of(own);
        let opened = measure(|| world.open(COUNT)).bytes_current as usize / COUNT;
        world.network.settle();
        // By DPDS, which is not there, it is asked for as it hears of that.
        let looked = measure(|| world.watches.iter_mut().for_each(|watch| _ = watch.try_next()));
        let looked = looked.bytes_current as usize / COUNT;
        println!("by DPDS {by_dpds}: {opened} bytes each, and {looked} as it is looked at");
        opened_and_looked_at.push((opened, opened + looked));
    }
    let [(opened, looked_at), (_, by_dpds)] = opened_and_looked_at[..] else { panic!("two") };
    assert!(opened <= 1024, "{opened}");
    assert!(by_dpds - looked_at <= 1024, "{by_dpds}, and {looked_at} without");
}

#[test]
fn an_update_costs_among_many_watches_what_it_costs_among_few() {
    let cost = |count| {
        let mut world = World::new();
        world.open(count);
        world.network.settle();
        for watch in &mut world.watches {
            while watch.try_next().is_some() {}
        }
        world.update(7, "1");
        let cost = world.update(7, "2");
        println!("{count} watches: {cost} allocations for an update");
        cost
    };
    assert_eq!(cost(10), cost(100_000));
}

#[test]
fn what_many_watches_leave_when_they_are_dropped_is_given_back() {
    let mut world = World::new();
    world.open(10_000);
    world.network.settle();
    let before = measure(|| {
        world.watches.clear();
        world.network.settle();
        world.network.server("xds:1").take_asked();
    });
    assert!(before.bytes_current < -500_000, "{}", before.bytes_current);
}
