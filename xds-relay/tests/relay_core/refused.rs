//! A wildcard or a glob that an origin does not send, behind one relay after another: who asks is told so in the origin's
//! words, and nothing that anybody holds is gone.

use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryResponse, ResourceError};

use crate::parameters::{chain, sends};
use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";
/// Longer than any silence that says something.
const LONG: u32 = 60;

/// The protocols of two hops, of the client, what is asked for, and what there may be of it.
fn cases() -> impl Iterator<Item = ([Protocol; 2], Protocol, &'static str, &'static str)> {
    let protocols = |bits: u32| [0, 1, 2].map(|hop| if bits >> hop & 1 == 0 { DELTA } else { SOTW });
    (0..8).map(protocols).flat_map(|[first, second, client]| {
        [("*", "c"), (GLOB, MEMBER)].map(|(asked, member)| ([first, second], client, asked, member))
    })
}

/// What is asked for is refused: a client of the first relay asks for a name of it, and one of the second for all.
fn refused(hops: &[Protocol], protocol: Protocol, (asked, member): (&str, &str)) -> (Chain, [usize; 2]) {
    let mut chain = Chain::new(hops, "share_by: [cluster]");
    chain.world.fail(0, CLUSTERS, asked, 7, "ask by name");
    let clients = [(0, "named", member), (1, "first", asked)].map(|(relay, node, wanted)| {
        let client = chain.client(relay, protocol, node);
        chain.world.subscribe(client, CLUSTERS, &[wanted]);
        client
    });
    (chain, clients)
}

/// The errors that a client was told since this was asked last.
pub(crate) fn errors(chain: &mut Chain, client: usize, protocol: Protocol) -> Vec<String> {
    let responses = std::mem::take(&mut chain.world.clients[client].chunks);
    let errors = |bytes: Vec<u8>| match protocol {
        Protocol::Delta => DeltaDiscoveryResponse::decode(&*bytes).unwrap().resource_errors,
        Protocol::Sotw => DiscoveryResponse::decode(&*bytes).unwrap().resource_errors,
    };
    let words = |error: ResourceError| {
        let status = error.error_detail.unwrap();
        format!("{}:{} {}", error.resource_name.unwrap().name, status.code, status.message)
    };
    responses.iter().flat_map(|chunks| errors(chunks.concat())).map(words).collect()
}

#[test]
fn who_asks_behind_two_relays_for_what_is_refused_is_told_so() {
    for (hops, protocol, asked, _) in cases() {
        let mut chain = Chain::new(&hops, "share_by: [cluster]");
        chain.world.fail(0, CLUSTERS, asked, 7, "ask by name");
        for node in ["first", "later"] {
            let client = chain.client(1, protocol, node);
            chain.world.subscribe(client, CLUSTERS, &[asked]);
            chain.world.advance(LONG * SECOND);
            let case = format!("{hops:?} {protocol:?} {asked} {node}");
            assert_eq!(errors(&mut chain, client, protocol), [format!("{asked}:7 ask by name")], "{case}");
        }
    }
}

#[test]
fn what_clients_hold_of_what_is_refused_from_now_on_stays() {
    for (hops, protocol, asked, member) in cases() {
        let mut chain = Chain::new(&hops, "share_by: [cluster]");
        chain.world.put(0, CLUSTERS, member, "1");
        let client = chain.client(1, protocol, "n");
        chain.world.subscribe(client, CLUSTERS, &[asked]);
        chain.world.advance(LONG * SECOND);
        chain.world.told(client);
        chain.world.clients[client].chunks.clear();
        chain.world.fail(0, CLUSTERS, asked, 7, "no more");
        chain.world.advance(LONG * SECOND);
        let case = format!("{hops:?} {protocol:?} {asked}");
        assert_eq!(errors(&mut chain, client, protocol), [format!("{asked}:7 no more")], "{case}");
        assert_eq!(chain.world.clients[client].held(CLUSTERS), [format!("{member}@1")], "{case}");
        // Whoever comes later has what there is, and is told.
        let later = chain.client(1, protocol, "later");
        chain.world.subscribe(later, CLUSTERS, &[asked]);
        chain.world.advance(LONG * SECOND);
        assert_eq!(chain.world.clients[later].held(CLUSTERS), [format!("{member}@1")], "{case}");
        assert_eq!(errors(&mut chain, later, protocol), [format!("{asked}:7 no more")], "{case}");
        // What it has again is sent as ever.
        chain.world.put(0, CLUSTERS, member, "2");
        chain.world.advance(LONG * SECOND);
        for client in [client, later] {
            assert_eq!(chain.world.clients[client].held(CLUSTERS), [format!("{member}@2")], "{case}");
        }
    }
}

