//! Which scope and which origin a name belongs to.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use prost::Message;
use xds_relay::relay_core::{RelayCore, Routes, ServedStream};
use xds_transport::server::{Source, Stream};
use xds_transport::wire::DeltaDiscoveryRequest;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use crate::support::*;

fn endpoints(authority: &str, name: &str) -> String {
    format!("xdstp://{authority}/envoy.config.endpoint.v3.ClusterLoadAssignment/{name}")
}

#[test]
fn rule_004_one_session_over_old_style_names_and_two_authorities_of_two_origins() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "");
        let (a, b) = (endpoints("a", "x"), endpoints("b", "x"));
        world.put(0, ENDPOINTS, "old", "1");
        world.put(0, ENDPOINTS, &a, "1");
        world.put(1, ENDPOINTS, &b, "1");
        let client = world.client(downstream, "n");
        world.subscribe(client, ENDPOINTS, &["old", &a, &b]);
        let held = ["old@1".to_owned(), format!("{a}@1"), format!("{b}@1")];
        assert_eq!(world.clients[client].held(ENDPOINTS), held);
        assert_eq!(
            world.asked(0),
            ["n ClusterLoadAssignment +old".to_owned(), format!("xds-relay ClusterLoadAssignment +{a}")]
        );
        assert_eq!(world.asked(1), [format!("xds-relay ClusterLoadAssignment +{b}")]);
        world.put(1, ENDPOINTS, &b, "2");
        assert_eq!(world.clients[client].held(ENDPOINTS)[2], format!("{b}@2"));
        // Each goes for itself.
        world.unsubscribe(client, ENDPOINTS, &[&b]);
        world.advance(LINGER + 3 * SECOND);
        assert_eq!(world.asked(1), [format!("xds-relay ClusterLoadAssignment -{b}")]);
        assert_eq!(world.origins[1].streams, 0, "and its scope with it");
        world.put(0, ENDPOINTS, &a, "2");
        assert_eq!(world.clients[client].held(ENDPOINTS)[1], format!("{a}@2"));
    }
}

#[test]
fn an_authority_that_no_origin_lists_comes_from_the_default_origin() {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "");
    let name = endpoints("c", "x");
    world.put(0, ENDPOINTS, &name, "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&name]);
    assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
    assert_eq!(world.streams_of(0), 1);
}

#[test]
fn authorities_of_one_origin_share_a_stream() {
    let mut world = World::new(DELTA);
    let names = ["a", "b", "c"].map(|authority| endpoints(authority, "x"));
    for name in &names {
        world.put(0, ENDPOINTS, name, "1");
        for node in ["n1", "n2"] {
            let client = world.client(DELTA, node);
            world.subscribe(client, ENDPOINTS, &[name]);
            assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@1")]);
        }
    }
    assert_eq!(world.streams_of(0), 1);
    assert_eq!(world.asked(0).len(), 3);
}

#[test]
fn an_origin_of_files_is_asked_nothing_and_keeps_nothing_of_its_clients() {
    let mut world = World::empty();
    let files = world.add_relay("origins: [{name: files, files: .}]\n", Vec::new());
    let core = world.relays[files].core.clone();
    assert_ne!(core.readiness(), xds_relay::admin::Readiness::Ready);
    core.set_files(0, vec![file(CLUSTERS, "a", "1"), file(ENDPOINTS, &endpoints("z", "x"), "1")], world.now);
    assert_eq!(core.readiness(), xds_relay::admin::Readiness::Ready);
    let clients = [(DELTA, "n1"), (SOTW, "n2")].map(|(variant, node)| world.client_of(files, variant, node));
    for client in clients {
        world.subscribe(client, CLUSTERS, &["*"]);
        world.subscribe(client, ENDPOINTS, &[&endpoints("z", "x"), "missing"]);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1"]);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
    }
    core.set_files(0, vec![file(CLUSTERS, "b", "1")], world.now);
    world.settle();
    for client in clients {
        assert_eq!(world.clients[client].held(CLUSTERS), ["b@1"]);
        world.disconnect(client);
    }
    world.advance(SECOND);
    assert_eq!(world.scopes_of(files), [""; 0]);
}

fn file(of: &str, name: &str, body: &str) -> xds_relay::relay_core::FromFile {
    let mut origin = Origin::new();
    let now = std::time::Instant::now();
    origin.put(now, of, name, body);
    let resource = origin.resource(of, name);
    (of.into(), name.parse().unwrap(), resource)
}

/// Each authority costs a scope: a client that names them without end has its stream ended.
#[test]
fn names_of_too_many_authorities_open_no_more_scopes_and_end_the_stream() {
    struct Outside(Mutex<Option<String>>);
    impl ServedStream for Outside {
        fn peer(&self) -> &str {
            ""
        }
        fn inspect(&self, _: &mut dyn FnMut(&Stream)) {}
        fn end(&self, reason: &str) {
            *self.0.lock().unwrap() = Some(reason.to_owned());
        }
    }

    let world = World::new(DELTA);
    let core = &world.relays[0].core;
    let outside = Arc::new(Outside(Mutex::new(None)));
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), Some(outside.clone()));
    let subscriber = routes.open(&ENDPOINTS.into());
    for at in 0..1100 {
        let name: ResourceName = endpoints(&format!("a{at}"), "x").parse().unwrap();
        routes.subscribe(subscriber, &Interest::Name(name));
    }
    assert_eq!(world.scopes_of(0).len(), 1024);
    assert_eq!(*outside.0.lock().unwrap(), None);
    core.sweep();
    assert_eq!(outside.0.lock().unwrap().as_deref(), Some("names of too many authorities"));
}

#[test]
fn leaving_what_was_never_asked_for_opens_no_scope() {
    let mut world = World::new(DELTA);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &["a", &endpoints("z", "x")]);
    world.unsubscribe(client, ENDPOINTS, &["b", &endpoints("y", "x")]);
    assert_eq!(world.scopes_of(0).len(), 2);
}

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
                core.sweep();
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
