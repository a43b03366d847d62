//! What holds between any two calls.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_uri::ResourceName;

use crate::Cache;
use crate::keys::{LinkKey, ListKey, SubscriberKey, Target, TypeKey};
use crate::links::{Answer, Chain, Ends, State};

/// Panics when a chain, a count or an index is wrong, or something nobody uses was kept.
pub(super) fn check<V>(cache: &Cache<V>) {
    check_links(cache);
    check_slots(cache);
    check_lists(cache);
    check_errors(cache);
    check_aliases(cache);
    let present = cache.slots.values().filter(|slot| slot.state.resource().is_some()).count();
    assert_eq!(cache.present, present);
    let names: usize = cache.types.values().map(|of| of.names.len()).sum();
    let lists: usize = cache.types.values().map(|of| of.globs.len() + 1).sum();
    assert_eq!((names, lists), (cache.slots.len(), cache.lists.len()));
    for (type_key, of) in cache.types.iter() {
        check_brought(cache, type_key);
        let subscribers = cache.subscribers.values().filter(|one| one.type_key == type_key).count();
        assert_eq!(of.subscribers as usize, subscribers);
        let (readers, departed) = of.departures.kept();
        let sent_full_states = |at: &SubscriberKey| cache.subscribers[*at].full_state.is_some();
        assert!(readers.iter().all(sent_full_states) && (departed == 0 || !readers.is_empty()));
    }
}

/// What is kept by glob is what a look at each name says.
fn check_brought<V>(cache: &Cache<V>, type_key: TypeKey) {
    let url = &cache.types[type_key].url;
    let (mut brought, mut undecided) = (BTreeSet::new(), BTreeSet::new());
    for (key, subscriber) in cache.subscribers.iter().filter(|(_, one)| one.type_key == type_key) {
        let id = cache.id_of(key);
        let here = |name: &&ResourceName| {
            let slot = cache.slot_of(type_key, name);
            slot.is_some_and(|at| cache.slots[at].state.resource().is_some())
        };
        let missing: Vec<_> = subscriber.resumed.names().filter(|name| !here(name)).cloned().collect();
        let waits = |name: &&ResourceName| cache.covered(id, type_key, name) && !cache.is_answered(id, type_key, name);
        undecided.extend(missing.iter().filter(waits).cloned());
        brought.extend(missing);
    }
    // Not for what a subscriber of another type said.
    let all = cache.subscribers.values().flat_map(|subscriber| subscriber.resumed.names());
    all.for_each(|name| assert_eq!(cache.is_brought_along(url, name), brought.contains(name), "{name}"));
    assert_eq!(cache.undecided(url), undecided);
}

fn chain<V>(cache: &Cache<V>, head: Option<LinkKey>) -> Vec<LinkKey> {
    let all: Vec<_> = std::iter::successors(head, |at| cache.links[*at].next).take(10_000).collect();
    let before = all.iter().cycle().skip(all.len().saturating_sub(1));
    assert!(all.iter().zip(before).all(|(at, before)| cache.links[*at].prev == Some(*before)), "a chain is broken");
    all
}

fn check_links<V>(cache: &Cache<V>) {
    assert_eq!(cache.links.len(), cache.held.len());
    let mut seen = BTreeSet::new();
    let mut saw = |at: LinkKey| assert!(seen.insert(at), "{at:?} stands on two chains");
    for (key, slot) in cache.slots.iter() {
        for at in chain(cache, slot.clean) {
            saw(at);
            assert_eq!(cache.links[at].target, Target::Slot(key));
            assert_eq!(cache.links[at].chain, Chain::Clean);
            // The state, and the error of the name: that may have been the newer one, and be over.
            let failure = cache.types[slot.type_key].errors.get(&slot.name);
            let newest = failure.map_or(slot.seq, |failure| failure.seq.max(slot.seq));
            assert!((newest..=cache.seq).contains(&cache.links[at].cursor), "up to date");
        }
    }
    for (key, list) in cache.lists.iter() {
        for at in chain(cache, list.clean) {
            saw(at);
            assert_eq!(cache.links[at].target, Target::List(key));
            assert_eq!(cache.links[at].chain, Chain::Clean);
        }
    }
    for (key, subscriber) in cache.subscribers.iter() {
        for at in chain(cache, subscriber.slots).into_iter().chain(chain(cache, subscriber.lists)) {
            saw(at);
            assert_eq!(cache.links[at].subscriber, key);
            assert_eq!(cache.links[at].chain, Chain::Work);
        }
        for (position, at) in subscriber.links.iter().enumerate() {
            let link = &cache.links[*at];
            assert_eq!((link.subscriber, link.position), (key, position as u32));
            let unanswered = matches!(link.target, Target::Slot(at) if matches!(cache.slots[at].state, State::Unknown));
            assert!(!unanswered || position >= subscriber.first_unanswered, "it is passed over");
            assert_eq!(cache.held.find(&cache.links, Ends(link.subscriber, link.target)), Some(*at));
        }
        assert!(subscriber.resumed.is_empty() || cache.bringing.contains(&key));
        assert_eq!(subscriber.resumed.len(), subscriber.resumed.names().count());
        assert!(subscriber.resumed.sweeps().all(|at| cache.links[at].subscriber == key));
        assert!(subscriber.parting.iter().all(|at| cache.links[*at].subscriber == key));
    }
    assert_eq!(seen.len(), cache.links.len(), "a link stands on no chain");
    let walks: BTreeSet<_> = cache.links.values().filter_map(|link| link.walk).collect();
    let to_lists = cache.links.values().filter(|link| matches!(link.target, Target::List(_))).count();
    assert_eq!((walks.len(), cache.walks.len()), (to_lists, to_lists));
}

