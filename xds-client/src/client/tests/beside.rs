//! What is said beside the names that are watched: sources, attributes; and that nothing is said by authorities.

use super::*;
use crate::{AdjacentSource, ConfigSource};

/// The `config_source` of a resource that has names of these authorities.
fn adjacent(authorities: &[&str]) -> AdjacentSource {
    AdjacentSource { source: ConfigSource::Ads, authorities: authorities.iter().map(ToString::to_string).collect() }
}

#[test]
fn r029_a_source_beside_a_name_counts_before_the_bootstrap_for_the_authorities_that_it_lists() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        let [parent, listed, unlisted, unknown] =
            [("a", "x"), ("other", "y"), ("b", "z"), ("nowhere", "u")].map(|(authority, id)| xdstp(authority, CDS, id));
        for (server, version) in [(world.top(), "of top"), (world.other(), "of other")] {
            for name in [&parent, &listed, &unlisted, &unknown] {
                server.put(CDS, name, version, &message(name, version));
            }
        }
        let first = world.watch(&parent);
        let beside = world.client.beside(&adjacent(&["other", "nowhere"]), &first);
        let mut watches = [&listed, &unlisted, &unknown].map(|name| beside.watch_as::<Cluster>(name));
        // Who does not name it is asked as otherwise, at the same time.
        let mut others = [&listed, &unlisted, &unknown].map(|name| world.client.watch_as::<Cluster>(name));
        world.network.settle();
        let put = |name: &str, version: &str| vec![format!("put {name} {version}")];
        let told = watches.each_mut().map(|watch| world.follow(watch));
        assert_eq!(told, [put(&listed, "of top"), put(&unlisted, "of top"), put(&unknown, "of top")], "{protocol:?}");
        let told = others.each_mut().map(|watch| world.follow(watch));
        assert_eq!(told[..2], [put(&listed, "of other"), put(&unlisted, "of top")], "{protocol:?}");
        assert!(told[2][0].contains("is not in the bootstrap"), "{told:?}");
        assert_eq!([&watches[0], &others[0]].map(|watch| watch.server().unwrap()), [TOP, OTHER].map(Into::into));

        // Each goes its own way.
        world.put_other(CDS, &listed, "newer");
        assert_eq!(world.follow(&mut others[0]), put(&listed, "newer"), "{protocol:?}");
        assert_eq!(world.follow(&mut watches[0]), [""; 0], "{protocol:?}");
        world.top().remove(CDS, &listed);
        world.network.settle();
        assert_eq!(world.follow(&mut others[0]), [""; 0], "{protocol:?}");
        // What stands beside a name of that is where that is.
        let again = beside.beside(&adjacent(&["further"]), &watches[0]);
        let further = xdstp("further", CDS, "f");
        world.put(CDS, &further, "1");
        assert_eq!(world.follow(&mut again.watch_as::<Cluster>(&further)), put(&further, "1"), "{protocol:?}");
    }
}

#[test]
fn r029_servers_of_an_adjacent_source_fail_over_as_their_list_does() {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let bootstrap = Bootstrap::new(server(TOP)).with_server(server("second:1"));
    let world = World::with(Protocol::Delta, bootstrap);
    let name = xdstp("listed", CDS, "x");
    world.network.server("second:1").put(CDS, &name, "1", &message(&name, "1"));
    world.top().go_down("away");
    let parent = world.watch("p");
    let mut watch = world.client.beside(&adjacent(&["listed"]), &parent).watch_as::<Cluster>(&name);
    world.network.pass(Duration::from_secs(5));
    assert_eq!(world.follow(&mut watch), [format!("put {name} 1")]);
    assert_eq!(watch.server().as_deref(), Some("second:1"));
}

#[test]
fn tp1_attributes_are_parameters_of_what_is_watched_and_of_its_alternative() {
    let world = World::new();
    let of_vip = world.client.with_attributes([("vip", "96.54.3.1")]);
    let _watch = of_vip.watch_as::<Cluster>(&format!("{}?bar=baz", xdstp("a", CDS, "foo")));
    let _list = of_vip.watch_as::<Cluster>(&xdstp("b", "x/envoy.config.cluster.v3.ClusterCollection", "all"));
    let alt = format!("{}#alt={}", xdstp("other", CDS, "foo"), xdstp("a", CDS, "bar"));
    world.other().go_down("away");
    let mut with_alt = of_vip.watch_as::<Cluster>(&alt);
    world.network.settle();
    world.follow(&mut with_alt);
    world.network.pass(Duration::from_secs(5));
    let expected = [
        format!("+{}?bar=baz&xds.resource.vip=96.54.3.1", xdstp("a", CDS, "foo")),
        "+xdstp://b/envoy.config.cluster.v3.ClusterCollection/all?xds.resource.vip=96.54.3.1".to_owned(),
        format!("+{}?xds.resource.vip=96.54.3.1", xdstp("a", CDS, "bar")),
    ];
    assert_eq!(world.top().take_asked(), expected);
    let mut old_style = of_vip.watch_as::<Cluster>("x");
    assert_eq!(heard(&mut old_style), ["failed all: only xdstp: names have attributes"]);
}

#[test]
fn without_federation_the_servers_at_the_top_are_asked_for_everything() {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let network = Network::new(now());
    let bootstrap =
        Bootstrap::new(server(TOP)).with_authority("other", Authority::default().with_server(server(OTHER)));
    let client = Client::builder(bootstrap).without_federation().transport(network.clone()).build().unwrap();
    let world = World { network, client };
    for name in ["x".to_owned(), xdstp("other", CDS, "x"), xdstp("nowhere", CDS, "x")] {
        world.put(CDS, &name, "1");
        assert_eq!(heard(&mut world.watch(&name)), [format!("put {name} 1")]);
    }
    assert_eq!((world.network.dialed(), world.other().opened()), (1, 0));
}
