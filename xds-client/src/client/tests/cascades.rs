//! Servers that fail while one resource leads to another (gRFC A71): S59 and S66 to S70.

use super::fallback::{SERVERS, several};
use super::wire::requests;
use super::*;

/// Longer than any wait between two attempts.
const LONG: Duration = Duration::from_secs(200);

fn of_two(scenario: impl Fn(&Cascade)) {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        scenario(&Cascade { world: several(protocol, &[KEEPS; 2]), protocol });
    }
}

/// Servers that have a listener, a route, a cluster and endpoints.
struct Cascade {
    world: World,
    protocol: Protocol,
}

impl Cascade {
    fn at(&self, server: usize) -> crate::test::Server {
        self.world.network.server(SERVERS[server])
    }

    fn put(&self, server: usize, type_url: &str, name: &str, version: &str) {
        self.at(server).put(type_url, name, version, &message(name, version));
        self.world.network.settle();
    }

    /// All four, under this name.
    fn put_all(&self, server: usize, name: &str, version: &str) {
        TYPES.iter().for_each(|type_url| self.put(server, type_url, name, version));
    }

    fn streams(&self) -> [usize; 3] {
        [0, 1, 2].map(|server| self.at(server).streams())
    }

    /// What a server was asked for by name: types and names, without those of acknowledgements over SotW.
    fn asked(&self, server: usize) -> Vec<(String, String)> {
        let requests = requests(&self.at(server), self.protocol);
        if let Some(first) = requests.first() {
            assert_eq!(
                first.node.as_ref().map(|node| node.id.as_str()),
                Some(""),
                "the first of a stream names the node"
            );
        }
        let short = |type_url: &str| type_url.rsplit('.').next().unwrap().to_owned();
        let mut asked: Vec<_> = requests
            .iter()
            .flat_map(|request| request.names.iter().map(|name| (short(&request.type_url), name.clone())))
            .collect();
        asked.sort();
        asked.dedup();
        asked
    }

    fn watch(&self, type_url: &str, name: &str) -> Watch {
        self.world.watch_raw(type_url, name)
    }

    fn pass(&self) {
        self.world.network.pass(LONG);
    }
}

fn asked(of: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut asked: Vec<_> = of.iter().map(|(of, name)| ((*of).to_owned(), (*name).to_owned())).collect();
    asked.sort();
    asked
}

const FOUR: [&str; 4] = ["Listener", "RouteConfiguration", "Cluster", "ClusterLoadAssignment"];

#[test]
fn s059_an_authority_whose_first_server_is_away_has_its_second_asked_and_nobody_hears_before_all_failed() {
    of_two(|of| {
        let name = xdstp("a", CDS, "x");
        of.at(0).go_down("first away");
        of.put(1, CDS, &name, "1");
        let mut watch = of.watch(CDS, &name);
        assert_eq!(heard(&mut watch), [format!("put {name} 1")], "{:?}", of.protocol);
        assert_eq!((of.streams(), of.asked(0), of.asked(1)), ([0, 1, 0], asked(&[]), asked(&[("Cluster", &name)])));

        let silent = xdstp("b", CDS, "x");
        of.at(1).go_down("second away");
        let mut watch = of.watch(CDS, &silent);
        of.pass();
        assert_eq!(
            heard(&mut watch),
            ["failed all: unreachable (first away)"],
            "{:?}: the last of its list",
            of.protocol
        );
    });
}

#[test]
fn s066_at_the_start_the_second_stands_in_until_the_first_is_back_and_not_where_all_is_held() {
    of_two(|of| {
        of.at(0).go_down("away");
        of.put(0, CDS, "x", "first");
        of.put(1, CDS, "x", "second");
        let mut watch = of.watch(CDS, "x");
        assert_eq!(heard(&mut watch), ["put x second"], "{:?}", of.protocol);
        assert_eq!((of.asked(0), of.asked(1)), (asked(&[]), asked(&[("Cluster", "x")])));

        of.at(0).come_up();
        of.pass();
        assert_eq!(heard(&mut watch), ["put x first"], "{:?}", of.protocol);
        assert_eq!((of.streams(), of.asked(0)), ([1, 0, 0], asked(&[("Cluster", "x")])), "the second was closed");

        let opened = of.at(1).opened();
        of.at(0).go_down("away again");
        of.pass();
        assert_eq!(heard(&mut watch), ["ambient all: unreachable (away again)"], "{:?}", of.protocol);
        assert_eq!((of.at(1).opened(), of.asked(1)), (opened, asked(&[])), "all that is watched is held");
    });
}

