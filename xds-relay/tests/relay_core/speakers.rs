//! Who speaks for whom upstream, and what is asked for on which stream.

use xds_transport::wire::{Node, Struct, Value, value};

use crate::support::*;

const BOTH: [Protocol; 2] = [DELTA, SOTW];
const NAME: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/g/x";

#[test]
fn at_each_reconnect_a_living_member_speaks_for_its_group() {
    let mut world = World::of(&[DELTA], &[&[]], "share_by: [cluster]");
    world.put(0, CLUSTERS, "a", "1");
    let [first, second] = ["n1", "n2"].map(|node| world.client(DELTA, node));
    for client in [first, second] {
        world.subscribe(client, CLUSTERS, &["*"]);
    }
    assert_eq!(world.asked(0), ["n1 Cluster +*"]);
    // As long as it is there, it is the one who spoke before.
    world.set_up(0, false);
    world.set_up(0, true);
    world.advance(SECOND);
    assert_eq!(world.asked(0), ["n1 Cluster =a@1"]);
    world.disconnect(first);
    world.set_up(0, false);
    world.set_up(0, true);
    world.advance(SECOND);
    assert_eq!(world.asked(0), ["n2 Cluster =a@1"]);
    // Nobody is left: the last one speaks for what lingers.
    world.disconnect(second);
    world.set_up(0, false);
    world.set_up(0, true);
    world.advance(SECOND);
    assert_eq!(world.asked(0), ["n2 Cluster =a@1"]);
}

#[test]
fn an_origin_finds_what_is_configured_for_it_in_each_node_that_asks_it() {
    let text = |text: &str| Value { kind: Some(value::Kind::StringValue(text.to_owned())) };
    let metadata = |of: &[(&str, &str)]| {
        let fields = of.iter().map(|(key, says)| ((*key).to_owned(), text(says))).collect();
        Some(Struct { fields })
    };
    let mut world = World::empty();
    world.origins.extend([Origin::new(), Origin::new()]);
    let origins = "share_by: [cluster]\norigins: [{ name: o0, server: 'a:1', authorities: [a], node_metadata: { relay: r } }, \
                   { name: o1, server: 'b:1', authorities: [b] }]\n";
    let relay = world.add_relay(origins, vec![Feeder::Origin(0), Feeder::Origin(1)]);
    for id in ["n1", "n2"] {
        let says = metadata(&[("relay", "not so"), ("id", id)]);
        let node = Node { id: id.into(), cluster: "c".into(), metadata: says, ..Node::default() };
        let client = world.client_with(relay, DELTA, &node);
        world.subscribe(client, CLUSTERS, &["old", NAME, &NAME.replace("//a/", "//b/")]);
    }
    let told = |world: &World| {
        let nodes = world.nodes_upstream(relay).into_iter();
        let mut told: Vec<_> = nodes.map(|(origin, node)| (origin, node.id, node.metadata)).collect();
        told.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        told
    };
    let own = "xds-relay".to_owned();
    let of_group = |id: &str| (0, id.to_owned(), metadata(&[("relay", "r"), ("id", id)]));
    let others = [(0, own.clone(), metadata(&[("relay", "r")])), (1, own, None)];
    assert_eq!(told(&world), [&[of_group("n1")][..], &others].concat());
    // Whoever speaks next.
    world.disconnect(0);
    world.set_up(0, false);
    world.set_up(0, true);
    world.advance(SECOND);
    assert_eq!(told(&world), [&[of_group("n2")][..], &others].concat());
}

#[test]
fn an_origin_that_goes_by_node_is_asked_for_all_on_one_stream_of_the_node() {
    let mut world = World::of(&[DELTA, DELTA], &[&["a"], &["b"]], "");
    let by_node = "origins:\n  - {name: o0, server: '127.0.0.1:1', authorities: [a], xdstp: by_node}\n  \
                   - {name: o1, server: '127.0.0.1:1', authorities: [b], xdstp: by_node}\ndefault_origin: o0\n";
    let relay = world.add_relay(by_node, vec![Feeder::Origin(0), Feeder::Origin(1)]);
    let other = NAME.replace("//a/", "//b/");
    world.origins[0].answer_apart("n1");
    let now = world.now;
    for (node, version) in [("", "everybody"), ("n1", "own")] {
        for name in ["old", NAME] {
            world.origins[0].put_frame(now, node, CLUSTERS, name, version, frame(CLUSTERS, name, version));
        }
    }
    world.put(1, CLUSTERS, &other, "1");
    for (node, version) in [("n1", "own"), ("n2", "everybody")] {
        let client = world.client_of(relay, DELTA, node);
        world.subscribe(client, CLUSTERS, &["old", NAME, &other]);
        let held = [format!("old@{version}"), format!("{NAME}@{version}"), format!("{other}@1")];
        assert_eq!(world.clients[client].held(CLUSTERS), held);
        assert_eq!(world.asked(0).concat(), format!("{node} Cluster +old +{NAME}"));
        assert_eq!(world.asked(1), [format!("{node} Cluster +{other}")]);
    }
    assert_eq!(world.streams_of(relay), 4, "a stream for each node and origin, and none of the relay's own");
}

