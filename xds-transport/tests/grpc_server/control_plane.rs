//! A control plane, from `put` to what its clients are sent.

use std::sync::Arc;
use std::time::Duration;

use xds_transport::grpc::server::{Change, ControlPlane, Missed, PutError, What};
use xds_transport::server::{Reception, Settings};
use xds_transport::wire::{DeltaDiscoveryRequest, Status};
use xds_transport::{Protocol, TypeRule, TypeRules, TypeService};
use xdstp_cache::TypeUrl;

use crate::call::{Call, Connection, ack, delta_wildcard, node, sotw_wildcard};
use crate::plane::now;
use crate::served::{Cluster, InMemory};

const MINUTE: Duration = Duration::from_secs(60);

fn named(name: &str) -> Cluster {
    Cluster::new(name, "")
}

/// A client of everything, with what it was sent first.
async fn subscribed(plane: &ControlPlane) -> (Connection, Call, (Vec<String>, Vec<String>)) {
    let served = InMemory::serve(plane.service().into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    let mut request = delta_wildcard();
    request.node = node(&["xds.config.supports-resource-ttl"]);
    call.send(&request);
    let told = next(&mut call).await;
    (connection, call, told)
}

/// What a response puts and removes. A heartbeat is marked.
async fn next(call: &mut Call) -> (Vec<String>, Vec<String>) {
    let response = call.delta().await.unwrap();
    call.send(&ack(&response));
    let put = response.resources.into_iter().map(|put| match put.resource {
        Some(_) => put.name,
        None => format!("{} lives", put.name),
    });
    (put.collect(), response.removed_resources)
}

fn told(put: &[&str], removed: &[&str]) -> (Vec<String>, Vec<String>) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    (texts(put), texts(removed))
}

#[tokio::test(start_paused = true)]
async fn what_is_put_and_removed_is_told_to_who_asks_for_it() {
    let plane = ControlPlane::new();
    plane.put("cart", &named("cart")).unwrap();
    let (_connection, mut call, first) = subscribed(&plane).await;
    assert_eq!(first, told(&["cart"], &[]));
    plane.put("cart", &named("cart")).unwrap();
    plane.put("cart", &Cluster::new("cart", "another")).unwrap();
    assert_eq!(next(&mut call).await, told(&["cart"], &[]), "what is as it was is told to nobody");
    plane.remove::<Cluster>("cart").unwrap();
    assert_eq!(next(&mut call).await, told(&[], &["cart"]));
}

#[tokio::test(start_paused = true)]
async fn what_belongs_together_is_one_response() {
    let plane = ControlPlane::new();
    plane.put("basket", &named("basket")).unwrap();
    let (_connection, mut call, first) = subscribed(&plane).await;
    assert_eq!(first, told(&["basket"], &[]));
    let all = |change: &mut Change<'_>| {
        change.put("cart", &named("cart"))?;
        change.put("shop", &named("shop"))?;
        change.remove::<Cluster>("basket")
    };
    plane.change(all).unwrap();
    assert_eq!(next(&mut call).await, told(&["cart", "shop"], &[]));
    assert_eq!(next(&mut call).await, told(&[], &["basket"]), "made before it is broken (rule 122)");
    plane.replace(|all| all.put("shop", &named("shop"))).unwrap();
    assert_eq!(next(&mut call).await, told(&[], &["cart"]), "and of what is all there is, the difference");
}

#[test]
fn of_a_change_that_cannot_be_made_nothing_is() {
    let plane = ControlPlane::new();
    let fails = |change: &mut Change<'_>| {
        change.put("cart", &named("cart"))?;
        change.put("shop", &named("till"))
    };
    let error = plane.change(fails).unwrap_err();
    assert_eq!(error.to_string(), "a resource that comes as shop has the name \"till\" inside");
    assert!(matches!(plane.put("xdstp://", &named("xdstp://")), Err(PutError::Name { .. })));
    let glob = "xdstp://a/envoy.config.cluster.v3.Cluster/shop/*";
    for name in ["*", glob] {
        assert!(matches!(plane.put(name, &named(name)), Err(PutError::Collection(_))));
    }
    plane.shared().look(|cache| assert_eq!(cache.resources().count(), 0));
}

/// Nobody puts anything, and nobody asks for anything: the plane itself has it end.
#[tokio::test(start_paused = true)]
async fn what_is_put_for_a_time_is_gone_after_it_and_lives_on_when_it_is_put_again() {
    let plane = ControlPlane::new();
    let put = || plane.change(|change| change.put_for("cart", &named("cart"), MINUTE)).unwrap();
    put();
    let start = now();
    let (_connection, mut call, first) = subscribed(&plane).await;
    assert_eq!(first, told(&["cart"], &[]));
    tokio::time::sleep(MINUTE / 2).await;
    put();
    assert_eq!(next(&mut call).await, told(&["cart lives"], &[]), "a client that knows what a TTL is is told");
    assert_eq!(next(&mut call).await, told(&[], &["cart"]));
    let lived = now() - start;
    assert!((MINUTE * 3 / 2..MINUTE * 3 / 2 + Duration::from_secs(1)).contains(&lived), "{lived:?}");
}

