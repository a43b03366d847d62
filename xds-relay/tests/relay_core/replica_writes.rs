//! What relays write that have their releases in one store: each word is work for the store, and for all that follow it.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_relay::releases::{Act, Progress, Stage, Stages, Threshold, Who};
use xds_relay::state::{Revision, Store as _};

use crate::support::SECOND;
use crate::support::replicas::Replicas;

fn stages(hold: Duration) -> Stages {
    Stages::new([stage(hold)])
}

fn stage(hold: Duration) -> Stage {
    Stage { who: Who::Percent("100%".parse().unwrap()), hold }
}

/// How often the store was written.
fn writes(relays: &Replicas) -> Revision {
    relays.store.lock().unwrap().list("").unwrap().revision
}

/// What is in it, that it is the candidate and that it is stable; from the 21st release on, what it replaces.
#[test]
fn a_release_that_goes_on_at_once_is_written_once_and_by_its_publisher_alone() {
    for stages_of_nothing in [1, 3] {
        let mut relays = Replicas::new(5, |rollout| {
            rollout.stages = Stages::new(vec![stage(Duration::ZERO); stages_of_nothing]);
        });
        let clients = [0, 1, 2, 3, 4].map(|relay| relays.node(relay, &format!("c{relay}"), "any"));
        relays.set(&["a@0", "b@1"]);
        relays.advance(5);
        for release in 1..30 {
            let before = writes(&relays);
            relays.set(&[&format!("a@{release}"), "b@1"]);
            relays.advance(5);
            assert_eq!(relays.held(clients), [0; 5].map(|_| format!("a@{release} b@1")));
            assert_eq!(writes(&relays) - before, 1, "{release}");
        }
    }
}

#[test]
fn a_release_with_a_stage_that_lasts_is_written_once_and_once_more_when_it_is_stable() {
    let mut relays = Replicas::new(1, |rollout| rollout.stages = Stages::new([stage(2 * SECOND)]));
    let client = relays.node(0, "c", "any");
    relays.set(&["a@0"]);
    relays.advance(5);
    let store = relays.store.lock().unwrap().clone();
    let mut watch = store.watch("", writes(&relays)).unwrap();
    let mut written = || {
        let events = watch.next(Duration::ZERO).unwrap().into_iter();
        // How its clients are is said as often as that changes.
        let of_release = events.filter(|event| !event.op.key().contains("/tally/")).map(|event| event.revision);
        of_release.collect::<BTreeSet<_>>().len()
    };
    relays.set(&["a@1"]);
    relays.advance(3);
    assert!(relays.control(0).candidate().is_some());
    assert_eq!(written(), 1, "what is in it, and that it is the candidate");
    relays.advance(20);
    assert_eq!(relays.held([client]), ["a@1"]);
    assert_eq!(written(), 1, "that it is stable");
}

/// Its stages last for nothing, and something stands against it all the same.
#[test]
fn a_release_does_not_go_on_at_once_whatever_its_stages_say_if_it_may_not_go_on() {
    for why in ["it is asked for", "it removes much", "it is frozen"] {
        let mut relays = Replicas::new(3, |rollout| {
            rollout.stages = stages(Duration::ZERO);
            rollout.halt.check = (why == "it is asked for").then(|| "http://127.0.0.1/".parse().unwrap());
        });
        let many: Vec<_> = (0..40).map(|name| format!("c-{name:02}@1")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        relays.set(&many);
        let clients = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "any"));
        relays.advance(5);
        if why == "it is frozen" {
            relays.order(1, Act::Freeze).unwrap();
        }
        relays.set(if why == "it removes much" { &many[..5] } else { &many[..39] });
        relays.advance(10);
        let controls = [0, 1, 2].map(|relay| relays.control(relay));
        assert!(controls.iter().all(|control| control.candidate().is_some() && *control == controls[0]), "{why}");
        let serves = if why == "it is asked for" { 39 } else { 40 };
        assert_eq!(relays.held(clients), [0; 3].map(|_| many[..serves].join(" ")), "{why}");
    }
}

/// It is told who is well once that may matter, and what is wrong at once.
#[test]
fn how_clients_of_others_are_is_heard_of_a_stage_that_lasts() {
    for hold in [Duration::ZERO, 60 * SECOND] {
        // Three of six refuse: of its own clients each relay knows more, or none.
        for (threshold, is_halted) in [("40%", true), ("60%", false)] {
            let mut relays = Replicas::new(3, |rollout| {
                rollout.stages = stages(hold);
                rollout.halt.rejected = threshold.parse().unwrap();
                rollout.halt.silent = Threshold::Never;
            });
            relays.set(&["a@1"]);
            let clients: Vec<_> = (0..6).map(|client| relays.node(client / 2, &format!("c{client}"), "any")).collect();
            relays.advance(5);
            let publisher = relays.publisher();
            let elsewhere = (0..6).filter(|client| client / 2 != publisher);
            elsewhere.take(3).for_each(|client| relays.world.clients[clients[client]].refuses = true);
            relays.set(&["a@bad"]);
            relays.advance(20);
            let halted = relays
                .control(0)
                .candidate()
                .is_some_and(|candidate| matches!(candidate.progress, Progress::Halted(_)));
            assert_eq!(halted, is_halted && !hold.is_zero(), "{hold:?} {threshold}");
        }
    }
}
