//! What a client tells of itself (gRFC A40, rules 73–75): S71 to S75.

use xds_transport::wire::Node;
use xds_transport::wire::client_status::{ClientResourceStatus as Is, GenericXdsConfig};

use super::*;
use prost::Message as _;

fn shown(world: &World, name: &str) -> GenericXdsConfig {
    let mut all = world.client.status(true).generic_xds_configs;
    all.retain(|config| config.name == name);
    assert_eq!(all.len(), 1, "{name}");
    all.remove(0)
}

#[test]
fn s071_and_s072_each_resource_goes_from_requested_to_acked_whoever_has_it() {
    everywhere(|world, type_url, name| {
        world.top().be_silent(true);
        let _watch = world.watch_raw(type_url, name);
        let asked = shown(world, name);
        assert_eq!((asked.client_status(), asked.type_url.as_str()), (Is::Requested, type_url));
        assert_eq!((asked.last_updated, asked.xds_config.len()), (None, 0));
        world.top().be_silent(false);
        world.put(type_url, name, "1");
        let there = shown(world, name);
        assert_eq!((there.client_status(), there.version_info.as_str()), (Is::Acked, "1"));
        let any = xds_transport::wire::Any::decode(there.xds_config).unwrap();
        assert_eq!((any.type_url.as_str(), &any.value[..]), (type_url, &message(name, "1")[..]), "as it came");
        assert!(there.last_updated.is_some() && there.error_state.is_none());
    });
    let world = World::new();
    let elsewhere = xdstp("other", CDS, "y");
    world.put(CDS, "x", "1");
    world.put_other(CDS, &elsewhere, "2");
    let _watches = [world.watch("x"), world.watch(&elsewhere)];
    assert_eq!(shown(&world, "x").version_info, "1");
    assert_eq!(shown(&world, &elsewhere).version_info, "2");
    let status = world.client.status(false);
    assert!(status.generic_xds_configs.iter().all(|config| config.xds_config.is_empty()), "without contents");
    assert_eq!(Node::decode(status.node).unwrap().id, "me", "the node as it was sent");
}

/// Each has a state of its own of what both ask for, at one server and at several.
#[test]
fn s071_and_s072_of_two_clients_each_shows_what_it_has_of_one_server_and_of_several() {
    let world = World::new();
    let elsewhere = xdstp("other", CDS, "y");
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let bootstrap =
        Bootstrap::new(server(TOP)).with_authority("other", Authority::default().with_server(server(OTHER)));
    let two = World {
        network: world.network.clone(),
        client: Client::builder(bootstrap).transport(world.network.clone()).build().unwrap(),
    };
    let states = |name: &str| [shown(&world, name).client_status(), shown(&two, name).client_status()];
    world.top().be_silent(true);
    world.network.server(OTHER).be_silent(true);
    let names = ["x", &elsewhere];
    let _of_one = names.map(|name| world.watch(name));
    let mut of_two = names.map(|name| two.watch(name));
    assert_eq!(names.map(states), [[Is::Requested; 2]; 2]);
    world.top().be_silent(false);
    world.put(CDS, "x", "1");
    assert_eq!(names.map(states), [[Is::Acked; 2], [Is::Requested; 2]], "who else is silent is nothing to it");
    world.network.server(OTHER).be_silent(false);
    world.put_other(CDS, &elsewhere, "1");
    assert_eq!(names.map(states), [[Is::Acked; 2]; 2]);
    // One is left without its server's answer, and only that one shows it.
    of_two[0] = two.watch("z");
    assert!(two.client.status(true).generic_xds_configs.iter().any(|of| of.client_status() == Is::DoesNotExist));
    assert!(world.client.status(true).generic_xds_configs.iter().all(|of| of.client_status() == Is::Acked));
}

#[test]
fn s073_and_s075_of_what_is_refused_the_old_is_shown_and_what_is_wrong_with_the_new() {
    let world = World::new();
    world.put(CDS, "x", "1");
    let _watches = [world.watch("x"), world.watch("y")];
    world.put(CDS, "x", "bad");
    let refused = shown(&world, "x");
    assert_eq!((refused.client_status(), refused.version_info.as_str()), (Is::Nacked, "1"));
    let error = refused.error_state.unwrap();
    assert_eq!((error.version_info.as_str(), error.details.as_str()), ("bad", "bad is bad"));
    assert!(!refused.xds_config.is_empty());
    world.put(CDS, "y", "bad, too");
    let never_had = shown(&world, "y");
    assert_eq!((never_had.client_status(), never_had.version_info.as_str()), (Is::Nacked, ""));
    world.put(CDS, "x", "2");
    let good = shown(&world, "x");
    assert_eq!((good.client_status(), good.version_info.as_str(), good.error_state), (Is::Acked, "2", None));
}