/// What is for everybody ends in its time, and the variants that come beside it do not put that off.
#[tokio::test(start_paused = true)]
async fn what_is_put_for_a_time_ends_though_another_takes_a_variant_away() {
    let plane = ControlPlane::new();
    let prod = xdstp_cache::Variant::Constraints("env=prod".parse().unwrap());
    plane.change(|change| change.put_for("cart", &named("cart"), MINUTE)).unwrap();
    plane.change(|change| change.remove_variant::<Cluster>("cart", &prod)).unwrap();
    tokio::time::sleep(2 * MINUTE).await;
    plane.shared().look(|cache| assert!(cache.resources().all(|stored| stored.resource.is_none())));
    plane.change(|change| change.put_for("cart", &named("cart"), MINUTE)).unwrap();
    plane.put("cart", &named("cart")).unwrap();
    tokio::time::sleep(2 * MINUTE).await;
    plane.shared().look(|cache| assert_eq!(cache.resources().filter(|stored| stored.resource.is_some()).count(), 1));
}

/// With a stream there is a runtime.
#[test]
fn what_is_put_where_there_is_no_runtime_ends_too() {
    let plane = ControlPlane::new();
    plane.change(|change| change.put_for("cart", &named("cart"), Duration::from_millis(50))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_connection, mut call, mut seen) = subscribed(&plane).await;
        if !seen.0.is_empty() {
            seen = next(&mut call).await;
        }
        assert_eq!(seen.0, [""; 0]);
    });
    plane.shared().look(|cache| assert!(cache.resources().all(|stored| stored.resource.is_none())));
}

