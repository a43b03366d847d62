//! List collections of TP1 (rule 81), and `#entry=`.

use prost::Message as _;

use super::*;

pub(super) const LISTS: &str = "type.googleapis.com/envoy.config.cluster.v3.ClusterCollection";

/// As TP1's text has it: a locator is a text.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Entry {
    #[prost(string, optional, tag = "1")]
    locator: Option<String>,
    #[prost(message, optional, tag = "2")]
    inline: Option<Inline>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Inline {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(message, optional, tag = "3")]
    resource: Option<xds_transport::wire::Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Collection {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
}

pub(super) fn elsewhere(locator: &str) -> Entry {
    Entry { locator: Some(locator.into()), inline: None }
}

/// A list of what is elsewhere, and what such a list has.
pub(super) fn of_elsewhere(members: &[String]) -> Vec<u8> {
    collection(&members.iter().map(|name| elsewhere(name)).collect::<Vec<_>>())
}

pub(super) fn members(list: &[u8]) -> Vec<String> {
    let entries = Collection::decode(list).unwrap().entries;
    entries.into_iter().filter_map(|entry| entry.locator).collect()
}

fn inline(name: &str, version: &str) -> Entry {
    inline_of(CDS, name, version)
}

pub(super) fn inline_of(type_url: &str, name: &str, version: &str) -> Entry {
    let resource = xds_transport::wire::Any { type_url: type_url.into(), value: message(name, version).into() };
    Entry {
        locator: None,
        inline: Some(Inline { name: name.into(), version: version.into(), resource: Some(resource) }),
    }
}

pub(super) fn collection(entries: &[Entry]) -> Vec<u8> {
    Collection { entries: entries.to_vec() }.encode_to_vec()
}

fn list(id: &str) -> String {
    xdstp("a", LISTS, id)
}

impl World {
    fn put_list(&self, id: &str, version: &str, entries: &[Entry]) {
        self.top().put(LISTS, &list(id), version, &collection(entries));
        self.network.settle();
    }
}

#[test]
fn r081_the_members_of_a_list_are_asked_for_one_by_one_whoever_has_them() {
    let world = World::new();
    let (bar, baz) = (xdstp("a", CDS, "bar"), xdstp("other", CDS, "baz"));
    world.put_list("foo", "1", &[elsewhere(&bar), elsewhere(&baz)]);
    world.put(CDS, &bar, "5");
    world.put_other(CDS, &baz, "6");
    let mut watch = world.watch(&list("foo"));
    assert_eq!(world.follow(&mut watch), [format!("put {bar} 5"), format!("put {baz} 6"), "answered".into()]);
    assert_eq!(world.top().take_asked(), [format!("+{}", list("foo")), format!("+{bar}")]);
    assert_eq!(world.other().take_asked(), [format!("+{baz}")]);

    world.put(CDS, &bar, "7");
    assert_eq!(world.follow(&mut watch), [format!("put {bar} 7")], "the list is as it was");
    world.put_list("foo", "2", &[elsewhere(&bar)]);
    assert_eq!(world.follow(&mut watch), [format!("removed {baz}")]);
    assert_eq!(world.other().take_asked(), [format!("-{baz}")]);
    drop(watch);
    world.network.settle();
    let mut left = world.top().take_asked();
    left.sort();
    assert_eq!(left, [format!("-{bar}"), format!("-{}", list("foo"))]);
}

#[test]
fn r081_what_stands_in_a_list_comes_with_it_and_only_what_changed_is_news() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put_list("foo", "1", &[inline("bar", "8.5.4"), inline("", "3.9.0")]);
        let mut watch = world.watch(&list("foo"));
        let told = world.follow(&mut watch);
        assert_eq!((told.len(), told[0].as_str(), told[2].as_str()), (3, "put bar 8.5.4", "answered"), "{told:?}");
        assert!(told[1].starts_with("put #") && told[1].ends_with(" 3.9.0"), "{told:?}");
        let anonymous = told[1].split(' ').nth(1).unwrap().to_owned();

        // A server that keeps no state sends all of it again, in another order.
        world.put_list("foo", "2", &[inline("", "3.9.0"), inline("bar", "8.5.4"), inline("new", "1")]);
        assert_eq!(world.follow(&mut watch), ["put new 1"]);
        world.put_list("foo", "3", &[inline("", "4.0.0"), inline("bar", "8.5.5")]);
        let told = world.follow(&mut watch);
        assert_eq!((told.len(), told[1].as_str()), (4, "put bar 8.5.5"), "{told:?}");
        assert!(told[0].starts_with("put #") && told[0].ends_with(" 4.0.0"), "{told:?}");
        let mut gone = told[2..].to_vec();
        gone.sort();
        assert_eq!(gone, [format!("removed {anonymous}"), "removed new".into()], "what comes goes before what goes");
    }
}

