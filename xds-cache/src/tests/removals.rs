//! Removals, however many: who is owed them, and what that may cost.

use std::time::Duration;

use super::{GLOB, MEMBER, OTHER, World, interest, name};
use crate::{Options, Removals, Resource, SubscriberId};

const MANY: usize = 10_000;

fn member(collection: &str, number: usize) -> String {
    if collection == "*" { number.to_string() } else { collection.replace('*', &number.to_string()) }
}

impl World {
    fn replace(&mut self, collection: &str, numbers: std::ops::Range<usize>) -> Vec<SubscriberId> {
        let mut woken = Vec::new();
        let resource = |number| (name(&member(collection, number)), Resource::unversioned(1, 0));
        self.cache.replace_raw(&self.of, numbers.map(resource), self.now, &mut woken);
        woken
    }

    fn deny(&mut self, text: &str) -> Vec<SubscriberId> {
        let mut edit = self.cache.edit(self.now);
        edit.deny(&self.of, &name(text));
        edit.finish().into_iter().collect()
    }

    fn kept(&self, collection: &str) -> usize {
        let of = self.cache.store.type_keys[&self.of];
        let list = &self.cache.store[self.cache.store.list_of(of, &interest(collection)).unwrap()];
        list.owed.len() + list.gone.len()
    }
}

#[test]
fn rule_155_who_was_up_to_date_is_told_of_ten_thousand_removals_in_one_change() {
    for collection in ["*", GLOB] {
        let mut world = World::authoritative();
        world.replace(collection, 0..MANY);
        let ids = [(); 3].map(|()| world.subscriber(&[collection]));
        for id in ids {
            assert_eq!(world.pull(id).len(), MANY);
        }
        assert_eq!(world.replace(collection, 0..0).len(), 3);
        assert_eq!(world.kept(collection), MANY);
        let [whole, slow, again] = ids;
        assert_eq!(world.pull(whole).len(), MANY);
        // Asking again loses nothing.
        world.cache.subscribe(again, &interest(collection));
        let empty = usize::from(collection == GLOB);
        assert_eq!(world.pull(again).len(), MANY + empty);
        let mut told = std::collections::BTreeSet::new();
        while world.cache.has_work(slow) {
            let _ = world.pull_as(slow, Removals::Defer);
            told.extend(Some(world.pull_one(slow)).filter(|word| !word.is_empty()));
        }
        assert_eq!(told, (0..MANY).map(|number| format!("-{}", member(collection, number))).collect());
        assert_eq!(world.kept(collection), 1000, "for those who were away");
    }
}

#[test]
fn what_a_wildcard_has_told_as_gone_a_glob_that_comes_later_does_not_repeat() {
    let mut world = World::new(Options { authoritative: false, wildcard_covers_xdstp: true, ..Options::default() });
    let id = world.subscriber(&["*"]);
    world.put(MEMBER, "1");
    world.remove(MEMBER);
    world.cache.subscribe(id, &interest(GLOB));
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
    world.answered(GLOB);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
}

#[test]
fn tombstones_are_bounded_in_number_for_who_comes_later() {
    let mut world = World::new(Options { tombstones: 2, ..Options::default() });
    world.replace(GLOB, 0..5);
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    world.replace(GLOB, 4..5);
    let later = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(later).len(), 3, "one is there, two are the last that went");
    assert_eq!(world.pull(id).len(), 4);
}

#[test]
fn tombstones_may_be_kept_for_years() {
    let years = Duration::from_secs(10 * 365 * 24 * 60 * 60);
    for tombstone_age in [years, Duration::MAX] {
        let mut world = World::new(Options { tombstone_age, ..Options::default() });
        world.put(MEMBER, "1");
        world.remove(MEMBER);
        assert!(world.cache.next_expiry().unwrap() >= world.now + years);
    }
}

