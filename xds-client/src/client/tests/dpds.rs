//! Names that are asked for as a server says (DPDS of TP2's draft).

use prost::encoding::string;
use xds_transport::wire::SelectorsByType;
use xdstp_cache::Variant;

use super::*;

pub(super) const DPDS: &str = "type.googleapis.com/envoy.config.dynamic_parameters.v3.DynamicParameterConstraintsMap";

/// A world in which the names of the authority `a` are asked for as a resource of an authority says.
pub(super) fn world(protocol: Protocol, authority: &str, features: Features) -> World {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure).with_features(features);
    let own = Authority::default().with_parameter("zone", "z");
    let bootstrap = Bootstrap::new(server(TOP))
        .with_authority("a", own.with_dpds(dpds(authority).parse().unwrap()))
        .with_authority("other", Authority::default().with_server(server(OTHER)));
    World::with(protocol, bootstrap)
}

pub(super) fn dpds(authority: &str) -> String {
    xdstp(authority, DPDS, "d")
}

pub(super) fn cluster(id: &str) -> String {
    xdstp("a", CDS, id)
}

/// A message field of bytes.
fn field(number: u32, content: Vec<u8>) -> Vec<u8> {
    let mut field = Vec::new();
    prost::encoding::bytes::encode(number, &content, &mut field);
    field
}

fn text(number: u32, text: &str) -> Vec<u8> {
    let mut field = Vec::new();
    string::encode(number, &text.to_owned(), &mut field);
    field
}

/// A `DynamicParameterConstraintsMap` by which resources of a type have exactly this value of a key.
pub(super) fn map(type_url: &str, key: &str, value: &str) -> Vec<u8> {
    map_of(type_url, key, text(1, value))
}

fn map_of(type_url: &str, key: &str, constraint: Vec<u8>) -> Vec<u8> {
    let of_key = field(1, [text(1, key), field(2, field(2, constraint))].concat());
    let of = type_url.rsplit('/').next().unwrap();
    field(1, [text(1, of), field(2, of_key)].concat())
}

impl World {
    /// Says that clusters are asked for with this environment.
    fn say(&self, authority: &str, version: &str, env: &str) {
        let server = if authority == "a" { TOP } else { OTHER };
        self.network.server(server).put(DPDS, &dpds(authority), version, &map(CDS, "env", env));
        self.network.settle();
    }

    pub(super) fn put_for(&self, env: &str, name: &str, version: &str) {
        let variant = Variant::Constraints(format!("env={env} and zone=z").parse().unwrap());
        self.top().put_variant(CDS, (name, &variant), version, &message(name, version));
        self.network.settle();
    }
}

#[test]
fn r084_what_says_how_is_asked_for_first_and_once_and_then_all_that_it_is_for() {
    let world = world(Protocol::Delta, "a", KEEPS);
    world.top().be_silent(true);
    let names = ["x", "y"].map(cluster);
    let mut watches = names.each_ref().map(|name| world.watch_raw(CDS, name));
    let mut listener = world.watch_raw(LDS, &xdstp("a", LDS, "l"));
    let mut elsewhere = world.watch_raw(CDS, "old");
    world.network.pass(Duration::from_secs(10));
    assert_eq!(watches.each_mut().map(heard), [[""; 0], [""; 0]]);
    assert_eq!(watches[0].status(), Some(crate::ResourceStatus::Requested));
    let mut asked = world.top().take_asked();
    asked.sort();
    assert_eq!(asked, ["+old".into(), format!("+{}", dpds("a"))], "names of no authority wait for nothing");

    world.put_for("prod", &names[0], "1");
    world.say("a", "1", "prod");
    world.top().be_silent(false);
    world.network.settle();
    let _ = (watches.each_mut().map(heard), heard(&mut listener), heard(&mut elsewhere));
    world.network.settle();
    let mut asked = world.top().take_asked();
    asked.sort();
    let mut expected = names.each_ref().map(|name| format!("+{name} {{env=prod, zone=z}}")).to_vec();
    // Nothing is said of its type.
    expected.push(format!("+{} {{zone=z}}", xdstp("a", LDS, "l")));
    expected.sort();
    assert_eq!(asked, expected);
    assert_eq!(heard(&mut watches[0]), [format!("put {} 1", names[0])]);
    assert_eq!(heard(&mut watches[1]), [format!("failed {}: absent", names[1])]);
}

