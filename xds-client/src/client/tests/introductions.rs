//! From a bootstrap to what is on the wire: S115 to S118.

use xdstp_uri::a47::{Target, client_listener_name, server_listener_name};

use super::wire::requests;
use super::*;

fn world(bootstrap: &str) -> World {
    World::with(Protocol::Sotw, Bootstrap::from_json(bootstrap).unwrap_or_else(|error| panic!("{error}: {bootstrap}")))
}

/// The names that a server was asked for, each once.
fn asked(world: &World, uri: &str) -> Vec<String> {
    let requests = requests(&world.network.server(uri), Protocol::Sotw);
    let mut names: Vec<_> = requests.into_iter().flat_map(|request| request.names).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn s115_the_node_is_that_of_the_bootstrap_but_for_what_the_client_says_of_itself() {
    let world = world(
        r#"{
            "xds_servers": [{ "server_uri": "top:1", "channel_creds": [{ "type": "insecure" }] }],
            "node": {
                "id": "me", "cluster": "mine", "locality": { "region": "r", "zone": "z", "sub_zone": "s" },
                "metadata": { "k": "v" },
                "user_agent_name": "not this", "user_agent_version": "nor this", "client_features": ["nor.this"],
                "build_version": "nor this"
            }
        }"#,
    );
    let _watch = world.watch("x");
    let node = requests(&world.top(), Protocol::Sotw).remove(0).node.expect("the first request names the node");
    assert_eq!((node.id.as_str(), node.cluster.as_str()), ("me", "mine"));
    let locality = node.locality.unwrap();
    assert_eq!((&*locality.region, &*locality.zone, &*locality.sub_zone), ("r", "z", "s"));
    assert!(node.metadata.unwrap().fields.contains_key("k"));
    assert_eq!(
        (&*node.user_agent_name, &*node.user_agent_version),
        (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(node.client_features, ["xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"]);
}

#[test]
fn s116_servers_that_are_equal_are_one_stream_and_those_that_differ_in_features_or_credentials_are_not() {
    const PLAIN: &str = r#""channel_creds": [{ "type": "insecure" }]"#;
    let token = r#", "call_creds": [{ "type": "jwt_token_file", "config": { "jwt_token_file": "a" } }]"#;
    for (more, streams) in [
        ("", 1),
        (r#", "server_features": ["xds_v3", "new", 7], "new": {}"#, 1),
        (r#", "call_creds": [{ "type": "new" }]"#, 1),
        (r#", "server_features": ["fail_on_data_errors"]"#, 2),
        (r#", "server_features": ["trusted_xds_server"]"#, 2),
        (token, 2),
    ] {
        let world = world(&format!(
            r#"{{ "xds_servers": [{{ "server_uri": "top:1", {PLAIN} }}],
                  "authorities": {{ "a": {{ "xds_servers": [{{ "server_uri": "top:1", {PLAIN} {more} }}] }} }} }}"#
        ));
        let name = xdstp("a", CDS, "x");
        world.put(CDS, "x", "1");
        world.put(CDS, &name, "1");
        let (mut old, mut of_a) = (world.watch("x"), world.watch(&name));
        assert_eq!(
            (heard(&mut old), heard(&mut of_a)),
            (vec!["put x 1".into()], vec![format!("put {name} 1")]),
            "{more}"
        );
        assert_eq!(world.top().streams(), streams, "{more}");
        assert_eq!(asked(&world, TOP), ["x".to_owned(), name], "{more}");
    }
}

#[test]
fn s117_names_of_either_style_are_asked_for_as_they_are_and_what_is_no_name_is_not() {
    let top = World::of(Protocol::Sotw, KEEPS);
    // What is no URL of `xdstp:` is an old-style name, whatever it looks like.
    let names = ["x", "http://x/y?b=1&a=2", "a b%2G", "xds://a/b"];
    let asked_for: Vec<_> = names.iter().map(|name| top.watch(name)).collect();
    let mut expected = names.map(str::to_owned);
    expected.sort();
    assert_eq!(asked(&top, TOP), expected);
    drop(asked_for);

    let top = World::of(Protocol::Sotw, KEEPS);
    let name = |of: &str| of.replace("TYPE", "envoy.config.cluster.v3.Cluster");
    let sorted = name("xdstp://a/TYPE/x?a=1&b=2&c=3");
    let unsorted = name("xdstp://a/TYPE/x?c=3&a=1&b=2");
    let without = name("xdstp:///TYPE/x");
    for of in [&sorted, &without] {
        top.put(CDS, of, "1");
    }
    let mut watches = [&sorted, &unsorted, &without].map(|of| top.watch(of));
    assert_eq!(asked(&top, TOP), [without.clone(), sorted.clone()]);
    for (watch, of) in watches.iter_mut().zip([&sorted, &sorted, &without]) {
        assert_eq!(heard(watch), [format!("put {of} 1")]);
    }
    for no_name in ["xdstp:", "xdstp://a", "xdstp://a/", "xdstp:///", "xdstp://a//x"] {
        let mut watch = top.watch(no_name);
        let told = watch.try_next();
        assert!(
            matches!(told, Some(Event::Failed { name: None, error: Error::BadName { .. } })),
            "{no_name}: {told:?}"
        );
        assert!(watch.try_next().is_none(), "{no_name}");
    }
    assert!(top.top().take_requests().is_empty(), "what is no name is not asked for");
}

#[test]
fn s118_templates_make_names_of_addresses_of_either_family_and_keep_slashes() {
    let bootstrap = |of_servers: &str, of_clients: &str| {
        format!(
            r#"{{ "xds_servers": [{{ "server_uri": "top:1", "channel_creds": [{{ "type": "insecure" }}] }}],
                  "authorities": {{ "a": {{}} }},
                  "server_listener_resource_name_template": "{of_servers}",
                  "client_default_listener_resource_name_template": "{of_clients}" }}"#
        )
    };
    let new_style = "xdstp://a/envoy.config.listener.v3.Listener";
    for (template, address, name) in [
        ("server/%s", "1.2.3.4:80", "server/1.2.3.4:80".to_owned()),
        ("server/%s", "[::1]:80", "server/[::1]:80".to_owned()),
        (&*format!("{new_style}/s/%s"), "1.2.3.4:80", format!("{new_style}/s/1.2.3.4:80")),
        (&*format!("{new_style}/s/%s"), "[2001:db8::1]:80", format!("{new_style}/s/%5B2001:db8::1%5D:80")),
    ] {
        let text = bootstrap(template, "%s");
        let made = server_listener_name(&Bootstrap::from_json(&text).unwrap(), address).unwrap();
        assert_eq!(made, name);
        let world = world(&text);
        world.put(LDS, &made, "1");
        let mut watch = world.watch_raw(LDS, &made);
        assert_eq!((heard(&mut watch), asked(&world, TOP)), (vec![format!("put {name} 1")], vec![name]));
    }
    for (template, target, name) in [
        ("%s", "xds:///a/b", "a/b".to_owned()),
        (&*format!("{new_style}/c/%s"), "xds:///a/b", format!("{new_style}/c/a/b")),
        (&*format!("{new_style}/c/%s"), "xds:///a b", format!("{new_style}/c/a%20b")),
    ] {
        let text = bootstrap("%s", template);
        let target = Target::parse(target).unwrap_or_else(|error| panic!("{target}: {error}"));
        let made = client_listener_name(&Bootstrap::from_json(&text).unwrap(), &target).unwrap();
        assert_eq!(made, name);
        let world = world(&text);
        let _watch = world.watch_raw(LDS, &made);
        assert_eq!(asked(&world, TOP), [name]);
    }
}