/// Names come and go, and a subscriber reads nothing of it: what is kept for it is what it was sent.
#[test]
fn rule_155_what_is_kept_for_who_never_reads_is_what_it_was_sent() {
    const SENT: usize = 500;
    for collection in ["*", GLOB] {
        let mut world = World::new(Options { tombstones: 100, ..Options::default() });
        world.replace(collection, 0..SENT);
        let id = world.subscriber(&[collection]);
        world.pull(id);
        for round in 1..100 {
            assert_eq!(world.replace(collection, round * SENT..(round + 1) * SENT).len(), usize::from(round == 1));
            // Neither does one that only asks, again and again.
            world.cache.subscribe(id, &interest(collection));
            assert!(world.kept(collection) <= 2 * SENT + 2 * 100, "{}", world.kept(collection));
        }
        let told = world.pull(id);
        let (gone, put): (Vec<_>, Vec<_>) = told.iter().partition(|word| word.starts_with('-'));
        assert_eq!(put.len(), SENT, "what is there now");
        for number in 0..SENT {
            assert!(gone.contains(&&format!("-{}", member(collection, number))), "{number}");
        }
        assert!(gone.len() <= 2 * SENT + 2 * 100);
        assert_eq!(world.kept(collection), 100);
        world.cache.close(id);
    }
}

/// What is owed to who never reads is gone through again and again.
#[test]
fn rule_099_that_a_glob_is_empty_is_told_once_however_much_comes_and_goes() {
    let mut world = World::new(Options { authoritative: false, tombstones: 2, ..Options::default() });
    let [told, _slow] = [(); 2].map(|()| world.subscriber(&[GLOB]));
    world.fail(GLOB, 14);
    world.answered(GLOB);
    assert_eq!(world.pull(told), [format!("-{GLOB}")]);
    for number in 0..10 {
        world.put(&member(GLOB, number), "1");
        world.remove(&member(GLOB, number));
    }
    assert!(!world.pull(told).contains(&format!("-{GLOB}")));
}

/// Envoy holds members that it does not list: what goes while it is being sent the rest is owed it as well.
#[test]
fn rule_155_what_was_there_when_a_glob_was_asked_for_is_told_as_gone_though_it_was_not_sent_yet() {
    let mut world = World::authoritative();
    world.replace(GLOB, 0..MANY);
    let id = world.subscriber(&[GLOB]);
    world.pull_one(id);
    world.replace(GLOB, 0..0);
    assert_eq!(world.pull(id).len(), MANY + 1, "and that it is empty");
}

#[test]
fn rule_155_what_a_collection_that_is_left_has_sent_is_told_as_gone_by_the_other() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, tombstones: 0, ..Options::default() });
    let id = world.subscriber(&["*", GLOB]);
    world.pull(id);
    world.put(MEMBER, "1");
    world.put(OTHER, "1");
    world.pull_one(id);
    world.pull_one(id);
    world.cache.unsubscribe(id, &interest(GLOB));
    world.remove(MEMBER);
    world.remove(OTHER);
    for number in 10..20 {
        world.put(&member(GLOB, number), "1");
        world.remove(&member(GLOB, number));
    }
    let told = world.pull(id);
    for text in [MEMBER, OTHER] {
        assert!(told.contains(&format!("-{text}")), "{told:?}");
    }
}

/// The wildcard knows nothing of what only its name brought, and the name is left.
#[test]
fn rule_155_what_a_name_that_is_left_has_sent_is_told_as_gone_by_the_wildcard() {
    let mut world = World::new(Options { tombstones: 0, ..Options::default() });
    let id = world.subscriber(&["*", "a", "b"]);
    world.pull(id);
    world.put("b", "1");
    assert_eq!(world.pull_one(id), "b@1");
    world.cache.unsubscribe(id, &interest("b"));
    world.put("a", "1");
    assert_eq!(world.pull_one(id), "a@1");
    world.remove("b");
    for number in 0..10 {
        world.put(&number.to_string(), "1");
        world.remove(&number.to_string());
    }
    assert!(world.pull(id).contains(&"-b".to_owned()));
}

#[test]
fn what_a_subscriber_brought_along_is_told_as_gone_though_no_tombstone_is_kept() {
    let mut world = World::new(Options { authoritative: false, tombstones: 0, ..Options::default() });
    let id = world.subscriber(&[GLOB]);
    world.cache.resume(id, [(name(MEMBER), "1".into())]);
    world.pull(id);
    assert_eq!(world.remove(MEMBER), [id]);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}

