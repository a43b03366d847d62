//! What is ordered while the store of releases does not answer, and waits for that: over restarts, too.

use std::sync::atomic::Ordering;

use xds_relay::api::{Ordered, ReleaseOrder};
use xds_relay::releases::{Act, Transition};
use xds_relay::state::{Memory, Op, Store as _};

use crate::replica_copies::staged;
use crate::support::logged;

#[test]
fn what_was_ordered_before_the_store_answers_holds_when_it_does() {
    let mut relays = staged();
    relays.cut_off(0, true);
    relays.restart(0, &[]);
    let client = relays.node(0, "canary", "canary");
    assert_eq!(relays.order(0, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
    relays.advance(2);
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
    let error = relays.order(0, Act::Unfreeze).unwrap_err().to_string();
    assert!(error.contains("it was not read since this relay began"), "{error}");
    relays.cut_off(0, false);
    relays.advance(10);
    for relay in [0, 1] {
        let control = relays.control(relay);
        assert!(control.frozen().is_some() && control.candidate().is_none(), "{control:?}");
    }
}

/// One that hangs takes its time to say no, and clients would wait for it.
#[test]
fn what_takes_back_asks_nothing_of_a_store_that_did_not_answer_just_now() {
    for act in [Act::Rollback { to: None }, Act::Freeze, Act::Hold] {
        let mut relays = staged();
        let publisher = relays.publisher();
        let client = relays.node(publisher, "canary", "canary");
        relays.cut_off(publisher, true);
        // It has something to say, and finds out.
        relays.set(&["a@3", "b@1"]);
        relays.advance(3);
        relays.cut_off(publisher, false);
        let applied = relays.apply(publisher, act.clone()).unwrap();
        assert!(!applied.is_kept, "{act:?}: it would have been asked");
        if act != Act::Hold {
            assert_eq!(relays.held([client]), ["a@1 b@1"], "{act:?}");
        }
        // What does not take back waits for nothing.
        let unfrozen = relays.apply(publisher, Act::Unfreeze);
        assert!(unfrozen.is_err() || unfrozen.unwrap().is_kept, "{act:?}");
        relays.advance(10);
        assert_eq!(relays.control(0), relays.control(1), "{act:?}");
        let count = relays.world.relays[publisher].core.gauges().releases["old-style"].unsaved;
        assert_eq!(count, 0, "{act:?}");
    }
}

#[test]
fn what_was_ordered_while_the_store_is_away_holds_over_a_restart() {
    let mut relays = staged();
    let client = relays.node(0, "canary", "canary");
    relays.cut_off(0, true);
    assert_eq!(relays.order(0, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
    relays.advance(2);
    for _ in 0..2 {
        let lines = logged(|| relays.restart(0, &[client]));
        let line = lines.iter().find(|line| line.contains("it was ordered before this relay began")).unwrap();
        assert!(line.contains(" scope=\"old-style\" by="), "{line}");
        relays.advance(5);
        assert_eq!(relays.held([client]), ["a@1 b@1"]);
    }
    // It starts again, and the store answers.
    relays.cut_off(0, false);
    relays.restart(0, &[client]);
    relays.advance(5);
    for relay in [0, 1] {
        assert!(relays.control(relay).candidate().is_none(), "{:?}", relays.control(relay));
    }
}

/// The relay is killed as the store has just been told: its copy does not know that yet.
#[test]
fn what_was_told_to_the_store_is_not_told_again_after_a_restart() {
    for is_away in [true, false] {
        let mut relays = staged();
        relays.cut_off(0, true);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        let copied = relays.copies[0].list("").unwrap().entries;
        relays.cut_off(0, false);
        relays.advance(10);
        assert_eq!(relays.order(1, Act::Unfreeze).unwrap(), Transition::Unfrozen);
        let copy = Memory::default();
        let ops: Vec<_> = copied.into_iter().map(|entry| Op::put(entry.key, entry.value)).collect();
        let _ = copy.commit(&ops, &[]).unwrap();
        relays.copies[0] = copy;
        relays.cut_off(0, is_away);
        relays.restart(0, &[]);
        assert_eq!(relays.control(0).frozen().is_some(), is_away, "that nobody knows better");
        relays.cut_off(0, false);
        relays.advance(10);
        assert!(relays.control(0).frozen().is_none() && relays.control(1).frozen().is_none());
    }
}

#[test]
fn a_release_of_before_is_rolled_back_to_while_the_store_is_away() {
    let mut relays = staged();
    let first = relays.control(0).stable();
    relays.advance(200);
    let client = relays.node(0, "other", "other");
    assert_eq!(relays.held([client]), ["a@2 b@1"]);
    relays.cut_off(0, true);
    assert_eq!(relays.order(0, Act::Rollback { to: first }).unwrap(), Transition::RolledBack);
    relays.advance(1);
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
    // And by one that has started since.
    relays.restart(0, &[]);
    let new = relays.node(0, "new", "other");
    assert_eq!(relays.held([new]), ["a@1 b@1"]);
    relays.cut_off(0, false);
    relays.advance(5);
    assert_eq!((relays.control(0).stable(), relays.control(1).stable()), (first, first));
}

#[test]
fn what_was_ordered_holds_over_a_restart_though_nothing_else_could_be_copied() {
    for is_told in [false, true] {
        let mut relays = staged();
        let cut = 1 - relays.publisher();
        *relays.seats[cut].hidden.lock().unwrap() = "/body/";
        relays.cut_off(cut, true);
        relays.set(&["a@3", "b@1"]);
        relays.advance(10);
        relays.compact(cut);
        relays.cut_off(cut, false);
        relays.hear();
        // It knows of a candidate that it cannot read.
        relays.cut_off(cut, true);
        assert_eq!(relays.order(cut, Act::Freeze).unwrap(), Transition::Frozen);
        if is_told {
            relays.advance(3);
        }
        // Or it is killed at once.
        relays.restart(cut, &[]);
        assert!(relays.control(cut).frozen().is_some());
        *relays.seats[cut].hidden.lock().unwrap() = "";
        relays.cut_off(cut, false);
        relays.advance(10);
        assert!(relays.control(1 - cut).frozen().is_some());
    }
}

#[test]
fn what_was_ordered_of_one_candidate_is_not_done_to_another() {
    for (act, restarts) in [(Act::Hold, true), (Act::Rollback { to: None }, true), (Act::Rollback { to: None }, false)]
    {
        let mut relays = staged();
        let cut = 1 - relays.publisher();
        relays.cut_off(cut, true);
        relays.order(cut, act.clone()).unwrap();
        if restarts {
            relays.restart(cut, &[]);
        }
        // What it was about is stable by now, and there is another one.
        relays.advance(200);
        relays.set(&["a@4", "b@1"]);
        relays.advance(5);
        let there = relays.control(1 - cut);
        assert!(there.candidate().is_some());
        relays.cut_off(cut, false);
        relays.advance(5);
        assert_eq!(relays.control(1 - cut).candidate(), there.candidate(), "{act:?}");
        assert_eq!(relays.control(cut), relays.control(1 - cut));
    }
}

#[test]
fn what_was_done_and_nobody_heard_it_is_not_done_again() {
    let mut relays = staged();
    relays.seats[0].is_unsure.store(true, Ordering::Relaxed);
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
    relays.seats[0].is_unsure.store(false, Ordering::Relaxed);
    relays.cut_off(0, true);
    relays.expire();
    relays.advance(10);
    assert_eq!(relays.order(1, Act::Unfreeze).unwrap(), Transition::Unfrozen, "the other one has heard it");
    relays.cut_off(0, false);
    relays.advance(10);
    assert!([0, 1].iter().all(|relay| relays.control(*relay).frozen().is_none()));
}

#[test]
fn a_relay_with_orders_that_wait_starts_though_it_cannot_be_read_what_was_done() {
    let mut relays = staged();
    relays.cut_off(0, true);
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
    relays.cut_off(0, false);
    *relays.seats[0].hidden.lock().unwrap() = "/log/";
    relays.restart(0, &[]);
    assert!(relays.control(0).frozen().is_some());
    *relays.seats[0].hidden.lock().unwrap() = "";
    relays.advance(10);
    assert!(relays.control(1).frozen().is_some());
}

/// A person is told whether what was ordered is forgotten if the relay ends.
#[test]
fn what_is_ordered_and_waits_is_said_to_be_kept_only_if_it_is() {
    let mut relays = staged();
    relays.cut_off(0, true);
    for (order, is_full) in [(Ordered::Hold, true), (Ordered::Freeze, false), (Ordered::Rollback, true)] {
        relays.are_copies_full.store(is_full, Ordering::Relaxed);
        let (core, now) = (&relays.world.relays[0].core, relays.world.now);
        let order = ReleaseOrder { order, ..ReleaseOrder::default() };
        let done = core.order_releases(&order, "ann", None, &|| true, (now, relays.world.wall())).unwrap();
        assert_eq!((done.is_kept, done.keeps_unsaved), (false, !is_full), "{order:?}");
        assert_eq!(core.released().scopes[0].keeps_unsaved, !is_full);
    }
    // There is room again, and nobody orders anything more.
    relays.are_copies_full.store(false, Ordering::Relaxed);
    relays.advance(2);
    let scope = relays.world.relays[0].core.released().scopes.remove(0);
    assert_eq!((scope.unsaved, scope.keeps_unsaved), (3, true));
    relays.restart(0, &[]);
    assert!(relays.control(0).frozen().is_some() && relays.control(0).candidate().is_none());
}

#[test]
fn that_the_store_keeps_a_release_as_it_is_is_said_once_and_that_it_is_over() {
    let mut relays = staged();
    let said = |lines: Vec<String>| -> Vec<String> {
        let words = ["the release stays as it is", "the release goes on"];
        lines.into_iter().filter(|line| words.iter().any(|words| line.contains(words))).collect()
    };
    for _ in 0..2 {
        relays.cut_off(0, true);
        relays.set_at(0, &["a@3", "b@1"]);
        let away = said(logged(|| relays.advance(120)));
        assert!(away.len() == 1 && away[0].starts_with("WARN ") && away[0].contains("it is cut off"), "{away:?}");
        relays.cut_off(0, false);
        let back = said(logged(|| relays.advance(30)));
        assert!(back.len() == 1 && back[0].starts_with("INFO ") && back[0].contains("goes on"), "{back:?}");
        relays.set_at(0, &["a@4", "b@1"]);
        assert_eq!(said(logged(|| relays.advance(30))), [""; 0]);
    }
}
