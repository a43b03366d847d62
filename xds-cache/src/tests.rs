//! The cache against a naive model: random histories, checked against a full scan.

mod aliases;
mod alike;
mod answers;
mod batches;
mod capacity;
mod covered_twice;
mod departed;
mod edits;
mod elsewhere;
mod empty_globs;
mod errors;
mod filled;
mod histories;
mod invariants;
mod look;
mod model;
mod notes;
mod recalled;
mod refused;
mod removals;
mod resuming;
mod stale;
mod unreadable;
mod variants;
mod waiting;
mod wildcard_errors;
mod world;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use xdstp_uri::ResourceName;

use self::world::World;
use crate::{
    Cache, Interest, Options, Outcome, Pull, Pulled, Removals, Resource, ResourceError, Subscribed, SubscriberId,
    TypeUrl,
};

const GLOB: &str = "xdstp://x/T/d/*";
const MEMBER: &str = "xdstp://x/T/d/1";
const OTHER: &str = "xdstp://x/T/d/2";

fn name(text: &str) -> ResourceName {
    text.parse().unwrap()
}

fn interest(text: &str) -> Interest {
    Interest::from(name(text))
}

/// Of the content that has this version.
fn digest(version: &str) -> u128 {
    version.bytes().fold(0, |sum, byte| sum * 256 + u128::from(byte))
}

#[test]
fn an_upsert_says_what_it_did_and_wakes_once() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a", "*"]);
    assert_eq!(world.pull(id), ["-a"]);
    assert_eq!(world.upsert("a", "1", 1), (Outcome::Added, vec![id]));
    assert_eq!(world.upsert("a", "1", 2), (Outcome::ChangedAtSameVersion, vec![]));
    assert_eq!(world.upsert("a", "2", 2), (Outcome::Reversioned, vec![]));
    assert_eq!(world.upsert("a", "3", 3), (Outcome::Changed, vec![]));
    assert_eq!(world.pull(id), ["a@3"]);
    assert_eq!(world.upsert("a", "3", 3), (Outcome::Unchanged, vec![]));
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn a_collection_is_no_resource() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["*", GLOB]);
    world.pull(id);
    for text in ["*", GLOB] {
        assert_eq!(world.upsert(text, "1", 1), (Outcome::Unchanged, vec![]));
    }
    assert_eq!(world.cache.resources().count(), 0);
}

#[test]
fn an_interest_is_written_as_on_the_wire() {
    for text in ["*", "a", GLOB] {
        assert_eq!((interest(text).as_str(), interest(text).to_string()), (text, text.to_owned()));
    }
}

#[test]
fn tombstones_reach_a_glob_subscriber_that_was_away() {
    let mut world = World::authoritative();
    world.put(MEMBER, "1");
    world.put(OTHER, "1");
    world.remove(MEMBER);
    let id = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(id), [format!("{OTHER}@1"), format!("-{MEMBER}")]);
    world.put(MEMBER, "2");
    let later = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(later), [format!("{OTHER}@1"), format!("{MEMBER}@2")]);
}

#[test]
fn tombstones_are_bounded_in_age_and_their_glob_with_them() {
    let mut world = World::new(Options { tombstone_age: Duration::from_secs(60), ..Options::default() });
    world.put(MEMBER, "1");
    world.remove(MEMBER);
    world.now += Duration::from_secs(59);
    world.put("a", "1");
    assert_eq!(world.cache.store.lists().len(), 2, "the wildcard and the glob");
    world.now += Duration::from_secs(1);
    world.put("b", "1");
    assert_eq!(world.cache.store.lists().len(), 1);
    let id = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
}

#[test]
fn rule_099_an_empty_glob_is_told_once_as_removed_and_not_when_its_last_member_goes() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB]);
    let (said, pulled) = world.pull_as(id, Removals::Include);
    assert_eq!((said, pulled.answered), (vec![format!("-{GLOB}")], true));
    world.put(MEMBER, "1");
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    world.remove(MEMBER);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}

#[test]
fn a_relay_does_not_take_unanswered_for_absent() {
    let mut world = World::relay();
    let id = world.subscriber(&["a", GLOB]);
    assert_eq!(world.pull_as(id, Removals::Include), (vec![], Pulled::default()));
    assert!(!world.cache.is_known(&world.of, &interest("a")));
    assert!(!world.cache.is_known(&world.of, &interest(GLOB)));
    assert_eq!(world.cache.visit(id, &mut |_, _| {}).and(Default::default()).names, 1);

    assert_eq!(world.remove("a"), [id]);
    assert_eq!(world.pull(id), ["-a"]);
    assert!(world.cache.is_known(&world.of, &interest("a")));

    assert_eq!(world.put(MEMBER, "1"), [id]);
    assert_eq!(world.pull_as(id, Removals::Include), (vec![format!("{MEMBER}@1")], Pulled::default()));
    assert_eq!(world.answered(GLOB), [id]);
    let (said, pulled) = world.pull_as(id, Removals::Include);
    assert_eq!((said.len(), pulled.answered), (0, true));
    assert!(world.answered(GLOB).is_empty(), "once");
}

