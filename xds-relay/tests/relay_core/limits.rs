//! What clients may cost the relay: who goes beyond is told, and nobody else is the worse for it.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use prost::Message as _;
use tonic::metadata::MetadataMap;
use xds_matcher::DynamicParameters;
use xds_relay::relay_core::{RelayCore, Routes};
use xds_transport::Dialect;
use xds_transport::server::{Source, Stream, Tally};
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::wire::parameters::Locator;
use xdstp_cache::{Interest, Selector, SubscriberId};
use xdstp_uri::CanonicalText;

use crate::support::*;

fn relay(limits: &str) -> (World, Arc<RelayCore>) {
    let world = World::of(&[DELTA], &[&[]], &format!("limits: {{ {limits} }}\nlinger: 0s"));
    let core = world.relays[0].core.clone();
    (world, core)
}

/// A stream of a node, which has nothing yet.
fn stream(core: &Arc<RelayCore>, node: &str) -> (Routes, SubscriberId) {
    let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
    let node = [&[10, u8::try_from(node.len()).unwrap()], node.as_bytes()].concat();
    routes.identify(&Bytes::from(node)).unwrap();
    let id = routes.open(&ENDPOINTS.into());
    (routes, id)
}

fn ask(routes: &mut Routes, id: SubscriberId, text: &str) -> Option<String> {
    routes.subscribe(id, &Interest::from(text.parse::<xdstp_uri::ResourceName>().unwrap()));
    routes.refused().map(|refused| refused.to_string())
}

fn of(authority: usize) -> String {
    endpoints(&format!("a{authority}"), "x")
}

#[test]
fn a_stream_has_names_of_so_many_authorities() {
    let (world, core) = relay("authorities_per_stream: 3");
    let (mut routes, id) = stream(&core, "n");
    assert_eq!((0..3).find_map(|at| ask(&mut routes, id, &of(at))), None);
    assert_eq!(ask(&mut routes, id, &of(1)), None, "it has that");
    let words = "more than 3 authorities on one stream (limits.authorities_per_stream of the relay)";
    assert_eq!(ask(&mut routes, id, &of(3)).as_deref(), Some(words));
    assert_eq!(world.scopes_of(0).len(), 3);
    let (mut other, id) = stream(&core, "n");
    assert_eq!(ask(&mut other, id, &of(3)), None);
    assert_eq!(refused(&world, "authorities_per_stream"), 1);
}

#[test]
fn all_streams_have_names_of_so_many_authorities_and_of_so_many_groups() {
    for (limit, group, words) in [
        ("authorities", false, "more than 2 authorities (limits.authorities of the relay)"),
        ("groups", true, "more than 2 node groups (limits.groups of the relay)"),
    ] {
        let (mut world, core) = relay(&format!("{limit}: 2"));
        let mut streams: Vec<_> = (0..3).map(|at| stream(&core, &format!("n{at}"))).collect();
        let name = |at: usize| if group { "x".to_owned() } else { of(at) };
        let asked: Vec<_> =
            streams.iter_mut().enumerate().map(|(at, (routes, id))| ask(routes, *id, &name(at))).collect();
        assert_eq!(asked, [None, None, Some(words.to_owned())]);
        assert_eq!(refused(&world, limit), 1);
        // Who shares costs nothing, and who went makes room.
        let (mut same, id) = stream(&core, "n1");
        assert_eq!(ask(&mut same, id, &name(1)), None);
        streams.remove(0);
        world.advance(2 * SECOND);
        core.sweep(world.now);
        let (routes, id) = &mut streams[1];
        assert_eq!(ask(routes, *id, &name(2)), None);
    }
}

/// Nobody who names authorities of his own keeps others from those that origins have.
#[test]
fn an_authority_of_the_configuration_counts_not_among_those_that_anybody_names() {
    let world = World::of(&[DELTA], &[&["good.example"]], "limits: { authorities: 1 }");
    let core = world.relays[0].core.clone();
    let [mut stranger, mut good] = ["n", "m"].map(|node| stream(&core, node));
    assert_eq!(ask(&mut stranger.0, stranger.1, &of(1)), None);
    assert_eq!(ask(&mut good.0, good.1, &endpoints("good.example", "x")), None);
    assert_eq!(world.counted(0, "limit_used{limit=\"authorities\"} "), 1);
    let words = "more than 1 authorities (limits.authorities of the relay)";
    assert_eq!(ask(&mut good.0, good.1, &of(2)).as_deref(), Some(words));
}

