//! Random histories: whatever happens, in the end it is served what is there, and nothing is removed that was never gone.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::cluster::{Cluster, Fault, Kind, expired, status};
use super::restarting::Disk;
use super::{SETTLED, World, text};
use crate::config::Kubernetes;
use crate::keyed_origin::GRACE;

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
    /// What is known is written down.
    Save,
    /// The relay is killed, and another one takes its place: who finds nobody there, or does.
    Restart(bool),
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
        2 => Just(Step::Save),
        1 => any::<bool>().prop_map(Step::Restart),
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

/// The objects that there are, with the times of their clusters. Some have a cluster of the same name, and are older or younger.
#[derive(Default)]
struct Model {
    there: BTreeMap<u32, u32>,
    /// Clusters that no object had at some time, and how often that came and was not seen yet.
    gone: BTreeMap<String, usize>,
    /// Those that were removed since anything was written down.
    removed: Vec<String>,
    /// What was served as that was.
    saved: Option<Vec<(String, u32)>>,
}

fn cluster_of(object: u32) -> String {
    format!("c{}", object % 8)
}

fn since(object: u32) -> u32 {
    object * 5 % 7
}

impl Model {
    fn delete(&mut self, object: u32) {
        let name = cluster_of(object);
        if self.there.remove(&object).is_some() && !self.there.keys().any(|other| cluster_of(*other) == name) {
            *self.gone.entry(name).or_default() += 1;
        }
    }

    /// What is served, and whether that is all that is there.
    fn expected(&self) -> (Option<Vec<(String, u32)>>, bool) {
        let mut served = BTreeMap::new();
        for (object, timeout) in &self.there {
            let claim = ((since(*object), format!("o{object}")), *timeout);
            let of = served.entry(cluster_of(*object)).or_insert_with(|| claim.clone());
            *of = claim.min(of.clone());
        }
        let is_all = served.len() == self.there.len();
        (Some(served.into_iter().map(|(name, (_, timeout))| (name, timeout)).collect()), is_all)
    }

    /// None was removed that had not been gone.
    fn check(&mut self, world: &World) {
        for name in world.seen.take_removed() {
            let times = self.gone.get_mut(&name).filter(|times| **times > 0);
            *times.unwrap_or_else(|| panic!("{name} was removed, and there all the time")) -= 1;
            self.removed.push(name);
        }
    }

    fn save(&mut self, world: &World, disk: &Disk) {
        disk.save();
        self.removed.clear();
        if world.seen.is_all() {
            self.saved = world.seen.served();
        }
    }

    /// What was removed, and was not written down, is removed again.
    fn restart(&mut self) {
        self.removed.drain(..).for_each(|name| *self.gone.entry(name).or_default() += 1);
    }
}

async fn run(steps: &[Step], page: usize) {
    let cluster = Cluster::default();
    cluster.state().page = Some(page);
    let mut disk = Disk::new();
    let follow = |disk: &Disk| World::keeping(cluster.clone(), Kubernetes::in_cluster(), &["mesh"], Some(disk));
    let (mut world, mut model) = (follow(&disk), Model::default());
    for step in steps.iter().chain([&Step::Settle]) {
        match step {
            Step::Put(object, timeout) => {
                let text = text(&cluster_of(*object), *timeout);
                world.cluster.apply("mesh", &format!("o{object}"), since(*object), &[("a.yaml", &text)]);
                model.there.insert(*object, *timeout);
            }
            Step::Delete(object) => {
                world.cluster.delete("mesh", &format!("o{object}"));
                model.delete(*object);
            }
            Step::Cut => world.cluster.cut(),
            Step::Away(is_away) => world.cluster.state().is_away = *is_away,
            Step::Compact => world.cluster.compact(),
            Step::Fail(which) => {
                let (kind, fault) = fault(*which);
                world.cluster.fail(kind, fault);
            }
            Step::Wait(milliseconds) => sleep(Duration::from_millis(u64::from(*milliseconds))).await,
            Step::Save => model.save(&world, &disk),
            Step::Restart(finds_nobody) => {
                model.restart();
                cluster.state().is_away |= finds_nobody;
                disk = disk.restarted();
                world = follow(&disk);
                if *finds_nobody {
                    sleep(2 * GRACE).await;
                    assert_eq!(world.seen.served(), model.saved.clone().filter(|saved| !saved.is_empty()));
                }
            }
            Step::Settle => {
                world.cluster.state().is_away = false;
                world.cluster.state().faults.clear();
                sleep(SETTLED).await;
                let (served, is_all) = model.expected();
                assert_eq!((world.seen.served(), world.seen.trouble().is_none()), (served, is_all));
            }
        }
        model.check(&world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn in_the_end_it_is_served_what_is_there(steps in prop::collection::vec(step(), 0..60), page in 1..6usize) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(&steps, page));
    }
}
