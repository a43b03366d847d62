//! An origin with a method for each type, of which the stream of one ends while those of others go on.

use prost::Message as _;
use tonic::metadata::MetadataMap;
use xds_relay::state::Memory;
use xds_transport::wire::DeltaDiscoveryResponse;

use crate::support::*;

pub(crate) const BOTH: [Protocol; 2] = [DELTA, SOTW];
/// After which silence of a delta origin says something.
const SILENCE: u32 = 16;

fn text(protocol: Protocol) -> String {
    let protocol = if protocol == DELTA { "delta" } else { "sotw" };
    format!(
        "origins: [{{ name: up, server: '127.0.0.1:1', protocol: {protocol}, methods: per_type }}]\nshare_by: [cluster]\n"
    )
}

/// A relay before an origin that has a Listener, two Clusters, and endpoints.
pub(crate) fn world(protocol: Protocol) -> World {
    let mut world = World::empty();
    world.origins.push(Origin::new());
    world.add_relay(&text(protocol), vec![Feeder::Origin(0)]);
    for (of, name) in [(LISTENERS, "l"), (CLUSTERS, "a"), (CLUSTERS, "b"), (ENDPOINTS, "a")] {
        world.put(0, of, name, "1");
    }
    world
}

/// Its client, that asks for all of it.
pub(crate) fn client(world: &mut World, protocol: Protocol) -> usize {
    let client = world.client(protocol, "n");
    for (of, names) in [(LISTENERS, "*"), (CLUSTERS, "*"), (ENDPOINTS, "a")] {
        world.subscribe(client, of, &[names]);
    }
    world.advance(2 * SILENCE * SECOND);
    world.told(client);
    world.asked(0);
    client
}

/// The stream of a type ends, and so does each that is opened anew.
pub(crate) fn goes_away(world: &mut World, of: &str, code: i32) {
    world.origins[0].without.insert(of.into(), code);
    world.end_type(of, code);
}

pub(crate) fn is_back(world: &mut World) {
    world.origins[0].without.clear();
}

/// Of what others say, and of their silence, nothing follows for it; and the next stream is asked for what clients brought along.
#[test]
fn rule_150_what_a_client_brought_along_of_a_type_without_a_stream_stays_until_the_origin_speaks_of_it() {
    for protocol in BOTH {
        let mut world = world(protocol);
        // It holds what is not there any more.
        let other = world.add_relay_before(Feeder::Origin(0), DELTA);
        world.put(0, CLUSTERS, "z", "1");
        let late = world.client_of(other, DELTA, "n");
        world.subscribe(late, CLUSTERS, &["*"]);
        world.advance(SECOND);
        world.disconnect(late);
        world.remove(0, CLUSTERS, "z");
        let first = client(&mut world, DELTA);
        goes_away(&mut world, CLUSTERS, 14);
        world.told(late);
        world.connect(late, 0);
        for round in 0..4 {
            world.put(0, LISTENERS, "l", &format!("{round}"));
            world.advance(SILENCE * SECOND);
        }
        assert_eq!(world.clients[late].held(CLUSTERS), ["a@1", "b@1", "z@1"], "{protocol:?}");
        is_back(&mut world);
        world.asked(0);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[late].held(CLUSTERS), ["a@1", "b@1"], "{protocol:?}");
        if protocol == DELTA {
            let asked = world.asked(0);
            assert!(asked.iter().any(|line| line.contains("=z@")), "{asked:?}");
        }
        assert_eq!(world.clients[first].held(CLUSTERS), ["a@1", "b@1"]);
    }
}

/// What had begun to come is not complete by the silence of others.
#[test]
fn rule_150_the_silence_of_others_completes_nothing_of_a_type_without_a_stream() {
    let mut world = world(DELTA);
    let other = world.add_relay_before(Feeder::Origin(0), DELTA);
    world.put(0, CLUSTERS, "z", "1");
    let late = world.client_of(other, DELTA, "n");
    world.subscribe(late, CLUSTERS, &["*"]);
    world.advance(SECOND);
    world.disconnect(late);
    world.remove(0, CLUSTERS, "z");
    let first = world.client(DELTA, "n");
    world.subscribe(first, LISTENERS, &["*"]);
    world.subscribe(first, CLUSTERS, &["*"]);
    world.advance(5 * SECOND);
    goes_away(&mut world, CLUSTERS, 14);
    world.connect(late, 0);
    world.advance(60 * SECOND);
    assert_eq!(world.clients[late].held(CLUSTERS), ["a@1", "b@1", "z@1"]);
}

