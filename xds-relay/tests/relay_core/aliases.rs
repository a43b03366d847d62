//! Virtual hosts, which clients ask for by their domains: rules 105 and 106 through a relay.

use prost::Message;
use xds_transport::wire::Resource;

use crate::support::*;

const HOSTS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

fn world() -> World {
    World::of(&[DELTA], &[&[]], "share_by: [cluster]\nlinger: 1s")
}

fn put_host(world: &mut World, name: &str, version: &str, aliases: &[&str]) {
    let wrapper = Resource { aliases: aliases.iter().map(|alias| (*alias).into()).collect(), ..Resource::default() };
    let frame = frame(HOSTS, name, version).with_wrapper(wrapper.encode_to_vec().into(), None, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", HOSTS, name, version, frame);
    world.settle();
}

#[test]
fn rule_105_a_relay_asks_for_an_alias_and_hands_on_what_it_stands_for() {
    let mut world = world();
    put_host(&mut world, "rc/shop", "1", &["rc/shop.example", "rc/www"]);
    let clients = [("n1", "rc/shop.example"), ("n2", "rc/www"), ("n3", "rc/www")];
    let clients = clients.map(|(node, alias)| (world.client(DELTA, node), alias));
    for (client, alias) in clients {
        world.subscribe(client, HOSTS, &[alias]);
        assert_eq!(world.told(client), ["VirtualHost rc/shop@1"], "{alias}");
    }
    assert_eq!(world.asked(0), ["n1 VirtualHost +rc/shop.example", "n1 VirtualHost +rc/www"]);
    put_host(&mut world, "rc/shop", "2", &["rc/shop.example", "rc/www"]);
    for (client, _) in clients {
        assert_eq!(world.told(client), ["VirtualHost rc/shop@2"]);
    }
    // The last to leave an alias leaves it upstream, and the other one keeps what both stood for.
    world.unsubscribe(clients[0].0, HOSTS, &["rc/shop.example"]);
    world.advance(2 * SECOND);
    assert_eq!(world.asked(0), ["n1 VirtualHost -rc/shop.example"]);
    put_host(&mut world, "rc/shop", "3", &["rc/shop.example", "rc/www"]);
    assert_eq!(world.told(clients[0].0), [""; 0]);
    assert_eq!(world.told(clients[1].0), ["VirtualHost rc/shop@3"]);
}

#[test]
fn rule_084_what_a_client_holds_by_an_alias_is_neither_resent_nor_removed_by_a_relay_that_was_not_answered() {
    let mut world = world();
    put_host(&mut world, "rc/shop", "1", &["rc/shop.example"]);
    let client = world.client(DELTA, "n");
    world.subscribe(client, HOSTS, &["rc/shop.example"]);
    world.told(client);
    let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
    world.set_up(0, false);
    world.disconnect(client);
    world.connect(client, cold);
    world.advance(60 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    assert_eq!(world.clients[client].held(HOSTS).len(), 1);
}

#[test]
fn rule_105_what_goes_while_the_origin_is_away_is_gone_for_who_asked_for_its_alias() {
    let mut world = world();
    put_host(&mut world, "rc/shop", "1", &["rc/shop.example"]);
    let client = world.client(DELTA, "n");
    world.subscribe(client, HOSTS, &["rc/shop.example"]);
    world.told(client);
    world.set_up(0, false);
    let now = world.now;
    world.origins[0].remove(now, HOSTS, "rc/shop");
    world.advance(SECOND);
    assert_eq!(world.clients[client].held(HOSTS).len(), 1);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!(world.clients[client].held(HOSTS), [""; 0]);
}

/// Over SotW it is under its own name that a resource answers: what another client has of it is not taken for an answer
/// that a timeout would take back.
#[test]
fn rule_105_over_sotw_an_alias_stands_for_nothing_whatever_others_ask_for() {
    let mut world = World::of(&[SOTW], &[&[]], "share_by: [cluster]\nlinger: 1s");
    let aliases = Resource { aliases: vec!["other".into()], ..Resource::default() };
    let frame = frame(ENDPOINTS, "name", "1").with_wrapper(aliases.encode_to_vec().into(), None, false);
    let now = world.now;
    world.origins[0].put_frame(now, "", ENDPOINTS, "name", "1", frame);
    let [by_name, by_alias] = ["n", "n"].map(|node| world.client(DELTA, node));
    world.subscribe(by_name, ENDPOINTS, &["name"]);
    world.subscribe(by_alias, ENDPOINTS, &["other"]);
    world.advance(60 * SECOND);
    assert_eq!(world.clients[by_name].held(ENDPOINTS), ["name@1"]);
    assert_eq!(world.told(by_alias), ["ClusterLoadAssignment -other"]);
}

/// Whatever else says that it has no such name: a wildcard, or the scope of the name's own authority, of which only an
/// alias of another one was asked for.
#[test]
fn rule_150_what_a_client_may_have_by_an_alias_is_not_gone_before_that_is_answered() {
    let [name, alias, elsewhere] = [("a", "g/x"), ("a", "h/x"), ("b", "h/x")].map(|(of, id)| endpoints(of, id));
    for asked in [["*", &alias], ["*", &elsewhere], [&alias, &elsewhere]] {
        let mut world = World::of(&[DELTA], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s");
        let aliases = Resource { aliases: vec![alias.clone(), elsewhere.clone()], ..Resource::default() };
        let frame = frame(ENDPOINTS, &name, "1").with_wrapper(aliases.encode_to_vec().into(), None, false);
        let now = world.now;
        world.origins[0].put_frame(now, "", ENDPOINTS, &name, "1", frame);
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &asked);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        world.disconnect(client);
        world.told(client);
        world.connect(client, cold);
        world.advance(20 * SECOND);
        let told = world.told(client).join(" ");
        assert!(!told.contains(" -") && told.matches('@').count() <= 1, "{asked:?}: {told}");
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
    }
}

/// That nobody had asked for it is no answer to who does.
#[test]
fn rule_150_what_a_client_brought_along_and_asks_for_afterwards_is_not_gone_before_that_is_answered() {
    let [name, alias] = [("a", "g/x"), ("b", "h/x")].map(|(of, id)| endpoints(of, id));
    let mut world = World::of(&[DELTA], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s");
    put_aliased(&mut world, 0, &name, "1", &[&alias]);
    let client = world.client(DELTA, "n");
    world.subscribe(client, ENDPOINTS, &[&alias]);
    world.told(client);
    let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
    world.set_up(0, false);
    world.disconnect(client);
    world.connect(client, cold);
    world.advance(SECOND);
    world.subscribe(client, ENDPOINTS, &[&name]);
    world.advance(60 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    world.set_up(0, true);
    world.advance(60 * SECOND);
    assert_eq!(world.told(client), [""; 0]);
    assert_eq!(world.clients[client].held(ENDPOINTS).len(), 1);
}

fn cluster_at(at: &str) -> String {
    format!("xdstp://{}", at.replacen('/', "/envoy.config.cluster.v3.Cluster/", 1))
}

fn put_aliased(world: &mut World, origin: usize, name: &str, version: &str, aliases: &[&str]) {
    let aliases = Resource { aliases: aliases.iter().map(|alias| (*alias).into()).collect(), ..Resource::default() };
    let of = if name.contains("Cluster/") { CLUSTERS } else { ENDPOINTS };
    let frame = frame(of, name, version).with_wrapper(aliases.encode_to_vec().into(), None, false);
    let now = world.now;
    world.origins[origin].put_frame(now, "", of, name, version, frame);
}

fn of_two_authorities() -> World {
    World::of(&[DELTA], &[&["a", "b"]], "share_by: [cluster]\nlinger: 1s")
}

#[test]
fn rule_153_an_origin_does_not_say_what_names_of_another_stand_for() {
    for upstream in [DELTA, SOTW] {
        let mut world = World::of(&[upstream, DELTA], &[&["a"], &["b"]], "share_by: [cluster]");
        let [name, alias, other] = [("b", "g/x"), ("b", "h/x"), ("a", "g/y")].map(|(of, id)| endpoints(of, id));
        put_aliased(&mut world, 1, &name, "1", &[&alias]);
        world.settle();
        put_aliased(&mut world, 0, &other, "1", &[&alias]);
        world.settle();
        let client = world.client(DELTA, "n");
        world.subscribe(client, ENDPOINTS, &[&alias]);
        world.subscribe(client, ENDPOINTS, &[&other]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS).len(), 2, "{upstream:?}");
    }
}

#[test]
fn rule_152_what_is_asked_for_by_an_alias_counts_before_what_the_wildcard_has() {
    let [name, alias] = [("a", "g/x"), ("b", "h/x")].map(|(of, id)| endpoints(of, id));
    for order in [["*", &alias], [&alias, "*"]] {
        let mut world = of_two_authorities();
        world.origins[0].wildcard_sends_xdstp_to("n");
        let client = world.client(DELTA, "n");
        for interest in order {
            world.subscribe(client, ENDPOINTS, &[interest]);
        }
        put_aliased(&mut world, 0, &name, "named", &[&alias]);
        world.settle();
        let now = world.now;
        world.origins[0].put_frame(now, "n", ENDPOINTS, &name, "wild", frame(ENDPOINTS, &name, "wild"));
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(ENDPOINTS), [format!("{name}@named")], "{order:?}");
    }
}

#[test]
fn rule_048_an_alias_of_another_authority_is_answered_with_what_is_there_by_the_first() {
    let [name, alias, elsewhere] = ["a/g/x", "a/h/x", "b/h/x"].map(cluster_at);
    let mut world = of_two_authorities();
    put_aliased(&mut world, 0, &name, "1", &[&alias, &elsewhere]);
    world.settle();
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &[&alias]);
    world.subscribe(client, CLUSTERS, &[&elsewhere]);
    // So it knows by which names it has it: what comes when it returns is no news.
    world.unsubscribe(client, CLUSTERS, &[&alias]);
    world.told(client);
    world.disconnect(client);
    world.connect(client, 0);
    world.advance(20 * SECOND);
    let told = world.told(client);
    assert!(told.iter().all(|line| line.ends_with(" again")), "{told:?}");
}

#[test]
fn rule_150_what_was_held_by_an_alias_is_not_gone_because_its_own_authority_is_asked_for_it_now() {
    let [name, glob, alias] = ["a/g/x", "a/g/*", "b/h/x"].map(cluster_at);
    for asked in [&name, &glob] {
        let mut world = of_two_authorities();
        put_aliased(&mut world, 0, &name, "1", &[&alias]);
        world.settle();
        let client = world.client(DELTA, "n");
        world.subscribe(client, CLUSTERS, &[&alias]);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@1")]);
        world.disconnect(client);
        world.set_up(0, false);
        let cold = world.add_relay_before(Feeder::Origin(0), DELTA);
        world.connect(client, cold);
        world.advance(20 * SECOND);
        world.subscribe(client, CLUSTERS, &[asked]);
        world.advance(20 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@1")], "{asked}");
        world.set_up(0, true);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [format!("{name}@1")], "{asked}");
        world.remove(0, CLUSTERS, &name);
        world.advance(60 * SECOND);
        assert_eq!(world.clients[client].held(CLUSTERS), [""; 0], "{asked}");
    }
}
