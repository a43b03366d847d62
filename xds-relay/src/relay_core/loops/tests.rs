//! Relays that say who is behind them, without streams.

use super::*;

/// Relays, by number, and the streams between them: from one to its origin.
struct Network {
    relays: Vec<Arc<Relays>>,
    streams: BTreeMap<(u64, u64), [Option<Seen>; 2]>,
}

impl Network {
    fn of(relays: u64) -> Self {
        let relays = (0..relays).map(|number| Relays::new(Token::of(number.into()))).collect();
        Self { relays, streams: BTreeMap::new() }
    }

    fn relay(&self, number: u64) -> &Arc<Relays> {
        &self.relays[usize::try_from(number).unwrap()]
    }

    fn open(&mut self, from: u64, to: u64) -> Result<(), LoopError> {
        let (client, server) = (self.relay(from), self.relay(to));
        let served = server.hear(Side::Downstream, &client.say(Side::Upstream))?;
        let opened = client.hear(Side::Upstream, &server.say(Side::Downstream))?;
        assert!(served.is_some() && opened.is_some());
        self.streams.insert((from, to), [served, opened]);
        Ok(())
    }

    fn close(&mut self, from: u64, to: u64) {
        assert!(self.streams.remove(&(from, to)).is_some());
    }
}

/// With one digit each, as the tests have them.
fn brief(error: &LoopError) -> String {
    (0..10).fold(error.to_string(), |text, number| {
        text.replace(&Token::of(number).instance().to_string(), &number.to_string())
    })
}

fn path(hops: &[&[u128]]) -> RelayPath<Token> {
    RelayPath(hops.iter().map(|hop| hop.iter().copied().map(Token::of).collect()).collect())
}

fn orders(of: &[u64]) -> Vec<Vec<u64>> {
    let Some((first, rest)) = of.split_first() else { return vec![Vec::new()] };
    let places = |order: Vec<u64>| {
        (0..=order.len()).map(move |at| [&order[..at], &[*first], &order[at..]].concat()).collect::<Vec<_>>()
    };
    orders(rest).into_iter().flat_map(places).collect()
}

#[test]
fn rule_159_a_relay_finds_itself_and_who_is_on_both_its_sides() {
    use Side::{Downstream, Upstream};
    const NONE: &[&[u128]] = &[];
    for (side, hops, others, expected) in [
        (Downstream, &[&[1][..]][..], NONE, None),
        (Upstream, &[&[1]], NONE, None),
        // A relay that has several before it, or several origins, is no loop.
        (Downstream, &[&[1], &[2, 3], &[4]], &[&[5], &[6]], None),
        (Upstream, &[&[5], &[6, 7]], &[&[1], &[2, 3], &[4]], None),
        // Itself: 0 → 1 is "the origin of 0 is 1".
        (Downstream, &[&[0]], NONE, Some("0 → 0")),
        (Upstream, &[&[0]], NONE, Some("0 → 0")),
        (Downstream, &[&[1], &[0]], NONE, Some("0 → 1 → 0")),
        (Upstream, &[&[1], &[0]], NONE, Some("0 → 1 → 0")),
        (Downstream, &[&[1], &[2, 3], &[0]], NONE, Some("0 → 2|3 → 1 → 0")),
        (Upstream, &[&[1], &[2, 3], &[0]], NONE, Some("0 → 1 → 2|3 → 0")),
        // Somebody on both sides.
        (Downstream, &[&[1]], &[&[1]], Some("0 → 1 → 0")),
        (Upstream, &[&[1]], &[&[1]], Some("0 → 1 → 0")),
        (Downstream, &[&[1], &[2]], &[&[3], &[2]], Some("0 → … → 2 → 1 → 0")),
        (Upstream, &[&[1], &[2]], &[&[3], &[2]], Some("0 → 1 → 2 → … → 0")),
        // Too far, and the loop counts first.
        (Upstream, &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8]], NONE, None),
        (Upstream, &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9]], NONE, Some("9 of 8")),
        (Downstream, &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9]], NONE, None),
        (Downstream, &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9], &[10]], NONE, Some("10 of 8")),
        (
            Downstream,
            &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[0]],
            NONE,
            Some("0 → 8 → 7 → 6 → 5 → 4 → 3 → 2 → 1 → 0"),
        ),
        (Downstream, &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9]], &[&[1]], Some("0 → 1 → 0")),
    ] {
        let mut known = Hops::default();
        known.add(places(&path(others)));
        let found = check(Token::of(0).instance(), side, &path(hops).instances(), &known).err();
        let found = found.map(|error| brief(&error));
        let expected = expected.map(|expected| match expected.split_once(" of ") {
            Some((hops, most)) => format!("{hops} relays stand one behind the other, of at most {most}"),
            None => format!("a loop of relays: {expected}"),
        });
        assert_eq!(found, expected, "{side:?} {hops:?} {others:?}");
    }
}

