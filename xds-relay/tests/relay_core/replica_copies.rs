//! Relays that start while the store of their releases does not answer.

use std::sync::atomic::Ordering;

use xds_relay::api::{Ordered, ReleaseOrder};
use xds_relay::relay_core::Readiness;
use xds_relay::releases::{Act, Transition, Types};
use xds_relay::state::{Memory, Op, Store as _};

use crate::support::replicas::{FILES, NoState, Replicas};
use crate::support::{DELTA, SECOND, SOTW};

/// Two relays with a client each, of which everybody has one release, and the canaries the next.
fn staged() -> Replicas {
    staged_of(Types::Default)
}

fn staged_of(types: Types) -> Replicas {
    let mut relays = Replicas::new(2, |rollout| rollout.types = types);
    relays.set(&["a@1", "b@1"]);
    relays.advance(5);
    relays.set(&["a@2", "b@1"]);
    relays.advance(5);
    relays
}

#[test]
fn a_relay_that_starts_while_the_store_is_away_serves_what_it_served_last() {
    for protocol in [DELTA, SOTW] {
        let mut relays = staged();
        relays.protocol = protocol;
        for relay in [0, 1] {
            relays.cut_off(relay, true);
            relays.restart(relay, &[]);
            let new = [relays.node(relay, "canary", "canary"), relays.node(relay, "other", "other")];
            relays.advance(600);
            assert_eq!(relays.held(new), ["a@2 b@1", "a@1 b@1"], "relay {relay} alone");
        }
        // Files say what is new, and there is nobody to release it.
        relays.set(&["a@3"]);
        relays.advance(60);
        let new = [0, 1].map(|relay| relays.node(relay, &format!("late-{relay}"), "other"));
        assert_eq!(relays.held(new), ["a@1 b@1"; 2]);
        [0, 1].into_iter().for_each(|relay| relays.cut_off(relay, false));
        relays.expire();
        relays.advance(200);
        assert_eq!(relays.held(new), ["a@3"; 2], "and then there is");
        assert_eq!(relays.control(0), relays.control(1));
    }
}

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

