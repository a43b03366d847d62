//! Calls beside discovery, about the relay's health and about what clients have: what they may cost.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::wire::client_status::{FETCH_METHOD, STREAM_METHOD};

use crate::health::{CHECK, SERVING, WATCH, asked};
use crate::limits::{CLUSTERS, counted};
use crate::loops::page;
use crate::stream::{Call, framed, in_time};
use crate::{Running, no_resources};

async fn relay(limits: &str) -> Running {
    let directory = no_resources();
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().display());
    Running::start_with(&origins, &format!("limits: {{ {limits} }}\nclient_status: true")).await
}

/// A client that is told of a name.
async fn client(relay: &Running) -> Option<Call> {
    let mut call = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let (type_url, resource_names_subscribe) = (CLUSTERS.to_owned(), vec!["a".to_owned()]);
    let request = DeltaDiscoveryRequest { type_url, resource_names_subscribe, ..Default::default() };
    call.send(framed(&request.encode_to_vec())).await;
    call.message().await.map(|_| call)
}

/// Beside discovery calls cost what streams cost. Who asks once whether the relay serves is answered all the same: it may be who restarts it.
#[tokio::test]
async fn who_watches_the_health_of_the_relay_or_asks_about_clients_has_one_of_its_streams() {
    let relay = relay("streams: 3").await;
    let _client = client(&relay).await.expect("there is room");
    let mut watch = asked(&relay, WATCH, "").await;
    assert_eq!(watch.message().await.as_deref(), Some(SERVING));
    // Nothing is asked on it.
    let idle = Call::open(relay.address, STREAM_METHOD).await;
    let used = "\nxds_relay_limit_used{limit=\"streams\"} 3\n";
    let all_are_taken = async {
        while !page(&relay, "/metrics").await.contains(used) {
            tokio::task::yield_now().await;
        }
    };
    in_time(all_are_taken).await;
    let refused = (8, "more than 3 streams (limits.streams of the relay)".to_owned());
    for path in [WATCH, STREAM_METHOD, FETCH_METHOD] {
        assert_eq!(asked(&relay, path, "").await.status().await, refused, "{path}");
    }
    // Its question is begun and not ended.
    let mut half = Call::open(relay.address, CHECK).await;
    assert_eq!(half.status().await, refused);
    counted(&relay, "streams", 4).await;
    let check = async {
        // It may come in two pieces.
        loop {
            let mut check = asked(&relay, CHECK, "").await;
            if !check.response().await.contains_key("grpc-status") {
                return check.message().await;
            }
        }
    };
    assert_eq!(in_time(check).await.as_deref(), Some(SERVING));
    drop((watch, idle));
    let newcomers = async { while client(&relay).await.is_none() {} };
    // They are given back.
    in_time(newcomers).await;
}

/// Else it would keep its connection, too.
#[tokio::test]
async fn a_call_beside_discovery_on_which_nothing_is_asked_has_the_time_of_a_stream() {
    let relay = relay("first_request: 100ms").await;
    let words = "no request came within 100ms (limits.first_request of the relay)".to_owned();
    for path in [CHECK, WATCH, STREAM_METHOD, FETCH_METHOD] {
        let mut silent = Call::open(relay.address, path).await;
        assert_eq!(silent.status().await, (14, words.clone()), "{path}");
    }
    // A short question is to be whole by then.
    let mut half = Call::open(relay.address, CHECK).await;
    half.sending.send_data(Bytes::from_static(&[0, 0]), false).unwrap();
    assert_eq!(half.status().await, (14, words));
}
