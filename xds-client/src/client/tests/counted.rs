//! Resources are counted as they come, whatever of them is news (rule 77), and as they stand (rule 78).

use std::sync::{Arc, Mutex};

use super::wire::{Read, bare, body, wrapper};
use super::*;
use crate::Metrics;

/// How many resources were of use, and how many were not, of each response.
#[derive(Default)]
struct Counted(Mutex<Vec<(u64, u64)>>);

impl Metrics for Counted {
    fn resource_updates(&self, _: &str, _: &str, valid: u64, invalid: u64) {
        self.0.lock().unwrap().push((valid, invalid));
    }
}

impl Counted {
    fn take(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn world(protocol: Protocol, features: Features) -> (World, Arc<Counted>) {
    let counted = Arc::<Counted>::default();
    let network = Network::speaking(protocol, now());
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure).with_features(features));
    let builder = Client::builder(bootstrap).protocol(protocol).transport(network.clone());
    let client = builder.metrics(counted.clone()).build().unwrap();
    (World { network, client }, counted)
}

#[test]
fn s077_what_comes_as_it_is_held_is_counted_beside_what_is_new() {
    fn scenario<const TYPE: usize>(protocol: Protocol, wraps: bool) {
        let type_url = TYPES[TYPE];
        let (world, counted) = world(protocol, KEEPS);
        world.top().be_silent(true);
        let _watches = ["x", "y", "z"].map(|name| world.client.watch_as::<Read<TYPE>>(name));
        world.network.settle();
        counted.take();
        let came = |response: &str, resources: &[(&str, &str)]| {
            let bodies = resources.iter().map(|(name, version)| (*name, *version, body(type_url, name, version)));
            let sent = if wraps {
                let resources: Vec<_> = bodies.map(|(name, version, body)| wrapper(name, version, body)).collect();
                wire::response(protocol, type_url, (response, response), &resources)
            } else {
                bare(type_url, (response, response), bodies.map(|(.., body)| body).collect())
            };
            world.top().send(&sent);
            world.network.settle();
            counted.take()
        };
        let what = format!("{protocol:?} {type_url} {wraps}");
        assert_eq!(came("1", &[("x", "1"), ("y", "1")]), [(2, 0)], "{what}");
        assert_eq!(came("2", &[("x", "1"), ("y", "2")]), [(2, 0)], "{what}");
        assert_eq!(came("3", &[("x", "1"), ("y", "2")]), [(2, 0)], "{what}: nothing is new");
        assert_eq!(came("3", &[("x", "1"), ("y", "2")]), [(2, 0)], "{what}: nor is the version");
        assert_eq!(came("4", &[("x", "1"), ("y", "bad")]), [(1, 1)], "{what}");
        assert_eq!(came("5", &[("x", "1"), ("y", "bad")]), [(1, 1)], "{what}: again");
        assert_eq!(came("6", &[("x", "1"), ("other", "1")]), [(1, 0)], "{what}: nobody asked for the other");
        assert_eq!(came("7", &[("x", "1"), ("y", "3"), ("z", "1")]), [(3, 0)], "{what}");
    }
    for (protocol, wraps) in [(Protocol::Delta, true), (Protocol::Sotw, true), (Protocol::Sotw, false)] {
        scenario::<0>(protocol, wraps);
        scenario::<1>(protocol, wraps);
        scenario::<2>(protocol, wraps);
        scenario::<3>(protocol, wraps);
    }
}

#[test]
fn s083_what_was_never_answered_and_what_is_gone_are_counted_by_their_states() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let (world, _) = world(protocol, WAITS);
        let counts = || -> Vec<String> {
            let counts = world.client.resource_counts().into_iter();
            counts.map(|count| format!("{} {} {}", count.authority, count.state, count.count)).collect()
        };
        for name in ["stays", "goes"] {
            world.put(CDS, name, "1");
        }
        let _watches = ["stays", "goes"].map(|name| world.watch(name));
        world.top().remove(CDS, "goes");
        world.network.settle();
        assert_eq!(counts(), ["#old acked 1", "#old does_not_exist_but_cached 1"], "{protocol:?}");
        world.top().be_silent(true);
        let _silent = ["one", "two"].map(|name| world.watch(name));
        let requested = ["#old acked 1", "#old does_not_exist_but_cached 1", "#old requested 2"];
        assert_eq!(counts(), requested, "{protocol:?}");
        world.network.pass(PATIENCE * 2);
        let timed_out = ["#old acked 1", "#old does_not_exist_but_cached 1", "#old timeout 2"];
        assert_eq!(counts(), timed_out, "{protocol:?}");
    }
}
