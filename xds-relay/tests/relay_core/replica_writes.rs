//! What relays write that have their releases in one store: each word is work for the store, and for all that follow it.

use std::time::Duration;

use xds_relay::releases::{Progress, Stage, Stages, Threshold, Who};
use xds_relay::state::{Revision, Store as _};

use crate::support::SECOND;
use crate::support::replicas::Replicas;

fn stages(hold: Duration) -> Stages {
    Stages::new([Stage { who: Who::Percent("100%".parse().unwrap()), hold }])
}

/// How often the store was written.
fn writes(relays: &Replicas) -> Revision {
    relays.store.lock().unwrap().list("").unwrap().revision
}

/// Content, that it is the candidate, and that it is stable; from the 21st release on, what it replaces.
#[test]
fn a_release_that_goes_on_at_once_is_written_by_its_publisher_alone() {
    let mut relays = Replicas::new(5, |rollout| rollout.stages = stages(Duration::ZERO));
    let clients = [0, 1, 2, 3, 4].map(|relay| relays.node(relay, &format!("c{relay}"), "any"));
    relays.set(&["a@0", "b@1"]);
    relays.advance(5);
    for release in 1..30 {
        let before = writes(&relays);
        relays.set(&[&format!("a@{release}"), "b@1"]);
        relays.advance(5);
        assert_eq!(relays.held(clients), [0; 5].map(|_| format!("a@{release} b@1")));
        let written = writes(&relays) - before;
        assert!(written == if release < 20 { 3 } else { 4 }, "{release}: {written}");
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
