//! Releases: what halts them, over both protocols.

use std::sync::Arc;
use std::time::Duration;

use xds_relay::config::Rollout;
use xds_relay::releases::{Halt, OnHalt, Progress, Stage, Stages, Threshold, Who};
use xds_relay::state::Memory;
use xds_transport::wire::Node;

use crate::support::{CLUSTERS, DELTA, LISTENERS, Protocol, SECOND, SOTW, World, file};

const BOTH: [Protocol; 2] = [DELTA, SOTW];
const SILENT: fn(&mut Halt, Threshold) = |halt, threshold| halt.silent = threshold;
const LOST: fn(&mut Halt, Threshold) = |halt, threshold| halt.lost = threshold;
const REJECTED: fn(&mut Halt, Threshold) = |halt, threshold| halt.rejected = threshold;

/// A relay of files that canaries are served first for an hour, where nothing halts a candidate but what is said here; `a` is stable
/// as `a@1`, and a listener that no canary asks for.
fn world(what: fn(&mut Halt, Threshold), threshold: &str) -> World {
    let mut world = World::empty();
    world.add_relay("origins: [{name: files, files: .}]\n", Vec::new());
    let canaries = Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into());
    let hold = Duration::from_secs(3600);
    let mut rollout = Rollout::new(None, Stages::new([Stage { who: canaries, hold }]));
    rollout.halt.rejected = Threshold::Never;
    what(&mut rollout.halt, threshold.parse().unwrap());
    rollout.on_halt = OnHalt::Hold;
    world.relays[0].core.roll_out(rollout, Arc::<Memory>::default(), world.now).unwrap();
    set(&mut world, "1");
    world.advance(5 * SECOND);
    world
}

/// The cluster is another one: a candidate, some seconds later.
fn set(world: &mut World, body: &str) {
    set_files(world, &[(CLUSTERS, "a", body), (LISTENERS, "l", "1")]);
}

fn set_files(world: &mut World, files: &[(&str, &str, &str)]) {
    let files = files.iter().map(|(of, name, body)| file(of, name, body)).collect();
    world.relays[0].core.set_files(0, files, world.now);
    world.settle();
}

/// Until the candidate is served: it is sent at the second that this ends with.
fn release(world: &mut World, body: &str) {
    set(world, body);
    // One until it is noticed, two to settle.
    world.advance(3 * SECOND);
    assert_eq!(why(world), None);
}

fn client(world: &mut World, protocol: Protocol, id: &str, cluster: &str) -> usize {
    let client = world.shown_client(protocol, &Node { id: id.into(), cluster: cluster.into(), ..Node::default() });
    world.subscribe(client, CLUSTERS, &["a"]);
    client
}

/// A canary starts again, and knows nothing.
fn restart(world: &mut World, canary: usize, id: &str) {
    let node = Node { id: id.into(), cluster: "canary".into(), ..Node::default() };
    world.clients[canary].restart(world.now, &node);
    world.clients[canary].subscribe(CLUSTERS, &["a"]);
    world.connect(canary, 0);
}

fn canaries<const N: usize>(world: &mut World, protocol: Protocol) -> [usize; N] {
    let canaries = std::array::from_fn(|at| client(world, protocol, &format!("node-{at}"), "canary"));
    // Who is served what is stable is never counted.
    client(world, protocol, "other", "other");
    world.advance(SECOND);
    canaries
}

/// Why the candidate is halted, if it is.
fn why(world: &World) -> Option<String> {
    let control = world.relays[0].core.release_control(None).unwrap();
    let candidate = control.candidate().expect("there is one");
    match &candidate.progress {
        Progress::Halted(said) => Some(said.why.clone()),
        _ => None,
    }
}

fn holds(world: &World, client: usize) -> &str {
    world.clients[client].bodies(CLUSTERS)[0]
}

fn answers(world: &mut World, client: usize, answers: bool) {
    world.clients[client].is_mute = !answers;
    world.settle();
}