#[test]
fn all_streams_have_so_many_names() {
    let (world, core) = relay("names: 3");
    let [mut one, mut other] = ["n", "m"].map(|node| stream(&core, node));
    assert_eq!(ask(&mut one.0, one.1, "a"), None);
    assert_eq!(ask(&mut one.0, one.1, "a"), None, "again");
    assert_eq!(ask(&mut one.0, one.1, "b"), None);
    assert_eq!(ask(&mut other.0, other.1, "a"), None);
    let words = "more than 3 names (limits.names of the relay)";
    assert_eq!(ask(&mut other.0, other.1, "b").as_deref(), Some(words));
    drop(other);
    one.0.unsubscribe(one.1, &Interest::Name("a".parse().unwrap()));
    let (mut next, id) = stream(&core, "k");
    assert_eq!([ask(&mut next, id, "a"), ask(&mut next, id, "b")], [None, None]);
    assert_eq!(ask(&mut next, id, "c").as_deref(), Some(words));
    one.0.close(one.1, &Tally::default());
    next.close(id, &Tally::default());
    let id = next.open(&ENDPOINTS.into());
    assert_eq!(["a", "b", "c"].map(|name| ask(&mut next, id, name)), [None, None, None]);
    assert_eq!(refused(&world, "names"), 2);
}

/// A name that others asked for need not be read, and is one more all the same.
#[test]
fn rule_132_a_name_that_is_known_counts_among_all_names_as_a_new_one_does() {
    let (_world, core) = relay("names: 4");
    let [mut one, mut other] = ["n", "m"].map(|node| stream(&core, node));
    let [a, b, c] = ["a", "b", "c"].map(|id| format!("xdstp://shared/T/{id}"));
    for name in [&a, &b] {
        assert_eq!(ask(&mut one.0, one.1, name), None);
    }
    assert_eq!(ask(&mut other.0, other.1, &c), None);
    let mut ask_known = |name: &str| {
        let new = other.0.subscribe_known(other.1, &CanonicalText::new(name)).map(|(_, new)| new);
        (new, other.0.refused().map(|refused| refused.to_string()))
    };
    assert_eq!(ask_known(&a), (Some(true), None));
    assert_eq!(ask_known(&a), (Some(false), None), "again");
    let words = "more than 4 names (limits.names of the relay)";
    assert_eq!(ask_known(&b), (Some(true), Some(words.to_owned())));
}

#[test]
fn rule_132_a_long_name_counts_for_each_kib_until_it_is_left() {
    let (_world, core) = relay("names: 10");
    let (mut routes, id) = stream(&core, "n");
    let [one, other] = ["x", "y"].map(|text| text.repeat(5000));
    assert_eq!([ask(&mut routes, id, &one), ask(&mut routes, id, &other)], [None, None]);
    routes.unsubscribe(id, &Interest::Name(one.parse().unwrap()));
    assert_eq!(["a", "b", "c", "d", "e"].map(|name| ask(&mut routes, id, name)), [const { None }; 5]);
    let words = "more than 10 names (limits.names of the relay)";
    assert_eq!(ask(&mut routes, id, "f").as_deref(), Some(words));
}

#[test]
fn there_are_so_many_streams_and_so_many_new_ones_a_second() {
    let (world, core) = relay("streams: 3, new_streams_per_second: 2");
    let admit = |seconds: u32| core.admit(world.now + seconds * SECOND, &MetadataMap::new());
    let (one, _other) = (admit(0).unwrap(), admit(0).unwrap());
    let words = "more than 2 new streams a second (limits.new_streams_per_second of the relay)";
    assert_eq!(admit(0).unwrap_err().to_string(), words);
    let _third = admit(1).unwrap();
    assert_eq!(admit(2).unwrap_err().to_string(), "more than 3 streams (limits.streams of the relay)");
    drop(one);
    admit(2).unwrap();
    assert_eq!(["new_streams_per_second", "streams"].map(|limit| refused(&world, limit)), [1, 1]);
}

