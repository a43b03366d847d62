//! Requests as they go out, and responses of which some is of no use.

use xds_transport::wire::{Any, Resource as Wrapper};

use super::wire::{Read, Request, answer, bare, body, request, requests, response, told, wrapper};
use super::*;

const OTHER_TYPE: &str = "type.googleapis.com/a.v3.Other";

fn unreadable(type_url: &str) -> Any {
    Any { type_url: type_url.into(), value: Bytes::from_static(b"\x0a\xff") }
}

/// A world whose server says what a test says, and nothing by itself.
fn silent(protocol: Protocol) -> World {
    let world = World::of(protocol, KEEPS);
    world.top().be_silent(true);
    world
}

fn says(world: &World, response: &[u8]) {
    world.top().send(response);
    world.network.settle();
}

/// What each type is asked for with: its names, and its version over SotW or those of its resources over delta.
fn asked(protocol: Protocol, requests: Vec<Request>) -> Vec<(String, Vec<String>, String)> {
    let of = |mut request: Request| {
        assert_eq!((request.nonce.as_str(), request.error), ("", None), "{protocol:?}");
        request.names.sort();
        request.versions.sort();
        let versions = request.versions.iter().map(|(name, version)| format!("{name}={version}")).collect::<Vec<_>>();
        let version = if protocol == Protocol::Sotw { request.version } else { versions.join(" ") };
        (request.type_url, request.names, version)
    };
    let mut asked: Vec<_> = requests.into_iter().map(of).collect();
    asked.sort();
    asked
}

#[test]
fn s047_and_s049_the_next_stream_gets_one_request_of_each_type_that_is_watched_and_none_of_another() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        let world = silent(protocol);
        let _clusters = ["b", "a"].map(|name| world.client.watch(CDS, name));
        let (_endpoints, listener) = (world.client.watch(EDS, "x"), world.client.watch(LDS, "x"));
        let routes = world.client.watch(RDS, "x");
        world.network.settle();
        let all = [(CDS, "2", &["a", "b"][..]), (EDS, "7", &["x"]), (LDS, "1", &["x"]), (RDS, "1", &["x"])];
        for (type_url, version, names) in all {
            let resources: Vec<_> =
                names.iter().map(|name| wrapper(name, version, body(type_url, name, version))).collect();
            says(&world, &response(protocol, type_url, (version, "n"), &resources));
        }
        requests(&world.top(), protocol);
        drop(listener);
        world.network.settle();
        let left = request(&world.top(), protocol);
        assert_eq!((left.type_url.as_str(), left.names), (LDS, vec![]), "{protocol:?}: it is told");

        world.top().end_streams();
        drop(routes);
        let _late = world.client.watch(EDS, "late");
        world.network.pass(Duration::from_secs(10));
        let row = |type_url: &str, names: &[&str], version: &str| {
            (type_url.to_owned(), names.iter().map(ToString::to_string).collect(), version.to_owned())
        };
        let expected = match protocol {
            Protocol::Delta => [row(CDS, &["a", "b"], "a=2 b=2"), row(EDS, &["late", "x"], "x=7")],
            Protocol::Sotw => [row(CDS, &["a", "b"], "2"), row(EDS, &["late", "x"], "7")],
        };
        assert_eq!(asked(protocol, requests(&world.top(), protocol)), expected, "{protocol:?}");
    }
}

#[test]
fn r034_what_is_asked_for_after_a_refusal_names_its_nonce_and_the_version_that_is_in_use() {
    for protocol in [Protocol::Delta, Protocol::Sotw] {
        for in_use in ["", "0"] {
            let world = silent(protocol);
            let _watch = world.watch("x");
            if !in_use.is_empty() {
                says(&world, &response(protocol, CDS, ("0", "n0"), &[wrapper("x", "0", body(CDS, "x", "0"))]));
            }
            requests(&world.top(), protocol);
            says(&world, &response(protocol, CDS, ("1", "n1"), &[wrapper("x", "bad", body(CDS, "x", "bad"))]));
            let refused = answer(&world.top(), protocol, "n1");
            assert_eq!(refused.error, Some((3, "x: bad is bad".to_owned())), "{protocol:?}");
            let of_sotw = |of: &'static str| if protocol == Protocol::Sotw { of } else { "" };
            assert_eq!(refused.version, of_sotw(in_use), "{protocol:?}");

            let _other = world.watch("y");
            let next = request(&world.top(), protocol);
            // Over delta what is asked for is no answer, and names no nonce.
            assert_eq!((next.nonce.as_str(), next.error), (of_sotw("n1"), None), "{protocol:?}");
            assert_eq!(next.version, of_sotw(in_use), "{protocol:?}");
            assert_eq!(next.names, if protocol == Protocol::Sotw { vec!["x", "y"] } else { vec!["y"] });
        }
    }
}

#[test]
fn r038_what_is_good_is_used_behind_whatever_is_bad() {
    for (protocol, wraps) in [(Protocol::Delta, true), (Protocol::Sotw, true), (Protocol::Sotw, false)] {
        for bad in [body(CDS, "x", "bad"), body(OTHER_TYPE, "x", "1"), unreadable(CDS)] {
            let world = silent(protocol);
            let [_first, mut behind] = ["x", "y"].map(|name| world.client.watch_as::<Read<2>>(name));
            world.network.settle();
            requests(&world.top(), protocol);
            let good = body(CDS, "y", "1");
            let what = format!("{protocol:?} {wraps} {bad:?}");
            let sent = if wraps {
                response(protocol, CDS, ("1", "n1"), &[wrapper("x", "1", bad), wrapper("y", "1", good)])
            } else {
                bare(CDS, ("1", "n1"), vec![bad, good])
            };
            says(&world, &sent);
            assert_eq!(told(&mut behind), ["put y 1"], "{what}");
            assert!(answer(&world.top(), protocol, "n1").error.is_some(), "{what}");
        }
    }
}

