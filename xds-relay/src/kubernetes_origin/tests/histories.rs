//! Random histories: whatever happens, in the end it is served what is there, and nothing is removed that was never gone.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::cluster::{Cluster, Fault, Kind, expired, status};
use super::{SETTLED, World, text};
use crate::config::Kubernetes;

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u32),
    Delete(u32),
    Cut,
    Away(bool),
    Compact,
    Fail(u32),
    Wait(u32),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..12u32, 0..9u32).prop_map(|(name, timeout)| Step::Put(name, timeout)),
        5 => (0..12u32).prop_map(Step::Delete),
        2 => Just(Step::Cut),
        1 => any::<bool>().prop_map(Step::Away),
        1 => Just(Step::Compact),
        3 => (0..9u32).prop_map(Step::Fail),
        4 => (1..8000u32).prop_map(Step::Wait),
        1 => Just(Step::Settle),
    ]
}

fn fault(which: u32) -> (Kind, Fault) {
    match which {
        0 => (Kind::List, Fault::Status(500, status(500, "InternalError", "no"), "")),
        1 => (Kind::List, Fault::Cut(300)),
        2 => (Kind::More, Fault::Status(410, status(410, "Expired", "no"), "")),
        3 => (Kind::More, Fault::Cut(100)),
        4 => (Kind::Watch, Fault::Says(expired())),
        5 => (Kind::Watch, Fault::Status(410, status(410, "Gone", "no"), "")),
        6 => (Kind::Watch, Fault::Cut(250)),
        7 => (Kind::Watch, Fault::Stall),
        _ => (Kind::List, Fault::Silence),
    }
}

/// What is there, by the model.
fn expected(there: &BTreeMap<u32, u32>) -> Option<Vec<(String, u32)>> {
    let mut all: Vec<_> = there.iter().map(|(name, timeout)| (format!("c{name}"), *timeout)).collect();
    all.sort();
    Some(all)
}

/// None was removed that had not been gone.
fn check(world: &World) {
    for name in world.seen.take_removed() {
        assert!(world.cluster.state().gone.remove(&name), "{name} was removed, and there all the time");
    }
}

async fn run(steps: &[Step], page: usize) {
    let cluster = Cluster::default();
    cluster.state().page = Some(page);
    let world = World::of(cluster, Kubernetes::in_cluster(), &["mesh"]);
    let mut there = BTreeMap::new();
    for step in steps.iter().chain([&Step::Settle]) {
        match step {
            Step::Put(name, timeout) => {
                world.cluster.cluster(&format!("c{name}"), *timeout);
                there.insert(*name, *timeout);
            }
            Step::Delete(name) => {
                world.cluster.delete("mesh", &format!("c{name}"));
                there.remove(name);
            }
            Step::Cut => world.cluster.cut(),
            Step::Away(is_away) => world.cluster.state().is_away = *is_away,
            Step::Compact => world.cluster.compact(),
            Step::Fail(which) => {
                let (kind, fault) = fault(*which);
                world.cluster.fail(kind, fault);
            }
            Step::Wait(milliseconds) => sleep(Duration::from_millis(u64::from(*milliseconds))).await,
            Step::Settle => {
                world.cluster.state().is_away = false;
                world.cluster.state().faults.clear();
                sleep(SETTLED).await;
                assert_eq!((world.seen.served(), world.seen.trouble()), (expected(&there), None));
            }
        }
        check(&world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn in_the_end_it_is_served_what_is_there(steps in prop::collection::vec(step(), 0..60), page in 1..6usize) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(&steps, page));
    }
}

/// An empty text is a good YAML of nothing: it is kept apart from what is there.
#[test]
fn the_texts_of_a_history_are_good() {
    assert!(text("c1", 0).contains("connect_timeout: 0s"));
}
