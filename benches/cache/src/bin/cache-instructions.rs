//! Instructions per update, and how they grow: fails where a goal is missed. `--large` adds sizes that take minutes.
//!
//! Counted is all from the call that changes a resource until every interested subscriber has it: the look-up, the mark,
//! the waker's wake, the runtime's scheduling of the task, `has_work` and `pull`; and for `served` also the response,
//! built and copied into the one buffer that HTTP/2 is given. Not counted is what came before (the resource with its
//! digest) and what comes after (the ACK, which has lines of its own).

use std::process::ExitCode;
use std::time::Instant;

use bytes::Bytes;
use cache_bench::floor::Floor;
use cache_bench::nebucloud::Snapshots;
use cache_bench::ours::{self, Cached, Served};
use cache_bench::sotw::Sotw;
use cache_bench::{Peer, TYPE_URL, Workload};
use instructions::{Counter, Counts, Goals, count};
use prost::Message;
use xds_transport::Protocol;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::wire::walk::Fields;

/// Those interested in an update of one of N.
const FEW: usize = 10;
const MANY: usize = 100;

fn main() -> ExitCode {
    let large = std::env::args().any(|argument| argument == "--large");
    let counts = count(|counter| {
        resources(counter, large);
        watchers(counter, large);
        bystanders(counter, large);
        acknowledgements(counter);
        reconnects(counter);
        state_of_the_world(counter, large);
    });
    counts.print();
    let mut goals = Goals::default();
    judge(&counts, &mut goals);
    goals.exit_code()
}

fn judge(counts: &Counts, goals: &mut Goals) {
    for workload in ["wildcard", "glob", "exact"] {
        let each = counts.of(&format!("cached, {workload}, each subscriber"), MANY);
        goals.at_most(&format!("cached, {workload}: instructions for each of W = {MANY}"), each, 1200.0);
        for how in ["cached", "served"] {
            let what = format!("{how}, {workload}, by N");
            goals.at_most(&format!("{how}, {workload}: slope in N"), counts.slope(&what), 0.1);
        }
    }
    for what in [
        "served, glob, each subscriber, by W",
        "served, spread, by C",
        "served, exact, by S",
        "served, globs, by G",
        "ACK of one, by names subscribed",
        "reconnect with 100 names, by N",
        "SotW, an update and its response, by names subscribed",
    ] {
        goals.at_most(&format!("{what}: slope"), counts.slope(what), 0.1);
    }
    for what in ["ACK, by names in the response", "reconnect, by names", "reconnect, by names of a glob"] {
        goals.at_most(&format!("{what}: slope"), counts.slope(what), 1.05);
    }
    let times = |how: &str| {
        let ours = counts.of(&format!("{how}, wildcard, W = 100, by N"), 10_000);
        counts.of("nebucloud, wildcard, W = 100, by N", 10_000) / ours
    };
    // A watch there has the new snapshot, and no response yet.
    goals.at_least("cached: times fewer than nebucloud, N = 10 000, W = 100", times("cached"), 50.0);
    println!("served, its responses built: times fewer than that: {:.1}", times("served"));
}

/// The instructions of one update; the first are left out, because buffers grow then.
fn update<P: Peer>(counter: &mut Counter, what: &str, size: usize, each: usize, peer: &mut P) {
    for _ in 0..2 {
        peer.prepare();
        peer.publish();
        peer.settle();
    }
    peer.prepare();
    counter.count(what, size, each, || peer.publish());
    peer.settle();
}