#[test]
fn s067_of_a_first_that_fails_in_an_update_the_second_has_the_rest() {
    of_two(|of| {
        of.put_all(0, "x", "1");
        of.put_all(1, "x", "1");
        of.put_all(1, "y", "2");
        let mut four = TYPES.map(|type_url| of.watch(type_url, "x"));
        four.iter_mut().for_each(|watch| assert_eq!(heard(watch), ["put x 1"]));

        // The route leads to another cluster, whose server is away before it has told its endpoints.
        of.put(0, RDS, "x", "2");
        of.put(0, CDS, "y", "2");
        assert_eq!(heard(&mut four[1]), ["put x 2"]);
        let mut cluster = of.watch(CDS, "y");
        assert_eq!(heard(&mut cluster), ["put y 2"]);
        of.at(0).be_silent(true);
        let mut endpoints = of.watch(EDS, "y");
        of.at(0).go_down("away");
        of.pass();
        assert_eq!(heard(&mut endpoints), ["put y 2"], "{:?}", of.protocol);
        let wanted =
            [FOUR.map(|of| (of, "x")).to_vec(), vec![("Cluster", "y"), ("ClusterLoadAssignment", "y")]].concat();
        assert_eq!((of.streams(), of.asked(1)), ([0, 1, 0], asked(&wanted)), "it is asked for all");
        for watch in four.iter_mut().chain([&mut cluster]) {
            let told = heard(watch);
            assert!(told.iter().all(|told| told.starts_with("put")), "{:?} {told:?}", of.protocol);
        }
    });
}

#[test]
fn s068_of_a_first_that_fails_between_a_listener_and_a_cluster_the_second_has_the_rest() {
    of_two(|of| {
        of.put(0, LDS, "x", "1");
        of.put_all(1, "x", "1");
        let mut listener = of.watch(LDS, "x");
        assert_eq!(heard(&mut listener), ["put x 1"]);
        of.at(0).be_silent(true);
        let mut cluster = of.watch(CDS, "x");
        assert_eq!((heard(&mut cluster).len(), of.at(1).opened()), (0, 0));
        of.at(0).go_down("away");
        of.pass();
        assert_eq!(heard(&mut cluster), ["put x 1"], "{:?}", of.protocol);
        assert!(heard(&mut listener).is_empty(), "{:?}: it is as it was", of.protocol);
        let wanted = asked(&[("Cluster", "x"), ("Listener", "x")]);
        assert_eq!((of.streams(), of.asked(1)), ([0, 1, 0], wanted), "{:?}", of.protocol);
    });
}

#[test]
fn s069_all_that_one_resource_leads_to_comes_of_the_second_and_then_of_the_first() {
    of_two(|of| {
        of.at(0).go_down("away");
        of.put_all(1, "x", "second");
        of.put_all(0, "x", "first");
        // Each is asked for because of the one before it.
        let mut four = TYPES.map(|type_url| {
            let mut watch = of.watch(type_url, "x");
            assert_eq!(heard(&mut watch), ["put x second"], "{:?} {type_url}", of.protocol);
            watch
        });
        assert_eq!((of.asked(1), of.at(1).opened()), (asked(&FOUR.map(|of| (of, "x"))), 1));
        of.at(0).come_up();
        of.pass();
        for watch in &mut four {
            assert_eq!(heard(watch), ["put x first"], "{:?}", of.protocol);
        }
        assert_eq!((of.streams(), of.asked(0)), ([1, 0, 0], asked(&FOUR.map(|of| (of, "x")))), "{:?}", of.protocol);
    });
}

#[test]
fn s070_of_three_the_last_is_left_for_the_second_and_that_for_the_first() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let of = Cascade { world: several(protocol, &[KEEPS; 3]), protocol };
        (0..3).for_each(|server| of.put(server, CDS, "x", &format!("of {server}")));
        [0, 1].iter().for_each(|server| of.at(*server).go_down("away"));
        let mut watch = of.watch(CDS, "x");
        assert_eq!((heard(&mut watch), of.streams()), (vec!["put x of 2".to_owned()], [0, 0, 1]), "{protocol:?}");
        for (server, streams) in [(1, [0, 1, 0]), (0, [1, 0, 0])] {
            of.at(server).come_up();
            of.pass();
            assert_eq!(heard(&mut watch), [format!("put x of {server}")], "{protocol:?}");
            assert_eq!((of.streams(), of.asked(server)), (streams, asked(&[("Cluster", "x")])), "{protocol:?}");
        }
        assert_eq!([0, 1, 2].map(|server| of.at(server).opened()), [1; 3], "each was asked once");
        // What a server says that was left is nothing to who watches.
        of.put(2, CDS, "x", "late");
        assert!(heard(&mut watch).is_empty(), "{protocol:?}");
    }
}