#[test]
fn rule_084_what_a_client_held_of_a_collection_is_removed_when_that_is_answered() {
    let mut world = World::relay();
    let id = world.subscriber(&["*"]);
    world.cache.resume(id, [(name("a"), "1".into()), (name("b"), "1".into())]);
    world.put("a", "1");
    assert_eq!(world.pull(id), [""; 0], "b may exist, a is held");
    world.answered("*");
    assert_eq!(world.pull(id), ["-b"]);
}

#[test]
fn a_removal_that_waited_is_not_told_of_a_name_that_is_back() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["a"]);
    world.pull(id);
    world.remove("a");
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    assert!(world.cache.has_work(id));
    world.put("a", "2");
    assert_eq!(world.pull_as(id, Removals::Defer).0, ["a@2"]);
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn additions_do_not_wait_behind_deferred_removals_of_their_collection() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["*"]);
    world.pull(id);
    world.remove("a");
    assert_eq!(world.pull_as(id, Removals::Defer).0, [""; 0]);
    world.put("b", "1");
    assert_eq!(world.pull_as(id, Removals::Defer).0, ["b@1"]);
    assert_eq!(world.pull(id), ["-a"]);
}

#[test]
fn rule_052_a_name_left_under_a_wildcard_is_answered_once() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["*", "a", "gone"]);
    assert_eq!(world.pull(id), ["a@1", "-gone"]);
    for text in ["a", "gone"] {
        assert!(world.cache.unsubscribe(id, &interest(text)));
    }
    assert_eq!(world.pull(id), ["a@1", "-gone"]);
    assert_eq!(world.pull(id), [""; 0]);
}

#[test]
fn rule_158_what_was_left_under_a_glob_that_is_left_too_is_asked_for_anew() {
    let mut world = World::authoritative();
    let id = world.subscriber(&[GLOB, MEMBER]);
    world.pull(id);
    for text in [MEMBER, GLOB] {
        world.cache.unsubscribe(id, &interest(text));
    }
    world.cache.subscribe(id, &interest(MEMBER));
    assert_eq!(world.pull_as(id, Removals::Defer).0, [format!("-{MEMBER}")]);
}

#[test]
fn rule_054_what_was_left_is_sent_again_on_return_at_the_version_it_had() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["a"]);
    world.cache.resume(id, [(name("a"), "1".into())]);
    world.cache.unsubscribe(id, &interest("a"));
    world.cache.subscribe(id, &interest("a"));
    assert_eq!(world.pull(id), ["a@1"]);
}

#[test]
fn rule_099_that_a_glob_is_empty_is_told_though_the_wildcard_is_left_before() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    let id = world.subscriber(&["*"]);
    world.pull(id);
    world.cache.subscribe(id, &interest(GLOB));
    world.put("a", "1");
    assert_eq!(world.pull_one(id), "a@1");
    world.cache.unsubscribe(id, &Interest::Wildcard);
    assert_eq!(world.pull(id), [format!("-{GLOB}")]);
}

#[test]
fn rule_103_a_name_matched_three_times_is_sent_once() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.put(MEMBER, "1");
    let id = world.subscriber(&["*", GLOB, MEMBER]);
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    world.put(MEMBER, "2");
    assert_eq!(world.pull_one(id), format!("{MEMBER}@2"));
    assert_eq!(world.pull(id), [""; 0]);
    world.remove(MEMBER);
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}

#[test]
fn a_removal_is_told_though_the_glob_it_was_known_by_is_left_before() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.put(MEMBER, "1");
    let id = world.subscriber(&[GLOB]);
    world.pull(id);
    world.remove(MEMBER);
    // The wildcard comes after the removal, and has no tombstone to tell.
    world.cache.subscribe(id, &Interest::Wildcard);
    world.cache.unsubscribe(id, &interest(GLOB));
    assert_eq!(world.pull(id), [format!("-{MEMBER}")]);
}

#[test]
fn rule_048_a_repeated_wildcard_sends_what_its_globs_sent_too() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.put(MEMBER, "1");
    let id = world.subscriber(&["*", GLOB]);
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    assert_eq!(world.cache.subscribe(id, &Interest::Wildcard), Subscribed::Again);
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
}

#[test]
fn rule_048_a_wildcard_sends_again_what_was_sent_by_name_be_it_the_first_that_ever_changed() {
    let mut world = World::relay();
    let id = world.subscriber(&["a"]);
    world.put("a", "1");
    assert_eq!(world.pull(id), ["a@1"]);
    world.cache.subscribe(id, &Interest::Wildcard);
    assert_eq!(world.pull(id), ["a@1"]);
}

