//! Whether what a server says may set what concerns security (gRFC A81, rule 11).

use super::*;

/// A cluster, and whether its server may set what concerns security.
#[derive(Debug, PartialEq)]
struct Trusting(bool);

impl Resource for Trusting {
    fn type_url() -> String {
        CDS.into()
    }

    fn decode(_: Bytes) -> Result<Self, Reason> {
        Ok(Self(false))
    }

    fn decode_trusted(_: Bytes) -> Result<Self, Reason> {
        Ok(Self(true))
    }
}

/// Of each resource that a watch hears of, whether it was read as that of a trusted server.
fn trusts(watch: &mut Watch<Trusting>) -> Vec<bool> {
    let of = |event| match event {
        Event::Put { resource, .. } => Some(std::sync::Arc::<Trusting>::as_ref(&resource).0),
        _ => None,
    };
    std::iter::from_fn(|| watch.try_next()).filter_map(of).collect()
}

fn trusted(protocol: Protocol) -> World {
    let world = World::of(protocol, Features { trusted_xds_server: true, ..KEEPS });
    world.put(CDS, "x", "1");
    world
}

#[test]
fn r011_what_a_trusted_server_sends_is_read_as_that_over_either_protocol() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = trusted(protocol);
        let mut watch = world.client.watch_as("x");
        world.network.settle();
        assert_eq!(trusts(&mut watch), [true], "{protocol:?}");
        world.put(CDS, "x", "2");
        assert_eq!(trusts(&mut watch), [true], "{protocol:?}");
        assert_eq!(trusts(&mut world.client.watch_as("x")), [true], "{protocol:?}: who comes late has the same");
        let plain = World::of(protocol, KEEPS);
        plain.put(CDS, "x", "1");
        let mut watch = plain.client.watch_as("x");
        plain.network.settle();
        assert_eq!(trusts(&mut watch), [false], "{protocol:?}");
    }
}

/// Who sent it is not known any more, and to trust nobody is safe.
#[test]
fn r011_what_is_read_later_than_it_came_is_read_as_that_of_a_server_that_is_not_trusted() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        // Nobody had it read when it came, or somebody as something else.
        for others in [[true, false], [false, true]] {
            let world = trusted(protocol);
            let _raw = others[0].then(|| world.watch_raw(CDS, "x"));
            let _other = others[1].then(|| world.watch("x"));
            let mut watch = world.client.watch_as("x");
            assert_eq!(trusts(&mut watch), [false], "{protocol:?}");
            world.put(CDS, "x", "2");
            // What comes from now on is read when it comes by the first who has a use for it.
            assert_eq!(trusts(&mut watch), [others[0]], "{protocol:?}");
        }
    }
}

#[test]
fn r011_a_resource_is_read_as_that_of_a_server_that_is_trusted_or_not() {
    let mut trusted = KEEPS;
    trusted.trusted_xds_server = true;
    let server = |uri, features| Server::new(uri, ChannelCreds::Insecure).with_features(features);
    let bootstrap = Bootstrap::new(server(TOP, trusted)).with_server(server(OTHER, KEEPS));
    let world = World::with(Protocol::Delta, bootstrap);
    for server in [world.top(), world.network.server(OTHER)] {
        server.put(CDS, "x", "1", &message("x", "1"));
    }
    let mut watch = world.client.watch_as::<Trusting>("x");
    world.network.settle();
    let is_trusted = |watch: &mut Watch<Trusting>| match watch.try_next() {
        Some(Event::Put { resource, .. }) => Some(resource.0),
        _ => None,
    };
    assert_eq!(is_trusted(&mut watch), Some(true));

    // The next server has the same, and is not trusted.
    world.top().go_down("a partition");
    let mut other = world.client.watch_as::<Trusting>("y");
    world.network.server(OTHER).put(CDS, "y", "1", &message("y", "1"));
    world.network.pass(Duration::from_secs(10));
    let told = std::iter::from_fn(|| other.try_next()).find_map(|event| match event {
        Event::Put { resource, .. } => Some(resource.0),
        _ => None,
    });
    assert_eq!(told, Some(false));
}
