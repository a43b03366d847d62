//! Relays that have their releases in one store: one publishes, and all serve the same.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use xds_relay::releases::{Act, By, Order, Progress, Stages, Threshold, Transition};
use xds_relay::state::{Op, Store as _};

use crate::support::replicas::Replicas;
use crate::support::{CLUSTERS, DELTA, ENDPOINTS, SECOND, SOTW, file};

#[test]
fn one_relay_publishes_and_all_serve_the_same_stage() {
    for protocol in [DELTA, SOTW] {
        let mut relays = Replicas::new(3, |_| {});
        relays.protocol = protocol;
        relays.set(&["a@1", "b@1"]);
        let canaries = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        let others = [0, 1, 2].map(|relay| relays.node(relay, &format!("o{relay}"), "other"));
        relays.advance(5);
        assert_eq!(relays.held(others), ["a@1 b@1"; 3]);
        relays.set(&["a@2", "b@1"]);
        relays.advance(5);
        assert_eq!(
            (relays.held(canaries), relays.held(others)),
            (["a@2 b@1"; 3].map(str::to_owned), ["a@1 b@1"; 3].map(str::to_owned))
        );
        relays.advance(61);
        assert_eq!(relays.held(others), ["a@2 b@1"; 3]);
        relays.advance(61);
        let controls = [0, 1, 2].map(|relay| relays.control(relay));
        assert!(controls.iter().all(|control| *control == controls[0] && control.candidate().is_none()));
        assert_eq!(controls[0].publisher().unwrap().term, 1, "nobody else published");
    }
}

#[test]
fn what_clients_of_any_relay_refuse_halts_the_candidate_on_all() {
    for at in 0..3 {
        let mut relays = Replicas::new(3, |_| {});
        relays.set(&["a@1"]);
        let canaries = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(5);
        relays.world.clients[canaries[at]].refuses = true;
        relays.set(&["a@bad"]);
        relays.advance(120);
        for relay in 0..3 {
            let control = relays.control(relay);
            let Some(Progress::Halted(said)) = control.candidate().map(|candidate| &candidate.progress) else {
                panic!("{control:?}")
            };
            assert!(said.why.starts_with("clients refused 1, such as a"), "{}", said.why);
        }
    }
}

/// Two relays of which each has one that refuses: that is two.
#[test]
fn clients_of_all_relays_are_counted_together() {
    for (refuse, is_halted) in [([true, false], false), ([true, true], true)] {
        let mut relays = Replicas::new(2, |rollout| rollout.halt.rejected = Threshold::Count(2));
        relays.set(&["a@1"]);
        let canaries = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(5);
        for (canary, refuses) in canaries.into_iter().zip(refuse) {
            relays.world.clients[canary].refuses = refuses;
        }
        relays.set(&["a@bad"]);
        relays.advance(20);
        let candidate = relays.control(0).candidate().cloned().unwrap();
        assert_eq!(matches!(candidate.progress, Progress::Halted(_)), is_halted, "{candidate:?}");
    }
}

#[test]
fn a_client_that_moves_to_another_relay_is_not_lost_and_one_that_goes_is() {
    for moves in [true, false] {
        let mut relays = Replicas::new(2, |rollout| rollout.halt.lost = Threshold::Count(1));
        relays.set(&["a@1"]);
        // Whichever of the two publishes.
        let canaries = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
        relays.advance(5);
        relays.set(&["a@2"]);
        relays.advance(5);
        let left = 1 - relays.publisher();
        relays.world.disconnect(canaries[left]);
        if moves {
            let there = relays.node(1 - left, &format!("c{left}"), "canary");
            relays.advance(40);
            assert_eq!(relays.held([there]), ["a@2"]);
        } else {
            relays.advance(40);
        }
        let candidate = relays.control(0).candidate().cloned().unwrap();
        assert_eq!(matches!(candidate.progress, Progress::Halted(_)), !moves, "{candidate:?}");
    }
}

