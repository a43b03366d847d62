//! Watches of one name that ask with different parameters (TP2).

use xds_matcher::draft::Subscription;
use xdstp_cache::{Selector, Variant};

use super::*;

/// A world whose servers speak this form of TP2, and whose old-style names and authority `a` have parameters.
fn world(protocol: Protocol, draft: bool) -> World {
    let mut features = KEEPS;
    features.draft_dynamic_parameters = draft;
    let server = |uri| Server::new(uri, ChannelCreds::Insecure).with_features(features);
    let bootstrap = Bootstrap::new(server(TOP))
        .with_parameter("env", "prod")
        .with_authority("a", Authority::default().with_parameter("env", "test"))
        .with_authority("b", Authority::default());
    World::with(protocol, bootstrap)
}

/// A variant of the final form.
fn constraints(text: &str) -> Variant {
    Variant::Constraints(text.parse().unwrap())
}

/// A variant of the draft.
fn parameters<const N: usize>(of: [(&str, &str); N]) -> Variant {
    Variant::Parameters(of.into_iter().collect())
}

/// What a client of the draft selects by.
fn selector(text: &str) -> Selector {
    Subscription::where_present(&text.parse().unwrap()).unwrap().into()
}

fn put(world: &World, name: &str, variant: &Variant, version: &str) {
    world.top().put_variant(CDS, (name, variant), version, &message(name, version));
    world.network.settle();
}

#[test]
fn r085_a_name_that_is_asked_for_in_two_ways_is_two_and_each_hears_of_its_own() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = world(protocol, false);
        let name = xdstp("b", CDS, "x");
        let [one, two] = ["1", "2"].map(|shard| constraints(&format!("shard={shard}")));
        put(&world, &name, &one, "one");
        put(&world, &name, &two, "two");
        let mut watches = ["1", "2", "1"].map(|shard| world.client.selecting([("shard", shard)]).watch(CDS, &name));
        let mut plain = world.watch_raw(CDS, &name);
        world.network.pass(PATIENCE);
        let mut asked = world.top().take_asked();
        asked.sort();
        if protocol == Protocol::Sotw {
            // Each is named again to acknowledge what came.
            asked.dedup();
        }
        let sign = if protocol == Protocol::Delta { "+" } else { "" };
        let of = |shard| format!("{sign}{name} {{shard={shard}}}");
        assert_eq!(asked, [format!("{sign}{name}"), of(1), of(2)], "equal parameters share a subscription");
        assert_eq!(heard(&mut plain).len(), 1, "{protocol:?}: nothing is for it");
        assert_eq!(watches.each_mut().map(heard), ["one", "two", "one"].map(|of| [format!("put {name} {of}")]));

        put(&world, &name, &two, "three");
        let news: [Vec<String>; 3] = watches.each_mut().map(heard);
        assert_eq!(news, [vec![], vec![format!("put {name} three")], vec![]]);
        // One of them is left, and the others are as they were.
        let [first, _second, last] = watches;
        drop(first);
        world.network.settle();
        put(&world, &name, &one, "four");
        let mut last = last;
        assert_eq!(heard(&mut last), [format!("put {name} four")]);
    }
}

#[test]
fn r085_names_are_asked_for_with_what_the_bootstrap_says_of_their_authority_and_a_watch_counts_before_it() {
    let world = world(Protocol::Delta, false);
    let names = ["x".to_owned(), xdstp("a", CDS, "x"), xdstp("b", CDS, "x")];
    let _watches: Vec<_> = names.iter().map(|name| world.watch_raw(CDS, name)).collect();
    let of = |name: &str, parameters: &str| format!("+{name}{parameters}");
    let mut asked = world.top().take_asked();
    asked.sort();
    // gRFC A67: what the top says is not said of authorities.
    let mut expected = [of("x", " {env=prod}"), of(&names[1], " {env=test}"), of(&names[2], "")];
    expected.sort();
    assert_eq!(asked, expected);

    let canary = world.client.selecting([("env", "canary"), ("zone", "1")]);
    let _watches: Vec<_> = names.iter().map(|name| canary.watch(CDS, name)).collect();
    world.network.settle();
    let mut asked = world.top().take_asked();
    asked.sort();
    let mut expected = names.each_ref().map(|name| of(name, " {env=canary, zone=1}"));
    expected.sort();
    assert_eq!(asked, expected);

    let zoned = world.client.selecting([("zone", "1")]);
    let _watch = zoned.watch(CDS, &names[1]);
    world.network.settle();
    assert_eq!(world.top().take_asked(), [of(&names[1], " {env=test, zone=1}")]);
}