/// What the lone client of a relay holds, and what it is told when it comes back, having listed nothing.
fn come_back(world: &mut World, put: &[&str], removed: &[&str]) -> Vec<String> {
    let id = world.subscriber(&[GLOB]);
    for text in removed {
        world.remove(text);
    }
    assert_eq!(world.pull(id), removed.iter().map(|text| format!("-{text}")).collect::<Vec<_>>());
    for text in put {
        world.put(text, "1");
    }
    _ = world.begun(GLOB);
    assert!(world.pull(id).iter().all(|word| !word.starts_with('-')), "not before the answer is complete");
    world.answered(GLOB);
    let told = world.pull(id);
    world.cache.close(id);
    told
}

fn left_by_its_last_client(options: Options) -> World {
    let mut world = World::new(Options { authoritative: false, ..options });
    let id = world.subscriber(&[GLOB]);
    for number in 1..4 {
        world.put(&member(GLOB, number), "1");
    }
    world.answered(GLOB);
    world.pull(id);
    world.cache.close(id);
    world.cache.evict(&world.of, &interest(GLOB), world.now);
    assert_eq!(world.cache.resources().count(), 0);
    world
}

#[test]
fn rule_100_what_was_evicted_is_told_as_gone_if_the_next_answer_does_not_have_it() {
    let mut world = left_by_its_last_client(Options::default());
    assert_eq!(come_back(&mut world, &[MEMBER], &[]), [OTHER, &member(GLOB, 3)].map(|text| format!("-{text}")));
    // Nobody was there when one of them went, and it is back.
    world.cache.evict(&world.of, &interest(GLOB), world.now);
    assert_eq!(come_back(&mut world, &[MEMBER, OTHER], &[]), [format!("-{}", member(GLOB, 3))]);
    // The origin says itself that it is gone.
    world.cache.evict(&world.of, &interest(GLOB), world.now);
    let gone = member(GLOB, 3);
    let told = come_back(&mut world, &[MEMBER], &[&gone]);
    assert!(told.contains(&format!("-{OTHER}")) && !told.contains(&format!("-{MEMBER}")), "{told:?}");
}

#[test]
fn rule_100_what_is_remembered_of_a_forgotten_glob_is_bounded() {
    let mut world = left_by_its_last_client(Options { tombstones: 2, ..Options::default() });
    assert_eq!(come_back(&mut world, &[], &[]).len(), 2 + 1, "and that it is empty");
    let options = Options { tombstone_age: Duration::from_secs(60), ..Options::default() };
    let mut world = left_by_its_last_client(options);
    assert_eq!(world.cache.next_expiry(), Some(world.now + Duration::from_secs(60)));
    world.cache.expire(world.now + Duration::from_secs(59));
    assert!(world.cache.next_expiry().is_some());
    world.cache.expire(world.now + Duration::from_secs(60));
    assert_eq!(world.cache.next_expiry(), None);
    assert_eq!((world.cache.store.types().len(), world.cache.store.lists().len()), (0, 0));
}

#[test]
fn what_nobody_ever_held_by_a_glob_leaves_no_tombstone_when_it_is_forgotten() {
    let mut world = World::relay();
    let id = world.subscriber(&[MEMBER, "*"]);
    for text in [MEMBER, "a"] {
        world.put(text, "1");
    }
    world.pull(id);
    world.remove("a");
    assert!(world.cache.next_expiry().is_some(), "until it is pulled and beyond, while somebody is there");
    world.cache.close(id);
    world.cache.evict(&world.of, &interest(MEMBER), world.now);
    assert_eq!((world.cache.next_expiry(), world.cache.store.types().len()), (None, 0));
}