#[test]
fn another_relay_takes_over_and_whoever_published_before_writes_nothing_more() {
    let mut relays = Replicas::new(3, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1, 2].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    let first = relays.publisher();
    // It is stopped, and does not know that its time is over; what it wants to publish comes too late.
    relays.seats[first].believes.store(true, Ordering::Relaxed);
    relays.expire();
    relays.set_at(first, &["a@late"]);
    let [second, third] = [(first + 1) % 3, (first + 2) % 3];
    [second, third].into_iter().for_each(|relay| relays.set_at(relay, &["a@2"]));
    relays.advance(10);
    assert_ne!(relays.publisher(), first);
    assert_eq!(relays.held(clients), ["a@2"; 3]);
    assert_eq!(relays.control(first), relays.control(second));
    // It knows by now, and waits for its turn.
    relays.seats[first].believes.store(false, Ordering::Relaxed);
    relays.advance(10);
    assert_ne!(relays.publisher(), first);
    assert_eq!(relays.control(0).publisher().unwrap().term, 2);
}

#[test]
fn what_is_in_no_release_makes_no_news_of_what_is_late() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    let first = relays.publisher();
    let late = 1 - first;
    relays.set_at(first, &["a@2"]);
    relays.advance(10);
    assert_eq!(relays.held(clients), ["a@2"; 2]);
    relays.cut_off(first, true);
    relays.expire();
    relays.advance(20);
    for body in ["1", "2", "3"] {
        let files = vec![file(CLUSTERS, "a", "1"), file(ENDPOINTS, "a", body)];
        let now = relays.world.now;
        relays.world.relays[late].core.set_files(0, files, now);
        relays.advance(5);
    }
    assert_eq!(relays.held(clients)[late], "a@2");
    relays.set_at(late, &["a@3"]);
    relays.advance(10);
    assert_eq!(relays.held(clients)[late], "a@3");
}

#[test]
fn who_is_cut_off_serves_what_there_was_and_catches_up() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    let cut = relays.publisher();
    relays.cut_off(cut, true);
    relays.expire();
    relays.set(&["a@2"]);
    relays.advance(20);
    let held = relays.held(clients);
    assert_eq!((held[cut].as_str(), held[1 - cut].as_str()), ("a@1", "a@2"));
    assert_eq!(relays.order(cut, Act::Freeze).unwrap(), Transition::Frozen, "that is done here");
    relays.advance(600);
    assert_eq!(relays.held(clients)[cut], "a@1");
    relays.cut_off(cut, false);
    relays.advance(5);
    // What others did comes first; the freeze holds for all.
    assert!(relays.control(0).frozen().is_some() && relays.control(0) == relays.control(1));
    assert_eq!(relays.held(clients), ["a@2"; 2], "it was stable before");
}

#[test]
fn metrics_tell_who_publishes_and_whose_store_is_away() {
    let mut relays = Replicas::new(2, |_| {});
    let told = |relays: &Replicas, relay: usize| {
        let gauges = relays.world.relays[relay].core.gauges().releases["old-style"];
        (gauges.publishes, gauges.store_up, gauges.recalled, gauges.unsaved)
    };
    relays.set(&["a@1"]);
    relays.advance(5);
    let publisher = relays.publisher();
    assert_eq!(told(&relays, publisher), (true, true, false, 0));
    assert_eq!(told(&relays, 1 - publisher), (false, true, false, 0));
    for relay in [publisher, 1 - publisher] {
        relays.cut_off(relay, true);
        relays.restart(relay, &[]);
        relays.order(relay, Act::Freeze).unwrap();
        relays.advance(1);
        assert_eq!(told(&relays, relay), (false, false, true, 1));
        relays.cut_off(relay, false);
        relays.expire();
        relays.advance(10);
        let (_, up, recalled, unsaved) = told(&relays, relay);
        assert_eq!((up, recalled, unsaved), (true, false, 0));
        relays.order(relay, Act::Unfreeze).unwrap();
        relays.advance(2);
    }
}