/// Old-style names are in files, which have them for every node; names of an authority are by node.
#[test]
fn files_beside_an_origin_that_goes_by_node_have_their_own_names_and_none_of_its() {
    for (downstream, order) in BOTH.into_iter().flat_map(|of| [["old", NAME], [NAME, "old"]].map(|order| (of, order))) {
        let mut world = World::empty();
        world.origins.push(Origin::new());
        let text = "origins: [{ name: files, files: . }, { name: cp, server: '127.0.0.1:1', authorities: [a], xdstp: by_node }]\n\
                    share_by: [id]\n";
        let relay = world.add_relay(text, vec![Feeder::Origin(0), Feeder::Origin(0)]);
        world.relays[relay].core.set_files(0, vec![file(CLUSTERS, "old", "files")], world.now);
        world.put(0, CLUSTERS, NAME, "1");
        let client = world.client_of(relay, downstream, "n");
        for name in order {
            world.subscribe(client, CLUSTERS, &[name]);
            world.advance(SECOND);
        }
        let held = ["old@files".to_owned(), format!("{NAME}@1")];
        assert_eq!(world.clients[client].held(CLUSTERS), held, "{downstream:?} {order:?}");
        world.unsubscribe(client, CLUSTERS, &[order[0]]);
        world.advance(SECOND);
        world.put(0, CLUSTERS, NAME, "2");
        world.relays[relay].core.set_files(0, vec![file(CLUSTERS, "old", "new")], world.now);
        world.advance(SECOND);
        let left = if order[0] == "old" { format!("{NAME}@2") } else { "old@new".to_owned() };
        let held = world.clients[client].held(CLUSTERS);
        assert!(held.contains(&left), "{downstream:?} {order:?}: {held:?}");
    }
}

/// Nothing `xdstp:` is shared between groups then, nor between the relay's own streams and theirs.
#[test]
fn by_node_nothing_of_one_group_is_told_to_another() {
    for downstream in [DELTA, SOTW] {
        let mut world = World::new(DELTA);
        let text = "origins: [{name: o0, server: '127.0.0.1:1', xdstp: by_node}]\nshare_by: [cluster]\n";
        let relay = world.add_relay(text, vec![Feeder::Origin(0)]);
        world.origins[0].answer_apart("secretive");
        let now = world.now;
        world.origins[0].put_frame(now, "secretive", CLUSTERS, NAME, "secret", frame(CLUSTERS, NAME, "secret"));
        let node = |id: &str| Node { id: id.into(), cluster: id.into(), ..Node::default() };
        let [one, other] = ["secretive", "nosy"].map(|id| world.client_with(relay, downstream, &node(id)));
        for client in [one, other] {
            world.subscribe(client, CLUSTERS, &[NAME, "*", &NAME.replace("/x", "/*")]);
        }
        world.advance(60 * SECOND);
        assert_eq!(world.clients[one].held(CLUSTERS), [format!("{NAME}@secret")]);
        assert_eq!(world.clients[other].held(CLUSTERS), [""; 0]);
    }
}

#[test]
fn an_origin_that_says_nothing_for_15_seconds_is_remarked_on() {
    let mut world = World::new(DELTA);
    world.origins[0].silent = true;
    let client = world.client(DELTA, "n");
    world.subscribe(client, CLUSTERS, &["*"]);
    let hint = |world: &World| {
        let dump = world.relays[0].core.config_dump(world.now);
        dump.origins[0].streams[0].hint.clone()
    };
    world.advance(14 * SECOND);
    assert_eq!(hint(&world), None);
    world.advance(2 * SECOND);
    assert!(hint(&world).is_some_and(|hint| hint.contains("xdstp: by_node")));
    world.origins[0].silent = false;
    world.advance(SECOND);
    assert_eq!(hint(&world), None);
}
