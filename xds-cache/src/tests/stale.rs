//! Ids of subscribers that are closed.

use xdstp_uri::CanonicalText;

use super::*;

#[test]
fn a_stale_id_says_nothing_and_changes_nothing() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let stale = world.subscriber(&["a", "*"]);
    world.cache.close(stale);
    for open in [false, true] {
        let other = open.then(|| world.subscriber(&["a"]));
        assert!(!world.cache.is_open(stale));
        assert_eq!(world.cache.subscribe(stale, &interest("b")), Subscribed::Again);
        world.cache.resume(stale, [(name("a"), "1".into())]);
        world.cache.told_gone(stale, &name("a"));
        assert!(!world.cache.unsubscribe(stale, &interest("a")));
        assert!(!world.cache.resend(stale, &name("a")));
        assert!(!world.cache.has_work(stale) && !world.cache.has_additions(stale));
        assert_eq!(world.pull_as(stale, Removals::Include), (vec![], Pulled::default()));
        assert!(!world.cache.pull_errors(stale, Removals::Include, &mut |_| unreachable!()));
        assert!(!world.cache.visit(stale, &mut |_, _| unreachable!()).any());
        assert_eq!(world.cache.interests(stale).count(), 0);
        assert!(!world.cache.is_subscribed(stale, &interest("a")) && !world.cache.covers(stale, &name("a")));
        assert!(!world.cache.is_alias(stale, &name("a")) && !world.cache.will_tell(stale, &name("a")));
        assert!(world.cache.wanted(stale, &name("a")).is_none() && !world.cache.is_absent(stale, &name("b")));
        world.cache.set_type_version(&world.of, Some("1".into()));
        assert!(world.cache.type_version(stale).is_none());
        assert!(world.cache.close(stale).is_empty());
        if let Some(other) = other {
            assert_eq!((other.index(), world.cache.subscriber_count()), (stale.index(), 1));
            assert!(world.cache.type_version(other).is_some());
            assert_eq!(world.pull(other), ["a@1"]);
        }
    }
}

#[test]
fn only_open_subscribers_are_counted() {
    let mut world = World::authoritative();
    let ids = [(); 3].map(|()| world.subscriber(&["a"]));
    for (closed, id) in ids.into_iter().enumerate() {
        assert_eq!(world.cache.subscriber_count(), 3 - closed);
        world.cache.close(id);
    }
    assert_eq!(world.cache.subscriber_count(), 0);
}

#[test]
fn an_id_that_another_source_made_is_no_subscriber_of_a_cache() {
    let mut world = World::authoritative();
    let id = world.subscriber(&["a"]);
    let other = SubscriberId::from_index(id.index() as u32);
    assert_eq!(other.index(), id.index());
    assert!(other != id && !world.cache.is_open(other));
}

#[test]
fn who_is_closed_asks_for_nothing_by_a_text_that_is_known() {
    let mut world = World::authoritative();
    world.put("a", "1");
    let id = world.subscriber(&["b"]);
    world.cache.close(id);
    assert!(world.cache.subscribe_known(id, &CanonicalText::new("a")).is_none());
    let other = world.subscriber(&["b"]);
    assert!(world.cache.subscribe_known(id, &CanonicalText::new("a")).is_none());
    assert_eq!(world.cache.interests(other).count(), 1);
    let known = world.cache.subscribe_known(other, &CanonicalText::new("a"));
    assert_eq!(known, Some((Subscribed::First, &name("a"))), "what is here is found by its text");
}