/// It was off while others went on, and what it knew is old.
#[test]
fn a_copy_says_nothing_any_more_once_the_store_answers() {
    let mut relays = staged();
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
    relays.advance(2);
    relays.world.stop(0);
    relays.expire();
    assert_eq!(relays.order(1, Act::Unfreeze).unwrap(), Transition::Unfrozen);
    relays.advance(20);
    relays.cut_off(0, true);
    relays.world.start(0, FILES, None::<NoState>);
    relays.restart(0, &[]);
    assert!(relays.control(0).frozen().is_some(), "that was copied");
    relays.cut_off(0, false);
    relays.advance(5);
    assert!(relays.control(0).frozen().is_none() && relays.control(0) == relays.control(1));
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

/// All was deleted, and others began anew: that is no earlier state of what this relay knew.
#[test]
fn a_copy_is_not_put_into_a_store_that_was_begun_anew() {
    for is_away in [true, false] {
        let mut relays = staged();
        relays.advance(200);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        [0, 1].into_iter().for_each(|relay| relays.world.stop(relay));
        relays.restore(&[]);
        relays.start();
        relays.set_at(2, &["a@9"]);
        relays.advance(5);
        relays.cut_off(0, is_away);
        relays.restart(0, &[]);
        relays.advance(2);
        relays.cut_off(0, false);
        relays.advance(5);
        let client = relays.node(0, "other", "other");
        assert_eq!(relays.held([client]), ["a@9"]);
        assert!(relays.control(0).frozen().is_none() && relays.control(0) == relays.control(2));
    }
}

#[test]
fn a_relay_without_a_copy_starts_and_says_nothing_before_the_store_answers() {
    let mut relays = staged();
    relays.copies[0] = Memory::default();
    relays.cut_off(0, true);
    relays.restart(0, &[]);
    let client = relays.node(0, "other", "other");
    relays.set_at(0, &["a@3"]);
    relays.advance(60);
    assert_eq!(relays.held([client]), [""]);
    assert_eq!(relays.world.clients[client].chunks.len(), 0, "not that there is nothing, either");
    relays.cut_off(0, false);
    relays.advance(3);
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
}

/// Its password is another by now, say.
#[test]
fn a_relay_that_the_store_refuses_as_it_starts_serves_what_it_served_last_if_it_knows_that() {
    let mut relays = staged();
    relays.seats[0].refuses.store(true, Ordering::Relaxed);
    relays.restart(0, &[]);
    let client = relays.node(0, "other", "other");
    relays.advance(60);
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
    relays.seats[0].refuses.store(false, Ordering::Relaxed);
    relays.advance(5);
    assert_eq!(relays.control(0), relays.control(1));

    relays.seats[0].refuses.store(true, Ordering::Relaxed);
    relays.copies[0] = Memory::default();
    relays.world.start(0, FILES, None::<NoState>);
    let error = relays.try_to_begin(0).unwrap_err().to_string();
    assert!(error.contains("permission denied"), "{error}");
}

/// That there is no release yet is an answer, and that the store is away is none.
#[test]
fn a_relay_is_ready_once_it_knows_what_is_released() {
    for is_new in [false, true] {
        let mut relays = if is_new { Replicas::new(2, |_| {}) } else { staged() };
        relays.copies[0] = Memory::default();
        relays.cut_off(0, true);
        relays.restart(0, &[]);
        relays.set_at(0, &["a@1", "b@1"]);
        let Readiness::NotReady(words) = relays.world.relays[0].core.readiness() else { panic!("it is ready") };
        assert!(words.starts_with("releases of old-style: the store of releases did not answer yet, "), "{words}");
        relays.cut_off(0, false);
        relays.hear();
        assert_eq!(relays.world.relays[0].core.readiness(), Readiness::Ready);
    }
}

#[test]
fn a_relay_that_serves_all_from_releases_is_ready_without_its_origin() {
    let mut relays = staged_of(Types::All);
    for is_away in [false, true] {
        relays.cut_off(0, is_away);
        relays.restart(0, &[]);
        assert_eq!(relays.world.relays[0].core.readiness(), Readiness::Ready, "the store is away: {is_away}");
    }
    // Nothing is known of endpoints.
    let mut others = staged();
    others.restart(0, &[]);
    assert!(matches!(others.world.relays[0].core.readiness(), Readiness::NotReady(_)));
    relays.world.start(1, FILES, None::<NoState>);
    assert!(matches!(relays.world.relays[1].core.readiness(), Readiness::NotReady(_)), "there are no files");
}

#[test]
fn a_copy_that_is_damaged_is_begun_anew() {
    let mut relays = staged();
    let copy = relays.copies[0].clone();
    let control = copy.list("").unwrap().entries.into_iter().find(|entry| entry.key.ends_with("/ctl")).unwrap();
    let _ = copy.commit(&[Op::put(control.key, "no such thing")], &[]).unwrap();
    relays.cut_off(0, true);
    relays.restart(0, &[]);
    let client = relays.node(0, "other", "other");
    relays.advance(5);
    assert_eq!(relays.held([client]), [""]);
    relays.cut_off(0, false);
    relays.advance(10);
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
    relays.cut_off(0, true);
    relays.restart(0, &[client]);
    let new = relays.node(0, "new", "other");
    assert_eq!(relays.held([client, new]), ["a@1 b@1"; 2]);
}

/// What a client has is not sent again by a relay that starts from its copy, and not when the store answers.
#[test]
fn who_comes_back_to_a_relay_that_has_a_copy_is_sent_nothing_that_it_holds() {
    let mut relays = staged();
    let clients = [relays.node(0, "canary", "canary"), relays.node(0, "other", "other")];
    relays.advance(2);
    let before = clients.map(|client| relays.world.clients[client].versions.len());
    relays.cut_off(0, true);
    relays.restart(0, &clients);
    relays.advance(5);
    relays.cut_off(0, false);
    relays.advance(5);
    assert_eq!(clients.map(|client| relays.world.clients[client].versions.len()), before);
    assert_eq!(relays.held(clients), ["a@2 b@1", "a@1 b@1"]);
}

/// What is copied is what is served and the last releases, not all that there ever was.
#[test]
fn a_copy_does_not_grow_for_ever() {
    let mut relays = staged();
    for body in 3..40 {
        relays.set(&[&format!("a@{body}"), "b@1"]);
        relays.advance(130);
    }
    let releases = relays.copies[1].list("").unwrap().entries;
    let releases = releases.iter().filter(|entry| entry.key.contains("/rel/")).count();
    assert!((2..=21).contains(&releases), "{releases}");
}

/// It was made anew, say: there is no release, and nothing is frozen.
#[test]
fn a_store_that_has_nothing_counts_too() {
    let mut relays = staged();
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
    relays.advance(2);
    for relay in [0, 1] {
        relays.cut_off(relay, true);
        relays.restart(relay, &[]);
    }
    let client = relays.node(0, "other", "other");
    relays.restore(&[]);
    [0, 1].into_iter().for_each(|relay| relays.cut_off(relay, false));
    relays.advance(5);
    assert!(relays.control(0).frozen().is_none() && relays.control(0).stable().is_none());
    assert_eq!(relays.held([client]), ["a@1 b@1"], "that there is nothing nobody said");
    relays.set(&["a@5"]);
    relays.advance(5);
    assert_eq!(relays.held([client]), ["a@5"], "the first release is stable at once");
}

#[test]
fn what_was_ordered_while_the_store_is_away_holds_over_a_restart() {
    let mut relays = staged();
    let client = relays.node(0, "canary", "canary");
    relays.cut_off(0, true);
    assert_eq!(relays.order(0, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
    relays.advance(2);
    for _ in 0..2 {
        relays.restart(0, &[client]);
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
fn what_cannot_be_read_of_a_release_is_in_no_copy() {
    let mut relays = staged();
    let (cut, other) = (1 - relays.publisher(), relays.publisher());
    let client = relays.node(cut, "other", "other");
    relays.cut_off(cut, true);
    relays.set(&["a@3", "b@1"]);
    relays.advance(200);
    *relays.seats[cut].hidden.lock().unwrap() = "/body/";
    relays.compact(cut);
    relays.cut_off(cut, false);
    relays.advance(5);
    let stable = relays.control(other).stable();
    assert_eq!((relays.control(cut).stable(), relays.held([client])), (stable, ["a@1 b@1".to_owned()]));
    relays.cut_off(cut, true);
    relays.restart(cut, &[client]);
    let new = relays.node(cut, "new", "other");
    assert_eq!(relays.held([new]), ["a@1 b@1"]);
    *relays.seats[cut].hidden.lock().unwrap() = "";
    relays.cut_off(cut, false);
    relays.advance(5);
    assert_eq!(relays.held([new, client]), ["a@3 b@1"; 2]);
}

/// Its turn would be one in which nothing can be written.
#[test]
fn a_relay_that_has_not_read_the_store_does_not_take_the_turn() {
    let mut relays = staged();
    for relay in [0, 1] {
        relays.cut_off(relay, true);
        relays.restart(relay, &[]);
    }
    relays.expire();
    relays.set(&["a@3"]);
    [0, 1].into_iter().for_each(|relay| relays.cut_off(relay, false));
    (0..10).for_each(|_| relays.world.advance(SECOND));
    assert!(relays.holder.lock().unwrap().is_none());
    relays.advance(10);
    assert!(relays.holder.lock().unwrap().is_some());
}

/// What is damaged is not read; somebody forgets all of it then.
#[test]
fn what_was_recalled_is_not_put_into_a_store_that_lost_what_could_not_be_read() {
    let mut relays = staged();
    relays.cut_off(0, true);
    relays.restart(0, &[]);
    relays.world.stop(1);
    let store = relays.store.lock().unwrap().clone();
    let all = store.list("").unwrap().entries;
    let control = all.iter().find(|entry| entry.key.ends_with("/ctl")).unwrap();
    let _ = store.commit(&[Op::put(&*control.key, "no such thing")], &[]).unwrap();
    relays.cut_off(0, false);
    relays.advance(5);
    let ops: Vec<_> = all.into_iter().map(|entry| Op::delete(entry.key)).collect();
    let _ = store.commit(&ops, &[]).unwrap();
    relays.advance(20);
    let there = store.list("").unwrap().entries;
    let there: Vec<_> = there.iter().filter(|entry| !entry.key.contains("/tally/")).collect();
    assert!(there.is_empty(), "{there:?}");
    // It goes on with what there is now, which is nothing.
    relays.expire();
    relays.set_at(0, &["a@7"]);
    relays.advance(10);
    let client = relays.node(0, "other", "other");
    assert_eq!(relays.held([client]), ["a@7"]);
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

/// It follows the store, and is cut off before it has read it. Nothing is done there afterwards.
#[test]
fn a_relay_that_is_cut_off_as_it_begins_reads_the_store_when_it_answers() {
    let mut relays = staged();
    relays.world.stop(1);
    relays.is_cut_off_as_it_begins = true;
    relays.restart(0, &[]);
    relays.expire();
    relays.cut_off(0, false);
    relays.advance(10);
    relays.set_at(0, &["a@3", "b@1"]);
    let client = relays.node(0, "canary", "canary");
    relays.advance(10);
    assert_eq!(relays.held([client]), ["a@3 b@1"], "it publishes");
}

/// What was ordered waits, and the store answers in part: it is read, and what was done there is not.
#[test]
fn what_was_recalled_is_not_written_over_what_the_store_says() {
    let mut relays = staged();
    relays.cut_off(0, true);
    relays.restart(0, &[]);
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
    // Others go on.
    relays.expire();
    relays.set_at(1, &["a@3", "b@1"]);
    relays.advance(200);
    relays.compact(0);
    let there = relays.control(1);
    *relays.seats[0].hidden.lock().unwrap() = "/log/";
    relays.cut_off(0, false);
    assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Unchanged);
    relays.world.advance(SECOND);
    relays.advance(5);
    assert_eq!(relays.control(1), there);
    *relays.seats[0].hidden.lock().unwrap() = "";
    relays.advance(10);
    let frozen = relays.control(1);
    assert!(frozen.frozen().is_some() && frozen.stable() == there.stable(), "{frozen:?}");
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
fn what_cannot_be_read_is_not_read_all_the_time() {
    let mut relays = staged();
    let cut = 1 - relays.publisher();
    relays.cut_off(cut, true);
    relays.set(&["a@3", "b@1"]);
    relays.advance(100);
    relays.set(&["a@4", "b@1"]);
    relays.advance(70);
    relays.compact(cut);
    *relays.seats[cut].hidden.lock().unwrap() = "/body/";
    relays.cut_off(cut, false);
    relays.advance(5);
    let before = relays.seats[cut].hidden_reads.load(Ordering::Relaxed);
    relays.advance(50);
    let reads = relays.seats[cut].hidden_reads.load(Ordering::Relaxed) - before;
    assert!((2..=24).contains(&reads), "{reads}");
}

/// The relay starts after etcd has begun anew, and again while that is away.
#[test]
fn a_store_that_has_nothing_does_not_empty_a_copy() {
    let mut relays = staged();
    relays.cut_off(0, true);
    relays.world.stop(1);
    relays.restart(0, &[]);
    relays.restore(&[]);
    relays.cut_off(0, false);
    relays.advance(5);
    relays.cut_off(0, true);
    relays.restart(0, &[]);
    let client = relays.node(0, "other", "other");
    assert_eq!(relays.held([client]), ["a@1 b@1"]);
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

/// Each has a copy, and one of them knows of a freeze that the other one does not. Whichever is there first.
#[test]
fn what_the_newest_copy_knows_is_put_back_though_another_relay_put_back_what_it_knew() {
    for (first, late) in [(0, 0), (1, 0), (1, 1), (1, 3)] {
        let mut relays = staged();
        let old = relays.snapshot();
        relays.advance(200);
        relays.cut_off(1, true);
        assert_eq!(relays.order(0, Act::Freeze).unwrap(), Transition::Frozen);
        relays.advance(2);
        let newest = relays.control(0);
        relays.cut_off(0, true);
        relays.restore(&old);
        for relay in [0, 1] {
            relays.restart(relay, &[]);
            relays.set_at(relay, &["a@2", "b@1"]);
        }
        relays.cut_off(first, false);
        relays.advance(late);
        relays.cut_off(1 - first, false);
        relays.advance(20);
        let there = relays.control(0);
        assert_eq!(there, relays.control(1));
        assert_eq!((there.frozen(), there.stable()), (newest.frozen(), newest.stable()), "{first} {late}");
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
