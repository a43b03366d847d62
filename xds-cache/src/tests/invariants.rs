//! What holds between any two calls.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_uri::ResourceName;

use crate::Cache;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, Target, TypeKey};
use crate::store::{Answer, State, Varied, refuses};
use crate::subscribers::{Chain, Debt, Link, Names};

/// Panics when a chain, a count or an index is wrong, or something nobody uses was kept.
pub(super) fn check<V>(cache: &Cache<V>) {
    check_links(cache);
    check_slots(cache);
    check_lists(cache);
    check_errors(cache);
    check_aliases(cache);
    check_selections(cache);
    check_idle(cache);
    let present: usize = cache.store.slots().values().map(|slot| slot.state.count()).sum();
    assert_eq!(cache.store.present, present);
    let is_there = |at: &SlotKey| cache.store.slots().get(*at).is_some_and(|slot| slot.state.resource().is_some());
    assert!(cache.store.stale.keys().all(is_there));
    let names: usize = cache.store.types().values().map(|of| of.names.len()).sum();
    let lists: usize = cache.store.types().values().map(|of| of.globs.len() + 1).sum();
    assert_eq!((names, lists), (cache.store.slots().len(), cache.store.lists().len()));
    for (type_key, of) in cache.store.types().iter() {
        check_brought(cache, type_key);
        let subscribers = cache.subscribers.all.values().filter(|one| one.type_key == type_key).count();
        assert_eq!(of.subscriber_count as usize, subscribers);
        let (readers, departed) = (&of.departures.readers, of.departures.departed.len());
        let sent_full_states = |at: &SubscriberKey| cache.subscribers[*at].full_state.is_some();
        assert!(readers.iter().all(sent_full_states) && (departed == 0 || !readers.is_empty()));
    }
}

/// A selection is kept as long as somebody has looked at it and wants it; and who selects by what is counted.
fn check_selections<V>(cache: &Cache<V>) {
    assert!(cache.store.unsettled.is_empty(), "an edit is settled when it ends");
    let mut lookers = BTreeMap::new();
    for (key, subscriber) in cache.subscribers.all.iter() {
        for name in subscriber.looked.iter() {
            let (Some(look), Some(at)) = (subscriber.looked.get(name), cache.store.slot_of(subscriber.type_key, name))
            else {
                continue;
            };
            let varied = cache.store[at].state.varied().filter(|varied| varied.since == look.of);
            if varied.is_some() {
                *lookers.entry((at, subscriber.selector)).or_default() += 1;
            }
        }
        let of = subscriber.type_key;
        let is_told = |name: &&ResourceName| subscriber.owed.owes(Debt::Removal, name);
        for name in subscriber.looked.iter().filter(|name| !is_told(name)) {
            assert!(cache.is_wanted(cache.subscribers.id_of(key), of, name), "{name} is looked at for nothing");
            let has_variants = cache.store.slot_of(of, name).is_some_and(|at| cache.store[at].state.varied().is_some());
            let needed = has_variants || subscriber.has_work() || !subscriber.looked.knows_absent(name);
            assert!(needed, "{name} has no variants to look at, and the subscriber none of it");
        }
    }
    let mut kept = BTreeMap::new();
    for (at, slot) in cache.store.slots().iter() {
        let varied = slot.state.varied();
        assert!(varied.is_none_or(|varied| varied.len() > 0), "{} has no variant", slot.name);
        let came = varied.into_iter().flat_map(|varied| varied.came.iter().map(|turn| varied.variant(&turn.variant)));
        assert!(came.flatten().count() == varied.map_or(0, |varied| varied.came.iter().count()), "{} came", slot.name);
        let selections = varied.into_iter().flat_map(Varied::lookers);
        kept.extend(selections.map(|(key, lookers)| ((at, key), lookers)));
    }
    assert_eq!(kept, lookers, "selections and who looked at them");
    let mut selecting = BTreeMap::new();
    for (at, link) in cache.subscribers.links.iter() {
        if let Some(selector) = cache.subscribers[link.subscriber].selector {
            *selecting.entry((cache.subscribers.target(at), selector)).or_default() += 1;
        }
    }
    assert_eq!(cache.subscribers.selecting, selecting);
}

