//! Whether what is served is what an origin has, found by asking that once more.

use xds_relay::api::{Drift, DriftQuery, Drifts};

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";

/// One relay before one origin of an authority.
pub(crate) fn world(protocol: Protocol) -> World {
    World::of(&[protocol], &[&["a"]], "")
}

pub(crate) fn check(world: &mut World, query: &DriftQuery) -> Drifts {
    let core = world.relays[0].core.clone();
    let mut check = core.check_drift(query, world.now).unwrap();
    let (streams, began) = (world.streams_of(0), world.now);
    let drifts = loop {
        world.advance(SECOND / 10);
        match check.poll(world.now) {
            Some(drifts) => break drifts,
            None => assert!(world.now - began < 60 * SECOND, "it never ends"),
        }
    };
    drop(check);
    world.settle();
    assert!(world.streams_of(0) <= streams, "its streams end with it");
    drifts
}

pub(crate) fn of_all() -> DriftQuery {
    DriftQuery { origin: "o0".to_owned(), ..DriftQuery::default() }
}

pub(crate) fn all(world: &mut World) -> Drifts {
    check(world, &of_all())
}

pub(crate) fn drift(name: &str, served: Option<&str>, at_origin: Option<&str>) -> Drift {
    let [served, at_origin] = [served, at_origin].map(|version| version.map(str::to_owned));
    Drift { type_url: CLUSTERS.to_owned(), name: name.to_owned(), served, at_origin }
}

pub(crate) fn same(drifts: &Drifts) -> usize {
    drifts.scopes.iter().map(|scope| scope.same).sum()
}

pub(crate) fn found(drifts: &Drifts) -> Vec<Drift> {
    drifts.scopes.iter().flat_map(|scope| scope.drifts.clone()).collect()
}

/// What a relay has that is connected again is what it named: an origin that changed a body and not its version does not send it.
fn changed_at_its_version(world: &mut World, name: &str) {
    world.set_up(0, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", CLUSTERS, name, "1", frame(CLUSTERS, name, "other"));
    world.set_up(0, true);
    world.advance(60 * SECOND);
}

#[test]
fn what_is_served_as_the_origin_has_it_is_the_same() {
    for protocol in [DELTA, SOTW] {
        let mut world = world(protocol);
        for name in ["x", "y", "xdstp://a/envoy.config.cluster.v3.Cluster/one"] {
            world.put(0, CLUSTERS, name, "1");
        }
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &["*", "absent", "xdstp://a/envoy.config.cluster.v3.Cluster/one"]);
        world.advance(30 * SECOND);
        world.told(client);
        let drifts = all(&mut world);
        assert_eq!((drifts.is_any(), drifts.is_whole()), (false, true), "{protocol:?}: {drifts:?}");
        assert_eq!(same(&drifts), 4, "{protocol:?}: {drifts:?}");
        assert_eq!(drifts.clients.all, 1);
        assert_eq!(world.told(client), [""; 0], "no client notices");
    }
}

#[test]
fn another_body_at_the_same_version_is_drift() {
    let mut world = world(DELTA);
    ["x", "y"].iter().for_each(|name| world.put(0, CLUSTERS, name, "1"));
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["x", "y"]);
    world.advance(SECOND);
    changed_at_its_version(&mut world, "x");
    let drifts = all(&mut world);
    assert_eq!((found(&drifts), same(&drifts)), (vec![drift("x", Some("1"), Some("1"))], 1));
}

#[test]
fn what_a_stream_that_is_stuck_does_not_say_is_drift() {
    for protocol in [DELTA, SOTW] {
        for asked in [&["*"][..], &["x", "y", "new"]] {
            let mut world = world(protocol);
            ["x", "y"].iter().for_each(|name| world.put(0, CLUSTERS, name, "1"));
            let client = world.client(DELTA, "n");
            world.subscribe(client, CLUSTERS, asked);
            world.advance(30 * SECOND);
            world.stick(0);
            world.put(0, CLUSTERS, "x", "2");
            world.remove(0, CLUSTERS, "y");
            world.put(0, CLUSTERS, "new", "1");
            world.advance(SECOND);
            let drifts = all(&mut world);
            let (gone, case) = (drift("y", Some("1"), None), format!("{protocol:?} {asked:?}: {drifts:?}"));
            let expected = [drift("new", None, Some("1")), drift("x", Some("1"), Some("2")), gone.clone()];
            // Over delta nothing says what is not in a collection, and silence is no answer.
            let says_gone = protocol == SOTW || asked.len() > 1;
            let expected: Vec<_> = expected.into_iter().filter(|drift| says_gone || *drift != gone).collect();
            assert_eq!(found(&drifts), expected, "{case}");
            assert_eq!(drifts.is_whole(), says_gone, "{case}");
        }
    }
}

#[test]
fn what_is_on_its_way_is_no_drift() {
    let mut world = world(DELTA);
    world.put(0, CLUSTERS, "x", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["x"]);
    world.advance(SECOND);
    world.origins[0].slowness = SECOND / 2;
    world.put(0, CLUSTERS, "x", "2");
    let core = world.relays[0].core.clone();
    let mut check = core.check_drift(&of_all(), world.now).unwrap();
    let mut versions = (2..).map(|version: u32| version.to_string());
    let drifts = loop {
        // It never stands still.
        let version = versions.next().unwrap();
        world.put(0, CLUSTERS, "x", &version);
        world.advance(SECOND / 5);
        if let Some(drifts) = check.poll(world.now) {
            break drifts;
        }
    };
    assert_eq!(found(&drifts), []);
}

#[test]
fn a_glob_is_asked_for_as_clients_do_and_only_what_is_meant_is() {
    let mut world = world(DELTA);
    let member = "xdstp://a/envoy.config.cluster.v3.Cluster/g/m";
    world.put(0, CLUSTERS, member, "1");
    world.put(0, CLUSTERS, "x", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &[GLOB, "x"]);
    world.advance(SECOND);
    world.stick(0);
    [member, "x"].iter().for_each(|name| world.put(0, CLUSTERS, name, "2"));
    let of = |world: &mut World, type_url: Option<&str>, scope: Option<&str>| {
        let [type_url, scope] = [type_url, scope].map(|text| text.map(str::to_owned));
        found(&check(world, &DriftQuery { type_url, scope, ..of_all() }))
            .into_iter()
            .map(|drift| drift.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&mut world, None, None), [member, "x"]);
    assert_eq!(of(&mut world, Some("Cluster"), Some("xdstp://a")), [member]);
    assert_eq!(of(&mut world, Some("Listener"), None), [""; 0]);
}

#[test]
fn an_origin_that_cannot_be_asked_is_no_drift_and_said() {
    let mut world = world(DELTA);
    world.put(0, CLUSTERS, "x", "1");
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["x"]);
    world.advance(SECOND);
    world.set_up(0, false);
    let drifts = all(&mut world);
    assert_eq!((drifts.is_any(), drifts.is_whole()), (false, false));
    assert_eq!(drifts.scopes[0].unanswered, 1);
    assert_eq!(drifts.scopes[0].trouble.as_deref(), Some("refused"));
    let core = world.relays[0].core.clone();
    let error = core.check_drift(&DriftQuery::default(), world.now).err().unwrap();
    assert_eq!(
        error.to_string(),
        "origin: expected the name of an origin, as in `?origin=NAME`; those that can be asked: o0"
    );
}
