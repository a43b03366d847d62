//! Releases: who is served which, and what becomes of those that clients refuse.

use std::sync::Arc;
use std::time::Duration;

use xds_relay::api::{OrderDone, Ordered, ReleaseOrder};
use xds_relay::config::Rollout;
use xds_relay::metrics::ReleaseState;
use xds_relay::relay_core::{Checked, RolloutError};
use xds_relay::releases::{Act, By, OnHalt, Order, Progress, Release, Stage, Stages, Transition, Who};
use xds_relay::state::{Memory, Op, Store as _};
use xds_transport::wire::Node;

use crate::support::{CLUSTERS, DELTA, ENDPOINTS, LISTENERS, Protocol, SECOND, SOTW, World, file};

const BOTH: [Protocol; 2] = [DELTA, SOTW];
const FILES: &str = "origins: [{name: files, files: .}]\n";

fn canaries() -> Who {
    Who::Match([("cluster".parse().unwrap(), "canary".to_owned())].into())
}

fn stages(all: impl IntoIterator<Item = Who>) -> Stages {
    Stages::new(all.into_iter().map(|who| Stage { who, hold: 60 * SECOND }))
}

fn percent(text: &str) -> Who {
    Who::Percent(text.parse().unwrap())
}

/// Old-style names are released by these stages.
fn roll_out(world: &World, relay: usize, rollout: Rollout, store: &Arc<Memory>) {
    world.relays[relay].core.roll_out(rollout, store.clone(), world.now).unwrap();
}

/// A relay of files whose canaries are served first, and what it keeps.
fn world() -> (World, Arc<Memory>) {
    world_with(|rollout| rollout)
}

fn world_with(change: impl FnOnce(Rollout) -> Rollout) -> (World, Arc<Memory>) {
    let (mut world, store) = (World::empty(), Arc::<Memory>::default());
    world.add_relay(FILES, Vec::new());
    roll_out(&world, 0, change(Rollout::new(None, stages([canaries(), percent("100%")]))), &store);
    (world, store)
}

/// The files are these clusters, or what else `name@body` is of.
fn set(world: &mut World, relay: usize, files: &[(&str, &str)]) {
    let files = files.iter().map(|(of, named)| {
        let (name, body) = named.split_once('@').unwrap();
        file(of, name, body)
    });
    let (files, now) = (files.collect(), world.now);
    world.relays[relay].core.set_files(0, files, now);
    world.settle();
}

fn node(world: &mut World, protocol: Protocol, cluster: &str) -> usize {
    let client = world.client_with(0, protocol, &Node { id: "n".into(), cluster: cluster.into(), ..Node::default() });
    world.subscribe(client, CLUSTERS, &["*"]);
    client
}

fn order(world: &mut World, act: Act) -> Result<Transition, RolloutError> {
    let order = Order::new(act, By::Person("ann".into()), "a test", world.wall());
    let applied = world.relays[0].core.order_release(None, &order, world.now);
    world.settle();
    Ok(applied?.transition)
}

fn held(world: &World, client: usize) -> String {
    world.clients[client].held(CLUSTERS).join(" ")
}

#[test]
fn a_release_goes_from_stage_to_stage_and_clients_are_sent_what_differs() {
    for protocol in BOTH {
        let (mut world, _) = world();
        set(&mut world, 0, &[(CLUSTERS, "a@1"), (CLUSTERS, "b@1"), (CLUSTERS, "c@1")]);
        let [canary, other] = ["canary", "other"].map(|cluster| node(&mut world, protocol, cluster));
        world.advance(SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["", ""], "it has not settled");
        world.advance(3 * SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["a@1 b@1 c@1", "a@1 b@1 c@1"]);
        for client in [canary, other] {
            world.told(client);
        }

        set(&mut world, 0, &[(CLUSTERS, "a@1"), (CLUSTERS, "b@2"), (CLUSTERS, "d@1")]);
        world.advance(5 * SECOND);
        let started = node(&mut world, protocol, "other");
        world.advance(SECOND);
        assert_eq!(held(&world, canary), "a@1 b@2 d@1");
        assert_eq!([other, started].map(|client| held(&world, client)), ["a@1 b@1 c@1", "a@1 b@1 c@1"]);
        assert_eq!(world.told(other), [""; 0]);
        // Nothing that is as it was, and additions first.
        assert_eq!(world.told(canary), ["Cluster b@2 d@1", "Cluster -c"]);
        world.advance(61 * SECOND);
        assert_eq!([other, started].map(|client| held(&world, client)), ["a@1 b@2 d@1", "a@1 b@2 d@1"]);
        world.told(other);
        world.advance(61 * SECOND);
        let control = world.relays[0].core.release_control(None).unwrap();
        assert!(control.candidate().is_none(), "it is stable");
        // That is nothing to tell.
        assert_eq!([canary, other].map(|client| world.told(client)), [[""; 0], [""; 0]]);
    }
}