fn check_slots<V>(cache: &Cache<V>) {
    for (key, slot) in cache.slots.iter() {
        let watchers = cache.links.values().filter(|link| link.target == Target::Slot(key)).count();
        assert_eq!(slot.watchers as usize, watchers, "{}", slot.name);
        let present = slot.state.resource().is_some();
        assert!(present || watchers > 0, "{} is kept for nobody", slot.name);
        assert_eq!(slot.seq == 0, matches!(slot.state, State::Unknown));
        assert_eq!(cache.slot_of(slot.type_key, &slot.name), Some(key));
        let places: Vec<_> = slot.places.iter().map(|place| place.list).collect();
        let expected = if present { cache.collections_of(slot.type_key, &slot.name) } else { [None; 2] };
        assert_eq!(places, expected, "{}", slot.name);
    }
}

fn check_lists<V>(cache: &Cache<V>) {
    for (key, list) in cache.lists.iter() {
        let watchers = cache.links.values().filter(|link| link.target == Target::List(key)).count();
        assert_eq!(list.watchers as usize, watchers);
        let seqs: Vec<_> = list.members(&cache.slots).map(|at| cache.slots[at].seq).collect();
        assert_eq!(seqs.len(), list.live as usize);
        assert!(seqs.is_sorted_by(|a, b| a < b), "in order of last change");
        assert!(list.gone.iter().map(|gone| gone.seq).is_sorted_by(|a, b| a < b));
        assert_eq!(list.unseen, list.gone.iter().filter(|gone| gone.unseen).count());
        assert!(list.gone.len() - list.unseen <= cache.options.tombstones);
        assert!(list.unseen <= cache.options.tombstones);
        check_owed(cache, key);
        if let Some(glob) = &list.glob {
            let answers = cache.keeps_answers() && list.answer != Answer::None;
            let holds = list.live > 0 || !list.gone.is_empty() || !list.failed.is_empty();
            assert!(watchers > 0 || holds || answers, "{glob} is kept for nobody");
        } else {
            assert!(list.failed.is_empty(), "a wildcard has no errors");
        }
    }
}

/// What is owed to a link is there, once, and not much more.
fn check_owed<V>(cache: &Cache<V>, at: ListKey) {
    let list = &cache.lists[at];
    let mut passed = BTreeMap::new();
    for link in cache.links.values().filter(|link| link.target == Target::List(at)) {
        let walk = &cache.walks[link.walk.unwrap()];
        *passed.entry(walk.gone_cursor).or_default() += 1;
    }
    assert_eq!(list.passed, passed);
    let slowest = passed.first_key_value().map_or(u64::MAX, |(cursor, _)| *cursor);
    let seqs: Vec<_> = list.owed.iter().chain(&list.gone).map(|gone| gone.seq).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b));
    assert!(list.owed.iter().all(|gone| gone.seq > slowest), "owed to nobody");
    assert!(list.owed.len() <= 2 * list.needed + cache.options.tombstones);
}

fn check_errors<V>(cache: &Cache<V>) {
    for of in cache.types.values() {
        let listed: BTreeMap<_, _> =
            of.globs.values().flat_map(|list| &cache.lists[*list].failed).map(|(seq, name)| (name, *seq)).collect();
        let expected: BTreeMap<_, _> = of
            .errors
            .iter()
            .filter(|(name, failure)| failure.listed && (name.is_glob() || name.glob_parent().is_some()))
            .map(|(name, failure)| (name, failure.seq))
            .collect();
        assert_eq!(listed, expected);
    }
}

fn check_aliases<V>(cache: &Cache<V>) {
    for (key, of) in cache.types.iter() {
        let mut listed = 0;
        for (alias, canonical) in of.aliases.iter() {
            let slot = &cache.slots[cache.slot_of(key, canonical).unwrap()];
            assert!(slot.state.resource().is_some(), "{alias} stands for nothing");
            listed += usize::from(of.aliases.of(canonical).contains(alias));
            if let Some(at) = cache.slot_of(key, alias) {
                let alias = &cache.slots[at];
                assert!(matches!(alias.state, State::Absent) && alias.seq == slot.seq, "{}", alias.name);
            }
        }
        let names: BTreeSet<_> = of.aliases.iter().map(|(_, canonical)| canonical).collect();
        assert_eq!(listed, names.iter().map(|name| of.aliases.of(name).len()).sum::<usize>());
    }
    for subscriber in cache.subscribers.values() {
        assert!(subscriber.aliased.keys().all(|at| subscriber.links.contains(at)), "sent by a link that is gone");
    }
}