/// What the protocol's own machine finds is counted here, too.
#[test]
fn a_stream_has_so_many_names_and_types_and_sends_so_many_requests_a_second() {
    let long = "x".repeat((64 << 10) + 1);
    let names: Vec<String> = (0..4).map(|at| format!("n{at}")).collect();
    let ask = |of: &str, names: &[String]| {
        let names = names.to_vec();
        DeltaDiscoveryRequest { type_url: of.into(), resource_names_subscribe: names, ..Default::default() }
    };
    let ask_with = |of: &str, value: &str| {
        let selector = Selector::Parameters(DynamicParameters::from_iter([("key", value)]));
        let locator = Locator::new("n", selector).encode(Dialect::Final).unwrap();
        DeltaDiscoveryRequest { type_url: of.into(), resource_locators_subscribe: vec![locator], ..Default::default() }
    };
    let limits = "names_per_stream: 7, types_per_stream: 2, requests_per_second: 5, parameter_sets_per_stream: 2";
    for (limit, requests, words) in [
        ("names_per_stream", vec![ask(CLUSTERS, &names), ask(ENDPOINTS, &names)], "more than 7 names on one stream"),
        (
            "types_per_stream",
            vec![ask(CLUSTERS, &names[..1]), ask(ENDPOINTS, &names[..1]), ask(LISTENERS, &[])],
            "more than 2 types on one stream",
        ),
        (
            "requests_per_second",
            vec![ask(CLUSTERS, &names[..1]); 6],
            "more requests on one stream than 5 at once and one every 200ms",
        ),
        (
            "parameter_sets_per_stream",
            vec![ask_with(CLUSTERS, "1"), ask_with(CLUSTERS, "2"), ask_with(ENDPOINTS, "1")],
            "more than 2 sets of dynamic parameters on one stream",
        ),
        ("name_bytes", vec![ask(&long, &[])], "a type URL of 65537 bytes, 65536 are taken"),
    ] {
        let (world, core) = relay(limits);
        let mut routes = core.open_stream(DELTA, Waker::noop().clone(), None);
        let mut stream = Stream::new(DELTA, core.settings());
        let mut handled = requests
            .iter()
            .map(|request| stream.handle_message(world.now, request.encode_to_vec().into(), &mut routes));
        let error = handled.find_map(Result::err).unwrap();
        assert_eq!((error.code(), error.to_string().as_str()), (8, words));
        drop(handled);
        assert_eq!(refused(&world, limit), 1);
    }
}

/// How many streams a limit ended.
fn refused(world: &World, limit: &str) -> u32 {
    let line = format!("xds_relay_downstream_refused_total{{limit=\"{limit}\"}} ");
    let text = world.metrics_of(0);
    text.lines().find_map(|text| text.strip_prefix(&line)).unwrap().parse().unwrap()
}

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const OTHER: &str = "xdstp://b/envoy.config.cluster.v3.Cluster/g/*";

/// A client that says what a machine would not.
struct Raw {
    stream: Stream,
    routes: Routes,
}

impl Raw {
    fn new(core: &Arc<RelayCore>) -> Self {
        Self {
            stream: Stream::new(DELTA, core.settings()),
            routes: core.open_stream(DELTA, Waker::noop().clone(), None),
        }
    }

    fn send(&mut self, world: &World, asks: &[&str], leaves: &[&str], holds: &[(&str, &str)]) {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
        let held_at = |(name, version): &(&str, &str)| {
            let field = |key: u8, text: &str| [&[key, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            Bytes::from([field(0x0a, name), field(0x12, version)].concat())
        };
        let request = DeltaDiscoveryRequest {
            type_url: CLUSTERS.into(),
            resource_names_subscribe: texts(asks),
            resource_names_unsubscribe: texts(leaves),
            initial_resource_versions: holds.iter().map(held_at).collect(),
            ..Default::default()
        };
        self.stream.handle_message(world.now, request.encode_to_vec().into(), &mut self.routes).unwrap();
    }

    /// Reads what there is, as a driver does that polls only where there may be something.
    fn read(&mut self, world: &World) -> usize {
        let mut read = 0;
        while self.stream.has_work(&self.routes)
            && self.stream.poll_transmit(world.now, &mut self.routes).unwrap().is_some()
        {
            read += 1;
        }
        read
    }

    fn acknowledge(&mut self, world: &World, nonce: usize) {
        let request = DeltaDiscoveryRequest {
            type_url: CLUSTERS.into(),
            response_nonce: nonce.to_string(),
            ..Default::default()
        };
        self.stream.handle_message(world.now, request.encode_to_vec().into(), &mut self.routes).unwrap();
    }
}

/// How many names somebody else may ask for.
fn room(core: &Arc<RelayCore>) -> usize {
    let (mut routes, id) = stream(core, "probe");
    (0..).take_while(|at| ask(&mut routes, id, &format!("probe{at}")).is_none()).count()
}

#[test]
fn rule_132_what_is_brought_along_counts_no_more_once_all_of_it_is_left() {
    for (leaves, left) in [(vec![GLOB, OTHER], 20), (vec![GLOB], 13)] {
        let (world, core) = relay("names: 20");
        let mut client = Raw::new(&core);
        let held = [GLOB, OTHER].map(|glob| ["1", "2", "3"].map(|id| glob.replace('*', id)));
        let holds: Vec<_> = held.iter().flatten().map(|name| (name.as_str(), "1")).collect();
        client.send(&world, &[GLOB, OTHER], &[], &holds);
        assert_eq!((client.read(&world), room(&core)), (0, 12));
        client.send(&world, &[], &leaves, &[]);
        client.read(&world);
        assert_eq!(room(&core), left, "{leaves:?}");
    }
}

#[test]
fn rule_132_what_is_brought_along_counts_no_more_once_it_is_compared_though_removals_would_wait() {
    let limits = "limits: { names: 20 }\nlinger: 0s";
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], limits);
    let core = world.relays[0].core.clone();
    let [one, other] = [GLOB, OTHER].map(|glob| glob.replace('*', "1"));
    world.put(0, CLUSTERS, &one, "1");
    world.put(1, CLUSTERS, &other, "1");
    world.set_up(1, false);
    let mut client = Raw::new(&core);
    client.send(&world, &[GLOB, OTHER], &[], &[(&one, "1"), (&other, "1")]);
    world.advance(30 * SECOND);
    assert_eq!((client.read(&world), room(&core)), (1, 16), "of the second nobody said anything");
    client.acknowledge(&world, 1);
    world.set_up(1, true);
    world.advance(60 * SECOND);
    assert_eq!(client.read(&world), 1);
    client.acknowledge(&world, 2);
    assert_eq!((client.read(&world), room(&core)), (0, 18));
}