/// Whoever asks for names that are not there decides how many these are, and who wants the glob pays for them.
#[test]
fn rule_100_of_names_that_nobody_has_seen_not_more_are_told_than_tombstones_are_kept() {
    let mut world = World::new(Options { authoritative: false, tombstones: 3, ..Options::default() });
    let [holds, may_hold] = [(); 2].map(|()| world.subscriber(&[GLOB]));
    for number in 0..10 {
        world.bring(holds, &member(GLOB, number), "1");
    }
    for seen in [MEMBER, OTHER] {
        world.put(&seen.replace("/d/", "/d/seen"), "1");
    }
    world.pull(holds);
    world.pull(may_hold);
    world.remove(&MEMBER.replace("/d/", "/d/seen"));
    let woken: Vec<_> = (0..20).map(|number| world.deny(&member(GLOB, number))).collect();
    assert!(woken[1..].iter().all(Vec::is_empty), "both have something to pull already");
    let seen = MEMBER.replace("/d/", "/d/seen");
    let gone = |names: std::ops::Range<usize>| names.map(|number| format!("-{}", member(GLOB, number)));
    assert_eq!(world.pull(may_hold), gone(0..3).chain([format!("-{seen}")]).collect::<Vec<_>>());
    assert_eq!(world.pull(holds), gone(0..10).chain([format!("-{seen}")]).collect::<Vec<_>>(), "it said that it does");

    // They do not take the place of what was here, and is remembered for those who come back.
    world.answered(GLOB);
    let back = world.subscriber(&[GLOB]);
    assert!(world.pull(back).contains(&format!("-{seen}")));
    // With time others may be told again.
    world.now += world.cache.store.options.tombstone_age;
    world.pull(may_hold);
    world.deny(&member(GLOB, 30));
    assert_eq!(world.pull(may_hold), gone(30..31).collect::<Vec<_>>());
}

/// What an origin says by itself is for all who may hold it, whatever strangers asked for.
#[test]
fn rule_100_what_strangers_ask_for_hides_nothing_that_an_origin_says() {
    let mut world = World::new(Options { authoritative: false, tombstones: 3, ..Options::default() });
    let may_hold = world.subscriber(&[GLOB]);
    let stranger = world.subscriber(&[]);
    for number in 0..20 {
        world.cache.subscribe(stranger, &interest(&member(GLOB, number)));
        world.remove(&member(GLOB, number));
    }
    assert_eq!(world.pull(stranger).len(), 20);
    assert_eq!(world.pull(may_hold).len(), 3);
    world.remove(&member(GLOB, 30));
    assert_eq!(world.pull(may_hold), [format!("-{}", member(GLOB, 30))]);
}

#[test]
fn who_said_that_it_holds_what_is_gone_is_woken_though_all_are_not_told() {
    let mut world = World::new(Options { authoritative: false, tombstones: 0, ..Options::default() });
    let [holds, may_hold] = [(); 2].map(|()| world.subscriber(&[GLOB]));
    world.bring(holds, MEMBER, "1");
    let _ = [holds, may_hold].map(|id| world.pull(id));
    assert_eq!(world.deny(MEMBER), [holds]);
    assert_eq!(world.deny(OTHER), []);
    assert_eq!(world.pull(holds), [format!("-{MEMBER}")]);
    assert_eq!(world.pull(may_hold), [""; 0]);
}

#[test]
fn who_said_that_it_holds_what_is_gone_is_woken_once_whoever_else_said_so() {
    let mut world = World::new(Options { authoritative: false, tombstones: 0, ..Options::default() });
    // To this one either may be what stands behind `alias`.
    let [by_alias, holds] = [&["alias"][..], &[GLOB]].map(|asks| world.subscriber(asks));
    for id in [by_alias, holds] {
        world.bring(id, MEMBER, "1");
        world.bring(id, OTHER, "1");
        world.pull(id);
    }
    assert_eq!(world.deny(MEMBER), [holds]);
    assert_eq!(world.deny(OTHER), [], "it has something to pull already");
    assert_eq!(world.put(MEMBER, "2"), []);
    assert_eq!(world.pull(holds), [format!("{MEMBER}@2"), format!("-{OTHER}")]);
    assert_eq!(world.pull(by_alias), [""; 0]);
}