/// As long as the plane is there, it says so.
#[tokio::test(start_paused = true)]
async fn what_has_a_ttl_lives_on_until_it_is_put_without() {
    let plane = ControlPlane::new();
    plane.change(|change| change.put_with_ttl("cart", &named("cart"), MINUTE)).unwrap();
    let (_connection, mut call, first) = subscribed(&plane).await;
    assert_eq!(first, told(&["cart"], &[]));
    for _ in 0..10 {
        assert_eq!(next(&mut call).await, told(&["cart lives"], &[]));
    }
    plane.put("cart", &named("cart")).unwrap();
    assert_eq!(next(&mut call).await, told(&["cart"], &[]), "the TTL is taken back");
    assert!(tokio::time::timeout(100 * MINUTE, call.message()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_client_of_either_protocol_is_served() {
    let plane = ControlPlane::new();
    plane.put("cart", &named("cart")).unwrap();
    let served = InMemory::serve(plane.service().into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Sotw).await;
    call.send(&sotw_wildcard());
    assert_eq!(call.sotw().await.unwrap().resources.len(), 1);
    let shareable = |stored: &xdstp_cache::Resource<xds_transport::Frame>| !stored.value.do_not_cache();
    plane.shared().look(|cache| assert!(cache.resources().filter_map(|stored| stored.resource).all(shareable)));
}

/// What it says of the clusters of a client: of each name, what became of it.
fn held(plane: &ControlPlane) -> Vec<(String, Option<Reception>)> {
    let clients = plane.clients();
    assert_eq!(clients.len(), 1);
    clients[0].held().unwrap().into_iter().map(|held| (held.name.to_string(), held.reception)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_client_accepts_and_rejects_is_told_as_it_happens_and_what_it_has_can_be_seen() {
    let plane = ControlPlane::new();
    let mut events = plane.events();
    plane.put("cart", &named("cart")).unwrap();
    let served = InMemory::serve(plane.service().into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Delta).await;
    let mut request = delta_wildcard();
    request.node = node(&[]);
    call.send(&request);
    let response = call.delta().await.unwrap();
    assert_eq!(held(&plane), [("cart".to_owned(), Some(Reception::Unanswered))]);
    call.send(&ack(&response));
    let came = events.next().await.unwrap().unwrap();
    assert_eq!((came.what, came.client.node().unwrap().id), (What::Came, "me".to_owned()));
    let cart: Arc<[_]> = ["cart".parse().unwrap()].into();
    let type_url = TypeUrl::from(crate::CDS);
    let accepted = What::Accepted { type_url: type_url.clone(), nonce: 1, resources: cart.clone() };
    assert_eq!(events.next().await.unwrap().unwrap().what, accepted);
    assert_eq!(held(&plane), [("cart".to_owned(), Some(Reception::Accepted))]);

    plane.put("cart", &Cluster::new("cart", "another")).unwrap();
    assert_eq!(held(&plane), [("cart".to_owned(), None)], "what is new is not sent yet");
    let response = call.delta().await.unwrap();
    let mut nack = ack(&response);
    nack.error_detail = Some(Status { message: "no such statistics".into(), ..Status::default() });
    call.send(&nack);
    let message = "no such statistics".to_owned();
    let rejected = What::Rejected { type_url, nonce: 2, resources: cart, message };
    assert_eq!(events.next().await.unwrap().unwrap().what, rejected);
    assert_eq!(held(&plane), [("cart".to_owned(), Some(Reception::Refused { nonce: 2 }))]);

    drop((call, connection));
    assert_eq!(events.next().await.unwrap().unwrap().what, What::Left);
    assert_eq!((plane.clients().len(), came.client.held()), (0, None));
}

/// A full state has all there is.
#[tokio::test(start_paused = true)]
async fn over_sotw_a_full_state_is_accepted_and_rejected_as_one() {
    let plane = ControlPlane::new();
    let mut events = plane.events();
    plane.put("cart", &named("cart")).unwrap();
    let served = InMemory::serve(plane.service().into_routes());
    let connection = served.connect().await;
    let mut call = connection.aggregated(Protocol::Sotw).await;
    call.send(&sotw_wildcard());
    for error in [None, Some("not that")] {
        let response = call.sotw().await.unwrap();
        let mut answer = sotw_wildcard();
        answer.response_nonce = response.nonce;
        answer.version_info = response.version_info;
        answer.error_detail = error.map(|message| Status { message: message.into(), ..Status::default() });
        call.send(&answer);
        plane.put("cart", &Cluster::new("cart", "another")).unwrap();
    }
    assert_eq!(events.next().await.unwrap().unwrap().what, What::Came);
    let accepted = events.next().await.unwrap().unwrap().what;
    assert!(matches!(accepted, What::Accepted { nonce: 1, .. }), "{accepted:?}");
    let rejected = events.next().await.unwrap().unwrap().what;
    assert!(matches!(&rejected, What::Rejected { message, .. } if message == "not that"), "{rejected:?}");
    assert_eq!(held(&plane), [("cart".to_owned(), Some(Reception::Refused { nonce: 2 }))]);
}

/// Who does not listen costs nobody anything, and is told what it missed.
#[tokio::test(start_paused = true)]
async fn who_listens_too_late_is_told_how_much_was_missed() {
    let plane = ControlPlane::new();
    plane.put("cart", &named("cart")).unwrap();
    let mut events = plane.events();
    let (_connection, mut call, _) = subscribed(&plane).await;
    for change in 0..2000 {
        plane.put("cart", &Cluster::new("cart", &change.to_string())).unwrap();
        next(&mut call).await;
    }
    let Err(Missed(missed)) = events.next().await.unwrap() else { panic!("none was missed") };
    assert!((900..1100).contains(&missed), "{missed}");
    assert!(matches!(events.next().await, Some(Ok(_))));
}

/// Of a program's own, by a method of its own.
#[derive(Clone, PartialEq, prost::Message)]
struct Limit {
    #[prost(string, tag = "1")]
    name: String,
}

impl prost::Name for Limit {
    const NAME: &'static str = "Limit";
    const PACKAGE: &'static str = "example";
}

#[tokio::test(start_paused = true)]
async fn a_type_of_one_s_own_is_served_by_a_method_of_its_own() {
    let mut rules = TypeRules::envoy();
    let limits = TypeUrl::from("type.googleapis.com/example.Limit");
    rules.insert(limits.clone(), TypeRule { legacy_wildcard: true, ..TypeRule::default() });
    rules.insert_service(limits.clone(), TypeService::new("example.LimitDiscoveryService", "Limits"));
    let mut settings = Settings::default();
    settings.rules = Arc::new(rules);
    let plane = ControlPlane::with_settings(settings);
    plane.put("few", &Limit { name: "few".into() }).unwrap();
    let served = InMemory::serve(plane.service().into_routes());
    let connection = served.connect().await;
    let path = "/example.LimitDiscoveryService/DeltaLimits";
    let mut call = connection.call(path, &[("content-type", "application/grpc")]).await;
    call.send(&DeltaDiscoveryRequest::default());
    let response = call.delta().await.unwrap();
    assert_eq!((response.type_url.as_str(), response.resources[0].name.as_str()), (limits.as_str(), "few"));
}

/// Who does not read is sent what is newest when it does; who reads is served meanwhile.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_costs_no_other_anything() {
    let plane = ControlPlane::new();
    let large = "x".repeat(1 << 20);
    plane.put("cart", &Cluster::new("cart", &large)).unwrap();
    let service = plane.service();
    let served = InMemory::serve(service.into_routes());
    let (slow, quick) = (served.connect().await, served.connect().await);
    let mut stuck = slow.aggregated(Protocol::Delta).await;
    stuck.send(&delta_wildcard());
    stuck.response().await;
    let mut call = quick.aggregated(Protocol::Delta).await;
    call.send(&delta_wildcard());
    for change in 0..100 {
        assert_eq!(next(&mut call).await, told(&["cart"], &[]));
        plane.put("cart", &Cluster::new("cart", &format!("{change}{large}"))).unwrap();
    }
    let mut sent = Vec::new();
    while sent.len() < 10 && !sent.last().is_some_and(|last: &Vec<u8>| last.windows(3).any(|part| part == b"99x")) {
        let response = stuck.delta().await.unwrap();
        stuck.send(&ack(&response));
        sent.push(response.resources[0].resource.as_ref().unwrap().value.to_vec());
    }
    assert!(sent.len() <= 3, "{}", sent.len());
}