#[test]
fn what_canaries_refuse_reaches_nobody_else_and_goes_back_with_the_origin_dead() {
    for protocol in BOTH {
        let (mut world, _) = world();
        set(&mut world, 0, &[(CLUSTERS, "a@1"), (CLUSTERS, "b@1")]);
        let [canary, other] = ["canary", "other"].map(|cluster| node(&mut world, protocol, cluster));
        world.advance(5 * SECOND);
        world.clients[canary].refuses = true;
        set(&mut world, 0, &[(CLUSTERS, "a@bad"), (CLUSTERS, "b@1")]);
        world.advance(600 * SECOND);
        let control = world.relays[0].core.release_control(None).unwrap();
        let Some(Progress::Halted(said)) = control.candidate().map(|candidate| &candidate.progress) else {
            panic!("{control:?}")
        };
        assert!(said.why.starts_with("clients refused 1"), "{}", said.why);
        let [started, late_canary] = ["other", "canary"].map(|cluster| node(&mut world, protocol, cluster));
        world.advance(SECOND);
        for client in [other, started, late_canary] {
            assert_eq!(held(&world, client), "a@1 b@1");
        }
        world.clients[canary].refuses = false;
        world.told(canary);
        let sent = world.clients[canary].chunks.len();
        assert_eq!(order(&mut world, Act::Rollback { to: None }).unwrap(), Transition::RolledBack);
        // It is not taken again, until its content changes.
        set(&mut world, 0, &[(CLUSTERS, "b@1"), (CLUSTERS, "a@bad")]);
        world.advance(600 * SECOND);
        assert_eq!((world.clients[canary].chunks.len(), held(&world, other).as_str()), (sent + 1, "a@1 b@1"));
        if protocol == DELTA {
            assert_eq!(world.told(canary), ["Cluster a@1 again"], "it holds that still");
        }
        set(&mut world, 0, &[(CLUSTERS, "a@2"), (CLUSTERS, "b@1")]);
        world.advance(5 * SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["a@2 b@1", "a@1 b@1"]);
    }
}

#[test]
fn a_release_that_is_refused_is_rolled_back_where_that_is_said() {
    let (mut world, _) = world_with(|mut rollout| {
        rollout.on_halt = OnHalt::Rollback;
        rollout
    });
    set(&mut world, 0, &[(CLUSTERS, "a@1")]);
    let canary = node(&mut world, DELTA, "canary");
    world.advance(5 * SECOND);
    world.clients[canary].refuses = true;
    set(&mut world, 0, &[(CLUSTERS, "a@bad")]);
    world.advance(5 * SECOND);
    assert_eq!(held(&world, canary), "a@1");
    let control = world.relays[0].core.release_control(None).unwrap();
    assert_eq!((control.candidate(), control.refused().len()), (None, 1));
}