/// N, with W = 10; and with W = 100 beside nebucloud.
fn resources(counter: &mut Counter, large: bool) {
    let sizes: &[usize] = if large { &[1_000, 10_000, 100_000] } else { &[1_000, 10_000] };
    for (text, workload) in [("wildcard", Workload::Wildcard), ("glob", Workload::Glob), ("exact", Workload::Exact(1))]
    {
        for size in sizes.iter().copied() {
            let label = |peer: &str| format!("{peer}, {text}, by N");
            update(counter, &label("cached"), size, 1, &mut Cached::new(workload, size, FEW));
            update(counter, &label("served"), size, 1, &mut Served::new(workload, size, FEW));
            update(counter, &label("floor"), size, 1, &mut Floor::new(workload, size, FEW));
        }
    }
    let sizes: &[usize] = if large { &[1_000, 10_000, 100_000] } else { &[10_000] };
    for size in sizes.iter().copied() {
        let label = |peer: &str| format!("{peer}, wildcard, W = 100, by N");
        update(counter, &label("cached"), size, 1, &mut Cached::new(Workload::Wildcard, size, MANY));
        update(counter, &label("served"), size, 1, &mut Served::new(Workload::Wildcard, size, MANY));
        update(counter, &label("floor"), size, 1, &mut Floor::new(Workload::Wildcard, size, MANY));
        update(counter, &label("nebucloud"), size, 1, &mut Snapshots::new(Workload::Wildcard, size, MANY));
    }
}

/// W, interested all of them.
fn watchers(counter: &mut Counter, large: bool) {
    for (text, workload) in [("wildcard", Workload::Wildcard), ("glob", Workload::Glob), ("exact", Workload::Exact(1))]
    {
        let label = |peer: &str| format!("{peer}, {text}, each subscriber");
        update(counter, &label("cached"), MANY, MANY, &mut Cached::new(workload, 10, MANY));
        update(counter, &label("served"), MANY, MANY, &mut Served::new(workload, 10, MANY));
        update(counter, &label("floor"), MANY, MANY, &mut Floor::new(workload, 10, MANY));
    }
    let sizes: &[usize] = if large { &[100, 1_000, 10_000] } else { &[100, 1_000] };
    for size in sizes.iter().copied() {
        let what = "served, glob, each subscriber, by W";
        update(counter, what, size, size, &mut Served::new(Workload::Glob, 10, size));
        let what = "floor, glob, each subscriber, by W";
        update(counter, what, size, size, &mut Floor::new(Workload::Glob, 10, size));
    }
}

/// Clients, names and globs that have nothing to do with the update but that they are there.
fn bystanders(counter: &mut Counter, large: bool) {
    let sizes: &[usize] = if large { &[100, 1_000, 10_000] } else { &[100, 1_000] };
    for size in sizes.iter().copied() {
        let workload = Workload::Spread(10);
        update(counter, "served, spread, by C", size, 1, &mut Served::new(workload, size * 10, size));
        update(counter, "floor, spread, by C", size, 1, &mut Floor::new(workload, size * 10, size));
        update(counter, "served, globs, by G", size, 1, &mut Served::new(Workload::Globs, size, size));
        update(counter, "floor, globs, by G", size, 1, &mut Floor::new(Workload::Globs, size, size));
    }
    for size in [10, 100, 1_000] {
        let workload = Workload::Exact(size);
        update(counter, "served, exact, by S", size, 1, &mut Served::new(workload, 1_000, 10));
        update(counter, "floor, exact, by S", size, 1, &mut Floor::new(workload, 1_000, 10));
    }
}

/// An ACK, after a response with that many names; and of one name, where that many are subscribed.
fn acknowledgements(counter: &mut Counter) {
    for size in [1, 10, 100, 250] {
        let workload = Workload::Exact(size);
        let mut cache = ours::cache(workload, size);
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        let first = first_request(workload.asks(0, size), Vec::new());
        stream.handle_message(Instant::now(), first, &mut cache).unwrap();
        let response = stream.poll_transmit(Instant::now(), &mut cache).unwrap().unwrap();
        assert_eq!(response.resources as usize, size);
        acknowledge(counter, "ACK, by names in the response", size, &mut stream, &mut cache);
    }
    for size in [10, 100, 1_000] {
        let workload = Workload::Exact(size);
        let mut cache = ours::cache(workload, size);
        let mut stream = ours::stream(workload.asks(0, size), &mut cache);
        let name = workload.name(0).parse().unwrap();
        let mut edit = cache.edit(Instant::now());
        edit.put(&TYPE_URL.into(), &name, ours::resource(1));
        let _ = edit.finish();
        assert!(stream.poll_transmit(Instant::now(), &mut cache).unwrap().is_some());
        acknowledge(counter, "ACK of one, by names subscribed", size, &mut stream, &mut cache);
    }
}