/// What may be evicted is found when there is no room for it.
fn check_idle<V>(cache: &Cache<V>) {
    let Cache { store, .. } = cache;
    let mut idle = BTreeSet::new();
    for target in store.idle.targets() {
        assert!(store.capacity().is_some(), "nothing is evicted");
        match target {
            Target::Slot(at) => assert!(store.slots().contains(at), "a name that is forgotten"),
            Target::List(at) => assert!(store.lists().contains(at), "a collection that is forgotten"),
        }
        idle.insert(target);
    }
    let wanted = |at: ListKey| store[at].watchers.count > 0;
    for (at, list) in store.lists().iter().filter(|(at, list)| !wanted(*at) && list.live > 0) {
        let is_found = list.answer == Answer::None || idle.contains(&Target::List(at));
        assert!(is_found || store.capacity().is_none(), "an answer that stays for good");
    }
    for (at, slot) in store.slots().iter().filter(|(at, slot)| slot.state.is_present() && !store.is_watched(*at)) {
        let within = || slot.lists().filter(|list| store[*list].answer != Answer::None);
        let is_found = slot.lists().any(wanted) || within().next().is_some() || idle.contains(&Target::Slot(at));
        assert!(is_found || store.capacity().is_none(), "{} stays for good", slot.name);
    }
}

/// What is kept by glob is what a look at each name says.
fn check_brought<V>(cache: &Cache<V>, type_key: TypeKey) {
    let url = &cache.store[type_key].url;
    let (mut brought, mut undecided) = (BTreeSet::new(), BTreeSet::new());
    for (key, subscriber) in cache.subscribers.all.iter().filter(|(_, one)| one.type_key == type_key) {
        let id = cache.subscribers.id_of(key);
        let here = |name: &&ResourceName| {
            let slot = cache.store.slot_of(type_key, name);
            slot.is_some_and(|at| cache.store[at].state.is_present())
        };
        let missing: Vec<_> = subscriber.owed.brought().iter().filter(|name| !here(name)).cloned().collect();
        let waits = |name: &&ResourceName| cache.covered(id, type_key, name) && !cache.is_answered(id, type_key, name);
        undecided.extend(missing.iter().filter(waits).cloned());
        brought.extend(missing);
    }
    // Not for what a subscriber of another type said.
    let all = cache.subscribers.all.values().flat_map(|subscriber| subscriber.owed.brought().iter());
    all.for_each(|name| assert_eq!(cache.is_brought_along(url, name), brought.contains(name), "{name}"));
    assert_eq!(cache.undecided(url), undecided);
}

fn chain<V>(cache: &Cache<V>, head: Option<LinkKey>) -> Vec<LinkKey> {
    let all: Vec<_> = std::iter::successors(head, |at| cache.subscribers[*at].next).take(10_000).collect();
    let before = all.iter().cycle().skip(all.len().saturating_sub(1));
    assert!(
        all.iter().zip(before).all(|(at, before)| cache.subscribers[*at].prev == Some(*before)),
        "a chain is broken"
    );
    all
}