#[test]
fn r081_an_empty_list_is_answered_and_one_that_is_not_there_is_absent() {
    let world = World::new();
    world.put_list("foo", "1", &[]);
    assert_eq!(world.follow(&mut world.watch(&list("foo"))), ["answered"]);
    let mut watch = world.watch(&list("none"));
    assert_eq!(world.follow(&mut watch), [format!("failed {}: absent", list("none"))]);
    world.put_list("none", "1", &[inline("bar", "1")]);
    assert_eq!(world.follow(&mut watch), ["put bar 1", "answered"]);
}

#[test]
fn r081_a_list_with_an_entry_that_is_of_no_use_is_refused_whole_and_what_there_was_stays() {
    let world = World::new();
    world.put_list("foo", "1", &[inline("bar", "1")]);
    let mut watch = world.watch(&list("foo"));
    assert_eq!(world.follow(&mut watch), ["put bar 1", "answered"]);
    let of_listener = xds_transport::wire::Any { type_url: LDS.into(), value: message("x", "1").into() };
    let wrong_type = Entry {
        locator: None,
        inline: Some(Inline { name: "x".into(), version: "1".into(), resource: Some(of_listener) }),
    };
    for (version, entries, words) in [
        ("2", vec![inline("new", "1"), inline("bar", "bad")], "entry 1: bad is bad"),
        ("3", vec![inline("bar", "1"), inline("bar", "2")], "bar stands in the list twice"),
        ("4", vec![wrong_type], "entry 0: a resource of type"),
        ("5", vec![elsewhere("xdstp://a/envoy.config.cluster.v3.Cluster/*")], "entry 0: a collection"),
        ("6", vec![Entry::default()], "entry 0 of a collection has no content"),
    ] {
        world.put_list("foo", version, &entries);
        let told = world.follow(&mut watch);
        let is_told = told.len() == 1
            && told[0].starts_with(&format!("ambient {}: invalid at", list("foo")))
            && told[0].contains(words);
        assert!(is_told, "{told:?}");
        let refused = world.top().take_refused();
        assert!(refused.len() == 1 && refused[0].contains(words), "{refused:?}");
    }
    let over = format!("cleared {}", list("foo"));
    world.put_list("foo", "7", &[inline("bar", "1")]);
    assert_eq!(world.follow(&mut watch), [over.as_str()], "its members are as they were");
    world.put_list("foo", "8", &[inline("bar", "bad")]);
    assert_eq!(world.follow(&mut watch).len(), 1);
    world.put_list("foo", "9", &[inline("bar", "2")]);
    assert_eq!(world.follow(&mut watch), [over.as_str(), "put bar 2"]);
    world.put_list("foo", "10", &[inline("bar", "3")]);
    assert_eq!(world.follow(&mut watch), ["put bar 3"], "that is over already");
}

const NOBODY_READS: &str = "only xdstp: is asked for, and the client was given nothing that reads http:";