#[test]
fn an_order_at_any_relay_is_done_on_all() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    relays.set(&["a@2"]);
    relays.advance(5);
    let other = 1 - relays.publisher();
    assert_eq!(relays.order(other, Act::Freeze).unwrap(), Transition::Frozen);
    relays.advance(1);
    assert_eq!(relays.held(clients), ["a@1"; 2]);
    assert_eq!(relays.order(other, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
    relays.advance(100);
    assert_eq!(relays.control(0), relays.control(1));
    assert_eq!(relays.control(0).refused().len(), 1);
}

#[test]
fn a_relay_that_starts_serves_what_is_stable_without_an_origin() {
    let mut relays = Replicas::new(1, |_| {});
    let many: Vec<_> = (0..500).map(|name| format!("c-{name:03}@{name}")).collect();
    relays.set(&many.iter().map(String::as_str).collect::<Vec<_>>());
    relays.advance(5);
    relays.start();
    let client = relays.node(1, "c", "other");
    relays.advance(2);
    assert_eq!(relays.held([client]), [many.join(" ")]);
}

/// A snapshot is restored, or all was deleted: what was done since is not there, be it that it is frozen, or was just ordered.
#[test]
fn a_store_that_is_put_back_loses_nothing_that_a_relay_knows() {
    for (is_empty, orders_meanwhile) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut relays = Replicas::new(2, |_| {});
        relays.set(&["a@1"]);
        let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "other"));
        relays.advance(5);
        let snapshot = if is_empty { Vec::new() } else { relays.snapshot() };
        relays.set(&["a@1", "b@1"]);
        relays.advance(130);
        assert_eq!(relays.held(clients), ["a@1 b@1"; 2]);
        if !orders_meanwhile {
            relays.order(0, Act::Freeze).unwrap();
        }
        relays.advance(1);
        clients.into_iter().for_each(|client| drop(relays.world.told(client)));
        if orders_meanwhile {
            (0..2).for_each(|at| relays.cut_off(at, true));
            assert_eq!(relays.order(1, Act::Freeze).unwrap(), Transition::Frozen);
        }
        relays.restore(&snapshot);
        (0..2).for_each(|at| relays.cut_off(at, false));
        if orders_meanwhile {
            // Before anybody has heard of it: what it changes would name what the store does not have.
            relays.order(0, Act::Freeze).unwrap();
        }
        relays.advance(10);
        for (at, client) in clients.into_iter().enumerate() {
            assert_eq!(relays.world.told(client), [""; 0], "nothing is taken away");
            assert!(relays.control(at).frozen().is_some());
        }
        relays.start();
        let client = relays.node(2, "new", "other");
        relays.advance(2);
        assert_eq!(relays.held([client]), ["a@1 b@1"], "all of it is there again");
        assert!(relays.control(2).frozen().is_some() && relays.control(2) == relays.control(0));
    }
}

/// One knows nothing of what was since, has the turn, and is not to be believed.
#[test]
fn a_relay_that_started_after_a_store_was_put_back_is_told_by_the_others() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let client = relays.node(0, "c", "other");
    relays.advance(5);
    let snapshot = relays.snapshot();
    relays.order(0, Act::Freeze).unwrap();
    relays.advance(1);
    let publisher = relays.publisher();
    relays.restore(&snapshot);
    relays.start();
    relays.set_at(2, &["a@1"]);
    relays.world.advance(SECOND);
    relays.cut_off(publisher, true);
    relays.advance(10);
    assert!((0..3).filter(|at| *at != publisher).all(|at| relays.control(at).frozen().is_some()));
    assert_eq!(relays.held([client]), ["a@1"]);
}

/// It is empty, and a relay that knows nothing of what was is the first to write there.
#[test]
fn a_store_that_is_emptied_and_begun_anew_is_told_by_relays_that_run() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "other"));
    relays.advance(5);
    relays.order(0, Act::Freeze).unwrap();
    relays.advance(1);
    (0..2).for_each(|at| relays.cut_off(at, true));
    relays.restore(&[]);
    relays.start();
    relays.set_at(2, &["a@9"]);
    relays.advance(10);
    assert!(relays.control(2).stable().is_some() && relays.control(2).frozen().is_none());
    (0..2).for_each(|at| relays.cut_off(at, false));
    relays.advance(15);
    assert!((0..3).all(|at| relays.control(at).frozen().is_some()));
    assert_eq!(relays.held(clients), ["a@1"; 2]);
}

/// Whoever orders has a clock that is late, and what it began is long over by that of the publisher.
#[test]
fn a_stage_is_as_long_as_it_is_to_be_whatever_clocks_say() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let client = relays.node(0, "c", "other");
    relays.advance(5);
    relays.order(0, Act::Freeze).unwrap();
    relays.set(&["a@2"]);
    relays.advance(5);
    let late = relays.world.wall() - 600 * SECOND;
    lasts_a_minute(relays, client, late);
}

/// It is early, and what it began would last until then.
#[test]
fn a_stage_is_no_longer_than_it_is_to_be_whatever_clocks_say() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let client = relays.node(0, "c", "other");
    relays.advance(5);
    relays.order(0, Act::Freeze).unwrap();
    relays.set(&["a@2"]);
    relays.advance(5);
    let early = relays.world.wall() + 600 * SECOND;
    lasts_a_minute(relays, client, early);
}