#[test]
fn s074_each_type_is_shown_as_asked_for_and_then_as_it_came_beside_what_is_not_watched() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let all = || {
            let configs = world.client.status(true).generic_xds_configs;
            let words = |config: GenericXdsConfig| {
                let short = config.type_url.rsplit('.').next().unwrap().to_owned();
                let (is, version) = (config.client_status(), config.version_info);
                (short, config.name, is, version, config.xds_config.is_empty())
            };
            configs.into_iter().map(words).collect::<Vec<_>>()
        };
        let expected = |is: Is, version: &str| {
            let types = ["Cluster", "ClusterLoadAssignment", "Listener", "RouteConfiguration"];
            let named = types.iter().flat_map(|of| ["x", "y"].map(|name| ((*of).to_owned(), name.to_owned())));
            named.map(|(of, name)| (of, name, is, version.to_owned(), version.is_empty())).collect::<Vec<_>>()
        };
        let sorted = || {
            let mut all = all();
            all.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
            all
        };
        assert!(all().is_empty(), "nothing is watched");
        world.top().be_silent(true);
        let mut watches = TYPES.map(|type_url| ["x", "y"].map(|name| world.watch_raw(type_url, name)));
        assert_eq!(sorted(), expected(Is::Requested, ""), "{protocol:?}");
        world.top().be_silent(false);
        for (type_url, name) in TYPES.iter().flat_map(|of| ["x", "y", "z"].map(|name| (of, name))) {
            world.put(type_url, name, "1");
        }
        assert_eq!(sorted(), expected(Is::Acked, "1"), "{protocol:?}");
        for watch in watches.as_flattened_mut() {
            assert_eq!(heard(watch).last().map(|told| told.starts_with("put ")), Some(true));
        }
        let asked = wire::requests(&world.top(), protocol);
        for type_url in TYPES {
            let of_type = asked.iter().filter(|request| request.type_url == type_url);
            let names: std::collections::BTreeSet<_> = of_type.flat_map(|request| request.names.clone()).collect();
            assert_eq!(names.into_iter().collect::<Vec<_>>(), ["x", "y"], "{protocol:?} {type_url}");
        }
    }
}

#[test]
fn r074_the_scope_of_a_client_and_the_time_of_an_error_are_told() {
    let world = World::new();
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure));
    let named = Client::builder(bootstrap).client_scope("xds:///web").transport(world.network.clone()).build().unwrap();
    assert_eq!(named.status(false).client_scope, "xds:///web");
    assert_eq!(world.client.status(false).client_scope, "");
    world.put(CDS, "x", "bad");
    let _watches = [world.watch("x"), world.watch("y")];
    for name in ["x", "y"] {
        let shown = shown(&world, name);
        let at = shown.error_state.map(|error| error.last_update_attempt.unwrap().seconds);
        assert_eq!(at.is_some(), name == "x", "what was never there has no error");
        assert!(at.is_none_or(|at| at > 0));
    }
}

#[test]
fn r074_what_does_not_exist_does_not_come_or_is_not_given_is_shown_so() {
    for (features, is) in [(KEEPS, Is::DoesNotExist), (WAITS, Is::Timeout)] {
        let world = World::of(Protocol::Delta, features);
        world.top().be_silent(true);
        let _watch = world.watch("x");
        world.network.pass(Duration::from_secs(30));
        assert_eq!(shown(&world, "x").client_status(), is);
    }
    let world = World::new();
    let _watch = world.watch("x");
    assert_eq!(shown(&world, "x").client_status(), Is::DoesNotExist);
    world.top().fail(CDS, "x", 7, "it is secret");
    world.network.settle();
    let denied = shown(&world, "x");
    assert_eq!(denied.client_status(), Is::ReceivedError);
    assert_eq!(denied.error_state.unwrap().details, "it is secret");
}

#[test]
fn r074_the_members_of_a_collection_are_shown_and_what_nobody_watches_is_not() {
    let world = World::new();
    let [x, y] = ["dir/x", "dir/y"].map(|id| xdstp("a", CDS, id));
    world.put(CDS, &x, "1");
    let watch = world.watch(&xdstp("a", CDS, "dir/*"));
    assert_eq!(shown(&world, &x).client_status(), Is::Acked);
    world.put(CDS, &x, "bad");
    assert_eq!(shown(&world, &x).client_status(), Is::Nacked);
    world.put(CDS, &y, "bad");
    assert_eq!(shown(&world, &y).client_status(), Is::Nacked);
    drop(watch);
    world.network.settle();
    // The first look sees that nobody is left, and the second that nobody came.
    for _ in 0..2 {
        world.client.sweep(world.network.now());
        world.network.pass(Duration::from_secs(60));
    }
    assert!(world.client.status(true).generic_xds_configs.is_empty());
}

#[test]
fn s076_who_watches_nothing_has_nothing() {
    assert!(World::new().client.status(true).generic_xds_configs.is_empty());
}

#[test]
fn r012_and_r013_the_node_says_who_the_client_is_and_what_it_can_do() {
    let bootstrap = r#"{
        "xds_servers": [{ "server_uri": "top:1", "channel_creds": [{ "type": "insecure" }] }],
        "node": { "id": "me", "user_agent_name": "not this", "client_features": ["nor.this"], "locality": { "zone": "z" } }
    }"#;
    let bootstrap = Bootstrap::from_json(bootstrap).unwrap();
    let client = Client::builder(bootstrap).transport(Network::new(now())).user_agent("mesh", "7").build().unwrap();
    let node = Node::decode(client.status(false).node).unwrap();
    assert_eq!((node.id.as_str(), node.locality.unwrap_or_default().zone.as_str()), ("me", "z"));
    assert_eq!(node.user_agent_name, "mesh");
    let own = ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"];
    assert_eq!(node.client_features, own);

    let more = "envoy.lb.does_not_support_overprovisioning";
    let bootstrap = Bootstrap::new(Server::new(TOP, ChannelCreds::Insecure));
    let client = Client::builder(bootstrap).transport(Network::new(now())).client_feature(more).build().unwrap();
    let node = Node::decode(client.status(false).node).unwrap();
    assert_eq!(node.client_features, [own[0], own[1], more]);
}