#[test]
fn r081_a_member_that_is_not_there_fails_alone() {
    let world = World::new();
    let (bar, stranger) = (xdstp("a", CDS, "bar"), xdstp("stranger", CDS, "x"));
    world.put_list(
        "foo",
        "1",
        &[elsewhere(&bar), elsewhere(&stranger), elsewhere("http://cdn/T/x"), inline("in", "1")],
    );
    let mut watch = world.watch(&list("foo"));
    assert_eq!(
        world.follow(&mut watch),
        [
            format!("failed {stranger}: authority \"stranger\" is not in the bootstrap (as node \"me\")"),
            format!("failed http://cdn/T/x: http://cdn/T/x: {NOBODY_READS}"),
            "put in 1".into(),
            format!("failed {bar}: absent"),
            "answered".into(),
        ]
    );
    world.put(CDS, &bar, "1");
    assert_eq!(world.follow(&mut watch), [format!("put {bar} 1")]);
    world.put_list("foo", "2", &[]);
    let mut gone = world.follow(&mut watch);
    gone.sort();
    assert_eq!(gone, ["removed in".to_owned(), format!("removed {bar}")], "what was not told is not told as gone");
}

#[test]
fn r081_a_list_that_is_redirected_is_another_list_and_so_are_its_members() {
    let world = World::new();
    let there = xdstp("other", LISTS, "there");
    world.top().redirect(LISTS, &list("foo"), "1", &there);
    let entries = collection(&[inline("bar", "1")]);
    world.other().put(LISTS, &there, "1", &entries);
    let mut watch = world.watch(&list("foo"));
    assert_eq!(world.follow(&mut watch), ["put bar 1", "answered"]);
}

#[test]
fn r081_a_list_has_an_alternative_as_any_resource_has() {
    let world = World::new();
    let there = xdstp("other", LISTS, "there");
    let entries = collection(&[inline("bar", "of the other")]);
    world.other().put(LISTS, &there, "1", &entries);
    world.top().go_down("away");
    let mut watch = world.watch(&format!("{}#alt={there}", list("foo")));
    assert_eq!(world.follow(&mut watch), ["put bar of the other", "answered"]);
    world.top().come_up();
    world.put_list("foo", "1", &[inline("bar", "2"), inline("baz", "1")]);
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), ["put bar 2", "put baz 1"]);
}

#[test]
fn r081_an_entry_is_found_by_its_name_in_its_list_and_the_directive_is_not_sent() {
    let world = World::new();
    world.put_list("foo", "1", &[inline("bar", "1"), inline("", "1"), elsewhere(&xdstp("a", CDS, "x"))]);
    let mut watch = world.watch(&format!("{}#entry=bar", list("foo")));
    assert_eq!(world.follow(&mut watch), ["put bar 1"]);
    assert_eq!(world.top().take_asked(), [format!("+{}", list("foo"))]);
    world.put_list("foo", "2", &[inline("bar", "1"), inline("baz", "1")]);
    assert!(world.follow(&mut watch).is_empty(), "it is as it was");
    world.put_list("foo", "3", &[inline("bar", "2")]);
    assert_eq!(world.follow(&mut watch), ["put bar 2"]);
    world.put_list("foo", "4", &[inline("baz", "2")]);
    assert_eq!(world.follow(&mut watch), ["failed bar: absent"]);
    world.put_list("foo", "5", &[inline("bar", "2")]);
    assert_eq!(world.follow(&mut watch), ["put bar 2"]);
}

#[test]
fn r081_an_entry_comes_again_when_the_trouble_of_its_list_is_over() {
    let world = World::new();
    world.put_list("foo", "1", &[inline("bar", "1")]);
    let mut watch = world.watch(&format!("{}#entry=bar", list("foo")));
    assert_eq!(world.follow(&mut watch), ["put bar 1"]);
    world.put_list("foo", "2", &[Entry::default()]);
    let told = world.follow(&mut watch);
    assert!(told.len() == 1 && told[0].starts_with("ambient bar: invalid at"), "{told:?}");
    world.put_list("foo", "3", &[inline("bar", "1")]);
    assert_eq!(world.follow(&mut watch), ["put bar 1"], "it came after an error");
    world.put_list("foo", "4", &[inline("bar", "1"), inline("baz", "1")]);
    assert!(world.follow(&mut watch).is_empty(), "it is as it was");
}