#[test]
fn rule_159_of_a_loop_of_up_to_three_the_last_stream_is_not_opened_and_all_others_are() {
    for relays in 1..=3 {
        for order in orders(&(0..relays).collect::<Vec<_>>()) {
            let mut network = Network::of(relays);
            let (last, first) = order.split_last().unwrap();
            for from in first {
                assert_eq!(network.open(*from, (from + 1) % relays), Ok(()), "{order:?}");
            }
            for _ in 0..3 {
                let error = network.open(*last, (last + 1) % relays).unwrap_err();
                assert!(brief(&error).starts_with("a loop of relays: "), "{order:?}: {error}");
            }
            assert_eq!(network.streams.len(), first.len());
        }
    }
}

/// Who is asked asks its own origin: that is the order in which streams are opened for a client.
#[test]
fn rule_159_of_a_longer_loop_the_stream_that_closes_it_is_not_opened() {
    for relays in 4..=9 {
        for first in 0..relays {
            let mut network = Network::of(relays);
            let mut streams = (0..relays).map(|number| (first + number) % relays);
            let last = streams.next_back().unwrap();
            for from in streams {
                assert_eq!(network.open(from, (from + 1) % relays), Ok(()));
            }
            assert!(network.open(last, first).is_err());
        }
    }
}

/// What is said is not said again while a stream is open, so that nobody may know all of a longer loop.
#[test]
fn rule_159_a_loop_that_nobody_knows_all_of_is_found_when_its_streams_are_opened_anew() {
    for relays in 4..=6 {
        for order in orders(&(0..relays).collect::<Vec<_>>()) {
            let mut network = Network::of(relays);
            if order.iter().all(|from| network.open(*from, (from + 1) % relays).is_ok()) {
                let is_found_by = |from: u64| {
                    network.close(from, (from + 1) % relays);
                    network.open(from, (from + 1) % relays).is_err()
                };
                assert!((0..relays).any(is_found_by), "{order:?}");
            }
        }
    }
}

#[test]
fn rule_159_of_two_streams_that_are_opened_at_the_same_time_not_both_stay() {
    let network = Network::of(2);
    let [a, b] = &network.relays[..] else { panic!("two relays") };
    let (from_a, from_b) = (a.say(Side::Upstream), b.say(Side::Upstream));
    let _at_b = b.hear(Side::Downstream, &from_a).unwrap();
    let _at_a = a.hear(Side::Downstream, &from_b).unwrap();
    let (to_a, to_b) = (b.say(Side::Downstream), a.say(Side::Downstream));
    assert_eq!(brief(&a.hear(Side::Upstream, &to_a).unwrap_err()), "a loop of relays: 0 → 1 → 0");
    assert_eq!(brief(&b.hear(Side::Upstream, &to_b).unwrap_err()), "a loop of relays: 1 → 0 → 1");
}

#[test]
fn rule_159_a_stream_that_is_over_closes_no_loop() {
    let mut network = Network::of(2);
    network.open(0, 1).unwrap();
    assert!(network.open(1, 0).is_err());
    network.close(0, 1);
    network.open(1, 0).unwrap();
    assert!(network.open(0, 1).is_err());
}

