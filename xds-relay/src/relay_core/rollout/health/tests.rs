//! What is counted of clients, and of how many.

use prost::Message as _;

use super::*;
use crate::relay_core::rollout::tally::Tallies;
use crate::releases::{Halt, Instance, Threshold};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

fn node(id: usize) -> ClientName {
    ClientName::Node(id.to_string().into())
}

fn candidate(byte: u8) -> Option<Release> {
    Some(Release::of_bytes([byte; 16]))
}

fn halts(health: &Health, byte: u8, halt: &Halt, now: Instant) -> Option<String> {
    let release = Release::of_bytes([byte; 16]);
    let tally = health.tally(release, None, now)?;
    Tallies::default().halts(&tally, release, halt, now)
}

fn refused(clients: impl IntoIterator<Item = usize>) -> Heard {
    let mut heard = Heard::default();
    clients.into_iter().for_each(|id| heard.refused(&node(id), &CLUSTERS.into(), &["a".parse().unwrap()], "no"));
    heard
}

fn stream(id: usize, types: Option<Option<Instant>>) -> StreamLook {
    let of_type = |unanswered_since| TypeLook { type_url: CLUSTERS.into(), unanswered_since, accepts: false };
    StreamLook { client: node(id), is_served: true, types: types.map(|since| vec![of_type(since)]) }
}

#[test]
fn no_more_clients_and_refusals_than_that_are_kept() {
    let (mut health, now) = (Health::default(), Instant::now());
    health.begin(candidate(1), None, now);
    for half in [0..MOST / 2 + 1, MOST / 2 + 1..2 * MOST] {
        health.hear(refused(half), now);
    }
    let streams = (0..2 * MOST).map(|id| stream(id, None)).collect();
    health.look(Some(&Look { candidate: candidate(1), streams }), now);
    assert_eq!((health.clients.len(), health.refusals.len()), (MOST, MOST));
    let mut heard = Heard::default();
    (0..2 * MOST).for_each(|id| heard.refused_stable(node(id), &CLUSTERS.into()));
    (0..2 * MOST).for_each(|id| heard.served(node(id)));
    assert_eq!((heard.served.len(), heard.refused_stable.len()), (MOST, MOST));
    health.hear(heard, now);
    assert_eq!(health.refusing().len(), MOST);
    // Room for others, once it lacks: those that are not here.
    let streams = vec![stream(7, None)];
    health.look(Some(&Look { candidate: candidate(1), streams }), now);
    assert_eq!(health.refusing(), BTreeSet::from([node(7)]));
}

#[test]
fn what_a_client_refuses_counts_however_many_there_are_and_however_much_others_refuse() {
    let (mut health, now) = (Health::default(), Instant::now());
    health.begin(candidate(1), None, now);
    let streams = (0..MOST).map(|id| stream(id, None)).collect();
    health.look(Some(&Look { candidate: candidate(1), streams }), now);
    health.hear(refused([MOST + 7]), now);
    let why = halts(&health, 1, &Halt::default(), now).unwrap();
    assert!(why.starts_with("clients refused 1, such as a"), "{why}");
    // One that refuses all there is leaves room.
    let mut heard = Heard::default();
    let names: Vec<_> = (0..2 * MOST).map(|name| format!("name-{name}").parse().unwrap()).collect();
    heard.refused(&node(1), &CLUSTERS.into(), &names, "no");
    (2..6).for_each(|id| heard.refused(&node(id), &CLUSTERS.into(), &["b".parse().unwrap()], "no"));
    health.hear(heard, now);
    let halt = Halt { rejected: "0.05%".parse().unwrap(), ..Halt::default() };
    let why = halts(&health, 1, &halt, now).unwrap();
    assert!(why.starts_with("6 of 10001 clients refused something"), "{why}");
}

/// They may say what they like, at any length.
#[test]
fn who_refused_first_is_told_and_in_which_words() {
    let (mut health, now) = (Health::default(), Instant::now());
    health.begin(candidate(1), None, now);
    let said = |client: &str, words: &str| {
        let mut heard = Heard::default();
        heard.refused(&ClientName::Node(client.into()), &CLUSTERS.into(), &["a".parse().unwrap()], words);
        heard
    };
    health.hear(said("node\u{202e}", &format!("no\nsuch\u{1b}[31m {}", "x".repeat(500))), now);
    health.hear(said("a first one", "later"), now);
    let why = halts(&health, 1, &Halt::default(), now).unwrap();
    let start = format!("clients refused 2, such as a ({CLUSTERS}) by node\\u{{202e}}: no\\nsuch\\u{{1b}}[31m xxx");
    assert!(why.starts_with(&start) && why.len() < 400, "{why}");
}