#[test]
fn a_freeze_in_the_middle_of_a_push_gives_everybody_what_is_stable() {
    for protocol in BOTH {
        let (mut world, _) = world();
        set(&mut world, 0, &[(CLUSTERS, "a@1")]);
        let [canary, other] = ["canary", "other"].map(|cluster| node(&mut world, protocol, cluster));
        world.advance(5 * SECOND);
        set(&mut world, 0, &[(CLUSTERS, "a@2")]);
        world.advance(5 * SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["a@2", "a@1"]);
        assert_eq!(order(&mut world, Act::Freeze).unwrap(), Transition::Frozen);
        world.advance(SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["a@1", "a@1"]);
        set(&mut world, 0, &[(CLUSTERS, "a@3")]);
        world.advance(600 * SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["a@1", "a@1"], "it waits");
        assert_eq!(order(&mut world, Act::Unfreeze).unwrap(), Transition::Unfrozen);
        world.advance(SECOND);
        assert_eq!([canary, other].map(|client| held(&world, client)), ["a@3", "a@1"]);
    }
}

#[test]
fn a_part_of_all_nodes_is_the_same_on_two_relays() {
    let mut world = World::empty();
    for relay in 0..2 {
        world.add_relay(FILES, Vec::new());
        roll_out(&world, relay, Rollout::new(None, stages([percent("30%")])), &Arc::default());
        set(&mut world, relay, &[(CLUSTERS, "a@1")]);
    }
    let clients = |world: &mut World, relay| -> Vec<usize> {
        let client = |number: usize| {
            let client = world.client_of(relay, DELTA, &format!("node-{number}"));
            world.subscribe(client, CLUSTERS, &["a"]);
            client
        };
        (0..40).map(client).collect()
    };
    let all = [0, 1].map(|relay| clients(&mut world, relay));
    world.advance(5 * SECOND);
    (0..2).for_each(|relay| set(&mut world, relay, &[(CLUSTERS, "a@2")]));
    world.advance(5 * SECOND);
    let held = all.map(|clients| clients.into_iter().map(|client| held(&world, client)).collect::<Vec<_>>());
    assert_eq!(held[0], held[1]);
    let new = held[0].iter().filter(|held| *held == "a@2").count();
    assert!((4..=20).contains(&new), "{new} of 40");
}