fn acknowledge(
    counter: &mut Counter,
    what: &str,
    size: usize,
    stream: &mut Stream,
    cache: &mut xdstp_cache::Cache<xds_transport::Frame>,
) {
    let ack = ours::ack(ours::responses(stream));
    counter.count(what, size, 1, || {
        stream.handle_message(Instant::now(), ack, cache).unwrap();
        assert!(stream.poll_transmit(Instant::now(), cache).unwrap().is_none());
    });
}

/// A client that comes back with the versions of what it holds.
fn reconnects(counter: &mut Counter) {
    for size in [100, 1_000, 10_000] {
        // By names it is sent all of them: Envoy asks anew for what it forgot. By a glob it is sent nothing.
        reconnect(counter, "reconnect, by names", size, Workload::Exact(size), size, size);
        reconnect(counter, "reconnect, by names of a glob", size, Workload::Glob, size, size);
    }
    for size in [1_000, 10_000] {
        reconnect(counter, "reconnect with 100 names, by N", size, Workload::Exact(100), 100, size);
    }
}

fn reconnect(counter: &mut Counter, what: &str, size: usize, workload: Workload, names: usize, resources: usize) {
    let mut cache = ours::cache(workload, resources);
    let held = (0..names).map(|index| workload.name(index)).collect();
    let first = first_request(workload.asks(0, resources), held);
    let mut stream = Stream::new(Protocol::Delta, Settings::default());
    counter.count(what, size, 1, || {
        stream.handle_message(Instant::now(), first, &mut cache).unwrap();
        while stream.poll_transmit(Instant::now(), &mut cache).unwrap().is_some() {
            ours::acknowledge(&mut stream, &mut cache);
        }
    });
    let sent = stream.sessions().map(|session| session.tally.resources).sum::<u64>();
    assert_eq!(sent as usize, if workload == Workload::Glob { 0 } else { names });
}

/// One of many names changes; the ACK repeats them all, and is read once.
fn state_of_the_world(counter: &mut Counter, large: bool) {
    let sizes: &[usize] = if large { &[10, 1_000, 10_000] } else { &[10, 1_000] };
    for size in sizes.iter().copied() {
        let mut client = Sotw::new(size);
        for measured in [false, false, true] {
            let mut update = || {
                client.publish();
                assert!(client.respond() > 0);
            };
            match measured {
                true => counter.count("SotW, an update and its response, by names subscribed", size, 1, update),
                false => update(),
            }
            let ack = client.request();
            let acknowledge = || {
                client.receive(ack);
                assert_eq!(client.respond(), 0);
            };
            match measured {
                true => counter.count("SotW, the ACK, by names subscribed", size, 1, acknowledge),
                false => acknowledge(),
            }
        }
    }
}

fn first_request(asks: Vec<String>, holds: Vec<String>) -> Bytes {
    let held = |name: String| {
        let mut entry = Vec::new();
        prost::encoding::string::encode(1, &name, &mut entry);
        prost::encoding::string::encode(2, &"0".to_owned(), &mut entry);
        assert_eq!(Fields::of(&entry).count(), 2);
        entry.into()
    };
    let request = DeltaDiscoveryRequest {
        type_url: TYPE_URL.into(),
        resource_names_subscribe: asks,
        initial_resource_versions: holds.into_iter().map(held).collect(),
        ..DeltaDiscoveryRequest::default()
    };
    request.encode_to_vec().into()
}