#[test]
fn r084_a_change_moves_all_over_and_what_is_held_stays_until_the_new_answer() {
    let world = world(Protocol::Delta, "a", KEEPS);
    let name = cluster("x");
    world.put_for("prod", &name, "1");
    world.say("a", "1", "prod");
    let mut watch = world.watch_raw(CDS, &name);
    let settle = |watch: &mut Watch| {
        let mut all = heard(watch);
        world.network.settle();
        all.extend(heard(watch));
        all
    };
    assert_eq!(settle(&mut watch), [format!("put {name} 1")]);
    world.top().take_asked();

    // The same in other words is no change.
    world.say("a", "2", "prod");
    assert_eq!((settle(&mut watch), world.top().take_asked().len()), (vec![], 0));

    // Nothing is said of the new one: the one before is in use, and goes on to be.
    world.top().be_silent(false);
    world.say("a", "3", "test");
    world.top().be_silent(true);
    assert_eq!(settle(&mut watch), [""; 0]);
    assert_eq!(world.top().take_asked(), [format!("+{name} {{env=test, zone=z}}")]);
    world.network.pass(PATIENCE);
    assert_eq!(settle(&mut watch), [format!("ambient {name}: timeout, an absence")]);
    world.top().be_silent(false);
    world.put_for("prod", &name, "4");
    assert_eq!(settle(&mut watch).first(), Some(&format!("put {name} 4")), "who is in use is heard");

    // The new answer, and what it was before is left.
    world.put_for("test", &name, "5");
    assert_eq!(settle(&mut watch), [format!("put {name} 5")]);
    world.network.settle();
    assert!(world.top().take_asked().contains(&format!("-{name} {{env=prod, zone=z}}")));
    world.put_for("prod", &name, "6");
    assert_eq!(settle(&mut watch), [""; 0]);
}

#[test]
fn r084_what_is_as_it_was_in_another_way_is_no_news() {
    let world = world(Protocol::Delta, "a", KEEPS);
    let name = cluster("x");
    for env in ["prod", "test"] {
        world.put_for(env, &name, "1");
    }
    world.say("a", "1", "prod");
    let mut watch = world.watch_raw(CDS, &name);
    heard(&mut watch);
    world.network.settle();
    assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
    world.say("a", "2", "test");
    for _ in 0..3 {
        assert_eq!(heard(&mut watch), [""; 0]);
        world.network.settle();
    }
    assert!(world.top().take_asked().contains(&format!("-{name} {{env=prod, zone=z}}")), "it moved");
    world.put_for("test", &name, "2");
    assert_eq!(heard(&mut watch), [format!("put {name} 2")]);
}

#[test]
fn r084_where_the_new_way_has_none_that_is_as_if_it_were_gone() {
    for (features, expected) in [(KEEPS, "ambient"), (DROPS, "failed")] {
        let world = world(Protocol::Delta, "a", features);
        let name = cluster("x");
        world.put_for("prod", &name, "1");
        world.say("a", "1", "prod");
        let mut watch = world.watch_raw(CDS, &name);
        heard(&mut watch);
        world.network.settle();
        heard(&mut watch);
        world.say("a", "2", "test");
        heard(&mut watch);
        world.network.settle();
        assert_eq!(heard(&mut watch), [format!("{expected} {name}: absent")]);
        world.network.settle();
        // It comes as it was: what was wrong is not any more.
        world.put_for("test", &name, "1");
        assert_eq!(heard(&mut watch), [format!("put {name} 1")]);
    }
}

