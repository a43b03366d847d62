//! An origin that is asked once more, and is out to harm: whatever it says or leaves out, asking it ends, is told for what it is,
//! and no client notices.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use xds_relay::api::{Drift, Drifts, ScopeDrift};
use xds_transport::wire::{Any, DeltaDiscoveryResponse, DiscoveryResponse, Resource};

use crate::drift::{all, check, drift, found, of_all, same, world};
use crate::support::*;

const VIRTUAL_HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

/// A world of one client that was served this.
fn serving(protocol: Protocol, names: &[&str], asked: &[&str]) -> (World, usize) {
    let mut world = world(protocol);
    names.iter().for_each(|name| world.put(0, CLUSTERS, name, "1"));
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, asked);
    world.advance(30 * SECOND);
    world.told(client);
    (world, client)
}

/// Asks while something is done to the origin each tenth of a second. It ends in time, and costs clients nothing.
fn check_while(world: &mut World, mut each: impl FnMut(&mut World, u32)) -> ScopeDrift {
    let (core, began) = (world.relays[0].core.clone(), world.now);
    let mut check = core.check_drift(&of_all(), world.now).unwrap();
    for turn in 0.. {
        each(world, turn);
        world.advance(SECOND / 10);
        if let Some(drifts) = check.poll(world.now) {
            return one(drifts);
        }
        assert!(world.now - began < 12 * SECOND, "it does not end");
    }
    unreachable!()
}

fn one(drifts: Drifts) -> ScopeDrift {
    let whole = drifts.is_whole();
    let scope = drifts.scopes.into_iter().find(|scope| scope.scope != "xdstp://a").unwrap();
    let said = (&scope.trouble, scope.unanswered, scope.moving);
    assert_eq!(whole, said == (&None, 0, 0), "what was not compared is said");
    scope
}

/// What it sends to the relay is this from now on, on streams that it opens from now on: nothing arrives on the others.
fn sends(world: &mut World, mut what: impl FnMut(Bytes) -> Bytes + 'static) {
    world.stick(0);
    world.origins[0].is_hostile = true;
    world.between = Some(Box::new(move |_, hearer, response| match hearer {
        Hearer::Relay(_) => what(response),
        Hearer::Client(_) => response,
    }));
}

fn resource(name: &str, type_url: &str) -> Resource {
    let any = Any { type_url: type_url.into(), value: Bytes::from_static(b"\xff\xff\xff") };
    Resource { name: name.into(), version: "9".into(), resource: Some(any), ..Resource::default() }
}

fn delta(response: &[u8]) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse::decode(response).unwrap()
}

#[test]
fn an_origin_that_does_not_answer_is_no_drift_and_nothing_is_said_to_be_compared() {
    for protocol in [DELTA, SOTW] {
        for (names, asked) in
            [(&["x", "y"][..], &["x", "y"][..]), (&["x", "y"], &["*"]), (&[], &["*"]), (&[], &["absent"])]
        {
            let (mut world, client) = serving(protocol, names, asked);
            world.origins[0].silent = true;
            let drifts = check_while(&mut world, |_, _| {});
            let case = format!("{protocol:?} {names:?} {asked:?}: {drifts:?}");
            assert_eq!((&*drifts.drifts, drifts.same), (&[][..], 0), "{case}");
            // Those that are served, and everything as what it was asked for.
            let unasked = if asked == ["*"] { names.len() } else { 0 };
            assert_eq!(drifts.unanswered, asked.len() + unasked, "{case}");
            assert_eq!(drifts.trouble.as_deref(), Some("it did not answer"), "{case}");
            assert_eq!(world.told(client), [""; 0], "{case}");
        }
    }
}

#[test]
fn an_origin_that_has_other_content_each_time_is_no_drift_and_is_said_to() {
    for is_stuck in [false, true] {
        let (mut world, client) = serving(DELTA, &["x", "y"], &["x", "y"]);
        if is_stuck {
            world.stick(0);
        }
        let drifts = check_while(&mut world, |world, turn| {
            let now = world.now;
            // At one version: who goes by that has to believe that nothing is new.
            world.origins[0].put_frame(now, "", CLUSTERS, "x", "1", frame(CLUSTERS, "x", &turn.to_string()));
            world.origins[0].slowness = SECOND / 20;
        });
        assert_eq!(drifts.drifts, [], "{is_stuck}: {drifts:?}");
        // Where what is served follows, both may be alike when it is looked.
        assert!(!is_stuck || (drifts.moving, drifts.same) == (1, 1), "{drifts:?}");
        let told = world.told(client);
        assert_eq!(told.is_empty(), is_stuck, "what is new reaches clients as ever: {told:?}");
    }
}