fn check_links<V>(cache: &Cache<V>) {
    let (mut seen, mut linked) = (BTreeSet::new(), 0);
    let mut saw = |at: LinkKey| assert!(seen.insert(at), "{at:?} stands on two chains");
    for (key, slot) in cache.store.slots().iter() {
        for at in chain(cache, slot.watchers.clean) {
            saw(at);
            assert_eq!(cache.subscribers.target(at), Target::Slot(key));
            assert_eq!(cache.subscribers[at].chain(), Chain::Clean);
            // The state, and the error of the name: that may have been the newer one, and be over.
            let failure = cache.store[slot.type_key].errors.get(&slot.name);
            let newest = failure.map_or(slot.seq, |failure| failure.seq.max(slot.seq));
            // Of variants, those may have changed that the subscriber does not select.
            let newest = if slot.state.varied().is_some() { 0 } else { newest };
            assert!((newest..=cache.store.seq).contains(&cache.subscribers[at].cursor()), "up to date");
        }
    }
    for (key, list) in cache.store.lists().iter() {
        for at in chain(cache, list.watchers.clean) {
            saw(at);
            assert_eq!(cache.subscribers.target(at), Target::List(key));
            assert_eq!(cache.subscribers[at].chain(), Chain::Clean);
        }
    }
    for (key, subscriber) in cache.subscribers.all.iter() {
        for at in chain(cache, subscriber.slots).into_iter().chain(chain(cache, subscriber.lists)) {
            saw(at);
            assert_eq!(cache.subscribers[at].subscriber, key);
            assert_eq!(cache.subscribers[at].chain(), Chain::Work);
        }
        let links = subscriber.links.as_slice();
        linked += links.len();
        let to_lists = links.iter().filter(|at| matches!(cache.subscribers.target(**at), Target::List(_)));
        assert_eq!(subscriber.collections as usize, to_lists.count());
        let id = cache.subscribers.id_of(key);
        for (position, at) in links.iter().enumerate() {
            assert_eq!(cache.subscribers[*at].subscriber, key);
            let target = cache.subscribers.target(*at);
            let unanswered = matches!(target, Target::Slot(at) if matches!(cache.store[at].state, State::Unknown));
            assert!(!unanswered || position >= subscriber.links.first_unanswered as usize, "it is passed over");
            assert_eq!(cache.subscribers.link_of(id, target), Some(*at));
        }
        assert!(!subscriber.owed.owes_any(Debt::Comparison) || cache.subscribers.bringing.contains(&key));
        assert_eq!(subscriber.owed.brought().len(), subscriber.owed.brought().iter().count());
        assert!(subscriber.owed.brought().sweeps().all(|at| cache.subscribers[at].subscriber == key));
        assert!(subscriber.parting.iter().all(|at| cache.subscribers[*at].subscriber == key));
    }
    assert_eq!(seen.len(), cache.subscribers.links.len(), "a link stands on no chain");
    assert_eq!(linked, cache.subscribers.links.len(), "a link that its subscriber does not have");
    let walks: BTreeSet<_> = cache.subscribers.links.values().filter_map(Link::walk).collect();
    let to_lists = cache.subscribers.links.values().filter(|link| link.is_to_list()).count();
    assert_eq!((walks.len(), cache.subscribers.walks.len()), (to_lists, to_lists));
}

fn watchers<V>(cache: &Cache<V>, target: Target) -> usize {
    cache.subscribers.links.iter().filter(|(at, _)| cache.subscribers.target(*at) == target).count()
}

fn check_slots<V>(cache: &Cache<V>) {
    for (key, slot) in cache.store.slots().iter() {
        let watchers = watchers(cache, Target::Slot(key));
        assert_eq!(slot.watchers.count as usize, watchers, "{}", slot.name);
        let present = slot.state.is_present();
        assert!(present || watchers > 0, "{} is kept for nobody", slot.name);
        assert_eq!(slot.seq == 0, matches!(slot.state, State::Unknown));
        assert_eq!(cache.store.slot_of(slot.type_key, &slot.name), Some(key));
        let places: Vec<_> = [slot.places.wildcard.list, slot.places.directory.list].into();
        let expected = if present { cache.store.collections_of(slot.type_key, &slot.name) } else { [None; 2] };
        assert_eq!(places, expected, "{}", slot.name);
    }
}

