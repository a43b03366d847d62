//! Streams as they come, end, and are looked at.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use prost::Message;
use xds_relay::relay_core::{RelayCore, Routes, ServedStream};
use xds_transport::server::{Source, Stream};
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, Status};
use xdstp_cache::Interest;

use crate::support::*;

/// A stream that comes while the last one's scope is swept finds a scope that is fed.
#[test]
fn a_stream_and_a_sweep_at_once() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut world = World::of(&[DELTA], &[&[]], "linger: 0s");
    world.put(0, CLUSTERS, "a", "1");
    let (core, now) = (world.relays[0].core.clone(), world.now);
    let stop = Arc::new(AtomicBool::new(false));
    let sweeping = std::thread::spawn({
        let stop = stop.clone();
        move || {
            while !stop.load(Ordering::Relaxed) {
                core.sweep(now);
                core.config_dump(now);
                core.gauges();
            }
        }
    });
    for round in 0..300 {
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*"]);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"], "round {round}");
        world.disconnect(client);
        world.clients.clear();
    }
    stop.store(true, Ordering::Relaxed);
    sweeping.join().unwrap();
    world.advance(SECOND);
    assert_eq!(world.scopes_of(0), [""; 0]);
}

/// A stream that ends holds its own lock while it is taken off the list of streams.
#[test]
fn looking_at_a_stream_does_not_lock_the_list_of_streams() {
    struct Ending(Arc<RelayCore>);
    impl ServedStream for Ending {
        fn peer(&self) -> &str {
            "peer"
        }
        fn inspect(&self, _: &mut dyn FnMut(&Stream)) {
            drop(self.0.open_stream(SOTW, Waker::noop().clone(), None));
        }
        fn end(&self, _: &str) {}
    }

    let world = World::new(DELTA);
    let core = &world.relays[0].core;
    let _stream = core.open_stream(DELTA, Waker::noop().clone(), Some(Arc::new(Ending(core.clone()))));
    assert_eq!(core.config_dump(world.now).clients.len(), 1);
    core.gauges();
}

#[test]
fn a_stream_that_is_dropped_unclosed_leaves_nothing_behind() {
    let mut world = World::of(&[DELTA], &[&[]], "linger: 0s");
    let core = world.relays[0].core.clone();
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
    let subscriber = routes.open(&CLUSTERS.into());
    routes.subscribe(subscriber, &Interest::Wildcard);
    world.settle();
    drop(routes);
    world.advance(2 * SECOND);
    assert_eq!(world.scopes_of(0), [""; 0]);
}

/// The stream ends between the look at it and the next.
#[test]
fn what_a_session_did_is_counted_once() {
    struct Ending(Mutex<Option<(Stream, Routes)>>);
    impl ServedStream for Ending {
        fn peer(&self) -> &str {
            "peer"
        }
        fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
            if let Some((mut stream, mut routes)) = self.0.lock().unwrap().take() {
                look(&stream);
                stream.close(&mut routes);
            }
        }
        fn end(&self, _: &str) {}
    }

    let world = World::new(DELTA);
    let core = &world.relays[0].core;
    let ending = Arc::new(Ending(Mutex::new(None)));
    for round in 1..3 {
        let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(ending.clone()));
        let mut stream = Stream::new(DELTA, core.settings());
        let request = DeltaDiscoveryRequest { type_url: CLUSTERS.into(), ..Default::default() };
        stream.handle_message(world.now, request.encode_to_vec().into(), &mut routes).unwrap();
        *ending.0.lock().unwrap() = Some((stream, routes));
        core.gauges();
        core.gauges();
        assert_eq!(core.metrics().downstream(CLUSTERS).requests.value(), round);
    }
}

/// A stream with one request, watched until it is ended or `seconds` are over; and whether it was told anything.
pub(crate) fn watched(world: &mut World, interests: &[&str], seconds: u32) -> (Option<String>, bool) {
    let core = world.relays[0].core.clone();
    let ended = Arc::new(Ended::default());
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(ended.clone()));
    let mut stream = Stream::new(DELTA, core.settings());
    let request = DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_names_subscribe: interests.iter().map(|name| (*name).into()).collect(),
        ..Default::default()
    };
    stream.handle_message(world.now, request.encode_to_vec().into(), &mut routes).unwrap();
    let mut told = false;
    for _ in 0..seconds {
        world.advance(SECOND);
        told |= stream.poll_transmit(world.now, &mut routes).unwrap().is_some();
        if ended.0.lock().unwrap().is_some() {
            break;
        }
    }
    stream.close(&mut routes);
    let reason = ended.0.lock().unwrap().clone();
    (reason, told)
}

#[test]
fn rule_157_a_stream_of_which_nothing_is_known_ends_while_its_origin_cannot_be_reached() {
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    for interests in [&["*"] as &[&str], &["a"], &[GLOB], &["a", GLOB]] {
        let mut world = World::new(DELTA);
        world.set_up(0, false);
        let (reason, told) = watched(&mut world, interests, 5);
        assert!(reason.is_some_and(|reason| reason.contains("refused")), "{interests:?}");
        assert!(!told);
    }
    // Behind a balancer that lets everybody in and ends every stream, too.
    let mut world = World::new(DELTA);
    world.origins[0].hangs_up = true;
    assert!(watched(&mut world, &["*"], 60).0.is_some());
}

