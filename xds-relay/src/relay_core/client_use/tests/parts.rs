//! What is one client's where no rule says so: its part of what all may have.

use std::net::Ipv4Addr;

use super::*;

fn from(last: u8) -> Identity {
    Identity::of_address(Ipv4Addr::new(10, 0, 0, last).into())
}

/// How often clients met the part that is theirs.
fn met(world: &World) -> Option<String> {
    let line = "xds_relay_downstream_refused_total{limit=\"one_client\"} ";
    let text = world.core.metrics().render(&Gauges::default());
    text.lines().find_map(|text| text.strip_prefix(line).map(str::to_owned))
}

#[test]
fn without_rules_one_client_has_half_of_the_streams_and_another_the_other_half() {
    let world = World::with("streams: 4, load_report_streams: 2");
    let mut ours = vec![world.open_without(from(1), "a"), world.open_without(from(1), "b")];
    let words = "more than 2 streams of one client (limits.one_client of limits.streams of the relay)";
    assert_eq!(world.admit_as(from(1), None).err().as_deref(), Some(words));
    assert_eq!(met(&world).as_deref(), Some("1"));
    let _theirs = [world.open_without(from(2), "a"), world.open_without(from(2), "b")];
    ours.pop();
    assert!(world.admit_as(from(1), None).is_ok(), "one was given back");
    let report = || world.core.admit_client((from(1), true), None, world.now);
    let _first = report().unwrap();
    let words = "more than 1 streams of load reports of one client (limits.one_client of limits.load_report_streams of the relay)";
    assert_eq!(report().map(drop).unwrap_err().to_string(), words);
}

#[test]
fn without_rules_one_client_opens_half_of_the_streams_of_a_second() {
    let world = World::with("new_streams_per_second: 5");
    let opened = [(); 3].map(|()| world.admit_as(from(1), None).map(drop));
    let words = "more than 2 new streams of one client a second (limits.one_client of limits.new_streams_per_second of the relay)";
    assert_eq!(opened, [Ok(()), Ok(()), Err(words.to_owned())]);
    assert!(world.admit_as(from(2), None).is_ok());
}

#[test]
fn who_comes_from_this_machine_has_no_part_as_nobody_knows_how_many_they_are() {
    for here in [Identity::Local, Identity::of_address(Ipv4Addr::LOCALHOST.into())] {
        let world = World::with("streams: 2, new_streams_per_second: 1");
        let all: Vec<_> = (0..10).map(|_| world.admit_as(here.clone(), None)).collect();
        assert!(all.iter().all(Result::is_ok));
    }
}

/// What a rule does not name is the part that it would be without rules.
#[tokio::test(start_paused = true)]
async fn a_rule_that_names_a_limit_says_what_it_is_be_it_more_than_the_part() {
    let world = World::with("streams: 4, names: 4");
    let three = limits(|limits| limits.streams = NonZeroUsize::new(3));
    let mut served = world.open(1, "n", three);
    let _more = [world.admit(1, three).unwrap(), world.admit(1, three).unwrap()];
    let words = "more than 3 streams of one client (clients[].limits.streams of the relay)";
    assert_eq!(world.admit(1, three).err().as_deref(), Some(words));
    assert_eq!([served.ask("a"), served.ask("b")], [None, None]);
    let words = "more than 2 names of one client (limits.one_client of limits.names of the relay)";
    assert_eq!(served.ask("c").as_deref(), Some(words));
    assert_eq!((world.refused("streams").as_deref(), met(&world).as_deref()), (Some("1"), Some("1")));
    assert_eq!(world.refused("names"), None);
}

#[tokio::test(start_paused = true)]
async fn without_rules_one_client_has_half_of_the_names_with_those_that_it_brings_along() {
    let world = World::with("names: 8");
    let words = "more than 4 names of one client (limits.one_client of limits.names of the relay)";
    let (mut one, mut other) = (world.open_without(from(1), "n"), world.open_without(from(1), "m"));
    assert_eq!([one.ask("a"), one.bring(&["a"]), other.ask("b"), other.ask("c")], [const { None }; 4]);
    assert_eq!(other.ask("d").as_deref(), Some(words), "one is brought along");
    let mut third = world.open_without(from(1), "l");
    assert_eq!(third.bring(&["x"]).as_deref(), Some(words));
    let mut stranger = world.open_without(from(2), "n");
    assert_eq!(["a", "b", "c", "d"].map(|name| stranger.ask(name)), [const { None }; 4]);
    drop((one, third));
    assert_eq!(other.ask("d"), None);
    drop((other, stranger));
    assert_eq!(world.core.gauges().limits["names"].0, 0);
    let client = world.admit_as(from(1), None).unwrap();
    assert!(client.grows(4).is_ok() && client.grows(1).is_err(), "all is given back, and nothing twice");
}

#[tokio::test(start_paused = true)]
async fn without_rules_one_client_is_in_half_of_the_groups_and_what_it_left_is_forgotten_while_it_has_streams() {
    let mut world = World::with("groups: 5");
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|node| world.open_without(from(1), node));
    assert_eq!([a.ask("x"), b.ask("x")], [None, None]);
    let words = "more than 2 node groups of one client (limits.one_client of limits.groups of the relay)";
    assert_eq!(c.ask("x").as_deref(), Some(words));
    assert_eq!(world.core.federation.scopes().len(), 2, "what it may not have costs nobody anything");
    let mut theirs = world.open_without(from(2), "c");
    assert_eq!(theirs.ask("x"), None);
    drop((b, c));
    world.advance(SECOND);
    assert_eq!(a.used(ClientLimit::Groups), 2, "the one that it left stays for the linger time");
    // Once others are in it, it is theirs.
    let mut theirs = world.open_without(from(2), "b");
    assert_eq!(theirs.ask("x"), None);
    world.advance(SECOND);
    assert_eq!(a.used(ClientLimit::Groups), 1);
}

/// Of these there are as many as the configuration says, whoever asks for them.
#[tokio::test(start_paused = true)]
async fn authorities_of_the_configuration_are_no_part_of_a_client() {
    let world = World::with("authorities: 4");
    let mut ours = world.open_without(from(1), "n");
    assert_eq!(["x", "y", "z", "k", "l"].map(|authority| ours.ask(&of(authority))), [const { None }; 5]);
    let words = "more than 2 authorities of one client (limits.one_client of limits.authorities of the relay)";
    assert_eq!(ours.ask(&of("m")).as_deref(), Some(words));
    assert_eq!(ours.used(ClientLimit::Authorities), 5);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_another_counts_for_what_is_new_and_ends_nothing() {
    let world = World::with("names: 8");
    let mut served = world.open_without(from(1), "n");
    assert_eq!(["a", "b", "c"].map(|name| served.ask(name)), [const { None }; 3]);
    let mut config = Config::parse("relay.yaml", "{ origins: [{ name: up, server: 'a:1' }] }").unwrap();
    (config.limits.names, config.limits.one_client) = (8, 25);
    world.core.set_what_is_read_at_use(&config);
    assert_eq!((served.routes.refused(), served.used(ClientLimit::Names)), (None, 3));
    assert!(served.ask("d").is_some());
    config.limits.one_client = 100;
    world.core.set_what_is_read_at_use(&config);
    assert_eq!(["d", "e", "f", "g", "h"].map(|name| served.ask(name)), [const { None }; 5]);
}

/// What it costs each stream, without any allocation of its own where there are no rules.
#[test]
fn what_is_counted_of_a_stream_is_small() {
    assert!(size_of::<ClientUse>() <= 40, "{}", size_of::<ClientUse>());
}