#[test]
fn what_cannot_be_read_ends_the_stream_and_is_said() {
    for protocol in [DELTA, SOTW] {
        for asked in [&["x", "y"][..], &["*"]] {
            let (mut world, client) = serving(protocol, &["x", "y"], asked);
            sends(&mut world, |_| Bytes::from_static(b"\xff\xff\xff\xff"));
            let drifts = check_while(&mut world, |_, _| {});
            let case = format!("{protocol:?} {asked:?}: {drifts:?}");
            assert_eq!((&*drifts.drifts, drifts.same), (&[][..], 0), "{case}");
            assert!(drifts.unanswered >= 2 && drifts.trouble.is_some(), "{case}");
            assert_eq!(world.told(client), [""; 0], "{case}");
        }
    }
}

#[test]
fn a_resource_that_cannot_be_read_is_not_taken_for_one_that_is_gone() {
    for asked in [&["x", "y"][..], &["*"]] {
        let (mut world, client) = serving(DELTA, &["x", "y"], asked);
        sends(&mut world, |response| {
            let mut response = delta(&response);
            response.resources.retain(|resource| resource.name != "x");
            response.resources.extend([resource("x", "garbage"), resource("xdstp://a/%zz", CLUSTERS)]);
            response.encode_to_vec().into()
        });
        let drifts = check_while(&mut world, |_, _| {});
        let case = format!("{asked:?}: {drifts:?}");
        assert_eq!((&*drifts.drifts, drifts.same, drifts.unanswered), (&[][..], 1, 1), "{case}");
        let trouble = drifts.trouble.unwrap();
        assert!(trouble.starts_with("it says what cannot be used: x"), "{trouble}");
        assert_eq!(world.told(client), [""; 0], "{case}");
    }
    let (mut world, _) = serving(SOTW, &["x", "y"], &["*"]);
    sends(&mut world, |response| {
        let mut response = DiscoveryResponse::decode(&*response).unwrap();
        response.resources.iter_mut().take(1).for_each(|any| any.value = Bytes::from_static(b"\xff"));
        response.encode_to_vec().into()
    });
    let drifts = check_while(&mut world, |_, _| {});
    assert_eq!((&*drifts.drifts, drifts.same, drifts.unanswered), (&[][..], 1, 1), "{drifts:?}");
}

#[test]
fn an_origin_that_never_stops_is_heard_for_so_long() {
    for protocol in [DELTA, SOTW] {
        let (mut world, client) = serving(protocol, &["x", "y"], &["*"]);
        let began = world.now;
        let drifts = check_while(&mut world, |world, turn| {
            world.put(0, CLUSTERS, "x", &turn.to_string());
            world.put(0, CLUSTERS, &format!("new-{turn}"), "1");
        });
        // Over SotW one response is all there is, and nothing more is waited for.
        assert!(protocol == SOTW || world.now - began >= 10 * SECOND, "it is heard to the end");
        assert_eq!(found_of(&drifts), [""; 0], "{protocol:?}: {drifts:?}");
        assert!(world.told(client).len() >= if protocol == SOTW { 1 } else { 100 }, "clients are told of each as ever");
    }
}

fn found_of(drifts: &ScopeDrift) -> Vec<String> {
    drifts.drifts.iter().map(|drift| drift.name.clone()).collect()
}

#[test]
fn an_origin_that_hangs_up_in_the_middle_is_compared_as_far_as_it_came() {
    let (mut world, client) = serving(DELTA, &["x"], &["x"]);
    world.put(0, LISTENERS, "l", "1");
    world.subscribe(client, LISTENERS, &["l"]);
    world.advance(SECOND);
    world.told(client);
    world.origins[0].pace = SECOND;
    let drifts = check_while(&mut world, |world, turn| world.origins[0].hangs_up = turn > 0);
    assert_eq!((&*drifts.drifts, drifts.same, drifts.unanswered), (&[][..], 1, 1), "{drifts:?}");
    assert_eq!(drifts.trouble.as_deref(), Some("cut"));
    assert_eq!(world.told(client), [""; 0]);
}

#[test]
fn what_nobody_asked_for_is_neither_compared_nor_kept_however_much_it_is() {
    let (mut world, client) = serving(DELTA, &["x"], &["x"]);
    sends(&mut world, |response| {
        let mut response = delta(&response);
        let stray = (0..100_000).map(|number| resource(&format!("stray/{number}"), CLUSTERS));
        response.resources.extend(stray);
        response.removed_resources = vec!["another".into()];
        response.encode_to_vec().into()
    });
    let drifts = check_while(&mut world, |_, _| {});
    assert_eq!((&*drifts.drifts, drifts.same, drifts.trouble), (&[][..], 1, None));
    assert_eq!(world.told(client), [""; 0]);
}

