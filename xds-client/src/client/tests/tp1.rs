//! The examples of TP1, as they are written there, but for what stands in resources: who is asked for what, in which order, and
//! what the watch yields.

use super::lists::{collection, elsewhere, inline_of};
use super::*;

const LISTENER: &str = "type.googleapis.com/envoy.config.listeners.v3.Listener";
const LISTENERS: &str = "type.googleapis.com/envoy.config.listeners.v3.ListenerCollection";

fn world() -> World {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    let authority = |uri| Authority::default().with_server(server(uri));
    let bootstrap = Bootstrap::new(server(TOP))
        .with_authority("some-authority", Authority::default())
        .with_authority("some-cloud-authority", Authority::default())
        .with_authority("some-onprem-authority", authority(OTHER));
    let network = Network::new(now());
    let client = Client::builder(bootstrap).transport(network.clone()).build().unwrap();
    World { network, client }
}

#[test]
fn tp1_a_singleton_is_asked_for_by_its_name() {
    const FOO: &str = "xdstp://some-authority/envoy.config.endpoint.v3.ClusterLoadAssignment/foo";
    let world = world();
    world.put(EDS, FOO, "1");
    let mut watch = world.watch_raw(EDS, FOO);
    assert_eq!(world.follow(&mut watch), [format!("put {FOO} 1")]);
    assert_eq!(world.top().take_asked(), [format!("+{FOO}")]);
}

#[test]
fn tp1_a_list_collection_is_asked_for_and_then_its_members_as_singletons() {
    const FOO: &str = "xdstp://some-authority/envoy.config.listeners.v3.ListenerCollection/foo";
    const BAR: &str = "xdstp://some-authority/envoy.config.listeners.v3.Listener/bar";
    const BAZ: &str = "xdstp://some-authority/envoy.config.listeners.v3.Listener/baz";
    let world = world();
    world.top().put(LISTENERS, FOO, "1", &collection(&[elsewhere(BAR), elsewhere(BAZ)]));
    world.put(LISTENER, BAR, "1");
    world.put(LISTENER, BAZ, "1");
    let mut watch = world.watch_raw(LISTENER, FOO);
    assert_eq!(world.top().take_asked(), [format!("+{FOO}")]);
    assert_eq!(world.follow(&mut watch), [format!("put {BAR} 1"), format!("put {BAZ} 1"), "answered".into()]);
    assert_eq!(world.top().take_asked(), [format!("+{BAR}"), format!("+{BAZ}")]);
}

#[test]
fn tp1_a_list_collection_with_inlining_takes_one_request_and_its_first_entry_has_a_reference() {
    const FOO: &str = "xdstp://some-authority/envoy.config.listeners.v3.ListenerCollection/foo";
    let world = world();
    let entries = [inline_of(LISTENER, "bar", "8.5.4"), inline_of(LISTENER, "", "3.9.0")];
    world.top().put(LISTENERS, FOO, "1", &collection(&entries));
    let mut watch = world.watch_raw(LISTENER, FOO);
    let told = world.follow(&mut watch);
    assert_eq!((told.len(), told[0].as_str()), (3, "put bar 8.5.4"), "{told:?}");
    assert!(told[1].ends_with(" 3.9.0") && told[2] == "answered", "{told:?}");
    let mut bar = world.watch_raw(LISTENER, &format!("{FOO}#entry=bar"));
    assert_eq!(world.follow(&mut bar), ["put bar 8.5.4"]);
    assert_eq!(world.top().take_asked(), [format!("+{FOO}")]);
}

#[test]
fn tp1_a_glob_collection_has_members_and_one_of_them_is_redirected() {
    const GLOB: &str = "xdstp://some-authority/envoy.config.listeners.v3.Listener/my-listeners/*?node_type=ingress";
    const FOO: &str = "xdstp://some-authority/envoy.config.listeners.v3.Listener/my-listeners/foo?node_type=ingress";
    const BAR: &str = "xdstp://some-authority/envoy.config.listeners.v3.Listener/my-listeners/bar?node_type=ingress";
    const BAZ: &str = "xdstp://some-authority/envoy.config.listeners.v3.Listener/baz";
    let world = world();
    world.put(LISTENER, FOO, "1");
    world.put(LISTENER, BAZ, "7");
    world.top().redirect(LISTENER, BAR, "42", BAZ);
    let mut watch = world.watch_raw(LISTENER, GLOB);
    world.network.pass(Duration::from_secs(1));
    let mut told = world.follow(&mut watch);
    assert_eq!(told.pop().unwrap(), "answered");
    told.sort();
    assert_eq!(told, [format!("put {BAR} 7"), format!("put {FOO} 1")]);
    assert_eq!(world.top().take_asked(), [format!("+{GLOB}"), format!("+{BAZ}")]);
}

#[test]
fn tp1_an_alternative_is_asked_for_when_the_cloud_is_unreachable() {
    const FOO: &str = "xdstp://some-cloud-authority/envoy.config.endpoint.v3.ClusterLoadAssignment/foo";
    const BAR: &str = "xdstp://some-onprem-authority/envoy.config.endpoint.v3.ClusterLoadAssignment/bar";
    let locator = format!("{FOO}#alt={BAR}");
    let world = world();
    world.put(EDS, FOO, "1");
    world.put_other(EDS, BAR, "2");
    let mut watch = world.watch_raw(EDS, &locator);
    assert_eq!(world.follow(&mut watch), [format!("put {FOO} 1")]);
    assert_eq!(world.top().take_asked(), [format!("+{FOO}")]);
    assert!(world.other().take_asked().is_empty(), "under normal conditions");

    let world = self::world();
    world.put_other(EDS, BAR, "2");
    world.top().go_down("a partition");
    world.network.pass(Duration::from_secs(200));
    let mut watch = world.watch_raw(EDS, &locator);
    assert_eq!(world.follow(&mut watch), [format!("put {FOO} 2")]);
    assert_eq!(world.other().take_asked(), [format!("+{BAR}")]);
}
