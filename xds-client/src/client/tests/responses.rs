//! Responses that a server sends by itself.

use xds_transport::wire::Resource as Wrapper;

use super::wire::{body, wrapper};
use super::*;

/// A response by itself, with what a delta server has of it.
pub(super) fn response(protocol: Protocol, type_url: &str, resources: &[Wrapper]) -> Vec<u8> {
    wire::response(protocol, type_url, ("2", "by itself"), resources)
}

#[test]
fn r035_empty_responses_are_acknowledged_and_those_of_other_types_are_not_answered() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(EDS, "x", "1");
        let mut watch = world.watch_raw(EDS, "x");
        assert_eq!(heard(&mut watch).len(), 1);
        world.top().take_asked();
        world.top().send(&response(protocol, EDS, &[]));
        world.network.settle();
        let acknowledged: &[&str] = if protocol == Protocol::Sotw { &["x"] } else { &[] };
        assert_eq!(
            (world.top().take_asked(), world.top().take_refused().len()),
            (acknowledged.iter().map(ToString::to_string).collect(), 0)
        );

        world.top().send(&response(protocol, LDS, &[wrapper("x", "1", body(LDS, "x", "1"))]));
        world.network.settle();
        assert_eq!((world.top().take_asked().len(), world.top().take_refused().len()), (0, 0), "{protocol:?}");
        assert_eq!((heard(&mut watch).len(), world.top().opened()), (0, 1));
    }
}

#[test]
fn r035_what_is_no_response_ends_its_stream_and_takes_nothing_away() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "x", "1");
        let mut watch = world.watch("x");
        assert_eq!(heard(&mut watch), ["put x 1"]);
        world.top().send(b"\xff");
        world.network.pass(Duration::from_secs(5));
        assert_eq!((heard(&mut watch), world.top().opened()), (vec![], 2), "{protocol:?}");
        world.put(CDS, "x", "2");
        assert_eq!(heard(&mut watch), ["put x 2"]);
    }
}

#[test]
fn r036_a_wrapped_resource_has_the_name_of_its_wrapper_and_is_refused_by_that() {
    let world = World::of(Protocol::Sotw, KEEPS);
    let mut watch = world.watch("x");
    heard(&mut watch);
    world.top().send(&response(Protocol::Sotw, CDS, &[wrapper("x", "7", body(CDS, "x", "7"))]));
    world.network.settle();
    assert_eq!(heard(&mut watch), ["put x 7"]);
    world.top().send(&response(Protocol::Sotw, CDS, &[wrapper("x", "8", body(LDS, "x", "8"))]));
    world.network.settle();
    let [told] = &heard(&mut watch)[..] else { panic!("one thing is wrong") };
    assert!(told.starts_with("ambient x: invalid"), "{told}");
    assert!(world.top().take_refused()[0].starts_with("x: "));
}

#[test]
fn r022_a_resource_whose_name_is_of_another_type_is_refused_by_its_name() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = World::of(protocol, KEEPS);
        world.put(CDS, "good", "1");
        let mut watch = world.watch_raw(CDS, "*");
        world.network.pass(Duration::from_secs(1));
        heard(&mut watch);
        let name = xdstp("a", LDS, "x");
        let resources = [wrapper("good", "2", body(CDS, "good", "2")), wrapper(&name, "1", body(CDS, &name, "1"))];
        world.top().send(&response(protocol, CDS, &resources));
        world.network.settle();
        assert_eq!(heard(&mut watch), ["put good 2"], "{protocol:?}");
        let words = format!("{name}: it is the name of a envoy.config.listener.v3.Listener");
        assert_eq!(world.top().take_refused(), [words], "{protocol:?}");
    }
}