/// Others are told of as many as that.
#[test]
fn clients_that_move_are_not_lost_and_are_counted_where_they_are() {
    let (mut health, now) = (Health::default(), Instant::now());
    let later = |seconds| now + Duration::from_secs(seconds);
    health.begin(candidate(1), None, now);
    let streams = |ids: std::ops::Range<usize>| ids.map(|id| stream(id, None)).collect();
    health.look(Some(&Look { candidate: candidate(1), streams: streams(0..5000) }), now);
    health.look(Some(&Look { candidate: candidate(1), streams: streams(0..1000) }), now);
    let halt = Halt { lost: "2%".parse().unwrap(), ..Halt::default() };
    assert!(halts(&health, 1, &halt, later(15)).unwrap().starts_with("4000 of 5000 clients are gone"), "it is alone");

    let (release, none) = (candidate(1).unwrap(), BTreeSet::new());
    let own = health.tally(release, Some(&none), later(15)).unwrap();
    let elsewhere = Tally { all: 4000, served: 4000, here: own.lost_prints.clone(), ..Tally::of(release) };
    let mut tallies = Tallies::default();
    tallies.hear(Instance(2), Some(&elsewhere.encode_to_vec()), later(15));
    assert_eq!(tallies.halts(&own, release, &halt, later(15)), None);
    // Until all have been found.
    for _ in 0..4 {
        health.are_elsewhere(&tallies.here(release));
        let own = health.tally(release, Some(&none), later(15)).unwrap();
        let elsewhere = Tally { here: own.lost_prints.clone(), ..elsewhere.clone() };
        tallies.hear(Instance(2), Some(&elsewhere.encode_to_vec()), later(15));
        assert_eq!(tallies.halts(&own, release, &halt, later(15)), None);
    }
    assert_eq!(health.clients.len(), 1000);
    // Who is nowhere is lost.
    health.look(Some(&Look { candidate: candidate(1), streams: streams(0..800) }), later(15));
    let own = health.tally(release, Some(&none), later(30)).unwrap();
    let why = tallies.halts(&own, release, &halt, later(30)).unwrap();
    assert!(why.starts_with("200 of 5000 clients are gone"), "{why}");
}

#[test]
fn who_refuses_a_candidate_that_is_stable_since_is_not_counted_again() {
    for (stable, counted) in [(candidate(1), None), (candidate(3), Some("clients refused 1".to_owned()))] {
        let (mut health, now) = (Health::default(), Instant::now());
        health.begin(candidate(1), None, now);
        health.hear(refused([7]), now);
        health.begin(candidate(2), stable, now);
        health.hear(refused([7]), now);
        let why = halts(&health, 2, &Halt::default(), now);
        assert_eq!(why.map(|why| why.chars().take(17).collect::<String>()), counted);
    }
}

/// One that is busy is as it was.
#[test]
fn a_client_is_silent_if_it_is_on_any_of_its_streams() {
    let (mut health, now) = (Health::default(), Instant::now());
    let halt = Halt { silent: Threshold::Count(1), ..Halt::default() };
    health.begin(candidate(1), None, now);
    let mut look = |seconds, types: [Option<Option<Instant>>; 2], of| {
        let streams = types.map(|types| stream(7, types)).into();
        let now = now + Duration::from_secs(seconds);
        health.look(Some(&Look { candidate: candidate(of), streams }), now);
        halts(&health, 1, &halt, now).is_some()
    };
    let (unanswered, answered, busy) = (Some(Some(now)), Some(None), None);
    assert!(!look(14, [unanswered, answered], 1));
    assert!(look(15, [unanswered, answered], 1) && look(15, [answered, unanswered], 1));
    assert!(look(16, [busy, answered], 1));
    assert!(!look(17, [answered, answered], 1) && !look(18, [busy, busy], 1));
    assert!(!look(19, [unanswered, unanswered], 2), "they were looked at before there was this one");
}