#[test]
fn r081_a_member_may_be_an_entry_of_another_list() {
    let world = World::new();
    let there = format!("{}#entry=bar", xdstp("other", LISTS, "there"));
    let entries = collection(&[inline("bar", "of the other")]);
    world.other().put(LISTS, &xdstp("other", LISTS, "there"), "1", &entries);
    world.put_list("foo", "1", &[inline("bar", "1"), elsewhere(&there)]);
    let mut watch = world.watch(&list("foo"));
    let named = there.strip_prefix("xdstp:").unwrap();
    assert_eq!(world.follow(&mut watch), ["put bar 1".into(), format!("put {named} of the other"), "answered".into()]);
}

#[test]
fn r081_a_list_that_names_itself_ends() {
    let world = World::new();
    world.put_list("foo", "1", &[elsewhere(&list("foo"))]);
    let told = world.follow(&mut world.watch(&list("foo")));
    assert!(told.len() == 2 && told[0].contains("it is a list, where a resource is expected"), "{told:?}");
}

#[test]
fn r081_who_watches_lists_as_resources_has_them_as_they_come() {
    let world = World::new();
    world.put_list("foo", "1", &[inline("bar", "1")]);
    assert_eq!(world.follow(&mut world.watch_raw(LISTS, &list("foo"))), [format!("put {} 1", list("foo"))]);
}

#[test]
fn r081_who_has_a_list_and_none_of_its_members_has_nothing_to_go_on_with() {
    let world = World::new();
    let list = xdstp("a", LISTS, "all");
    let there = xdstp("other", CDS, "x");
    world.top().put(LISTS, &list, "1", &of_elsewhere(std::slice::from_ref(&there)));
    world.other().be_silent(true);
    let mut watches = [world.watch(&list), world.watch(&format!("{list}#entry=x"))];
    let told = watches.each_mut().map(|watch| world.follow(watch));
    assert_eq!(told, [vec![], vec!["failed x: absent".to_owned()]]);
    world.top().go_down("away");
    world.network.pass(redirects::SOON);
    let lost = || vec!["failed all: unreachable (away)".to_owned()];
    assert_eq!(watches.each_mut().map(|watch| world.follow(watch)), [lost(), lost()]);
    // An empty list is something.
    world.top().come_up();
    world.top().put(LISTS, &list, "2", &of_elsewhere(&[]));
    world.network.pass(redirects::SOON);
    assert_eq!(world.follow(&mut watches[0]), ["cleared all", "answered"]);
    world.top().go_down("away");
    world.network.pass(redirects::SOON);
    assert_eq!(world.follow(&mut watches[0]), ["ambient all: unreachable (away)"]);
}

#[test]
fn r081_what_is_wrong_with_a_list_and_that_its_server_is_away_end_each_by_itself() {
    let world = World::new();
    let member = inline("x", "1");
    world.put_list("foo", "1", std::slice::from_ref(&member));
    let mut watch = world.watch(&list("foo"));
    assert_eq!(world.follow(&mut watch), ["put x 1", "answered"]);
    world.top().remove(LISTS, &list("foo"));
    world.network.settle();
    assert_eq!(world.follow(&mut watch), [format!("ambient {}: absent", list("foo"))]);
    world.top().go_down("away");
    world.network.pass(Duration::from_secs(200));
    assert_eq!(world.follow(&mut watch), ["ambient all: unreachable (away)"]);
    // Its members are as they were.
    world.put_list("foo", "2", &[member]);
    world.top().come_up();
    world.network.pass(Duration::from_secs(200));
    let mut told = world.follow(&mut watch);
    told.sort();
    assert_eq!(told, ["cleared all".into(), format!("cleared {}", list("foo"))]);
}

/// Those that the message's rule takes or TP1's words do, and no others.
#[test]
fn r081_an_entry_may_be_called_what_either_rule_takes_and_its_list_is_refused_otherwise() {
    for (name, is_good) in
        [("aZ09_-.~:", true), ("a/b", true), ("a b", false), ("#x", false), ("a#b", false), ("\u{e4}", false)]
    {
        let world = World::new();
        world.put_list("foo", "1", &[inline(name, "1")]);
        let mut watch = world.watch(&list("foo"));
        let told = world.follow(&mut watch);
        match is_good {
            true => assert_eq!(told, [format!("put {name} 1"), "answered".into()]),
            false => assert!(told.len() == 1 && told[0].contains("entry 0: its name, "), "{name}: {told:?}"),
        }
    }
}