#[test]
fn a_canary_that_says_nothing_for_15_seconds_halts_the_candidate() {
    for protocol in BOTH {
        let mut world = world(SILENT, "1");
        let [canary] = canaries(&mut world, protocol);
        answers(&mut world, canary, false);
        release(&mut world, "2");
        assert_eq!(holds(&world, canary), "2");
        world.advance(14 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
        world.advance(SECOND);
        assert_eq!(why(&world).as_deref(), Some("1 of 1 client is silent, such as node-0"), "{protocol:?}");
    }
}

#[test]
fn a_canary_that_answers_late_or_refuses_is_not_silent() {
    for protocol in BOTH {
        for refuses in [false, true] {
            let mut world = world(SILENT, "1");
            let [canary] = canaries(&mut world, protocol);
            world.clients[canary].refuses = refuses;
            answers(&mut world, canary, false);
            release(&mut world, "2");
            world.advance(14 * SECOND);
            answers(&mut world, canary, true);
            world.advance(60 * SECOND);
            assert_eq!(why(&world), None, "{protocol:?}");
        }
    }
}

#[test]
fn a_canary_that_is_sent_nothing_is_not_silent() {
    for protocol in BOTH {
        let mut world = world(SILENT, "1");
        let [mute, stalled] = canaries(&mut world, protocol);
        let stable = client(&mut world, protocol, "stable", "other");
        [mute, stable].into_iter().for_each(|client| answers(&mut world, client, false));
        // Nothing is sent to who does not read.
        world.clients[stalled].stalled = true;
        set_files(&mut world, &[(CLUSTERS, "a", "1"), (CLUSTERS, "b", "1"), (LISTENERS, "l", "2")]);
        world.advance(60 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
    }
}

/// It was silent already.
#[test]
fn who_owes_an_answer_from_before_is_not_silent_on_the_candidate() {
    for protocol in BOTH {
        let mut world = world(SILENT, "1");
        let [canary] = canaries(&mut world, protocol);
        world.clients[canary].stalled = true;
        restart(&mut world, canary, "node-0");
        world.clients[canary].is_mute = true;
        world.clients[canary].stalled = false;
        world.advance(SECOND);
        assert_eq!(holds(&world, canary), "1");
        release(&mut world, "2");
        world.advance(60 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
    }
}

#[test]
fn a_part_of_the_canaries_may_be_silent() {
    for protocol in BOTH {
        let mut world = world(SILENT, "50%");
        let [first, second, _third, _fourth] = canaries(&mut world, protocol);
        answers(&mut world, first, false);
        release(&mut world, "2");
        world.advance(60 * SECOND);
        assert_eq!(why(&world), None);
        answers(&mut world, first, true);
        answers(&mut world, first, false);
        answers(&mut world, second, false);
        // What differs from that begins anew.
        release(&mut world, "3");
        world.advance(14 * SECOND);
        assert_eq!(why(&world), None);
        world.advance(SECOND);
        assert_eq!(why(&world).as_deref(), Some("2 of 4 clients are silent, such as node-0"), "{protocol:?}");
    }
}

#[test]
fn a_canary_that_is_gone_for_15_seconds_halts_the_candidate() {
    for protocol in BOTH {
        let mut world = world(LOST, "1");
        let [_stays, goes] = canaries(&mut world, protocol);
        release(&mut world, "2");
        world.disconnect(goes);
        // A second at most before it is noticed.
        world.advance(15 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
        world.advance(SECOND);
        assert_eq!(why(&world).as_deref(), Some("1 of 2 clients is gone, such as node-1"), "{protocol:?}");
    }
}

#[test]
fn a_canary_that_comes_back_in_time_is_not_gone() {
    for protocol in BOTH {
        let mut world = world(LOST, "1");
        let [canary] = canaries(&mut world, protocol);
        release(&mut world, "2");
        for _ in 0..3 {
            world.disconnect(canary);
            world.advance(14 * SECOND);
            world.connect(canary, 0);
            world.advance(SECOND);
        }
        world.advance(60 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
    }
}

#[test]
fn who_goes_because_the_relay_ends_is_not_gone() {
    for protocol in BOTH {
        let mut world = world(LOST, "1");
        let [canary] = canaries(&mut world, protocol);
        release(&mut world, "2");
        world.relays[0].core.end_releases();
        world.disconnect(canary);
        world.advance(60 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
    }
}

/// It has the candidate for less than the second between two looks at it.
#[test]
fn a_canary_that_goes_at_once_is_gone() {
    for protocol in BOTH {
        let mut world = world(LOST, "1");
        let [canary] = canaries(&mut world, protocol);
        world.disconnect(canary);
        release(&mut world, "2");
        world.connect(canary, 0);
        assert_eq!(holds(&world, canary), "2");
        world.disconnect(canary);
        world.advance(17 * SECOND);
        assert_eq!(why(&world).as_deref(), Some("1 of 1 client is gone, such as node-0"), "{protocol:?}");
    }
}

/// Nobody knows whether the one without a name came back.
#[test]
fn a_part_of_the_canaries_may_go_and_one_without_an_id_is_its_stream() {
    for protocol in BOTH {
        let mut world = world(LOST, "50%");
        let [_first, goes, _third] = canaries(&mut world, protocol);
        let nameless = client(&mut world, protocol, "", "canary");
        release(&mut world, "2");
        world.disconnect(goes);
        world.advance(60 * SECOND);
        assert_eq!(why(&world), None);
        world.disconnect(nameless);
        world.connect(nameless, 0);
        world.advance(14 * SECOND);
        assert_eq!(why(&world), None);
        world.advance(3 * SECOND);
        // It is two of five by now.
        assert_eq!(why(&world), None);
        world.disconnect(nameless);
        world.advance(17 * SECOND);
        assert_eq!(why(&world).as_deref(), Some("3 of 5 clients are gone, such as node-1"), "{protocol:?}");
    }
}

#[test]
fn a_part_of_the_canaries_may_refuse() {
    for protocol in BOTH {
        let mut world = world(REJECTED, "50%");
        let all: [usize; 4] = canaries(&mut world, protocol);
        world.clients[all[1]].refuses = true;
        release(&mut world, "2");
        // The same client again is no more of them.
        restart(&mut world, all[1], "node-1");
        world.advance(10 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
        // Who is gone was served it all the same.
        world.disconnect(all[0]);
        world.clients[all[2]].refuses = true;
        restart(&mut world, all[2], "node-2");
        world.advance(SECOND);
        let such_as = format!("such as {} ({CLUSTERS}) by node-1: ", if protocol == DELTA { "a" } else { "something" });
        let why = why(&world).unwrap();
        assert!(why.starts_with("2 of 4 clients refused something, ") && why.contains(&such_as), "{why}");
    }
}

#[test]
fn refusals_are_counted_by_client_and_name() {
    for protocol in BOTH {
        let mut world = world(REJECTED, "2");
        let [one, two] = canaries(&mut world, protocol);
        world.clients[one].refuses = true;
        release(&mut world, "2");
        restart(&mut world, one, "node-0");
        world.advance(10 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
        world.clients[two].refuses = true;
        restart(&mut world, two, "node-1");
        world.advance(SECOND);
        assert!(why(&world).unwrap().starts_with("clients refused 2, such as "), "{protocol:?}");
    }
}

#[test]
fn who_refuses_what_is_stable_says_nothing_of_the_candidate() {
    for protocol in BOTH {
        let mut world = world(REJECTED, "1");
        let [canary] = canaries(&mut world, protocol);
        world.clients[canary].refuses = true;
        restart(&mut world, canary, "node-0");
        world.advance(SECOND);
        set(&mut world, "2");
        world.advance(10 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
        // Until it accepts what is stable.
        world.clients[canary].refuses = false;
        set(&mut world, "1");
        world.advance(10 * SECOND);
        restart(&mut world, canary, "node-0");
        world.advance(2 * SECOND);
        assert_eq!(holds(&world, canary), "1");
        world.clients[canary].refuses = true;
        set(&mut world, "3");
        world.advance(10 * SECOND);
        assert!(why(&world).unwrap().starts_with("clients refused 1, such as "), "{protocol:?}");
    }
}

#[test]
fn another_candidate_is_counted_anew() {
    for protocol in BOTH {
        for (what, how) in [(SILENT, "silent"), (LOST, "gone"), (REJECTED, "refused")] {
            let mut world = world(what, "2");
            let [one, two, _three] = canaries(&mut world, protocol);
            let fails = |world: &mut World, client: usize| match how {
                "silent" => answers(world, client, false),
                "gone" => world.disconnect(client),
                _ => world.clients[client].refuses = true,
            };
            if how == "gone" {
                release(&mut world, "2");
                fails(&mut world, one);
            } else {
                fails(&mut world, one);
                release(&mut world, "2");
            }
            world.advance(30 * SECOND);
            assert_eq!(why(&world), None, "{protocol:?} {how}");
            if how == "gone" {
                release(&mut world, "3");
                fails(&mut world, two);
            } else {
                world.clients[one].refuses = false;
                answers(&mut world, one, true);
                fails(&mut world, two);
                release(&mut world, "3");
            }
            world.advance(30 * SECOND);
            assert_eq!(why(&world), None, "{protocol:?} {how}");
        }
    }
}

/// Found by Envoys: the one after it was halted by what was refused of the one before, in the moment in which it was taken.
#[test]
fn what_comes_after_a_candidate_that_halted_is_not_halted_by_that() {
    for protocol in BOTH {
        let mut world = world(REJECTED, "1");
        let all: [usize; 2] = canaries(&mut world, protocol);
        all.iter().for_each(|canary| world.clients[*canary].refuses = true);
        release(&mut world, "bad");
        world.advance(2 * SECOND);
        assert!(why(&world).is_some(), "{protocol:?}");
        all.iter().for_each(|canary| world.clients[*canary].refuses = false);
        release(&mut world, "2");
        world.advance(30 * SECOND);
        assert_eq!(why(&world), None, "{protocol:?}");
        for canary in all {
            assert_eq!(world.clients[canary].held(CLUSTERS), ["a@2"], "{protocol:?}");
        }
    }
}