#[test]
fn r037_a_wrapper_without_content_and_time_is_refused_by_its_name_and_what_there_was_stays() {
    for type_url in TYPES {
        let world = silent(Protocol::Sotw);
        let mut watch = world.watch_raw(type_url, "x");
        says(&world, &response(Protocol::Sotw, type_url, ("1", "n1"), &[wrapper("x", "1", body(type_url, "x", "1"))]));
        assert_eq!(heard(&mut watch), ["put x 1"]);
        requests(&world.top(), Protocol::Sotw);
        let empty = Wrapper { name: "x".into(), version: "2".into(), ..Wrapper::default() };
        says(&world, &response(Protocol::Sotw, type_url, ("2", "n2"), &[empty]));
        let refused = answer(&world.top(), Protocol::Sotw, "n2");
        assert_eq!(refused.error, Some((3, "x: a resource without content".to_owned())), "{type_url}");
        assert_eq!(refused.version, "1", "{type_url}");
        let [told] = &heard(&mut watch)[..] else { panic!("one thing is told") };
        assert!(told.starts_with("ambient x: invalid"), "{told}");
        assert_eq!(heard(&mut world.watch_raw(type_url, "x"))[0], "put x 1");
    }
}

#[test]
fn r022_what_has_no_name_that_can_be_read_is_refused_and_what_is_beside_it_is_used() {
    for (protocol, wraps) in [(Protocol::Delta, true), (Protocol::Sotw, true), (Protocol::Sotw, false)] {
        for no_name_first in [true, false] {
            let world = silent(protocol);
            let mut watch = world.watch("x");
            requests(&world.top(), protocol);
            let mut names = ["xdstp://a", "x"];
            if !no_name_first {
                names.reverse();
            }
            let sent = if wraps {
                let resources = names.map(|name| wrapper(name, "1", body(CDS, name, "1")));
                response(protocol, CDS, ("1", "n1"), &resources)
            } else {
                bare(CDS, ("1", "n1"), names.map(|name| body(CDS, name, "1")).to_vec())
            };
            says(&world, &sent);
            let (code, words) = answer(&world.top(), protocol, "n1").error.expect("it is refused");
            assert!(code == 3 && words.starts_with("xdstp://a: "), "{protocol:?}: {words}");
            let told = std::iter::from_fn(|| watch.try_next()).collect::<Vec<_>>();
            let [Event::Put { resource, .. }] = &told[..] else { panic!("{protocol:?}: {told:?}") };
            assert_eq!(resource.0, "1");
            world.top().be_silent(false);
            world.put(CDS, "x", "2");
            assert_eq!(world.top().opened(), 1, "nor is the stream over");
        }
    }
}

#[test]
fn r058_that_deletions_are_ignored_does_not_count_where_data_errors_fail() {
    let both = Features { ignore_resource_deletion: true, ..DROPS };
    let ignores = Features { ignore_resource_deletion: true, ..KEEPS };
    for (features, told) in [(both, "failed x: absent"), (ignores, "ambient x: absent")] {
        for (protocol, type_url) in [(Protocol::Delta, CDS), (Protocol::Sotw, CDS), (Protocol::Sotw, LDS)] {
            let world = World::of(protocol, features);
            world.put(type_url, "x", "1");
            // Over SotW there has to be something left that a full state may hold.
            world.put(type_url, "y", "1");
            let (mut watch, _other) = (world.watch_raw(type_url, "x"), world.watch_raw(type_url, "y"));
            assert_eq!(heard(&mut watch), ["put x 1"]);
            world.top().remove(type_url, "x");
            world.network.settle();
            assert_eq!(heard(&mut watch), [told], "{protocol:?} {type_url}");
        }
    }
}

/// Over SotW a bare redirect has no name, and a wrapped one has.
#[test]
fn r082_over_sotw_a_wrapped_redirect_is_what_it_leads_to_whoever_has_that() {
    let world = silent(Protocol::Sotw);
    let [here, there] = [("a", "bar"), ("other", "baz")].map(|(authority, id)| xdstp(authority, CDS, id));
    let mut locator = Vec::new();
    prost::encoding::string::encode(1, &there, &mut locator);
    let redirect = Any { type_url: "type.googleapis.com/xds.core.v3.ResourceLocator".into(), value: locator.into() };
    world.put_other(CDS, &there, "7");
    let mut watch = world.watch(&here);
    requests(&world.top(), Protocol::Sotw);
    says(&world, &response(Protocol::Sotw, CDS, ("42", "n1"), &[wrapper(&here, "42", redirect)]));
    let told = |watch: &mut Watch<Cluster>| {
        let follow = |_| {
            let told = std::iter::from_fn(|| watch.try_next()).collect::<Vec<_>>();
            world.network.settle();
            told
        };
        let told = (0..4).flat_map(follow).collect::<Vec<_>>();
        let [Event::Put { name, resource, .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!(name.as_str(), here);
        resource.0.clone()
    };
    assert_eq!(told(&mut watch), "7");
    assert_eq!(answer(&world.top(), Protocol::Sotw, "n1").error, None, "though it is no cluster");
    assert_eq!(requests(&world.other(), Protocol::Sotw)[0].names, [there.as_str()]);

    world.put_other(CDS, &there, "8");
    assert_eq!(told(&mut watch), "8");
    drop(watch);
    world.network.settle();
    let left = requests(&world.other(), Protocol::Sotw).pop().expect("it is told");
    assert_eq!(left.names, [""; 0], "nobody wants it any more");
}
