//! A cache that was restored from a snapshot, beside the one that this was taken of.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use proptest::prelude::*;

use super::{COLLECTIONS, INTERESTS, Model, NAMES, SUBSCRIBERS, TYPES, history, invariants, text};
use crate::tests::{interest, name};
use crate::{Cache, Known, Options, Pull, Removals, SubscriberId, TypeUrl, Version};

/// Who comes after the restart: of which type, what it asks for, and what it says it holds.
type Newcomer = (usize, Vec<usize>, Vec<(usize, u8)>);

fn newcomer() -> impl Strategy<Value = Newcomer> {
    let asks = prop::collection::vec(0..INTERESTS, 1..4);
    (0..TYPES.len(), asks, prop::collection::vec((0..NAMES.len(), 0..3_u8), 0..3))
}

fn open(cache: &mut Cache<()>, (of, asks, holds): &Newcomer) -> SubscriberId {
    let id = cache.open(&TYPES[*of].into());
    for what in asks {
        cache.subscribe(id, &interest(text(*what)));
    }
    let holds = holds.iter().map(|(what, version)| (name(text(*what)), Version::from(version.to_string())));
    cache.resume(id, holds);
    id
}

/// All that a subscriber is told, and what its full state is.
fn told(cache: &mut Cache<()>, id: SubscriberId) -> Vec<String> {
    let mut said = Vec::new();
    let mut pulled = cache.pull(id, Removals::Include, &mut |pull| {
        said.push(match pull {
            Pull::Put { name, resource, .. } => format!("{name}@{} {}", resource.version, resource.digest()),
            Pull::Removed { name, .. } => format!("-{name}"),
        });
        ControlFlow::Continue(())
    });
    while pulled.paused {
        pulled = cache.pull(id, Removals::Include, &mut |pull| {
            said.push(format!("{pull:?}"));
            ControlFlow::Continue(())
        });
    }
    cache.pull_errors(id, Removals::Include, &mut |failed| {
        said.push(format!("{failed:?}"));
        ControlFlow::Continue(())
    });
    cache.pull(id, Removals::Include, &mut |pull| {
        said.push(format!("late: {pull:?}"));
        ControlFlow::Continue(())
    });
    let mut full = Vec::new();
    let unanswered = cache.visit(id, &mut |name, resource| full.push(format!("{name}: {resource:?}")));
    full.sort();
    said.push(format!("{pulled:?} {unanswered:?} {full:?} {:?}", cache.type_version(id)));
    said
}

impl Model {
    /// Everybody goes, and the cache is restored from what it says it knows.
    fn restart(&mut self) -> Cache<()> {
        (0..SUBSCRIBERS).for_each(|who| self.close(who));
        let known: Vec<Known<()>> = self.cache.snapshot(self.now).map(|known| known.map(|_| ())).collect();
        let restored = Cache::restore(self.options.clone(), known.clone(), self.now);
        invariants::check(&restored);
        // Collections and types are in no order.
        let sorted = |known: &[Known<()>]| known.iter().map(|known| format!("{known:?}")).collect::<BTreeSet<_>>();
        let again: Vec<_> = restored.snapshot(self.now).map(|known| known.map(|_| ())).collect();
        assert_eq!(sorted(&again), sorted(&known));
        restored
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_cache_answers_every_subscriber_as_the_one_before_did(
        authoritative in any::<bool>(),
        wildcard_covers_xdstp in any::<bool>(),
        tombstones in prop_oneof![Just(1000), 0..4_usize],
        tombstone_age in prop_oneof![Just(3600), 1..9_u64],
        looks in prop_oneof![Just(usize::MAX), 1..4_usize],
        lost in any::<bool>(),
        version in any::<bool>(),
        history in history(),
        newcomers in prop::collection::vec(newcomer(), 1..4),
    ) {
        let tombstone_age = Duration::from_secs(tombstone_age);
        let options = Options { authoritative, wildcard_covers_xdstp, tombstones, tombstone_age, looks, ..Options::default() };
        let mut model = Model::new(options);
        if version {
            model.cache.set_type_version(&TYPES[0].into(), Some("17".into()));
        }
        history.iter().for_each(|op| model.apply(op));
        let mut restored = model.restart();
        if lost {
            restored.origin_lost();
            model.cache.origin_lost();
        }
        for newcomer in &newcomers {
            let [before, after] = [&mut model.cache, &mut restored].map(|cache| {
                let id = open(cache, newcomer);
                let told = told(cache, id);
                invariants::check(cache);
                // Away, and back: what is remembered of those who were away is remembered here too.
                cache.close(id);
                told
            });
            assert_eq!(before, after, "{newcomer:?}");
        }
        for of in TYPES.map(TypeUrl::from) {
            for collection in COLLECTIONS.map(interest) {
                assert_eq!(model.cache.is_known(&of, &collection), restored.is_known(&of, &collection), "{collection}");
            }
        }
        assert_eq!(model.cache.next_expiry(), restored.next_expiry());
    }
}