#[test]
fn rule_048_a_glob_asked_for_after_the_first_request_sends_what_that_said_is_held() {
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.put(MEMBER, "1");
    let id = world.subscriber(&["*"]);
    world.cache.resume(id, [(name(MEMBER), "1".into())]);
    world.cache.subscribe(id, &interest(GLOB));
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
}

#[test]
fn an_update_while_there_is_work_wakes_nobody_again() {
    let mut world = World::authoritative();
    world.put("a", "1");
    world.put("b", "1");
    let id = world.subscriber(&["a", "b", "c"]);
    world.pull_one(id);
    assert!(world.put("a", "2").is_empty(), "b and c have not been pulled yet");
    world.pull(id);
    assert_eq!(world.put("a", "3"), [id]);
}

#[test]
fn eviction_leaves_what_is_kept_until_it_is_evicted_itself() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB]);
    world.put(MEMBER, "1");
    world.answered(GLOB);
    world.pull(id);
    world.cache.close(id);
    let keeps = &|kept: &ResourceName| *kept == name(MEMBER);
    world.cache.evict_unless(&world.of, &interest(GLOB), world.now, keeps);
    assert!(!world.cache.is_known(&world.of, &interest(GLOB)));
    let id = world.subscriber(&[MEMBER]);
    assert_eq!(world.pull(id), [format!("{MEMBER}@1")]);
    world.cache.close(id);
    world.cache.evict(&world.of, &interest(MEMBER), world.now);
    world.cache.expire(world.now + Options::default().tombstone_age);
    assert_eq!(
        (world.cache.store.types().len(), world.cache.store.lists().len(), world.cache.store.slots().len()),
        (0, 0, 0)
    );
}

#[test]
fn eviction_keeps_what_a_known_collection_or_somebody_else_holds() {
    let mut world = World::relay();
    let id = world.subscriber(&[GLOB, MEMBER, "a", "b"]);
    for text in [MEMBER, "a", "b"] {
        world.put(text, "1");
    }
    world.answered(GLOB);
    world.pull(id);
    assert!(world.cache.unsubscribe(id, &interest("a")));
    world.cache.evict(&world.of, &interest("a"), world.now);
    world.cache.evict(&world.of, &interest("b"), world.now);
    assert!(world.cache.resource(&world.of, &name("a")).is_none());
    assert!(world.cache.resource(&world.of, &name("b")).is_some(), "somebody is subscribed");
    let left = world.cache.close(id);
    assert_eq!(left.len(), 3);
    world.cache.evict(&world.of, &interest(MEMBER), world.now);
    assert!(world.cache.resource(&world.of, &name(MEMBER)).is_some(), "the glob is known to hold it");
    world.cache.evict(&world.of, &interest(GLOB), world.now);
    assert!(world.cache.resource(&world.of, &name(MEMBER)).is_none());
    assert!(!world.cache.is_known(&world.of, &interest(GLOB)));
    world.cache.evict(&world.of, &interest("b"), world.now);
    // What is remembered of the glob goes with its tombstones.
    world.cache.expire(world.now + Options::default().tombstone_age);
    assert_eq!(
        (world.cache.store.types().len(), world.cache.store.lists().len(), world.cache.store.slots().len()),
        (0, 0, 0)
    );
}

/// A list collection is a resource like any other: what it lists are entries of its body.
#[test]
fn a_list_collection_is_a_resource() {
    let list = "xdstp://x/TCollection/d/list";
    let mut world = World::new(Options { wildcard_covers_xdstp: true, ..Options::default() });
    world.put(MEMBER, "1");
    world.put(list, "1");
    let named = world.subscriber(&[list]);
    let glob = world.subscriber(&["xdstp://x/TCollection/d/*"]);
    let members = world.subscriber(&[GLOB]);
    assert_eq!(world.pull(named), [format!("{list}@1")]);
    assert_eq!(world.pull(glob), [format!("{list}@1")]);
    assert_eq!(world.pull(members), [format!("{MEMBER}@1")]);
    let mut woken = world.put(list, "2");
    woken.sort();
    assert_eq!(woken, [named, glob]);
    world.remove(list);
    assert_eq!(world.pull(named), [format!("-{list}")]);
    assert_eq!(world.pull(members), [""; 0]);
}

#[test]
fn a_type_that_only_a_client_named_leaves_nothing() {
    for mut world in [World::authoritative(), World::relay()] {
        for n in 0..3 {
            let of = TypeUrl::from(format!("made.up/{n}"));
            let id = world.cache.open(&of);
            world.cache.subscribe(id, &interest(GLOB));
            world.cache.subscribe(id, &interest("a"));
            world.cache.close(id);
        }
        assert_eq!(
            (world.cache.store.types().len(), world.cache.store.lists().len(), world.cache.store.slots().len()),
            (0, 0, 0)
        );
    }
}