/// What comes because somebody asks for its name says nothing of the collection, and no more so to a relay that has it by the
/// collection alone: whoever comes later is told as before.
#[test]
fn what_others_ask_for_by_name_is_no_answer_of_what_is_refused() {
    for (hops, protocol, asked, member) in cases() {
        let (mut chain, [named, first]) = refused(&hops, protocol, (asked, member));
        chain.world.advance(LONG * SECOND);
        for version in ["1", "2"] {
            chain.world.put(0, CLUSTERS, member, version);
            chain.world.advance(LONG * SECOND);
            let there = [format!("{member}@{version}")];
            for relay in [0, 1] {
                let later = chain.client(relay, protocol, "later");
                chain.world.subscribe(later, CLUSTERS, &[asked]);
                chain.world.advance(LONG * SECOND);
                let case = format!("{hops:?} {protocol:?} {asked} {version} at {relay}");
                assert_eq!(errors(&mut chain, later, protocol), [format!("{asked}:7 ask by name")], "{case}");
                for client in [named, first, later] {
                    assert_eq!(chain.world.clients[client].held(CLUSTERS), there, "{case}");
                }
            }
        }
    }
}

/// That it is sent after all is told with what comes of it, from one relay to the next.
#[test]
fn what_is_refused_no_more_is_told_so_by_what_comes_of_it() {
    for (hops, protocol, asked, member) in cases() {
        let mut chain = Chain::new(&hops, "share_by: [cluster]");
        chain.world.fail(0, CLUSTERS, asked, 7, "not yet");
        let first = chain.client(1, protocol, "first");
        chain.world.subscribe(first, CLUSTERS, &[asked]);
        chain.world.advance(LONG * SECOND);
        let case = format!("{hops:?} {protocol:?} {asked}");
        assert_eq!(errors(&mut chain, first, protocol), [format!("{asked}:7 not yet")], "{case}");
        let now = chain.world.now;
        chain.world.origins[0].answered(now, CLUSTERS, asked);
        chain.world.put(0, CLUSTERS, member, "1");
        chain.world.advance(LONG * SECOND);
        let later = [0, 1].map(|relay| chain.client(relay, protocol, "later"));
        for client in later {
            chain.world.subscribe(client, CLUSTERS, &[asked]);
        }
        chain.world.advance(LONG * SECOND);
        for client in [first, later[0], later[1]] {
            assert_eq!(chain.world.clients[client].held(CLUSTERS), [format!("{member}@1")], "{case}");
            assert_eq!(errors(&mut chain, client, protocol), [""; 0], "{case}");
        }
    }
}

/// The first update of a stream has what is asked for by its name, and that is the answer, too, which is said once.
#[test]
fn what_was_refused_before_a_stream_ended_is_told_so_no_more_once_something_comes_of_it() {
    for (protocol, of) in [DELTA, SOTW].into_iter().flat_map(|protocol| [CLUSTERS, ENDPOINTS].map(|of| (protocol, of)))
    {
        let mut chain = Chain::new(&[protocol], "share_by: [cluster]");
        chain.world.fail(0, of, "*", 7, "not yet");
        let named = chain.client(0, DELTA, "named");
        chain.world.subscribe(named, of, &["c"]);
        let first = chain.client(0, DELTA, "first");
        chain.world.subscribe(first, of, &["*"]);
        chain.world.put(0, of, "c", "1");
        chain.world.advance(LONG * SECOND);
        chain.world.set_up(0, false);
        chain.world.advance(LONG * SECOND);
        let now = chain.world.now;
        chain.world.origins[0].answered(now, of, "*");
        chain.world.put(0, of, "c", "2");
        chain.world.set_up(0, true);
        chain.world.advance(LONG * SECOND);
        chain.world.put(0, of, "d", "1");
        chain.world.advance(LONG * SECOND);
        let later = chain.client(0, DELTA, "later");
        chain.world.subscribe(later, of, &["*"]);
        chain.world.advance(LONG * SECOND);
        let case = format!("{protocol:?} {of}");
        for client in [first, later] {
            assert_eq!(chain.world.clients[client].held(of), ["c@2", "d@1"], "{case}");
        }
        assert_eq!(errors(&mut chain, later, DELTA), [""; 0], "{case}");
    }
}