/// A relay with only some of its origin is one whose origin is away, for that.
#[test]
fn what_is_known_of_a_type_without_a_stream_is_kept_for_who_asks_again() {
    for (protocol, downstream) in [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)] {
        let mut world = world(protocol);
        let client = client(&mut world, downstream);
        goes_away(&mut world, ENDPOINTS, 14);
        world.advance(SECOND);
        world.unsubscribe(client, ENDPOINTS, &["a"]);
        world.advance(3 * LINGER);
        world.told(client);
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.advance(SECOND);
        assert!(world.told(client).join(" ").contains("a@1"), "{protocol:?} {downstream:?}");
        // And no longer than of others once it is back.
        is_back(&mut world);
        world.put(0, ENDPOINTS, "a", "2");
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["a@2"]);
        world.unsubscribe(client, ENDPOINTS, &["a"]);
        world.advance(2 * LINGER);
        world.set_up(0, false);
        world.told(client);
        world.subscribe(client, ENDPOINTS, &["a"]);
        world.advance(SECOND);
        assert_eq!(world.told(client), [""; 0], "{protocol:?} {downstream:?}");
    }
}

#[test]
fn of_a_type_that_is_away_nothing_is_told_and_that_it_has_no_method_is_an_error_and_no_removal() {
    for (protocol, code, is_known) in BOTH.into_iter().flat_map(|of| [(of, 14, true), (of, 12, true), (of, 12, false)])
    {
        let mut world = world(protocol);
        if !is_known {
            world.origins[0].without.insert(ENDPOINTS.into(), code);
        }
        let client = client(&mut world, DELTA);
        goes_away(&mut world, ENDPOINTS, code);
        world.subscribe(client, ENDPOINTS, &["new"]);
        world.advance(60 * SECOND);
        let expected = if is_known { vec![] } else { vec!["ClusterLoadAssignment -!new:12"] };
        assert_eq!(world.told(client), expected, "{protocol:?} {code}");
        for chunks in &world.clients[client].chunks {
            let response = DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap();
            assert_eq!(response.removed_resources, [""; 0], "{protocol:?}: to who reads no errors");
        }
        let hint = |world: &World| world.relays[0].core.status(world.now).origins[0].hint.clone();
        assert!(hint(&world).unwrap().starts_with("the stream of a type ended"));
        world.put(0, ENDPOINTS, "new", "1");
        is_back(&mut world);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), ["a@1", "new@1"], "{protocol:?}");
        assert_eq!(hint(&world), None);
    }
}

/// Who comes back to an origin with all that it has may hear nothing for ever.
#[test]
fn a_type_whose_next_stream_lasts_is_as_there_as_others_though_the_origin_has_nothing_to_say() {
    let mut world = world(DELTA);
    let client = client(&mut world, DELTA);
    world.origins[0].silent = true;
    world.end_type(ENDPOINTS, 14);
    let hint = |world: &World| world.relays[0].core.status(world.now).origins[0].hint.clone();
    world.unsubscribe(client, ENDPOINTS, &["a"]);
    world.advance(50 * SECOND);
    assert!(hint(&world).is_some());
    world.advance(60 * SECOND);
    assert_eq!(hint(&world), None);
    world.told(client);
    world.subscribe(client, ENDPOINTS, &["a"]);
    assert_eq!(world.told(client), [""; 0], "it lingered no longer than others");
}

/// The error is over with the answer, also where all came back as it was.
#[test]
fn a_wildcard_of_a_type_that_was_away_is_sent_again_as_before() {
    for (protocol, downstream) in [(DELTA, DELTA), (DELTA, SOTW), (SOTW, DELTA), (SOTW, SOTW)] {
        let mut world = world(protocol);
        let first = client(&mut world, downstream);
        goes_away(&mut world, CLUSTERS, 14);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[first].held(CLUSTERS), ["a@1", "b@1"], "nothing is taken");
        is_back(&mut world);
        world.advance(120 * SECOND);
        world.told(first);
        let late = world.client(downstream, "n");
        world.subscribe(late, CLUSTERS, &["*"]);
        world.advance(SECOND);
        let told = world.told(late);
        assert_eq!(told, ["Cluster a@1 b@1 ok"], "{protocol:?} {downstream:?}");
        world.put(0, CLUSTERS, "c", "1");
        world.remove(0, CLUSTERS, "a");
        world.advance(60 * SECOND);
        for client in [first, late] {
            assert_eq!(world.clients[client].held(CLUSTERS), ["b@1", "c@1"], "{protocol:?} {downstream:?}");
        }
    }
}

