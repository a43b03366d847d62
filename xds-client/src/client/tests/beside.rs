//! What is said beside the names that are watched: sources, attributes; and that nothing is said by authorities.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use futures_core::Stream;

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

#[test]
fn tp1_a_watch_on_demand_waits_for_its_attributes_and_nobody_is_asked_before() {
    let world = World::new();
    let name = xdstp("a", CDS, "foo");
    let with = format!("{name}?xds.resource.port=80&xds.resource.vip=96.54.3.1");
    world.put(CDS, &with, "1");
    let of_port = world.client.with_attributes([("port", "80"), ("vip", "of nobody")]);
    let (on_demand, mut watch) = of_port.watch_on_demand_as::<Cluster>(&name);
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    assert!(Pin::new(&mut watch).poll_next(&mut Context::from_waker(&waker)).is_pending());
    world.network.settle();
    assert_eq!((world.network.dialed(), watch.interest().is_none(), watch.is_stale()), (0, true, false));
    on_demand.ask([("vip", "96.54.3.1")]);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    world.network.settle();
    assert_eq!(world.top().take_asked(), [format!("+{with}")], "whether anybody looked or not");
    assert_eq!(heard(&mut watch), [format!("put {with} 1")]);
    drop(watch);
    world.network.settle();
    assert_eq!(world.top().take_asked(), [format!("-{with}")]);

    let (on_demand, watch) = of_port.watch_on_demand(CDS, &name);
    drop(watch);
    on_demand.ask([("vip", "1.2.3.4")]);
    let (on_demand, mut never) = of_port.watch_on_demand(CDS, &name);
    drop(on_demand);
    assert_eq!(heard(&mut never), [format!("failed all: {name}: nobody said what its attributes are")]);
    world.network.settle();
    assert_eq!(world.top().take_asked(), [""; 0]);
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