fn check_lists<V>(cache: &Cache<V>) {
    for (key, list) in cache.store.lists().iter() {
        let watchers = watchers(cache, Target::List(key));
        assert_eq!(list.watchers.count as usize, watchers);
        let seqs: Vec<_> = cache.store.members(key).map(|at| cache.store[at].seq).collect();
        assert_eq!(seqs.len(), list.live as usize);
        assert!(seqs.is_sorted_by(|a, b| a < b), "in order of last change");
        assert!(list.gone.iter().map(|gone| gone.seq).is_sorted_by(|a, b| a < b));
        assert_eq!(list.unseen, list.gone.iter().filter(|gone| gone.unseen).count());
        assert!(list.gone.len() - list.unseen <= cache.store.options.tombstones);
        assert!(list.unseen <= cache.store.options.tombstones);
        check_owed(cache, key);
        if let Some(glob) = &list.glob {
            let answers = cache.store.keeps_answers() && list.answer != Answer::None;
            let holds = list.live > 0 || !list.gone.is_empty() || !list.failed.is_empty();
            assert!(watchers > 0 || holds || answers, "{glob} is kept for nobody");
        } else {
            assert!(list.failed.values().all(|name| name.as_str() == "*"), "a wildcard has no errors but its own");
        }
    }
}

/// What is owed to a link is there, once, and not much more.
fn check_owed<V>(cache: &Cache<V>, at: ListKey) {
    let list = &cache.store[at];
    let mut passed = BTreeMap::new();
    for walk in cache.subscribers.walks.values().filter(|walk| walk.list == at) {
        *passed.entry(walk.gone_cursor).or_default() += 1;
    }
    assert_eq!(list.passed, passed);
    let slowest = passed.first_key_value().map_or(u64::MAX, |(cursor, _)| *cursor);
    let seqs: Vec<_> = list.owed.iter().chain(&list.gone).map(|gone| gone.seq).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b));
    assert!(list.owed.iter().all(|gone| gone.seq > slowest), "owed to nobody");
    assert!(list.owed.len() <= 2 * list.needed + cache.store.options.tombstones);
}

fn check_errors<V>(cache: &Cache<V>) {
    for of in cache.store.types().values() {
        let listed: BTreeMap<_, _> =
            of.globs.values().flat_map(|list| &cache.store[*list].failed).map(|(seq, name)| (name, *seq)).collect();
        let expected: BTreeMap<_, _> = of
            .errors
            .iter()
            .filter(|(name, failure)| failure.listed && (name.is_glob() || name.glob_parent().is_some()))
            .map(|(name, failure)| (name, failure.seq))
            .collect();
        assert_eq!(listed, expected);
        let refused = of.errors.iter().filter(|(name, failure)| refuses(name, &failure.error)).count();
        assert_eq!(of.refused, refused);
    }
}

fn check_aliases<V>(cache: &Cache<V>) {
    for (key, of) in cache.store.types().iter() {
        let mut listed = 0;
        for (alias, canonical) in of.aliases.iter() {
            let slot = &cache.store[cache.store.slot_of(key, canonical).unwrap()];
            assert!(slot.state.resource().is_some(), "{alias} stands for nothing");
            listed += usize::from(of.aliases.of(canonical).contains(alias));
            if let Some(at) = cache.store.slot_of(key, alias) {
                let alias = &cache.store[at];
                assert!(matches!(alias.state, State::Absent) && alias.seq == slot.seq, "{}", alias.name);
            }
        }
        let names: BTreeSet<_> = of.aliases.iter().map(|(_, canonical)| canonical).collect();
        assert_eq!(listed, names.iter().map(|name| of.aliases.of(name).len()).sum::<usize>());
    }
    for subscriber in cache.subscribers.all.values() {
        assert_eq!(subscriber.aliased.is_empty(), subscriber.aliased.links().next().is_none());
        assert!(
            subscriber.aliased.links().all(|at| subscriber.links.as_slice().contains(&at)),
            "sent by a link that is gone"
        );
    }
}
