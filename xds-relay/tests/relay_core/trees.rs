//! Relays of relays: over three hops versions are the same and removals are the origin's, whichever hop dies.

use crate::support::*;

const GLOB: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/*";
/// Of these names are asked for. Who comes back is sent endpoints again, which clients may have lost (rule 49).
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// The hops, from the origin on: the last is before the clients.
const HOPS: usize = 3;
/// Longer than any wait for another attempt.
const LONG: u32 = 60;

fn chains() -> impl Iterator<Item = [Protocol; HOPS]> {
    (0..1 << HOPS).map(|bits| std::array::from_fn(|hop| if bits >> hop & 1 == 0 { DELTA } else { SOTW }))
}

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

/// What every client asks for: by wildcard, by name, and of an authority.
fn asks(chain: &mut Chain, client: usize) {
    chain.world.subscribe(client, LISTENERS, &["*"]);
    chain.world.subscribe(client, ROUTES, &["x", "y"]);
    chain.world.subscribe(client, CLUSTERS, &[GLOB, &member("x")]);
}

/// A chain in which each relay has a client of each protocol that has everything.
fn served(protocols: [Protocol; HOPS]) -> Chain {
    let mut chain = Chain::new(&protocols, "share_by: [cluster]");
    for (of, version) in [(LISTENERS, "l7"), (ROUTES, "r7")] {
        chain.world.origins[0].set_version(of, version);
    }
    for name in ["x", "y"] {
        chain.world.put(0, LISTENERS, name, "1");
        chain.world.put(0, ROUTES, name, "1");
        chain.world.put(0, CLUSTERS, &member(name), "1");
    }
    for (relay, protocol) in (0..HOPS).flat_map(|relay| [(relay, DELTA), (relay, SOTW)]) {
        let client = chain.client(relay, protocol, &format!("n{relay}{protocol:?}"));
        asks(&mut chain, client);
    }
    chain.world.advance(LONG * SECOND);
    assert!(chain.told().iter().all(|told| told.matches('@').count() >= 6), "everybody has everything");
    chain
}

fn versions(chain: &Chain, relay: usize, protocol: Protocol) -> &[String] {
    &chain.world.clients[2 * relay + usize::from(protocol == SOTW)].versions
}

/// What a client holds, of all types.
fn held(chain: &Chain, client: usize) -> String {
    [LISTENERS, ROUTES, CLUSTERS].map(|of| chain.world.clients[client].held(of).join(" ")).join(" ")
}

#[test]
fn rule_146_versions_are_the_origin_s_through_three_hops() {
    for protocol in [DELTA, SOTW] {
        let chain = served([protocol; HOPS]);
        let near = versions(&chain, 0, protocol);
        assert!((1..HOPS).all(|relay| versions(&chain, relay, protocol) == near), "{protocol:?}: {near:?}");
        let said: &[&str] = if protocol == DELTA { &["1"] } else { &["l7", "r7"] };
        assert!(said.iter().all(|said| near.iter().any(|version| version == said)), "{protocol:?}: {near:?}");
    }
}

/// Where protocols change on the way versions are converted, the same on every way of that kind.
#[test]
fn rule_146_relays_of_equal_chains_tell_the_same_versions() {
    for protocols in chains() {
        let mut chain = served(protocols);
        let mut feeder = Feeder::Origin(0);
        for protocol in protocols {
            feeder = Feeder::Relay(chain.add(feeder, protocol, "share_by: [cluster]"));
        }
        for downstream in [DELTA, SOTW] {
            let moving = 2 * (HOPS - 1) + usize::from(downstream == SOTW);
            chain.world.disconnect(moving);
            chain.world.connect(moving, 2 * HOPS - 1);
        }
        chain.world.advance(LONG * SECOND);
        assert_eq!(chain.told().concat().matches(['@', '-']).count(), 0, "{protocols:?}");
    }
}

#[test]
fn rule_146_whichever_hop_starts_anew_nothing_is_sent_again_and_nothing_is_removed() {
    for (protocols, hop) in chains().flat_map(|chain| (0..HOPS).map(move |hop| (chain, hop))) {
        let mut chain = served(protocols);
        let responses =
            |chain: &Chain| chain.world.clients.iter().map(|client| client.chunks.len()).collect::<Vec<_>>();
        let before = responses(&chain);
        chain.kill(hop);
        chain.world.advance(5 * SECOND);
        chain.revive(hop);
        chain.world.advance(LONG * SECOND);
        let told = chain.told();
        assert!(!told.concat().contains(['@', '-']), "{protocols:?}, hop {hop}: {told:?}");
        for (client, (before, now)) in before.into_iter().zip(responses(&chain)).enumerate() {
            // Who came back itself is answered: over delta with nothing, and over SotW, where it asks for names, with all (rule 87).
            let answers = if client / 2 == hop { 2 } else { 0 };
            assert!(now - before <= answers, "{protocols:?}, hop {hop}, client {client}: {}", now - before);
        }
        chain.world.origins[0].set_version(LISTENERS, "l8");
        chain.world.put(0, LISTENERS, "x", "2");
        chain.world.remove(0, CLUSTERS, &member("y"));
        chain.world.advance(LONG * SECOND);
        let news = format!("Listener x@2; Cluster -{}", member("y"));
        for (client, told) in chain.told().into_iter().enumerate() {
            assert_eq!(told.replace(" ok", ""), news, "{protocols:?}, hop {hop}, client {client}");
        }
    }
}

/// It is the origin that said so, though to nobody who was there.
#[test]
fn rule_150_what_went_while_a_hop_was_away_is_told_once_that_is_known_and_nothing_else() {
    for (protocols, hop) in chains().flat_map(|chain| (0..HOPS).map(move |hop| (chain, hop))) {
        let mut chain = served(protocols);
        (hop..HOPS).for_each(|relay| chain.kill(relay));
        chain.told();
        chain.world.origins[0].set_version(LISTENERS, "l8");
        chain.world.remove(0, LISTENERS, "y");
        chain.world.remove(0, CLUSTERS, &member("y"));
        chain.world.set_up(0, false);
        chain.told();
        (hop..HOPS).for_each(|relay| chain.revive(relay));
        chain.world.advance(LONG * SECOND);
        let told = chain.told();
        // Of the origin itself nobody above knows what it said.
        let gone = if hop == 0 { 0 } else { told.concat().matches("-y").count() + told.concat().matches("/y").count() };
        assert_eq!(told.concat().matches(['@', '-']).count(), gone, "{protocols:?}, hop {hop}: {told:?}");
        chain.world.set_up(0, true);
        chain.world.advance(2 * LONG * SECOND);
        chain.told();
        for client in 0..2 * HOPS {
            let expected = format!("x@1 x@1 y@1 {}@1", member("x"));
            assert_eq!(held(&chain, client), expected, "{protocols:?}, hop {hop}, client {client}");
        }
    }
}

/// Not the first hop: what it is told is what it says. Each of them may be the one that is empty.
#[test]
fn rule_150_a_hop_that_is_empty_and_cut_off_says_nothing() {
    for (protocols, hop) in chains().flat_map(|chain| (1..HOPS).map(move |hop| (chain, hop))) {
        let mut chain = served(protocols);
        // Those above are gone for good, and this one starts without anything.
        (0..hop).for_each(|above| chain.kill(above));
        chain.kill(hop);
        chain.told();
        chain.revive(hop);
        chain.world.advance(3 * LONG * SECOND);
        assert_eq!(chain.told().concat(), "", "{protocols:?}, hop {hop}");
        // Who comes finds nothing, and concludes nothing.
        let late = chain.client(HOPS - 1, DELTA, "late");
        asks(&mut chain, late);
        chain.world.advance(LONG * SECOND);
        let told = chain.told().pop().unwrap();
        assert!(!told.contains('-') && (hop == HOPS - 1 || told.contains('@')), "{protocols:?}, hop {hop}: {told}");
        (0..hop).for_each(|above| chain.revive(above));
        chain.world.advance(2 * LONG * SECOND);
        let told = chain.told();
        assert!(!told.concat().contains('-'), "{protocols:?}, hop {hop}: {told:?}");
        assert!(
            (0..=2 * HOPS).all(|client| held(&chain, client).matches('@').count() == 6),
            "{protocols:?}, hop {hop}"
        );
    }
}

/// All die, from the last to the first or from the first to the last, and come back in either order.
#[test]
fn rule_150_of_a_tree_that_starts_anew_as_a_whole_nobody_hears_anything() {
    for (protocols, order) in chains().flat_map(|chain| [[0, 1, 2], [2, 1, 0], [1, 2, 0]].map(|order| (chain, order))) {
        let mut chain = served(protocols);
        order.into_iter().for_each(|hop| chain.kill(hop));
        for hop in order {
            chain.world.advance(20 * SECOND);
            chain.revive(hop);
        }
        chain.world.advance(2 * LONG * SECOND);
        let told = chain.told();
        assert!(!told.concat().contains(['@', '-']), "{protocols:?}, {order:?}: {told:?}");
        chain.world.remove(0, LISTENERS, "x");
        chain.world.advance(LONG * SECOND);
        assert!(chain.told().iter().all(|told| told.contains("-x")), "{protocols:?}, {order:?}");
    }
}