/// On a stream that is new, and knows of no refusal, what is told first is no answer either.
#[test]
fn what_is_refused_in_other_words_while_a_relay_is_away_is_refused_to_all_behind_it() {
    for (hops, protocol, asked, member) in cases() {
        let (mut chain, [named, first]) = refused(&hops, protocol, (asked, member));
        chain.world.put(0, CLUSTERS, member, "1");
        chain.world.advance(LONG * SECOND);
        chain.kill(0);
        chain.world.put(0, CLUSTERS, member, "2");
        chain.world.fail(0, CLUSTERS, asked, 7, "by name only");
        chain.revive(0);
        chain.world.advance(LONG * SECOND);
        for relay in [0, 1] {
            let later = chain.client(relay, protocol, "later");
            chain.world.subscribe(later, CLUSTERS, &[asked]);
            chain.world.advance(LONG * SECOND);
            let case = format!("{hops:?} {protocol:?} {asked} at {relay}");
            assert_eq!(errors(&mut chain, later, protocol), [format!("{asked}:7 by name only")], "{case}");
            for client in [named, first, later] {
                assert_eq!(chain.world.clients[client].held(CLUSTERS), [format!("{member}@2")], "{case}");
            }
        }
    }
}

/// A stream fetches for itself what must not be shared: what it has of that is of the wildcard, too, which is refused elsewhere.
#[test]
fn what_a_stream_fetches_for_itself_of_what_is_refused_comes_with_the_error() {
    let mut chain = Chain::new(&[DELTA], "share_by: [cluster]");
    chain.world.fail(0, CLUSTERS, "*", 7, "ask by name");
    let named = chain.client(0, DELTA, "named");
    chain.world.subscribe(named, CLUSTERS, &["c"]);
    let client = chain.client(0, DELTA, "n");
    chain.world.subscribe(client, CLUSTERS, &["*"]);
    chain.world.advance(LONG * SECOND);
    for version in ["1", "2"] {
        chain.world.clients[client].chunks.clear();
        let now = chain.world.now;
        chain.world.origins[0].put_uncached(now, "", CLUSTERS, "c", version);
        chain.world.advance(LONG * SECOND);
        assert_eq!(chain.world.clients[client].held(CLUSTERS), [format!("c@{version}")]);
        let responses = std::mem::take(&mut chain.world.clients[client].chunks);
        let responses = responses.iter().map(|chunks| DeltaDiscoveryResponse::decode(&*chunks.concat()).unwrap());
        for response in responses.filter(|response| !response.resources.is_empty()) {
            assert_eq!(response.resource_errors.len(), 1, "{version}");
        }
    }
}

/// Who asks by locators alone has no part in what is asked for without: only what it is sent by them says that there are errors.
#[test]
fn what_is_sent_to_locators_of_what_is_refused_comes_with_the_error() {
    for (protocol, of) in [DELTA, SOTW].into_iter().flat_map(|protocol| [CLUSTERS, ENDPOINTS].map(|of| (protocol, of)))
    {
        let (mut world, last) = chain(DELTA, &["final"]);
        let selects = [("env", "prod")];
        let clients = ["c", "*"].map(|asked| {
            let client = world.client_selecting(last, protocol, sends(&selects));
            world.subscribe(client, of, &[asked]);
            client
        });
        world.put(0, of, "c", "1");
        world.advance(LONG * SECOND);
        world.fail(0, of, "*", 7, "ask by name");
        world.advance(LONG * SECOND);
        for version in ["2", "3"] {
            world.clients[clients[1]].chunks.clear();
            world.put(0, of, "c", version);
            world.advance(LONG * SECOND);
            assert_eq!(world.clients[clients[1]].held(of), [format!("c@{version}")], "{protocol:?} {of}");
            let told = std::mem::take(&mut world.clients[clients[1]].chunks);
            let told: Vec<_> = told.iter().map(|chunks| beside(protocol, &chunks.concat())).collect();
            assert_eq!(told, [(1, 1)], "{protocol:?} {of} {version}");
        }
    }
}

/// How many resources and errors there are in a response.
fn beside(protocol: Protocol, bytes: &[u8]) -> (usize, usize) {
    match protocol {
        Protocol::Delta => {
            let response = DeltaDiscoveryResponse::decode(bytes).unwrap();
            (response.resources.len(), response.resource_errors.len())
        }
        Protocol::Sotw => {
            let response = DiscoveryResponse::decode(bytes).unwrap();
            (response.resources.len(), response.resource_errors.len())
        }
    }
}
