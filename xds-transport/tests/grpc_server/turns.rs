//! Streams that have much to do go on in turn.

use bytes::Bytes;
use xds_transport::Protocol;

use crate::call::delta_wildcard;
use crate::plane::{Plane, Rules};

const GRPC: (&str, &str) = ("content-type", "application/grpc");

/// Streams of one client.
const MANY: usize = 12;

/// An entry of a map.
fn held(name: &str, version: &str) -> Bytes {
    let field = |tag: u8, text: &str| [&[tag, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [field(0x0a, name), field(0x12, version)].concat().into()
}

/// They hold all but one of many names, so that there are many looks for one response.
#[tokio::test(start_paused = true)]
async fn who_has_one_stream_does_not_wait_for_all_of_who_has_many() {
    let plane = Plane::that_looks_at(1, (0..300).map(|at| format!("cluster-{at:03}")));
    let served = plane.serve_with(Rules { long_turns: Some(1), ..Rules::default() });
    let connection = served.connect().await;
    let mut first = connection.aggregated(Protocol::Delta).await;
    first.send(&delta_wildcard());
    let mut request = delta_wildcard();
    while request.initial_resource_versions.len() < 299 {
        for resource in first.delta().await.unwrap().resources {
            request.initial_resource_versions.push(held(&resource.name, &resource.version));
            request.resource_names_subscribe.push(resource.name);
        }
    }
    request.initial_resource_versions.truncate(299);
    let before = plane.count.looks().len();

    let mut calls = Vec::new();
    for client in [1; MANY].into_iter().chain([2]) {
        let headers = [GRPC, ("x-client", &client.to_string())];
        let mut call = connection.call(Protocol::Delta.aggregated_method(), &headers).await;
        call.send(&request);
        calls.push(call);
    }
    for call in &mut calls {
        call.delta().await.unwrap();
    }
    let looks = plane.count.looks().split_off(before);
    let other: Vec<_> = (0..looks.len()).filter(|at| looks[*at] == Some(2)).collect();
    assert!(other.len() >= 300 && looks.last() == Some(&Some(1)), "many go on after it");
    // All look once before it is known that they have much to do. After that, when it comes back, two or three that have their turn already
    // or are in the line look before it.
    let most = other[1..].windows(2).map(|looks| looks[1] - looks[0] - 1).max();
    assert!(most <= Some(3), "{most:?}");
}
