//! Relays that start while the store of their releases does not answer.

use std::sync::atomic::Ordering;

use xds_relay::relay_core::Readiness;
use xds_relay::releases::{Act, Transition, Types};
use xds_relay::state::{Memory, Op, Store as _};

use crate::support::replicas::{FILES, NoState, Replicas};
use crate::support::{DELTA, SECOND, SOTW};

/// Two relays with a client each, of which everybody has one release, and the canaries the next.
pub(crate) fn staged() -> Replicas {
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