#[test]
fn rule_132_what_crosses_a_change_of_mind_counts_for_nothing_however_often_that_changes() {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "limits: { names: 100 }\nlinger: 0s");
    let core = world.relays[0].core.clone();
    for at in 0..10 {
        world.put(0, CLUSTERS, &GLOB.replace('*', &at.to_string()), "1");
    }
    world.set_up(1, false);
    let mut client = Raw::new(&core);
    client.send(&world, &[GLOB, OTHER], &[], &[(&OTHER.replace('*', "1"), "1")]);
    world.advance(30 * SECOND);
    assert_eq!((client.read(&world), room(&core)), (1, 97));
    for _ in 0..20 {
        client.send(&world, &[], &[GLOB], &[]);
        client.send(&world, &[GLOB], &[], &[]);
        assert_eq!(room(&core), 97);
        client.read(&world);
    }
    assert_eq!(room(&core), 97);
}

/// Each once, whatever a client writes: twice, in one request with what it leaves, otherwise than canonically, or no name.
#[test]
fn rule_132_what_is_asked_for_in_odd_ways_is_given_back_for_each_way_to_leave_it() {
    let odd = "xdstp://a/envoy.config.cluster.v3.Cluster/x?b=1&a=2";
    let (long, too_long) = ("y".repeat(5000), "z".repeat((64 << 10) + 1));
    let asks =
        ["x", "x", "*", "", odd, odd, GLOB, OTHER, &long, &too_long, "xdstp:", &GLOB.replace('*', "1"), "w", "w"];
    for up in [false, true] {
        let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "limits: { names: 100 }\nlinger: 0s");
        let core = world.relays[0].core.clone();
        world.put(0, CLUSTERS, &GLOB.replace('*', "1"), "1");
        world.put(0, CLUSTERS, "x", "1");
        world.fail(0, CLUSTERS, odd, 14, "later");
        world.set_up(0, up);
        world.set_up(1, false);
        let mut client = Raw::new(&core);
        let held = [GLOB.replace('*', "1"), GLOB.replace('*', "2"), OTHER.replace('*', "1"), "v".to_owned()];
        let holds: Vec<_> = held.iter().map(|name| (name.as_str(), "1")).collect();
        client.send(&world, &asks, &["w", "never"], &holds);
        world.advance(30 * SECOND);
        client.read(&world);
        client.send(&world, &asks, &["w"], &[]);
        client.read(&world);
        // `x`, the wildcard, the empty one, the odd one, two globs, a member, and a long one.
        let asked = 7 + 5;
        assert_eq!(room(&core), 100 - asked - held.len(), "up: {up}");
        client.send(&world, &["x"], &asks, &[]);
        client.send(&world, &[], &asks, &[]);
        client.read(&world);
        assert_eq!(room(&core), 100, "up: {up}");
    }
}