#[test]
fn r084_members_of_a_collection_go_when_the_new_answer_is_without_them() {
    let world = world(Protocol::Delta, "a", KEEPS);
    let [glob, one, two, three] = ["d/*", "d/1", "d/2", "d/3"].map(cluster);
    for (env, name, version) in [("prod", &one, "1"), ("prod", &two, "1"), ("test", &one, "1"), ("test", &three, "1")] {
        world.put_for(env, name, version);
    }
    world.say("a", "1", "prod");
    let mut watch = world.watch_raw(CDS, &glob);
    heard(&mut watch);
    world.network.pass(Duration::from_secs(1));
    let mut all = heard(&mut watch);
    all.sort();
    assert_eq!(all, ["answered".into(), format!("put {one} 1"), format!("put {two} 1")]);
    world.say("a", "2", "test");
    assert_eq!(heard(&mut watch), [""; 0]);
    world.network.settle();
    assert_eq!(heard(&mut watch), [format!("put {three} 1")]);
    world.put_for("prod", &two, "2");
    assert_eq!(heard(&mut watch), [format!("put {two} 2")], "it may still come in the new way");
    world.network.pass(Duration::from_secs(1));
    assert_eq!(heard(&mut watch), [format!("removed {two}")]);
    world.put_for("test", &one, "2");
    assert_eq!(heard(&mut watch), [format!("put {one} 2")]);
}

#[test]
fn r084_where_it_is_not_to_be_had_names_are_asked_for_without() {
    const PERMISSION_DENIED: i32 = 7;
    for how in ["absent", "refused", "of no use", "silent"] {
        let world = world(Protocol::Delta, "a", KEEPS);
        match how {
            "refused" => world.top().fail(DPDS, &dpds("a"), PERMISSION_DENIED, "no"),
            "of no use" => world.top().put(DPDS, &dpds("a"), "1", b"\x08\x01"),
            "silent" => world.top().be_silent(true),
            _ => {}
        }
        let name = cluster("x");
        let mut watch = world.watch_raw(CDS, &name);
        if how == "silent" {
            world.network.pass(PATIENCE - Duration::from_secs(1));
            assert_eq!(heard(&mut watch), [""; 0]);
            assert_eq!(world.top().take_asked(), [format!("+{}", dpds("a"))], "it waits for its time");
            world.network.pass(Duration::from_secs(1));
        }
        assert_eq!(heard(&mut watch), [""; 0], "{how}");
        world.network.settle();
        assert!(world.top().take_asked().contains(&format!("+{name} {{zone=z}}")), "{how}");

        // It comes after all.
        world.top().be_silent(false);
        world.put_for("prod", &name, "1");
        world.say("a", "2", "prod");
        heard(&mut watch);
        world.network.settle();
        assert_eq!(heard(&mut watch).last(), Some(&format!("put {name} 1")), "{how}");
    }
}

#[test]
fn r084_whose_own_server_cannot_be_reached_waits_and_says_so() {
    let world = world(Protocol::Delta, "a", KEEPS);
    let name = cluster("x");
    world.put_for("prod", &name, "1");
    world.say("a", "1", "prod");
    world.top().go_down("a partition");
    let mut watch = world.watch_raw(CDS, &name);
    assert_eq!(heard(&mut watch), ["failed all: unreachable (a partition)"]);
    world.top().come_up();
    world.network.pass(Duration::from_secs(5));
    let mut all = heard(&mut watch);
    world.network.settle();
    all.extend(heard(&mut watch));
    assert_eq!(all, ["cleared all".to_owned(), format!("put {name} 1")]);
    let asked = world.top().take_asked();
    assert_eq!(asked, [format!("+{}", dpds("a")), format!("+{name} {{env=prod, zone=z}}")]);
}