/// It is unfrozen at another relay than the one that publishes, at that time of its clock.
fn lasts_a_minute(mut relays: Replicas, client: usize, clock: SystemTime) {
    let unfreeze = Order::new(Act::Unfreeze, By::Person("ann".into()), "a test", clock);
    let other = 1 - relays.publisher();
    relays.world.relays[other].core.order_release(None, &unfreeze, relays.world.now).unwrap();
    relays.advance(50);
    assert_eq!(relays.held([client]), ["a@1"]);
    relays.advance(20);
    assert_eq!(relays.held([client]), ["a@2"]);
}

#[test]
fn a_relay_that_ends_gives_its_turn_back() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    relays.advance(5);
    let (first, now) = (relays.publisher(), relays.world.now);
    relays.world.relays[first].core.end_releases();
    relays.world.relays[first].core.release(now, relays.world.wall());
    relays.set(&["a@2"]);
    relays.advance(5);
    assert_ne!(relays.publisher(), first);
}

/// Files reach relays one after the other: what one has still is no news, though it may publish now.
#[test]
fn a_relay_that_takes_over_with_older_files_takes_nothing_back() {
    let mut relays = Replicas::new(2, |rollout| rollout.stages = Stages::default());
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "other"));
    relays.advance(5);
    let first = relays.publisher();
    relays.set_at(first, &["a@1", "b@1"]);
    relays.advance(5);
    assert_eq!(relays.held(clients), ["a@1 b@1"; 2]);
    relays.cut_off(first, true);
    relays.expire();
    relays.advance(30);
    assert_ne!(relays.control(1 - first).publisher(), relays.control(first).publisher(), "it took over");
    assert_eq!(relays.held(clients), ["a@1 b@1"; 2]);
    relays.set_at(1 - first, &["a@1", "c@1"]);
    relays.advance(5);
    assert_eq!(relays.held(clients)[1 - first], "a@1 c@1", "that is news");
}

/// It is a release that there was, and it is what the origin has now.
#[test]
fn what_is_taken_back_while_nobody_publishes_is_taken_back_later() {
    let mut relays = Replicas::new(2, |rollout| rollout.stages = Stages::default());
    relays.set(&["a@1"]);
    let client = relays.node(0, "c", "other");
    relays.advance(5);
    relays.set(&["a@2"]);
    relays.advance(5);
    let first = relays.publisher();
    let there = relays.node(1 - first, "d", "other");
    relays.cut_off(first, true);
    relays.set_at(1 - first, &["a@1"]);
    relays.advance(5);
    assert_eq!(relays.held([client, there]), ["a@2"; 2], "it is not this one's turn");
    relays.expire();
    relays.advance(10);
    assert_eq!(relays.held([there]), ["a@1"]);
}

/// What cannot be read is served to nobody, and nobody counts as served it.
#[test]
fn a_candidate_that_cannot_be_read_yet_is_served_later() {
    let mut relays = Replicas::new(2, |_| {});
    relays.set(&["a@1"]);
    let clients = [0, 1].map(|relay| relays.node(relay, &format!("c{relay}"), "canary"));
    relays.advance(5);
    let first = relays.publisher();
    // It hears nothing, and then that there is a candidate, of which a body is not to be had.
    relays.world.advance(SECOND);
    relays.set_at(first, &["a@2"]);
    relays.world.advance(5 * SECOND);
    let store = relays.store.lock().unwrap().clone();
    let bodies: Vec<_> = store.list("").unwrap().entries.into_iter().filter(|of| of.key.contains("/body/")).collect();
    let torn: Vec<_> = bodies.iter().map(|of| Op::put(&*of.key, "torn")).collect();
    let _ = store.commit(&torn, &[]).unwrap();
    relays.world.relays[1 - first].core.read_releases_anew(relays.world.now);
    relays.world.advance(3 * SECOND);
    assert_eq!(relays.held(clients)[1 - first], "a@1");
    let whole: Vec<_> = bodies.into_iter().map(|of| Op::put(of.key, of.value)).collect();
    let _ = store.commit(&whole, &[]).unwrap();
    relays.advance(3);
    assert_eq!(relays.held(clients), ["a@2"; 2]);
}
