//! Clients of the relay that go and come again, over gRPC on either side.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::wire::{Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse};

use crate::Running;
use crate::stream::{Call, Origin, Served, framed};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const GLOB: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/d/*";

fn member(name: &str) -> String {
    GLOB.replace('*', name)
}

/// All there is, as the origin says it.
fn state(nonce: &str, names: &[&str]) -> Bytes {
    let resource = |name: &&str| {
        let name = member(name);
        let mut value = vec![0x0a, u8::try_from(name.len()).unwrap()];
        value.extend(name.bytes());
        Any { type_url: CLUSTERS.into(), value: value.into() }
    };
    let response = DiscoveryResponse {
        type_url: CLUSTERS.into(),
        version_info: nonce.into(),
        nonce: nonce.into(),
        resources: names.iter().map(resource).collect(),
        ..DiscoveryResponse::default()
    };
    framed(&response.encode_to_vec())
}

/// What the relay asks of the origin next.
async fn asked(served: &mut Served) -> DiscoveryRequest {
    DiscoveryRequest::decode(served.receiving.message().await.unwrap().unwrap()).unwrap()
}

/// A client that asks for the glob and lists nothing of what it holds, as Envoy does.
async fn connected(relay: &Running) -> Call {
    let mut call = Call::open(relay.address, Protocol::Delta.aggregated_method()).await;
    let resource_names_subscribe = vec![GLOB.into()];
    let request = DeltaDiscoveryRequest { type_url: CLUSTERS.into(), resource_names_subscribe, ..Default::default() };
    call.sending.send_data(framed(&request.encode_to_vec()), false).unwrap();
    call
}

/// The names that come next, and those that are gone.
async fn told(call: &mut Call) -> (Vec<String>, Vec<String>) {
    let response = DeltaDiscoveryResponse::decode(call.message().await.unwrap()).unwrap();
    let mut names: Vec<_> = response.resources.into_iter().map(|resource| resource.name).collect();
    names.sort();
    (names, response.removed_resources)
}

#[tokio::test]
async fn rule_100_what_went_while_a_client_was_away_is_in_its_first_answer_end_to_end() {
    let origin = Origin::listen().await;
    let address = origin.address();
    let relay =
        Running::start(&format!("[{{ name: up, server: '{address}', protocol: sotw, authorities: [x] }}]")).await;
    let mut client = connected(&relay).await;
    let mut served = origin.accept().await;
    assert_eq!(asked(&mut served).await.resource_names, [GLOB]);
    let mut answers = served.respond();
    answers.send_data(state("1", &["a", "b"]), false).unwrap();
    assert_eq!(told(&mut client).await, (vec![member("a"), member("b")], vec![]));
    assert_eq!(asked(&mut served).await.response_nonce, "1");
    // The last that went and is there again is no removal.
    let rounds = [("2", ["b", "c"], vec!["a"]), ("3", ["a", "c"], vec!["b"]), ("4", ["a", "b"], vec!["c"])];
    for (nonce, there, gone) in rounds {
        drop(client);
        answers.send_data(state(nonce, &there), false).unwrap();
        assert_eq!(asked(&mut served).await.response_nonce, nonce);
        client = connected(&relay).await;
        assert_eq!(told(&mut client).await, (there.map(member).to_vec(), gone.into_iter().map(member).collect()));
    }
}

/// Nobody listens where its origin was.
#[tokio::test]
async fn rule_157_a_stream_of_which_nothing_is_known_ends_as_unavailable_end_to_end() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for protocol in ["delta", "sotw"] {
        let relay = Running::start(&format!("[{{ name: up, server: '{nobody}', protocol: {protocol} }}]")).await;
        for protocol in [Protocol::Delta, Protocol::Sotw] {
            let mut call = Call::open(relay.address, protocol.aggregated_method()).await;
            let request = match protocol {
                Protocol::Delta => {
                    DeltaDiscoveryRequest { type_url: CLUSTERS.into(), ..Default::default() }.encode_to_vec()
                }
                Protocol::Sotw => DiscoveryRequest { type_url: CLUSTERS.into(), ..Default::default() }.encode_to_vec(),
            };
            call.sending.send_data(framed(&request), false).unwrap();
            assert_eq!(call.message().await, None, "no response");
            let (code, words) = call.status().await;
            assert_eq!(code, 14, "{words}");
            assert!(words.contains("refused"), "{words}");
        }
    }
}
