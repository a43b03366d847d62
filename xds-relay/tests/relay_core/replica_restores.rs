//! Relays whose store is put back to an earlier state, of which some know more than others.

use xds_relay::releases::{Act, Control, Progress, Release, Transition};
use xds_relay::state::{Op, Store as _};

use crate::replica_copies::staged;
use crate::support::replicas::Replicas;

/// The store has the first release, and the second one was stable. Relay 0 knows of a freeze, and relay 1 does not. Both are cut off, and
/// have a copy.
struct Restored {
    relays: Replicas,
    first: Option<Release>,
    newest: Control,
}

impl Restored {
    fn new() -> Self {
        let mut relays = Replicas::new(2, |_| {});
        relays.set(&["a@1", "b@1"]);
        relays.advance(5);
        let first = relays.control(0).stable();
        let old = relays.snapshot();
        relays.set(&["a@2", "b@1"]);
        Self::put_back(relays, first, &old)
    }

    /// What is new is stable by then.
    fn put_back(mut relays: Replicas, first: Option<Release>, old: &[Op]) -> Self {
        relays.advance(200);
        relays.cut_off(1, true);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        let newest = relays.control(0);
        relays.cut_off(0, true);
        relays.restore(old);
        for relay in [0, 1] {
            relays.restart(relay, &[]);
            relays.set_at(relay, &["a@2", "b@1"]);
        }
        Self { relays, first, newest }
    }

    /// What the newest one knew is there.
    #[track_caller]
    fn check(&self) {
        let there = self.relays.control(0);
        assert_eq!(there, self.relays.control(1));
        assert_eq!((there.frozen(), there.stable()), (self.newest.frozen(), self.newest.stable()));
    }
}

/// Whichever is there first.
#[test]
fn what_the_newest_copy_knows_is_put_back_though_another_relay_put_back_what_it_knew() {
    for (first, late) in [(0, 0), (1, 0), (1, 1), (1, 3)] {
        let relays = staged();
        let old = relays.snapshot();
        let mut restored = Restored::put_back(relays, None, &old);
        let relays = &mut restored.relays;
        relays.cut_off(first, false);
        relays.advance(late);
        relays.cut_off(1 - first, false);
        relays.advance(20);
        restored.check();
    }
}

/// Others see what is there again, and not how long that took.
#[test]
fn who_knows_more_has_time_from_when_the_store_was_put_back() {
    for late in [0, 1, 3] {
        let mut restored = Restored::new();
        let relays = &mut restored.relays;
        relays.cut_off(1, false);
        relays.hear();
        // It knows that, and cannot mend it.
        *relays.seats[1].hidden.lock().unwrap() = "/part/";
        relays.advance(12);
        *relays.seats[1].hidden.lock().unwrap() = "";
        let store = relays.store.lock().unwrap().clone();
        let control = || store.list("").unwrap().entries.into_iter().find(|entry| entry.key.ends_with("/ctl"));
        let before = control();
        for _ in 0..8 {
            if control() == before {
                relays.advance(1);
            }
        }
        assert_ne!(control(), before, "it is put back");
        relays.advance(late);
        relays.cut_off(0, false);
        relays.advance(20);
        restored.check();
    }
}

/// That the store of all does not answer says nothing of what is in the copy.
#[test]
fn what_cannot_be_read_is_not_lost_while_the_store_does_not_answer() {
    let mut restored = Restored::new();
    let relays = &mut restored.relays;
    relays.restart(1, &[]);
    *relays.copies_hide.lock().unwrap() = "/body/";
    relays.restart(0, &[]);
    relays.set_at(0, &["a@2", "b@1"]);
    relays.cut_off(0, false);
    relays.advance(3);
    relays.cut_off(0, true);
    relays.advance(30);
    relays.cut_off(0, false);
    relays.advance(8);
    *relays.copies_hide.lock().unwrap() = "";
    relays.advance(2);
    relays.cut_off(1, false);
    relays.advance(20);
    restored.check();
}

