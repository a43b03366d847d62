//! Clients of several groups.

use prost::Message;
use xds_transport::Protocol;
use xds_transport::grpc::server::{ClientStatus as _, NodeGroups};
use xds_transport::server::NodeError;
use xds_transport::wire::Node;

use crate::call::{Call, Connection, ack, delta_wildcard, sotw_wildcard};
use crate::served::{Cluster, InMemory};

fn by_cluster() -> NodeGroups<String> {
    NodeGroups::new(|node| match node.cluster.as_str() {
        "" => Err(NodeError::new("it is in no cluster")),
        cluster => Ok(cluster.to_owned()),
    })
}

fn put(groups: &NodeGroups<String>, group: &str, name: &str) {
    groups.plane(&group.to_owned()).put(name, &Cluster::new(name, "")).unwrap();
}

async fn open(connection: &Connection, group: &str) -> Call {
    let mut call = connection.aggregated(Protocol::Delta).await;
    let mut request = delta_wildcard();
    request.node = Node { id: "me".into(), cluster: group.into(), ..Node::default() }.encode_to_vec().into();
    call.send(&request);
    call
}

async fn names(call: &mut Call) -> Vec<String> {
    let response = call.delta().await.unwrap();
    call.send(&ack(&response));
    response.resources.into_iter().map(|resource| resource.name).collect()
}

#[tokio::test(start_paused = true)]
async fn each_node_is_served_what_its_group_has() {
    let groups = by_cluster();
    put(&groups, "edge", "cart");
    put(&groups, "mesh", "shop");
    let served = InMemory::serve(groups.service().into_routes());
    let connection = served.connect().await;
    let (mut edge, mut mesh) = (open(&connection, "edge").await, open(&connection, "mesh").await);
    assert_eq!(names(&mut edge).await, ["cart"]);
    assert_eq!(names(&mut mesh).await, ["shop"]);
    put(&groups, "mesh", "till");
    assert_eq!(names(&mut mesh).await, ["till"]);
    assert!(tokio::time::timeout(std::time::Duration::from_secs(60), edge.message()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_group_is_refused_and_told_why() {
    let served = InMemory::serve(by_cluster().service().into_routes());
    let connection = served.connect().await;
    let mut call = open(&connection, "").await;
    assert_eq!(call.status().await, (3, "a node that is refused: it is in no cluster".to_owned()));
}

/// Silence is no removal: what a client has from before it keeps.
#[tokio::test(start_paused = true)]
async fn who_comes_before_its_group_is_set_up_is_told_nothing_until_then() {
    let groups = by_cluster();
    let served = InMemory::serve(groups.service().into_routes());
    let connection = served.connect().await;
    let mut early = open(&connection, "edge").await;
    let mut sotw = connection.aggregated(Protocol::Sotw).await;
    let mut request = sotw_wildcard();
    request.node = Node { cluster: "edge".into(), ..Node::default() }.encode_to_vec().into();
    request.resource_names = vec!["cart".into()];
    sotw.send(&request);
    let silence = std::time::Duration::from_secs(3600);
    assert!(tokio::time::timeout(silence, early.response()).await.unwrap().status().is_success());
    assert!(tokio::time::timeout(silence, early.message()).await.is_err());
    assert!(tokio::time::timeout(silence, sotw.message()).await.is_err());
    assert_eq!(groups.keys(), ["edge"], "who waits is seen");
    put(&groups, "edge", "cart");
    assert_eq!(names(&mut early).await, ["cart"]);
    assert_eq!(sotw.sotw().await.unwrap().resources.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_nobody_set_up_goes_with_its_last_client() {
    let groups = by_cluster();
    let service = groups.service();
    let streams = service.streams();
    let served = InMemory::serve(service.into_routes());
    let connection = served.connect().await;
    put(&groups, "mesh", "shop");
    let mut waiting = open(&connection, "edge").await;
    waiting.response().await;
    let mut mesh = open(&connection, "mesh").await;
    assert_eq!(names(&mut mesh).await, ["shop"]);
    assert!(groups.remove(&"mesh".to_owned()));
    assert!(!groups.remove(&"mesh".to_owned()));
    put(&groups, "mesh", "till");
    assert_eq!(names(&mut mesh).await, ["till"], "set up again, it is the same for who stayed");
    groups.remove(&"mesh".to_owned());
    drop((waiting, mesh));
    streams.drained().await;
    assert_eq!(groups.keys(), [""; 0]);
}

/// As the fleet's tools see them: those of all groups, and of who waits that nothing is known yet.
#[tokio::test(start_paused = true)]
async fn the_clients_of_all_groups_are_told_of() {
    let groups = by_cluster();
    put(&groups, "mesh", "shop");
    let served = InMemory::serve(groups.service().into_routes());
    let connection = served.connect().await;
    let mut mesh = open(&connection, "mesh").await;
    assert_eq!(names(&mut mesh).await, ["shop"]);
    let mut waiting = open(&connection, "edge").await;
    waiting.response().await;
    assert_eq!(groups.clients().len(), 2);
    let mut told = Vec::new();
    groups.visit_clients(false, &mut |config| {
        let of = Node::decode(config.node).unwrap().cluster;
        told.push((of, config.generic_xds_configs.iter().map(|of| of.name.clone()).collect::<Vec<_>>()));
        std::ops::ControlFlow::Continue(())
    });
    told.sort();
    assert_eq!(told, [("edge".to_owned(), vec![]), ("mesh".to_owned(), vec!["shop".to_owned()])]);
}