#[test]
fn what_is_stable_is_served_after_a_restart_though_the_origin_is_dead() {
    let (mut world, store) = world();
    set(&mut world, 0, &[(CLUSTERS, "a@1"), (ENDPOINTS, "e@1")]);
    world.advance(5 * SECOND);
    set(&mut world, 0, &[(CLUSTERS, "a@2"), (ENDPOINTS, "e@1")]);
    world.advance(5 * SECOND);
    world.add_relay(FILES, Vec::new());
    roll_out(&world, 1, Rollout::new(None, stages([canaries()])), &store);
    let client = world.client_of(1, DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    world.subscribe(client, ENDPOINTS, &["e"]);
    world.advance(5 * SECOND);
    assert_eq!(held(&world, client), "a@1");
    // Endpoints are in no release.
    assert_eq!(world.clients[client].held(ENDPOINTS), [""; 0]);
}

#[test]
fn what_is_in_no_release_is_served_as_the_origin_has_it() {
    let (mut world, _) = world();
    set(&mut world, 0, &[(CLUSTERS, "a@1"), (ENDPOINTS, "e@1"), (LISTENERS, "l@1")]);
    let client = node(&mut world, DELTA, "other");
    world.subscribe(client, ENDPOINTS, &["e"]);
    assert_eq!(world.clients[client].held(ENDPOINTS), ["e@1"]);
    world.advance(5 * SECOND);
    set(&mut world, 0, &[(CLUSTERS, "a@2"), (ENDPOINTS, "e@2")]);
    assert_eq!(world.clients[client].held(ENDPOINTS), ["e@2"]);
    world.advance(5 * SECOND);
    assert_eq!(held(&world, client), "a@1");
}

#[test]
fn an_origin_that_is_asked_has_no_releases() {
    let world = World::new(DELTA);
    let rollout = Rollout::new(Some("example.com"), Stages::default());
    let error = world.relays[0].core.roll_out(rollout, Arc::<Memory>::default(), world.now).unwrap_err();
    assert!(error.to_string().starts_with("the releases of xdstp://example.com: its origin is a server"), "{error}");
}

#[test]
fn what_somebody_says_of_a_candidate_halts_it_and_silence_keeps_it_in_its_stage() {
    let well = || Checked::Well;
    let silent = || Checked::Nothing("nobody is there".to_owned());
    let (mut world, _) = world_with(|mut rollout| {
        rollout.halt.check = Some("http://127.0.0.1:9000/ok".parse().unwrap());
        rollout
    });
    let first = release_of(&mut world, &[(CLUSTERS, "a@1")]);
    let second = release_of(&mut world, &[(CLUSTERS, "a@2")]);
    let stage = |world: &World| {
        let candidate = world.relays[0].core.release_control(None).unwrap().candidate().cloned();
        candidate.map(|candidate| (candidate.stage, matches!(candidate.progress, Progress::Halted(_))))
    };
    let said = |world: &mut World, of: Release, checked: Checked, seconds: u32| {
        world.relays[0].core.is_checked(0, of, checked, world.now);
        world.advance(seconds * SECOND);
    };
    world.advance(120 * SECOND);
    assert_eq!(stage(&world), Some((0, false)), "nobody has said anything");
    said(&mut world, second, silent(), 120);
    said(&mut world, first, well(), 2);
    assert_eq!(stage(&world), Some((0, false)), "nothing was said of this one");
    said(&mut world, second, well(), 2);
    assert_eq!(stage(&world), Some((1, false)));
    // What was said is no answer for long.
    world.advance(120 * SECOND);
    assert_eq!(stage(&world), Some((1, false)));
    said(&mut world, second, Checked::NotWell("it says 503".to_owned()), 2);
    assert_eq!(stage(&world), Some((1, true)));
    let halted = world.relays[0].core.released().scopes.remove(0).candidate.unwrap();
    assert_eq!((halted.said.unwrap().why, halted.check), ("it says 503".to_owned(), Some("it says 503".to_owned())));
    let third = release_of(&mut world, &[(CLUSTERS, "a@3")]);
    assert_eq!(stage(&world), Some((0, false)), "that was not said of this one");
    for _ in 0..20 {
        said(&mut world, third, well(), 10);
    }
    assert_eq!(stage(&world), None, "it is stable");
}

/// What is set is a release, be it the first or the candidate.
fn release_of(world: &mut World, files: &[(&str, &str)]) -> Release {
    set(world, 0, files);
    world.advance(3 * SECOND);
    let control = world.relays[0].core.release_control(None).unwrap();
    control.candidate().map(|candidate| candidate.release).or(control.stable()).unwrap()
}

/// As somebody orders it, who waits for it or not.
fn ordered(world: &World, order: &ReleaseOrder, waits: bool) -> Result<OrderDone, RolloutError> {
    let now = (world.now, world.wall());
    world.relays[0].core.order_releases(order, "ann", None, &|| waits, now)
}

#[test]
fn what_is_kept_and_cannot_be_read_is_not_rolled_back_to() {
    let (mut world, store) = world();
    let first = release_of(&mut world, &[(CLUSTERS, "a@1")]);
    let second = release_of(&mut world, &[(CLUSTERS, "a@2")]);
    order(&mut world, Act::Stage { at: 2 }).unwrap();
    let control = world.relays[0].core.release_control(None).unwrap();
    assert_eq!((control.stable(), first == second), (Some(second), false));
    let bodies = store.list("").unwrap().entries.into_iter().filter(|entry| entry.key.contains("/body/"));
    let torn: Vec<_> = bodies.map(|entry| Op::put(entry.key, "torn")).collect();
    let _ = store.commit(&torn, &[]).unwrap();

    let back = ReleaseOrder { order: Ordered::Rollback, to: Some(first.to_string()), ..ReleaseOrder::default() };
    let error = ordered(&world, &back, true).unwrap_err();
    assert!(error.to_string().contains("its hash is another"), "{error}");
    assert_eq!(world.relays[0].core.release_control(None).unwrap(), control, "nothing changed");
}

/// It is set, in either direction.
#[test]
fn a_stage_lasts_as_long_as_it_is_to_whatever_the_clock_says() {
    for ahead in [true, false] {
        let (mut world, _) = world();
        world.wall_is_ahead = if ahead { Duration::ZERO } else { 3600 * SECOND };
        release_of(&mut world, &[(CLUSTERS, "a@1")]);
        let other = node(&mut world, DELTA, "other");
        release_of(&mut world, &[(CLUSTERS, "a@2")]);
        world.wall_is_ahead = if ahead { 3600 * SECOND } else { Duration::ZERO };
        world.advance(50 * SECOND);
        assert_eq!(held(&world, other), "a@1", "ahead: {ahead}");
        world.advance(15 * SECOND);
        assert_eq!(held(&world, other), "a@2", "ahead: {ahead}");
        world.advance(50 * SECOND);
        assert!(world.relays[0].core.release_control(None).unwrap().candidate().is_some());
        world.advance(15 * SECOND);
        assert!(world.relays[0].core.release_control(None).unwrap().candidate().is_none());
    }
}

/// What was seen of its clients it does not know any more.
#[test]
fn a_stage_begins_anew_once_with_a_relay_that_starts() {
    let (mut world, store) = world();
    release_of(&mut world, &[(CLUSTERS, "a@1")]);
    release_of(&mut world, &[(CLUSTERS, "a@2")]);
    world.advance(50 * SECOND);
    world.stop(0);
    world.add_relay(FILES, Vec::new());
    roll_out(&world, 1, Rollout::new(None, stages([canaries(), percent("100%")])), &store);
    let stage = |world: &World| world.relays[1].core.release_control(None).unwrap().candidate().unwrap().stage;
    world.advance(50 * SECOND);
    assert_eq!(stage(&world), 0);
    world.advance(15 * SECOND);
    assert_eq!(stage(&world), 1);
}

#[test]
fn metrics_tell_how_the_candidate_is() {
    let (mut world, _) = world();
    let state = |world: &World| {
        let gauges = world.relays[0].core.gauges().releases["old-style"];
        assert!(gauges.publishes && gauges.store_up && !gauges.recalled && gauges.unsaved == 0);
        (gauges.state, gauges.stage)
    };
    let many: Vec<_> = (0..20).map(|name| format!("c-{name}@1")).collect();
    let all: Vec<_> = many.iter().map(|named| (CLUSTERS, named.as_str())).collect();
    release_of(&mut world, &all);
    assert_eq!(state(&world), (ReleaseState::None, 0));
    release_of(&mut world, &all[1..]);
    assert_eq!(state(&world), (ReleaseState::Open, 1));
    order(&mut world, Act::Stage { at: 1 }).unwrap();
    order(&mut world, Act::Hold).unwrap();
    assert_eq!(state(&world), (ReleaseState::Held, 2));
    order(&mut world, Act::Freeze).unwrap();
    assert_eq!(state(&world), (ReleaseState::Frozen, 2));
    release_of(&mut world, &all[..5]);
    assert_eq!(state(&world), (ReleaseState::RemovesMuch, 1));
    order(&mut world, Act::Rollback { to: None }).unwrap();
    assert_eq!(state(&world), (ReleaseState::Frozen, 0));
}

#[test]
fn what_nobody_waits_for_any_more_and_what_is_for_another_relay_is_not_done() {
    let (mut world, _) = world();
    release_of(&mut world, &[(CLUSTERS, "a@1")]);
    let freeze = ReleaseOrder::default();
    assert!(matches!(ordered(&world, &freeze, false), Err(RolloutError::GivenUp)));
    let elsewhere = ReleaseOrder { instance: Some("0123".to_owned()), ..freeze.clone() };
    assert!(matches!(ordered(&world, &elsewhere, true), Err(RolloutError::OtherRelay { .. })));
    assert_eq!(world.relays[0].core.release_control(None).unwrap().frozen(), None);
    let here = ReleaseOrder { instance: Some(world.relays[0].core.instance()), ..freeze };
    assert_eq!(ordered(&world, &here, true).unwrap().done, "frozen");
}