/// It would count as what another relay did that is heard only then.
#[test]
fn what_is_ordered_while_others_may_know_more_waits_or_is_refused() {
    let mut restored = Restored::new();
    let (relays, first) = (&mut restored.relays, restored.first);
    relays.cut_off(1, false);
    relays.advance(2);
    assert_eq!(relays.order(1, Act::Freeze).unwrap(), Transition::Frozen);
    let error = relays.order(1, Act::Unfreeze).unwrap_err().to_string();
    assert!(error.contains("was put back to an earlier state"), "{error}");
    assert_eq!(relays.order(1, Act::Rollback { to: first }).unwrap(), Transition::RolledBack);
    assert_eq!(relays.world.relays[1].core.released().scopes[0].unsaved, 2);
    relays.cut_off(0, false);
    relays.advance(20);
    let there = relays.control(0);
    assert_eq!(there, relays.control(1));
    assert_eq!((there.frozen(), there.stable()), (restored.newest.frozen(), first));
    assert!(first.is_some() && first != restored.newest.stable());
}

/// It has not seen what the store was put back to.
#[test]
fn a_relay_that_starts_as_a_store_was_put_back_waits_for_who_knows_more() {
    for late in [1, 3] {
        let mut restored = Restored::new();
        let relays = &mut restored.relays;
        relays.cut_off(1, false);
        relays.advance(1);
        relays.start();
        relays.set_at(2, &["a@2", "b@1"]);
        relays.advance(late);
        assert!(relays.holder.lock().unwrap().is_none(), "nobody has the turn yet");
        relays.cut_off(0, false);
        relays.advance(20);
        restored.check();
        assert!(restored.relays.holder.lock().unwrap().is_some());
    }
}

/// What is ordered and waits says that another release is served, which may be there or not.
#[test]
fn what_is_put_back_is_all_that_the_control_value_names_whatever_is_served() {
    for is_first_there in [true, false] {
        let mut relays = Replicas::new(2, |_| {});
        relays.set(&["a@1", "b@1"]);
        relays.advance(5);
        let first = relays.control(0).stable();
        let mut old = relays.snapshot();
        if !is_first_there {
            old.retain(|op| !op.key().contains("/body/"));
        }
        relays.set(&["a@2", "c@1"]);
        relays.advance(200);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        relays.world.stop(1);
        relays.cut_off(0, true);
        assert_eq!(relays.order(0, Act::Rollback { to: first }).unwrap(), Transition::RolledBack);
        relays.advance(2);
        relays.restore(&old);
        relays.restart(0, &[]);
        relays.cut_off(0, false);
        relays.advance(3);
        relays.start();
        let new = relays.node(2, "new", "other");
        relays.advance(1);
        assert!(relays.control(2).frozen().is_some());
        assert_eq!(relays.held([new]), ["a@2 c@1"], "{is_first_there}");
        relays.advance(20);
        assert_eq!(relays.control(2).stable(), first);
    }
}

/// A relay that starts then knows nothing else, and the store takes what is ordered there: it is told to be done.
#[test]
fn what_was_ordered_in_a_store_that_was_put_back_before_anybody_noticed_holds() {
    for is_frozen_before in [false, true] {
        for act in ["freeze", "hold", "rollback", "both"] {
            let mut relays = Replicas::new(2, |_| {});
            relays.set(&["a@1", "b@1"]);
            relays.advance(5);
            relays.set(&["a@2", "b@1"]);
            relays.advance(200);
            let first = relays.control(0).stable();
            relays.set(&["a@3", "b@1"]);
            relays.advance(4);
            if is_frozen_before {
                assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
                relays.advance(1);
            }
            let old = relays.snapshot();
            if is_frozen_before {
                assert_eq!(relays.order(0, Act::Unfreeze).unwrap(), Transition::Unfrozen);
                relays.advance(1);
            }
            // What the store does not know any more.
            for _ in 0..2 {
                assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
                relays.advance(1);
                assert_eq!(relays.order(0, Act::Unfreeze).unwrap(), Transition::Unfrozen);
                relays.advance(1);
            }
            let candidate = relays.control(0).candidate().map(|candidate| candidate.release);
            assert!(candidate.is_some());
            (0..2).for_each(|relay| relays.cut_off(relay, true));
            relays.restore(&old);
            relays.start();
            relays.advance(1);
            let of_new = |relays: &mut Replicas, act: Act| {
                let applied = relays.apply(2, act).unwrap();
                assert!(applied.is_kept, "{applied:?}");
            };
            if is_frozen_before && act != "rollback" {
                of_new(&mut relays, Act::Unfreeze);
            }
            match act {
                "freeze" => of_new(&mut relays, Act::Freeze),
                "hold" => of_new(&mut relays, Act::Hold),
                "rollback" => of_new(&mut relays, Act::Rollback { to: None }),
                _ => {
                    of_new(&mut relays, Act::Rollback { to: None });
                    of_new(&mut relays, Act::Freeze);
                }
            }
            relays.cut_off(0, false);
            relays.advance(3);
            // Who comes later, too, has what is kept.
            relays.restart(0, &[]);
            relays.cut_off(1, false);
            relays.advance(20);
            let case = format!("{act}, frozen before: {is_frozen_before}");
            let there = relays.control(0);
            assert_eq!((&there, &there), (&relays.control(1), &relays.control(2)), "{case}");
            // What was frozen before, and is not since, is not for that.
            assert_eq!(there.frozen().is_some(), act == "freeze" || act == "both", "{case}");
            match act {
                "rollback" | "both" => {
                    assert_eq!(there.stable(), first, "{case}");
                    assert!(candidate.is_some_and(|left| there.refused().contains(&left)), "{case}");
                    assert_eq!(there.candidate(), None, "{case}");
                }
                "hold" => assert!(matches!(there.candidate().unwrap().progress, Progress::Held(_)), "{case}"),
                _ => assert_eq!(there.candidate().map(|of| of.release), candidate, "{case}"),
            }
        }
    }
}

