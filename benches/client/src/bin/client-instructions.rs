//! What a client costs by how many names it watches, beside tonic's `xds-client`; and what receiving costs beside a
//! decode by prost: fails where a goal is missed.
//!
//! `machine` is the client without I/O: a response in, its update accepted, the ACK out. `loopback` is a whole client
//! over HTTP/2, with an origin in the same thread that does no more than send and count: both ends are counted.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use client_bench::content::{name, response};
use client_bench::machine::Machine;
use client_bench::peers::{OursDelta, OursSotw, Pair, Peer, Tonic};
use client_bench::receiving::{Decoded, walk};
use instructions::{Counter, Goals, count};
use prost::Message;
use xds_transport::{Protocol, Response, TypeRules};

const FEW: usize = 10;
const MANY: usize = 3_000;
/// As many as the peer manages under valgrind in seconds.
const PEERS: usize = 300;
const UPDATES: usize = 5;

fn main() -> ExitCode {
    let counts = count(|counter| {
        machine(counter, "machine, delta", Protocol::Delta);
        machine(counter, "machine, SotW", Protocol::Sotw);
        loopback::<OursDelta>(counter, "loopback, delta", MANY);
        loopback::<OursSotw>(counter, "loopback, SotW", MANY);
        loopback::<Tonic>(counter, "loopback, xds-client", PEERS);
        receiving(counter);
    });
    counts.print();
    let mut goals = Goals::default();
    for (what, many) in [
        ("machine, delta: an update and its ACK", MANY),
        ("machine, SotW: an update", MANY),
        ("loopback, delta: an update and its ACK", MANY),
    ] {
        let ratio = counts.of(what, many) / counts.of(what, FEW);
        goals.at_most(&format!("{what}: W = {many} by W = {FEW}"), ratio, 1.3);
    }
    for (what, many) in [
        ("machine, SotW: an update and its ACK", MANY),
        ("loopback, SotW: an update and its ACK", MANY),
        ("loopback, xds-client: an update and its ACK", PEERS),
    ] {
        println!("{what}: W = {many} by W = {FEW}: {:.2}", counts.of(what, many) / counts.of(what, FEW));
    }
    subscribing(&mut goals);
    let decoded = counts.of("receiving 1000 resources: prost", 1_000);
    let walked = counts.of("receiving 1000 resources: walked", 1_000);
    goals.at_least("receiving: prost by a walk", decoded / walked, 3.0);
    let received = counts.of("receiving 1000 resources: received", 1_000);
    println!("receiving: prost by a walk with names parsed and bodies copied: {:.2}", decoded / received);
    goals.exit_code()
}

fn machine(counter: &mut Counter, what: &str, protocol: Protocol) {
    for names in [FEW, MANY] {
        let mut machine = Machine::new(protocol);
        counter.count(&format!("{what}: subscribing to a name"), names, names, || machine.subscribe(names));
        let all = response(protocol, 0..names, 1);
        let applied = counter.count(&format!("{what}: a resource of a response"), names, names, || machine.apply(all));
        assert_eq!(applied, names);
        machine.transmit();
        let updates: Vec<_> = (0..UPDATES as u64).map(|round| response(protocol, [0], round + 2)).collect();
        counter.count(&format!("{what}: an update and its ACK"), names, UPDATES, || {
            for update in updates {
                assert_eq!(machine.apply(update), 1);
                assert!(machine.transmit() > 0);
            }
        });
        let update = response(protocol, [0], 100);
        counter.count(&format!("{what}: an update"), names, 1, || machine.apply(update));
    }
}

fn loopback<P: Peer>(counter: &mut Counter, what: &str, many: usize) {
    for names in [FEW, many] {
        let mut pair = Pair::<P>::new(names);
        pair.update();
        counter.count(&format!("{what}: an update and its ACK"), names, UPDATES, || {
            for _ in 0..UPDATES {
                pair.update();
            }
        });
    }
}

/// Bytes of requests, outside of valgrind.
fn subscribing(goals: &mut Goals) {
    const MEGABYTE: f64 = 1e6;
    for (what, protocol) in [("delta", Protocol::Delta), ("SotW", Protocol::Sotw)] {
        let mut machine = Machine::new(protocol);
        let subscribed = machine.subscribe(MANY);
        machine.apply(response(protocol, 0..MANY, 1));
        let acknowledged = machine.transmit();
        let sent = (subscribed + acknowledged) as f64;
        goals.at_most(&format!("machine, {what}: MB sent for {MANY} names and an ACK"), sent / MEGABYTE, 1.0);
    }
    let bytes = |what: &str, subscribed: usize, settled: usize| {
        println!("loopback, {what}: {MANY} watches in a loop: {subscribed} bytes sent, {settled} with the first ACK");
        settled as f64 / MEGABYTE
    };
    let delta = Pair::<OursDelta>::new(MANY);
    let sent = bytes("delta", delta.subscribed_bytes, delta.settled_bytes);
    goals.at_most("loopback, delta: MB sent", sent, 1.0);
    let sotw = Pair::<OursSotw>::new(MANY);
    let sent = bytes("SotW", sotw.subscribed_bytes, sotw.settled_bytes);
    goals.at_most("loopback, SotW: MB sent", sent, 1.0);
    let tonic = Pair::<Tonic>::new(MANY);
    bytes("xds-client", tonic.subscribed_bytes, tonic.settled_bytes);
    for (what, few, many) in [
        ("delta", time(&mut Pair::<OursDelta>::new(FEW)), time(&mut { delta })),
        ("SotW", time(&mut Pair::<OursSotw>::new(FEW)), time(&mut { sotw })),
        ("xds-client", time(&mut Pair::<Tonic>::new(FEW)), time(&mut { tonic })),
    ] {
        println!("loopback, {what}: an update takes {few:?} at W = {FEW}, {many:?} at W = {MANY}");
    }
}

/// The shortest of some updates: to look at, not to rely on.
fn time<P: Peer>(pair: &mut Pair<P>) -> Duration {
    let update = |pair: &mut Pair<P>| {
        let start = Instant::now();
        pair.update();
        start.elapsed()
    };
    (0..20).map(|_| update(pair)).min().unwrap_or_default()
}

fn receiving(counter: &mut Counter) {
    let size = 1_000;
    let message = response(Protocol::Delta, 0..size, 1);
    let what = |how: &str| format!("receiving 1000 resources: {how}");
    let decoded = counter.count(&what("prost"), size, 1, || Decoded::decode(message.clone()).unwrap());
    assert_eq!(decoded.resources[7].name, name(7));
    let walked = counter.count(&what("walked"), size, 1, || walk(message.clone()));
    assert_eq!(walked, size);
    let received = counter.count(&what("received"), size, 1, || Response::from_delta(message.clone()).unwrap());
    assert_eq!(received.resources.len(), size);
    let sotw = response(Protocol::Sotw, 0..size, 1);
    let rules = TypeRules::envoy();
    let received = counter.count(&what("received, SotW"), size, 1, || Response::from_sotw(sotw, &rules).unwrap());
    assert_eq!(received.resources.len(), size);
}