#[test]
fn rule_157_who_can_be_told_something_or_will_be_stays() {
    // An origin that is there and silent may answer yet.
    let mut world = World::new(DELTA);
    world.origins[0].silent = true;
    assert_eq!(watched(&mut world, &["*"], 120), (None, false));
    // What is known is served without its origin.
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, CLUSTERS, "a", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["a", "xdstp://a/envoy.config.cluster.v3.Cluster/g/*"]);
    world.set_up(0, false);
    let known = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    assert_eq!(watched(&mut world, &[known, "xdstp://a/envoy.config.cluster.v3.Cluster/g/x"], 120), (None, true));
    // As it was asked for: the client waits.
    let mut world = World::of(&[DELTA], &[&[]], "unknown: wait");
    world.set_up(0, false);
    assert_eq!(watched(&mut world, &["*"], 120), (None, false));
}

/// A stream as the gRPC layer keeps it.
struct Outside(Mutex<Stream>);

impl ServedStream for Outside {
    fn peer(&self) -> &str {
        "somewhere"
    }

    fn inspect(&self, look: &mut dyn FnMut(&Stream)) {
        look(&self.0.lock().unwrap());
    }

    fn end(&self, _: &str) {}
}

#[test]
fn the_page_says_what_a_client_asks_for() {
    const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
    let world = World::new(DELTA);
    let (core, now) = (world.relays[0].core.clone(), world.now);
    let outside = Arc::new(Outside(Mutex::new(Stream::new(DELTA, core.settings()))));
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(outside.clone()));
    let request = DeltaDiscoveryRequest {
        node: Node { id: "n".into(), ..Node::default() }.encode_to_vec().into(),
        type_url: CLUSTERS.into(),
        resource_names_subscribe: ["*", GLOB, "b", "a"].map(Into::into).into(),
        ..Default::default()
    };
    outside.0.lock().unwrap().handle_message(now, request.encode_to_vec().into(), &mut routes).unwrap();
    let [client] = &core.config_dump(now).clients[..] else { panic!("one client") };
    assert_eq!((client.peer.as_str(), client.node_id.as_str(), client.protocol.as_str()), ("somewhere", "n", "delta"));
    let [of] = &client.types[..] else { panic!("one type") };
    assert!(of.wildcard);
    assert_eq!((of.names.join(" "), of.globs.join(" ")), ("a b".to_owned(), GLOB.to_owned()));
}

#[test]
fn the_page_says_how_long_ago_a_client_rejected_something() {
    let mut world = World::new(DELTA);
    world.put(0, CLUSTERS, "a", "1");
    let (core, now) = (world.relays[0].core.clone(), world.now);
    let outside = Arc::new(Outside(Mutex::new(Stream::new(DELTA, core.settings()))));
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(outside.clone()));
    let request = |nonce: &str, error: Option<&str>| DeltaDiscoveryRequest {
        type_url: CLUSTERS.into(),
        resource_names_subscribe: if nonce.is_empty() { vec!["a".into()] } else { Vec::new() },
        response_nonce: nonce.into(),
        error_detail: error.map(|message| Status { code: 13, message: message.into() }),
        ..Default::default()
    };
    let mut tell = |request: DeltaDiscoveryRequest| {
        outside.0.lock().unwrap().handle_message(now, request.encode_to_vec().into(), &mut routes).unwrap();
        world.settle();
        outside.0.lock().unwrap().poll_transmit(now, &mut routes).unwrap()
    };
    let sent = tell(request("", None)).unwrap().into_bytes();
    let nonce = DeltaDiscoveryResponse::decode(sent).unwrap().nonce;
    tell(request(&nonce, Some("no")));
    let dump = core.config_dump(now + 7 * SECOND);
    let nack = dump.clients[0].types[0].last_nack.as_ref().unwrap();
    assert_eq!((nack.message.as_str(), nack.seconds_ago), ("no", 7));
}

/// A first request that takes back what it asks for must not keep the origin from being asked for others.
#[test]
fn a_request_that_takes_back_what_it_asks_for_holds_nobody_up() {
    let name = endpoints("a", "x");
    let mut world = World::new(DELTA);
    world.put(0, ENDPOINTS, &name, "1");
    let core = world.relays[0].core.clone();
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
    let mut stream = Stream::new(DELTA, core.settings());
    let request = DeltaDiscoveryRequest {
        type_url: ENDPOINTS.into(),
        resource_names_subscribe: vec![name.clone(), "old".into()],
        resource_names_unsubscribe: vec![name.clone(), "old".into()],
        ..Default::default()
    };
    stream.handle_message(world.now, request.encode_to_vec().into(), &mut routes).unwrap();
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&name]);
    assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
    stream.close(&mut routes);
}