/// Etcd is restored from an old backup while relays start: what any of them knew last is there again.
#[test]
fn what_a_copy_knows_is_put_back_into_a_store_that_was() {
    for is_away in [true, false] {
        let mut relays = staged();
        let old = relays.snapshot();
        relays.advance(200);
        let client = relays.node(0, "other", "other");
        assert_eq!(relays.held([client]), ["a@2 b@1"]);
        relays.set(&["a@3", "b@1"]);
        relays.advance(5);
        assert_eq!(relays.order(0, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        let before = relays.control(0);
        [0, 1].into_iter().for_each(|relay| relays.cut_off(relay, true));
        relays.restore(&old);
        for relay in [0, 1] {
            relays.cut_off(relay, is_away);
            relays.restart(relay, &[]);
        }
        relays.advance(5);
        let started = relays.node(0, "started", "other");
        assert_eq!(relays.held([started]), ["a@2 b@1"]);
        [0, 1].into_iter().for_each(|relay| relays.cut_off(relay, false));
        relays.advance(5);
        let there = relays.control(0);
        assert_eq!(there, relays.control(1));
        assert!(there.frozen() == before.frozen() && there.refused() == before.refused(), "{there:?}");
        assert_eq!((there.stable(), there.candidate()), (before.stable(), None));
        // Who has no copy reads all of it.
        relays.start();
        let new = relays.node(2, "new", "other");
        relays.advance(2);
        assert_eq!(relays.held([new, started]), ["a@2 b@1"; 2]);
    }
}

/// The disk is busy, say: that what is stable cannot be read just now says nothing of whether it is there.
#[test]
fn what_cannot_be_read_for_a_moment_is_not_lost() {
    for (seconds, is_there, is_frozen) in [(10, true, true), (40, true, false), (0, false, false)] {
        let mut relays = staged();
        let old = relays.snapshot();
        relays.set(&["a@3", "b@1"]);
        relays.advance(200);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        relays.world.stop(1);
        relays.restore(&old);
        if is_there {
            *relays.copies_hide.lock().unwrap() = "/body/";
        } else {
            let copy = relays.copies[0].list("").unwrap().entries.into_iter();
            let ops: Vec<_> = copy.filter(|of| of.key.contains("/rel/")).map(|of| Op::delete(of.key)).collect();
            let _ = relays.copies[0].commit(&ops, &[]).unwrap();
        }
        relays.restart(0, &[]);
        let client = relays.node(0, "other", "other");
        relays.advance(seconds + 1);
        *relays.copies_hide.lock().unwrap() = "";
        relays.advance(if is_there { 10 } else { 1 });
        let control = relays.control(0);
        assert_eq!(control.frozen().is_some(), is_frozen, "{seconds}");
        let held = relays.held([client]);
        assert_eq!(held, [if is_frozen { "a@3 b@1" } else { "a@1 b@1" }], "{seconds}");
    }
}