#[test]
fn r084_where_another_server_says_how_and_cannot_be_reached_names_are_asked_for_without() {
    let world = world(Protocol::Delta, "other", KEEPS);
    let name = cluster("x");
    world.put_for("prod", &name, "1");
    world.say("other", "1", "prod");
    world.network.server(OTHER).go_down("a partition");
    let mut watch = world.watch_raw(CDS, &name);
    assert_eq!(heard(&mut watch), [""; 0]);
    world.network.settle();
    assert_eq!(world.top().take_asked(), [format!("+{name} {{zone=z}}")]);
    assert_eq!(heard(&mut watch), [format!("failed {name}: absent")]);
    world.network.server(OTHER).come_up();
    world.network.pass(Duration::from_secs(5));
    heard(&mut watch);
    world.network.settle();
    assert_eq!(heard(&mut watch), [format!("put {name} 1")]);

    // That it is lost again takes nothing away, nor does that it is gone.
    world.network.server(OTHER).go_down("again");
    world.network.pass(Duration::from_secs(5));
    world.network.server(OTHER).remove(DPDS, &dpds("other"));
    world.network.server(OTHER).come_up();
    world.network.pass(Duration::from_secs(200));
    assert_eq!(heard(&mut watch), [""; 0]);
    assert_eq!(world.top().take_asked().iter().filter(|asked| asked.starts_with('-')).count(), 1);
}

#[test]
fn r084_what_a_watch_says_itself_counts_before_it() {
    let world = world(Protocol::Delta, "a", KEEPS);
    world.say("a", "1", "prod");
    let mut watch = world.client.selecting([("env", "canary")]).watch(CDS, &cluster("x"));
    world.network.settle();
    heard(&mut watch);
    world.network.settle();
    let asked = world.top().take_asked();
    assert_eq!(asked, [format!("+{}", dpds("a")), format!("+{} {{env=canary, zone=z}}", cluster("x"))]);
    world.say("a", "2", "test");
    heard(&mut watch);
    world.network.settle();
    assert_eq!(world.top().take_asked(), [""; 0], "nothing changes for it");
}

/// As many values of a key as there may be: with another key it is more.
fn as_large_as_may_be() -> Vec<u8> {
    let values = |count: usize| {
        let values: Vec<u8> = (0..count).flat_map(|value| field(2, text(1, &value.to_string()))).collect();
        let of_key = field(1, [text(1, "env"), field(2, values)].concat());
        field(1, [text(1, CDS.rsplit('/').next().unwrap()), field(2, of_key)].concat())
    };
    let is_read = |count: &usize| SelectorsByType::decode(&values(*count)).is_ok();
    values((65_000..=65_536).rev().find(is_read).unwrap())
}

#[test]
fn r084_what_cannot_be_asked_for_is_said_and_over_when_it_is_said_as_before() {
    // The final form has no ranges: a server of it cannot be asked so.
    let range = map_of(CDS, "env", field(2, field(1, vec![0x08, 7])));
    for (bad, words) in [(range, "top:1: it cannot be asked for"), (as_large_as_may_be(), "key_constraints")] {
        for is_answered in [true, false] {
            let world = world(Protocol::Delta, "a", KEEPS);
            let name = cluster("x");
            let turn = |watch: &mut Watch| {
                let mut all = heard(watch);
                world.network.settle();
                all.extend(heard(watch));
                world.network.settle();
                all
            };
            world.put_for("prod", &name, "1");
            world.say("a", "1", "prod");
            let mut watch = world.watch_raw(CDS, &name);
            assert_eq!(turn(&mut watch), [format!("put {name} 1")]);
            if !is_answered {
                // What is asked for then was not answered yet.
                world.put_for("test", &name, "9");
                world.say("a", "2", "test");
                world.top().be_silent(true);
                assert_eq!(turn(&mut watch), [""; 0]);
                world.top().be_silent(false);
            }
            world.top().put(DPDS, &dpds("a"), "3", &bad);
            world.network.settle();
            let said = heard(&mut watch);
            assert!(said[0].starts_with(&format!("ambient {name}: {words}")), "{said:?}");
            let (env, version) = if is_answered { ("prod", "1") } else { ("test", "9") };
            world.say("a", "4", env);
            assert_eq!(turn(&mut watch), [format!("put {name} {version}")], "{words} {is_answered}");
            world.put_for(env, &name, "10");
            assert_eq!(turn(&mut watch), [format!("put {name} 10")]);
        }
    }
}