#[test]
fn r085_a_redirect_is_followed_with_the_parameters_of_who_watches() {
    let world = World::new();
    let (from, to) = (xdstp("a", CDS, "from"), xdstp("b", CDS, "to"));
    world.top().redirect(CDS, &from, "1", &to);
    put(&world, &to, &constraints("env=canary"), "canary");
    let mut watch = world.client.selecting([("env", "canary")]).watch(CDS, &from);
    world.network.settle();
    assert_eq!(heard(&mut watch), [""; 0]);
    world.network.settle();
    assert_eq!(heard(&mut watch), [format!("put {from} canary")]);
}

#[test]
fn r085_constraints_go_to_servers_of_the_draft_and_the_largest_is_preferred() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = world(protocol, true);
        let name = xdstp("b", CDS, "x");
        for shard in ["3", "7"] {
            put(&world, &name, &parameters([("shard", shard)]), shard);
        }
        let ranged = world.client.selecting(selector("shard in 0..5"));
        let mut watch = ranged.watch(CDS, &name);
        let mut inverted = world.client.selecting(selector("not shard=3")).watch(CDS, &name);
        world.network.settle();
        assert_eq!(heard(&mut watch), [format!("put {name} 3")]);
        assert_eq!(heard(&mut inverted), [format!("put {name} 7")]);
        put(&world, &name, &parameters([("shard", "5")]), "5");
        assert_eq!(heard(&mut watch), [format!("put {name} 5")], "{protocol:?}: the larger one");
        put(&world, &name, &parameters([("shard", "4")]), "4");
        assert_eq!(heard(&mut watch), [""; 0], "{protocol:?}");
    }
}

#[test]
fn r085_what_the_form_of_a_server_has_no_words_for_is_refused_by_its_name() {
    let world = world(Protocol::Delta, false);
    for (text, key) in [("shard in 0..5", "shard"), ("not env=prod", "env")] {
        let mut watch = world.client.selecting(selector(text)).watch(CDS, &xdstp("b", CDS, "x"));
        let Some(Event::Failed { error: Error::Unusable { server, reason, .. }, .. }) = watch.try_next() else {
            panic!("{text}: {watch:?}")
        };
        assert_eq!(&*server, TOP);
        assert!(reason.contains(&format!("key_constraints[{key:?}]")), "{reason}");
    }
    world.network.settle();
    assert_eq!(world.top().streams(), 0);
    // Exact values it has words for.
    let mut watch = world.client.selecting(selector("env=canary")).watch(CDS, "x");
    put(&world, "x", &constraints("env=canary"), "1");
    assert_eq!(heard(&mut watch), ["put x 1"]);
}

#[test]
fn r085_what_is_asked_for_with_parameters_survives_a_stream_and_a_fallback() {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let bootstrap = Bootstrap::new(server(TOP)).with_server(server(OTHER));
    let world = World::with(Protocol::Delta, bootstrap);
    let canary = constraints("env=canary");
    put(&world, "x", &canary, "1");
    world.network.server(OTHER).put_variant(CDS, ("x", &canary), "2", &message("x", "2"));
    let client = world.client.selecting([("env", "canary")]);
    let mut watch = client.watch(CDS, "x");
    world.network.settle();
    assert_eq!(heard(&mut watch), ["put x 1"]);
    world.top().end_streams();
    world.network.pass(Duration::from_secs(5));
    assert_eq!(heard(&mut watch), [""; 0]);

    world.top().go_down("a partition");
    world.network.pass(Duration::from_secs(5));
    assert_eq!(heard(&mut watch), ["ambient all: unreachable (a partition)"]);
    let mut new = client.watch(CDS, "y");
    world.network.pass(Duration::from_secs(5));
    assert_eq!(heard(&mut watch).last().map(String::as_str), Some("put x 2"), "the other server has its own");
    assert_eq!(heard(&mut new), ["failed y: absent"]);
}