#[test]
fn who_makes_up_more_than_anybody_can_hold_is_heard_no_further_and_nothing_is_gone_by_that() {
    for protocol in [DELTA, SOTW] {
        let (mut world, client) = serving(protocol, &["x", "y"], &["*"]);
        let began = world.now;
        sends(&mut world, move |response| {
            // All there is but for `y`, which is gone by that where it is all that is said.
            let many = (0..700).map(|number| format!("{number:0>60000}"));
            if protocol == SOTW {
                let mut response = DiscoveryResponse::decode(&*response).unwrap();
                response.resources.truncate(1);
                let any = |name: String| Any { type_url: CLUSTERS.into(), value: named(&name) };
                response.resources.extend(many.map(any));
                return response.encode_to_vec().into();
            }
            let mut response = delta(&response);
            response.resources.extend(many.map(|name| resource(&name, CLUSTERS)));
            response.encode_to_vec().into()
        });
        let drifts = check_while(&mut world, |_, _| {});
        assert_eq!(drifts.trouble.as_deref(), Some("it says far more than the relay knows of it"), "{protocol:?}");
        assert!(drifts.drifts.iter().all(|drift| drift.name.len() == 60_000), "{protocol:?}");
        let kept = drifts.drifts.len() + drifts.more_drifts;
        assert!(kept * 60_000 < 33 << 20, "{kept} are kept");
        assert!(world.now - began < 3 * SECOND, "nobody waits for more");
        assert_eq!(world.told(client), [""; 0]);
    }
}

/// A message of which field 1 is this.
fn named(name: &str) -> Bytes {
    let of = xds_transport::wire::Node { id: name.into(), ..Default::default() };
    of.encode_to_vec().into()
}

#[test]
fn names_of_another_origin_that_everything_brings_are_no_drift() {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "");
    world.origins[0].wildcard_sends_xdstp();
    world.put(0, CLUSTERS, "x", "1");
    world.put(0, CLUSTERS, "xdstp://b/envoy.config.cluster.v3.Cluster/theirs", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(30 * SECOND);
    world.told(client);
    let drifts = all(&mut world);
    assert_eq!((found(&drifts), same(&drifts), drifts.is_whole()), (vec![], 1, true), "{drifts:?}");
    assert_eq!(world.told(client), [""; 0]);
}

#[test]
fn what_lives_for_a_time_and_is_not_sent_again_is_no_drift() {
    let mut world = world(DELTA);
    let put = |world: &mut World, version: &str, ttl: Duration| {
        let (now, frame) = (world.now, cluster("x", "1").with_wrapper(Bytes::new(), Some(ttl), false));
        world.origins[0].put_frame(now, "", CLUSTERS, "x", version, frame);
        world.settle();
    };
    put(&mut world, "1", 60 * SECOND);
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.told(client);
    world.stick(0);
    put(&mut world, "2", SECOND);
    let drifts = check_while(&mut world, |world, turn| world.origins[0].silent = turn > 0);
    assert_eq!((&*drifts.drifts, drifts.same, drifts.unanswered), (&[][..], 0, 1), "{drifts:?}");
}

#[test]
fn what_must_not_be_shared_is_the_same_as_what_stands_for_it() {
    let (mut world, _) = serving(DELTA, &["x"], &["*"]);
    let now = world.now;
    world.origins[0].put_uncached(now, "", CLUSTERS, "u", "1");
    world.advance(SECOND);
    let drifts = all(&mut world);
    assert_eq!(
        (found(&drifts), same(&drifts), drifts.is_whole()),
        (vec![], 3, true),
        "in the scope that has what stands for it, and in that of its client: {drifts:?}"
    );
}

fn put_host(world: &mut World, name: &str, version: &str, alias: &str) {
    let wrapper = Resource { aliases: vec![alias.into()], ..Resource::default() };
    let frame = frame(VIRTUAL_HOSTS, name, version).with_wrapper(wrapper.encode_to_vec().into(), None, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", VIRTUAL_HOSTS, name, version, frame);
    world.settle();
}

#[test]
fn what_is_asked_for_by_an_alias_is_compared_as_what_it_stands_for() {
    let mut world = world(DELTA);
    put_host(&mut world, "rc/shop", "1", "rc/www");
    let client = world.client(DELTA, "n");
    world.subscribe(client, VIRTUAL_HOSTS, &["rc/www"]);
    world.advance(SECOND);
    let drifts = all(&mut world);
    assert_eq!((found(&drifts), same(&drifts), drifts.is_whole()), (vec![], 1, true), "{drifts:?}");
    world.stick(0);
    put_host(&mut world, "rc/shop", "2", "rc/www");
    let drifts = check(&mut world, &of_all());
    let expected = Drift { type_url: VIRTUAL_HOSTS.to_owned(), ..drift("rc/shop", Some("1"), Some("2")) };
    assert_eq!(found(&drifts), [expected]);
}
