use super::*;

#[test]
fn s064_an_authority_that_is_not_configured_is_that_watchs_error_at_once_and_nobody_is_asked() {
    let world = World::new();
    let mut watch = world.client.watch_as::<Cluster>(&xdstp("unknown", CDS, "x"));
    assert_eq!(heard(&mut watch), ["failed all: authority \"unknown\" is not in the bootstrap (as node \"me\")"]);
    assert!(watch.interest().is_none() && watch.status().is_none());
    world.network.settle();
    assert_eq!(world.network.dialed(), 0);
}

#[test]
fn r022_a_name_of_another_type_and_what_is_no_name_are_errors_at_once() {
    let world = World::new();
    let mut watch = world.client.watch_as::<Cluster>(&xdstp("a", EDS, "x"));
    let told = "failed all: it is the name of a envoy.config.endpoint.v3.ClusterLoadAssignment, not of a \
                envoy.config.cluster.v3.Cluster";
    assert_eq!(heard(&mut watch), [told]);
    assert!(matches!(
        world.client.watch(CDS, "xdstp://a").try_next(),
        Some(Event::Failed { error: Error::BadName { .. }, .. })
    ));
    assert_eq!(world.network.dialed(), 0);
}

/// A server ends a stream that asks for these, and with it the watches of others.
#[test]
fn r022_an_empty_name_or_type_is_an_error_at_once_and_nobody_else_s() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut good = world.watch("x");
        let mut bad = [(CDS, ""), ("", "x"), ("", "")].map(|(of, name)| world.watch_raw(of, name));
        let told = "failed all: a name and a type have a letter at least";
        assert_eq!(bad.each_mut().map(heard), [[told]; 3]);
        world.put(CDS, "x", "2");
        assert_eq!((heard(&mut good), world.top().opened()), (vec!["put x 2".to_owned()], 1), "{protocol:?}");
    }
}

#[test]
fn s060_to_s063_names_that_differ_in_the_order_of_parameters_are_one() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for type_url in TYPES {
            let world = World::of(protocol, KEEPS);
            let name = |parameters: &str| format!("{}?{parameters}", xdstp("a", type_url, "x"));
            world.put(type_url, &name("k=1&l=2"), "1");
            let [mut one, mut other] = ["k=1&l=2", "l=2&k=1"].map(|of| world.client.watch(type_url, &name(of)));
            world.network.settle();
            assert_eq!(heard(&mut one), [format!("put {} 1", name("k=1&l=2"))]);
            assert_eq!(heard(&mut other), [format!("put {} 1", name("k=1&l=2"))]);
            let asked = world.top().take_asked();
            let name = name("k=1&l=2");
            assert!(asked.iter().all(|asked| asked.is_empty() || asked.trim_start_matches('+') == name), "{asked:?}");
            assert!(!asked.is_empty());
        }
    }
}

/// Neither order is that of the sorted form.
#[test]
fn r021_what_a_server_names_with_its_parameters_in_another_order_is_what_was_asked_for() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.top().be_silent(true);
        let name = |parameters: &str| format!("{}?{parameters}", xdstp("a", CDS, "x"));
        let mut watch = world.watch(&name("m=3&l=2&k=1"));
        assert_eq!(world.top().take_asked().last().unwrap().trim_start_matches('+'), name("k=1&l=2&m=3"));
        let answered = name("l=2&m=3&k=1");
        let resources = [wire::wrapper(&answered, "1", wire::body(CDS, &answered, "1"))];
        world.top().send(&wire::response(protocol, CDS, ("1", "n1"), &resources));
        world.network.settle();
        assert_eq!(heard(&mut watch), [format!("put {} 1", name("k=1&l=2&m=3"))], "{protocol:?}");
        if protocol == Protocol::Delta {
            let gone = xds_transport::wire::DeltaDiscoveryResponse {
                type_url: CDS.into(),
                nonce: "n2".into(),
                removed_resources: vec![name("m=3&k=1&l=2")],
                ..Default::default()
            };
            world.top().send(&prost::Message::encode_to_vec(&gone));
            world.network.settle();
            assert_eq!(heard(&mut watch), [format!("ambient {}: absent", name("k=1&l=2&m=3"))]);
        }
    }
}

#[test]
fn r023_old_style_names_and_those_of_the_empty_authority_are_apart() {
    let world = World::new();
    let name = xdstp("", CDS, "x");
    world.put(CDS, &name, "1");
    let (mut empty, mut old) = (world.watch(&name), world.watch("x"));
    assert_eq!(heard(&mut empty), [format!("put {name} 1")]);
    assert_eq!(heard(&mut old), ["failed x: absent"]);
}

#[test]
fn r017_the_servers_of_an_authority_are_asked_for_its_names_and_no_others() {
    let world = World::new();
    let name = xdstp("other", CDS, "x");
    let other = world.network.server(OTHER);
    world.top().put(CDS, &name, "wrong", &message(&name, "wrong"));
    other.put(CDS, &name, "right", &message(&name, "right"));
    let (mut watch, _old) = (world.watch(&name), world.watch("y"));
    assert_eq!(heard(&mut watch), [format!("put {name} right")]);
    assert_eq!((other.take_asked(), world.top().take_asked()), (vec![format!("+{name}")], vec!["+y".to_owned()]));
}
