//! What clients have, asked for as a fleet's tools do it.

use bytes::Bytes;
use prost::Message;
use xds_transport::Protocol;
use xds_transport::grpc::server::{ClientStatusService, ControlPlane};
use xds_transport::wire::client_status::{
    ClientConfig, ClientResourceStatus, ClientStatusRequest, ClientStatusResponse, ConfigStatus, FETCH_METHOD,
    GenericXdsConfig, STREAM_METHOD, UpdateFailureState,
};
use xds_transport::wire::{Any, DeltaDiscoveryRequest, Status};

use crate::CDS;
use crate::call::{Call, Connection, ack, delta_wildcard, framed, node, status_of};
use crate::served::{Cluster, InMemory};

const GRPC: (&str, &str) = ("content-type", "application/grpc");

fn served(plane: &ControlPlane) -> InMemory {
    InMemory::serve(plane.service().into_routes().add_service(ClientStatusService::new(plane.clone())))
}

async fn fetch(connection: &Connection, exclude_resource_contents: bool) -> Vec<ClientConfig> {
    let request = ClientStatusRequest { exclude_resource_contents, ..ClientStatusRequest::default() };
    let mut call = connection.call(FETCH_METHOD, &[GRPC]).await;
    call.send_bytes(framed(0, &request.encode_to_vec()), true);
    answer(&mut call).await
}

async fn answer(call: &mut Call) -> Vec<ClientConfig> {
    ClientStatusResponse::decode(call.message().await.unwrap()).unwrap().config
}

/// Its only client's, by name.
async fn fetched(connection: &Connection) -> Vec<GenericXdsConfig> {
    let [config] = fetch(connection, false).await.try_into().unwrap();
    assert_eq!(config.node, node(&[]));
    let mut configs = config.generic_xds_configs;
    configs.sort_by(|a, b| a.name.cmp(&b.name));
    configs
}

fn states(configs: &[GenericXdsConfig]) -> Vec<(&str, ConfigStatus, ClientResourceStatus)> {
    configs.iter().map(|of| (&*of.name, of.config_status(), of.client_status())).collect()
}

fn any(cluster: &Cluster) -> Bytes {
    Any { type_url: CDS.into(), value: cluster.encode_to_vec().into() }.encode_to_vec().into()
}

#[tokio::test(start_paused = true)]
async fn what_a_client_was_sent_and_said_is_told_by_name() {
    let plane = ControlPlane::new();
    let mut events = plane.events();
    let [good, bad] = ["", "no such statistics"].map(|text| Cluster::new("cart", text));
    plane.put("cart", &good).unwrap();
    let served = served(&plane);
    let connection = served.connect().await;
    assert_eq!(fetch(&connection, false).await, [], "there is nobody");

    let mut call = connection.aggregated(Protocol::Delta).await;
    let names = ["cart", "none"].map(String::from).to_vec();
    call.send(&DeltaDiscoveryRequest { node: node(&[]), resource_names_subscribe: names, ..delta_wildcard() });
    let response = call.delta().await.unwrap();
    events.next().await.unwrap().unwrap();
    let none = ("none", ConfigStatus::NotSent, ClientResourceStatus::DoesNotExist);
    let configs = fetched(&connection).await;
    assert_eq!(states(&configs), [("cart", ConfigStatus::Stale, ClientResourceStatus::Requested), none]);

    call.send(&ack(&response));
    events.next().await.unwrap().unwrap();
    let configs = fetched(&connection).await;
    assert_eq!(states(&configs), [("cart", ConfigStatus::Synced, ClientResourceStatus::Acked), none]);
    let version = response.resources[0].version.clone();
    assert_eq!((&configs[0].version_info, &configs[0].xds_config), (&version, &any(&good)));
    assert!(configs[0].last_updated.is_some() && configs[0].error_state.is_none());

    plane.put("cart", &bad).unwrap();
    let response = call.delta().await.unwrap();
    let mut nack = ack(&response);
    nack.error_detail = Some(Status { message: "no such statistics".into(), ..Status::default() });
    call.send(&nack);
    events.next().await.unwrap().unwrap();
    let configs = fetched(&connection).await;
    assert_eq!(states(&configs), [("cart", ConfigStatus::Error, ClientResourceStatus::Nacked), none]);
    let Some(UpdateFailureState { failed_configuration, last_update_attempt, details, version_info }) =
        &configs[0].error_state
    else {
        panic!("nothing is wrong");
    };
    assert_eq!((failed_configuration, &**details), (&any(&bad), "no such statistics"));
    assert!(last_update_attempt.is_some() && *version_info == response.resources[0].version);
    assert_eq!((&*configs[0].version_info, configs[0].xds_config.len()), ("", 0), "what it has instead is not known");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_answered_once_for_each_request_and_without_contents_if_it_wants_none() {
    let plane = ControlPlane::new();
    plane.put("cart", &Cluster::new("cart", "")).unwrap();
    let served = served(&plane);
    let connection = served.connect().await;
    let mut client = connection.aggregated(Protocol::Delta).await;
    client.send(&delta_wildcard());
    client.delta().await.unwrap();

    let mut call = connection.call(STREAM_METHOD, &[GRPC]).await;
    for contents in [true, false] {
        call.send(&ClientStatusRequest { exclude_resource_contents: !contents, ..ClientStatusRequest::default() });
        let [config] = answer(&mut call).await.try_into().unwrap();
        let [cart] = config.generic_xds_configs.try_into().unwrap();
        assert_eq!((&*cart.name, !cart.xds_config.is_empty()), ("cart", contents));
    }
    call.send_bytes(Bytes::new(), true);
    assert_eq!(call.status().await.0, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_done_is_refused_in_words() {
    let served = served(&ControlPlane::new());
    let connection = served.connect().await;
    let mut call = connection.call(FETCH_METHOD, &[GRPC]).await;
    // Of the id, a regular expression.
    let regex = Bytes::from_static(&[10, 2, 42, 0]);
    let request = ClientStatusRequest { node_matchers: vec![regex], ..ClientStatusRequest::default() };
    call.send_bytes(framed(0, &request.encode_to_vec()), true);
    let (code, words) = status_of(call.response().await.headers());
    assert_eq!((code, words.as_str()), (3, "node_matchers[0].node_id.safe_regex: not supported"));
    let mut call = connection.call(&FETCH_METHOD.replace("Fetch", "Watch"), &[GRPC]).await;
    assert_eq!(status_of(call.response().await.headers()).0, 12);
}
