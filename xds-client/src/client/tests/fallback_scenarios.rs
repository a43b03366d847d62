//! Servers that go and come back while a program starts, or is told something new: S66 to S70, each with the names that a gRPC
//! client needs one after the other.

use super::fallback::{SERVERS, several, told};
use super::*;

/// Longer than any wait between two attempts.
const LONG: Duration = Duration::from_secs(200);

struct Servers(World);

impl Servers {
    fn new(protocol: Protocol, servers: usize) -> Self {
        Self(several(protocol, &vec![KEEPS; servers]))
    }

    fn at(&self, server: usize) -> crate::test::Server {
        self.0.network.server(SERVERS[server])
    }

    /// A server has these, of which each says where it is from.
    fn have(&self, server: usize, names: &[&str]) {
        for name in names {
            let content = format!("of {server}");
            self.at(server).put(CDS, name, &format!("1 of {server}"), &message(name, &content));
        }
        self.0.network.settle();
    }

    fn streams(&self) -> Vec<usize> {
        (0..SERVERS.len()).map(|server| self.at(server).streams()).collect()
    }

    fn pass(&self) {
        self.0.network.pass(LONG);
    }
}

fn both(scenario: impl Fn(Protocol)) {
    [Protocol::Delta, Protocol::Sotw].into_iter().for_each(scenario);
}

#[test]
fn s066_and_s069_who_starts_with_the_first_away_is_served_by_the_second_until_that_is_back() {
    both(|protocol| {
        let servers = Servers::new(protocol, 2);
        servers.at(0).go_down("away");
        servers.have(1, &["listener", "cluster"]);
        let mut watches = ["listener", "cluster"].map(|name| servers.0.watch(name));
        assert_eq!(watches.each_mut().map(told), [["put listener of 1"], ["put cluster of 1"]], "{protocol:?}");
        assert_eq!(servers.streams(), [0, 1, 0]);
        servers.have(0, &["listener", "cluster"]);
        servers.at(0).come_up();
        servers.pass();
        assert_eq!(watches.each_mut().map(told), [["put listener of 0"], ["put cluster of 0"]], "{protocol:?}");
        assert_eq!(servers.streams(), [1, 0, 0], "{protocol:?}: the second is let go");
        // All is known: nobody falls back for a server that goes.
        servers.at(0).go_down("again");
        servers.pass();
        assert_eq!((servers.streams(), servers.at(1).opened()), (vec![0; 3], 1), "{protocol:?}");
    });
}

#[test]
fn s067_one_that_dies_in_the_middle_of_an_update_leaves_the_rest_to_the_second() {
    both(|protocol| {
        let servers = Servers::new(protocol, 2);
        servers.have(0, &["listener", "route"]);
        servers.have(1, &["listener", "route", "new"]);
        let mut watches = ["listener", "route"].map(|name| servers.0.watch(name));
        assert_eq!(watches.each_mut().map(told), [["put listener of 0"], ["put route of 0"]]);
        // The new route names a cluster, and that is not sent any more.
        servers.at(0).put(CDS, "route", "2 of 0", &message("route", "with new"));
        servers.0.network.settle();
        assert_eq!(told(&mut watches[1]), ["put route with new"]);
        servers.at(0).go_down("killed");
        let mut new = servers.0.watch("new");
        servers.pass();
        assert_eq!(told(&mut new), ["put new of 1"], "{protocol:?}");
        assert_eq!(told(&mut watches[1]), ["put route of 1"], "{protocol:?}: it has all of it");
        assert_eq!(servers.streams(), [0, 1, 0]);
    });
}

#[test]
fn s068_one_that_dies_while_a_program_starts_leaves_the_rest_to_the_second() {
    both(|protocol| {
        let servers = Servers::new(protocol, 2);
        servers.have(0, &["listener"]);
        servers.have(1, &["listener", "cluster"]);
        let mut listener = servers.0.watch("listener");
        assert_eq!(told(&mut listener), ["put listener of 0"]);
        servers.at(0).go_down("killed");
        let mut cluster = servers.0.watch("cluster");
        servers.pass();
        assert_eq!(told(&mut cluster), ["put cluster of 1"], "{protocol:?}");
        assert_eq!(told(&mut listener), ["put listener of 1"], "{protocol:?}");
        assert_eq!(servers.streams(), [0, 1, 0]);
    });
}

#[test]
fn s070_of_three_servers_the_highest_that_answers_serves_and_those_below_it_are_let_go() {
    both(|protocol| {
        let servers = Servers::new(protocol, 3);
        (0..2).for_each(|server| servers.at(server).go_down("away"));
        (0..3).for_each(|server| servers.have(server, &["x"]));
        let mut watch = servers.0.watch("x");
        assert_eq!(
            (told(&mut watch), servers.streams()),
            (vec!["put x of 2".to_owned()], vec![0, 0, 1]),
            "{protocol:?}"
        );
        for (server, streams) in [(1, [0, 1, 0]), (0, [1, 0, 0])] {
            servers.at(server).come_up();
            servers.pass();
            assert_eq!(told(&mut watch), [format!("put x of {server}")], "{protocol:?}");
            assert_eq!(servers.streams(), streams, "{protocol:?}");
        }
    });
}