#[test]
fn a_wildcard_that_the_origin_refuses_is_refused_after_its_stream_and_recovers() {
    for downstream in BOTH {
        let mut world = world(DELTA);
        let client = client(&mut world, downstream);
        world.fail(0, CLUSTERS, "*", 7, "ask by name");
        world.advance(SECOND);
        let told = world.told(client).join(" ");
        assert!(told.contains("-!*:7"), "{told}");
        world.end_type(CLUSTERS, 14);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@1"], "{downstream:?}");
        let now = world.now;
        world.origins[0].answered(now, CLUSTERS, "*");
        world.put(0, CLUSTERS, "c", "1");
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), ["a@1", "b@1", "c@1"], "{downstream:?}");
        let late = world.client(downstream, "n");
        world.subscribe(late, CLUSTERS, &["*"]);
        world.advance(SECOND);
        assert_eq!(world.told(late), ["Cluster a@1 b@1 c@1 ok"], "{downstream:?}");
    }
}

/// Each stream of types may be to another replica.
#[test]
fn one_stream_through_a_relay_is_enough_to_know_of_it() {
    for is_first in [true, false] {
        let mut world = world(DELTA);
        let above = world.add_relay_before(Feeder::Origin(0), DELTA);
        let relay = world.relays[above].core.admit(world.now, &MetadataMap::new()).unwrap().metadata;
        let mut says = vec![relay, MetadataMap::new()];
        if !is_first {
            says.reverse();
        }
        world.origins[0].says_of_itself = says;
        client(&mut world, DELTA);
        let said = world.relays[0].core.admit(world.now, &MetadataMap::new()).unwrap().metadata;
        let path = |metadata: &MetadataMap| metadata.get("x-xds-relay-path").unwrap().to_str().unwrap().to_owned();
        let of_above = world.relays[above].core.admit(world.now, &MetadataMap::new()).unwrap().metadata;
        assert!(path(&said).ends_with(&format!(",{}", path(&of_above))), "{is_first}: {}", path(&said));
    }
}

#[test]
fn what_was_known_before_a_restart_is_served_where_its_type_has_no_method_any_more() {
    for protocol in BOTH {
        let (mut world, store) = (world(protocol), Memory::default());
        world.restart(0, &text(protocol), store.clone());
        world.put(0, ENDPOINTS, "b", "1");
        let first = client(&mut world, DELTA);
        world.subscribe(first, ENDPOINTS, &["b"]);
        world.advance(40 * SECOND);
        world.origins[0].without.insert(ENDPOINTS.into(), 12);
        world.restart(0, &text(protocol), store.clone());
        // At once, and once others are known to be as they were.
        let now = world.client(DELTA, "n");
        for (of, names) in [(LISTENERS, "*"), (CLUSTERS, "*"), (ENDPOINTS, "a")] {
            world.subscribe(now, of, &[names]);
        }
        world.advance(2 * SILENCE * SECOND);
        assert_eq!(world.clients[now].held(ENDPOINTS), ["a@1"], "{protocol:?}");
        world.advance(60 * SECOND);
        let late = world.client(DELTA, "n");
        world.subscribe(late, ENDPOINTS, &["b"]);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[late].held(ENDPOINTS), ["b@1"], "{protocol:?}");
        world.restart(0, &text(protocol), store);
        let again = world.client(DELTA, "n");
        world.subscribe(again, ENDPOINTS, &["a", "b"]);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[again].held(ENDPOINTS), ["a@1", "b@1"], "{protocol:?}: it is kept");
    }
}

#[test]
fn an_origin_that_answers_no_type_and_ends_each_is_away() {
    let mut world = world(DELTA);
    for of in [LISTENERS, CLUSTERS, ENDPOINTS] {
        world.origins[0].without.insert(of.into(), 14);
    }
    let client = client(&mut world, DELTA);
    assert_eq!(world.told(client), [""; 0]);
    let status = world.relays[0].core.status(world.now).origins.remove(0);
    assert_eq!(status.last_error.as_deref(), Some("all ended"));
}