#[test]
fn rule_159_a_large_tree_is_no_loop() {
    const EDGES: u64 = 1000;
    let mut network = Network::of(EDGES + 4);
    let [root, left, right, late] = [EDGES, EDGES + 1, EDGES + 2, EDGES + 3];
    for edge in 0..EDGES {
        network.open(edge, left).unwrap();
        network.open(edge, right).unwrap();
    }
    for regional in [left, right] {
        network.open(regional, root).unwrap();
    }
    // A diamond, and who comes late.
    network.open(right, left).unwrap();
    network.open(0, root).unwrap();
    network.open(late, 0).unwrap();
    // However many there are, what is said of them is read.
    let said = RelayPath::<Token>::read(&network.relay(root).say(Side::Upstream)).unwrap().unwrap();
    assert_eq!(said.0.iter().map(BTreeSet::len).sum::<usize>(), MAX_TOLD);
    // The way back up is a loop, whoever was not told of.
    for edge in [0, EDGES / 2, EDGES - 1, late] {
        assert!(network.open(root, edge).is_err(), "{edge}");
    }
}

#[test]
fn rule_159_nine_relays_may_stand_one_behind_the_other() {
    let mut network = Network::of(10);
    for from in (1..9).rev() {
        network.open(from, from + 1).unwrap();
    }
    let error = network.open(0, 1).unwrap_err();
    assert!(matches!(error, LoopError::TooFar { hops: 9 }), "{error}");
    // Upwards it is not said of those that are too far, but once they ask anew they hear.
    network.close(1, 2);
    network.open(0, 1).unwrap();
    network.open(1, 2).unwrap();
    network.close(0, 1);
    assert!(network.open(0, 1).is_err());
}

/// It says that there is a relay before it which is the origin, or one too many: its own relay says that on.
#[test]
fn rule_159_who_claims_what_is_not_takes_no_origin_away() {
    let mut network = Network::of(3);
    network.open(0, 1).unwrap();
    let heard = network.relay(0).say(Side::Downstream);
    let heard = heard.get(KEY).unwrap().to_str().unwrap();
    let [own, origin] = heard.split(',').collect::<Vec<_>>()[..] else { panic!("a relay and its origin: {heard}") };
    network.close(0, 1);
    // What it has heard, as a token: as it is, or filled up.
    let far = (10..=10 + MAX_HOPS).map(|hop| format!("{hop:032x}")).collect::<Vec<_>>().join(",");
    for claim in [format!("{origin:0>32}"), format!("{origin}{origin}"), format!("{own:0>32}"), far] {
        let mut metadata = MetadataMap::new();
        metadata.insert(KEY, claim.parse().unwrap());
        let liar = network.relay(0).hear(Side::Downstream, &metadata).unwrap();
        assert_eq!(network.open(0, 1), Ok(()), "{claim}");
        assert_eq!(network.open(1, 2), Ok(()), "{claim}");
        drop(liar);
        network.close(1, 2);
        network.close(0, 1);
    }
}

#[test]
fn rule_159_a_call_that_is_handed_on_does_not_come_by_twice() {
    let network = Network::of(3);
    let mut metadata = MetadataMap::new();
    for relay in 0..3 {
        network.relay(relay).hand_on(&mut metadata).unwrap();
    }
    let error = network.relay(0).hand_on(&mut metadata).unwrap_err();
    assert_eq!(brief(&error), "a loop of relays: 0 → 1 → 2 → 0");
}

#[test]
fn rule_159_who_says_something_else_is_refused_and_who_says_nothing_is_no_relay() {
    let network = Network::of(1);
    for side in [Side::Downstream, Side::Upstream] {
        let mut metadata = MetadataMap::new();
        assert!(network.relay(0).hear(side, &metadata).unwrap().is_none());
        metadata.insert(KEY, "me".parse().unwrap());
        assert_eq!(network.relay(0).hear(side, &metadata).unwrap_err(), LoopError::Unreadable);
    }
}
