//! What gRFC A71 says of fallback, and gRPC's tests of it, by the table alone.

use proptest::prelude::*;

use super::*;

/// A choice among so many, of which something is wanted that nothing is known of.
fn asking(servers: usize) -> Choice {
    let mut choice = Choice::new(servers);
    assert_eq!(choice.unknown(true), Turn::Stays);
    assert_eq!(choice.wanted(), Turn::Opens(0));
    choice
}

#[test]
fn the_second_is_asked_where_the_first_is_down_at_the_start_and_left_when_that_is_back() {
    let mut choice = asking(2);
    assert_eq!(choice.failed(0, "refused"), Turn::Opens(1));
    assert_eq!(choice.trouble(), None, "the second may answer");
    assert_eq!(choice.answered(1), Turn::Stays);
    assert_eq!((choice.counts(), choice.is_asked(0)), (Some(1), true), "the first is tried on");
    assert_eq!(choice.answered(0), Turn::Closes(1..2));
    assert_eq!((choice.counts(), choice.is_asked(1)), (Some(0), false), "what the second says late does not count");
    assert_eq!(choice.answered(1), Turn::Stays);
    assert_eq!(choice.counts(), Some(0));
}

#[test]
fn nobody_else_is_asked_while_all_that_is_wanted_is_known() {
    let mut choice = asking(2);
    assert_eq!(choice.answered(0), Turn::Stays);
    assert_eq!(choice.unknown(false), Turn::Stays);
    assert_eq!(choice.failed(0, "reset"), Turn::Stays);
    assert_eq!((choice.counts(), choice.trouble()), (Some(0), Some("reset")), "who has it all is told that it is old");
    // At once, and not when it fails the next time.
    assert_eq!(choice.unknown(true), Turn::Opens(1));
    assert_eq!((choice.counts(), choice.trouble()), (Some(0), None));
}

#[test]
fn what_is_not_known_of_a_server_that_answers_has_nobody_else_asked() {
    let mut choice = asking(2);
    assert_eq!(choice.answered(0), Turn::Stays);
    assert_eq!(choice.unknown(true), Turn::Stays);
    assert!(!choice.is_asked(1));
}

#[test]
fn of_three_it_falls_to_the_last_and_climbs_back_one_by_one() {
    let mut choice = asking(3);
    assert_eq!(choice.failed(0, "a"), Turn::Opens(1));
    assert_eq!(choice.failed(1, "b"), Turn::Opens(2));
    assert_eq!(choice.answered(2), Turn::Stays);
    assert_eq!(choice.answered(1), Turn::Closes(2..3));
    assert_eq!(choice.answered(0), Turn::Closes(1..2));
    assert_eq!(choice.counts(), Some(0));
    let mut choice = asking(3);
    assert_eq!((choice.failed(0, "a"), choice.failed(1, "b")), (Turn::Opens(1), Turn::Opens(2)));
    assert_eq!(choice.answered(0), Turn::Closes(1..3), "both are left at once");
}

#[test]
fn subscribers_hear_of_it_when_all_fail() {
    let mut choice = asking(2);
    assert_eq!((choice.failed(0, "a"), choice.trouble()), (Turn::Opens(1), None));
    assert_eq!((choice.failed(1, "b"), choice.trouble()), (Turn::Stays, Some("b")));
    assert_eq!((choice.failed(0, "c"), choice.trouble()), (Turn::Stays, Some("b")));
    assert_eq!((choice.answered(1), choice.trouble()), (Turn::Stays, None));
}

#[test]
fn one_that_is_asked_in_place_of_another_is_kept_until_a_higher_one_answers() {
    let mut choice = asking(2);
    assert_eq!(choice.failed(0, "a"), Turn::Opens(1));
    assert_eq!(choice.answered(1), Turn::Stays);
    assert_eq!(choice.unknown(false), Turn::Stays);
    assert_eq!(choice.failed(0, "a"), Turn::Stays);
    assert!(choice.is_asked(1));
}

#[test]
fn it_begins_anew_when_nothing_is_wanted_any_more() {
    let mut choice = asking(2);
    assert_eq!(choice.failed(0, "a"), Turn::Opens(1));
    assert_eq!(choice.answered(1), Turn::Stays);
    assert_eq!(choice.unwanted(), Turn::Closes(0..2));
    assert_eq!((choice.counts(), choice.trouble()), (None, None));
    assert_eq!(
        (choice.failed(0, "late"), choice.answered(1), choice.unwanted()),
        (Turn::Stays, Turn::Stays, Turn::Stays)
    );
    assert_eq!((choice.wanted(), choice.wanted()), (Turn::Opens(0), Turn::Stays));
}

#[test]
fn without_servers_nothing_happens() {
    let mut choice = Choice::new(0);
    assert_eq!((choice.unknown(true), choice.wanted(), choice.failed(0, "a")), (Turn::Stays, Turn::Stays, Turn::Stays));
    assert_eq!((choice.counts(), choice.trouble()), (None, None));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wanted,
    Unwanted,
    Unknown(bool),
    Failed(usize),
    Answered(usize),
}

fn step(servers: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Wanted),
        1 => Just(Step::Unwanted),
        4 => any::<bool>().prop_map(Step::Unknown),
        8 => (0..servers).prop_map(Step::Failed),
        4 => (0..servers).prop_map(Step::Answered),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Against what was last heard of each server that is asked, which a second reading of the rules keeps.
    #[test]
    fn whoever_follows_the_turns_asks_as_the_rules_have_it(
        (servers, steps) in (1..5_usize).prop_flat_map(|servers| (Just(servers), prop::collection::vec(step(servers), 0..60)))
    ) {
        let mut choice = Choice::new(servers);
        // What was last heard of who is asked: that it failed, or that it answered.
        let mut heard: Vec<Option<bool>> = Vec::new();
        let mut unknown = false;
        for step in steps {
            let before = heard.clone();
            let turn = match step {
                Step::Wanted => choice.wanted(),
                Step::Unwanted => { unknown = false; choice.unwanted() }
                Step::Unknown(is) => { unknown = is; choice.unknown(is) }
                Step::Failed(server) => {
                    if let Some(heard) = heard.get_mut(server) { *heard = Some(false); }
                    choice.failed(server, "down")
                }
                Step::Answered(server) => {
                    if let Some(heard) = heard.get_mut(server) { *heard = Some(true); }
                    choice.answered(server)
                }
            };
            let all_failed = heard.iter().all(|heard| *heard == Some(false));
            match turn {
                Turn::Stays => {}
                Turn::Opens(server) => {
                    prop_assert_eq!(server, heard.len());
                    prop_assert!(server < servers && all_failed && (server == 0 || unknown));
                    heard.push(None);
                }
                Turn::Closes(closed) => {
                    prop_assert_eq!(closed.end, heard.len());
                    match step {
                        Step::Answered(server) => prop_assert_eq!(closed.start, server + 1),
                        _ => prop_assert!(matches!(step, Step::Unwanted) && closed.start == 0),
                    }
                    heard.truncate(closed.start);
                }
            }
            // Nobody waits for a server that would be asked.
            let all_failed = !heard.is_empty() && heard.iter().all(|heard| *heard == Some(false));
            prop_assert!(!(all_failed && unknown && heard.len() < servers), "{:?}", before);
            prop_assert_eq!(choice.trouble().is_some(), all_failed);
            for server in 0..servers {
                prop_assert_eq!(choice.is_asked(server), server < heard.len());
            }
            if let Step::Answered(server) = step && server < before.len() {
                prop_assert_eq!((choice.counts(), heard.len()), (Some(server), server + 1));
            }
        }
    }
}
