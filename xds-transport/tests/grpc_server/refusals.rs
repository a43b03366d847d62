//! What is not served is refused so that who asked knows what to do.

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use xds_transport::Protocol;

use crate::CDS;
use crate::call::{delta_wildcard, status_of};
use crate::plane::Plane;

const GRPC: (&str, &str) = ("content-type", "application/grpc");

#[tokio::test(start_paused = true)]
async fn rest_polling_is_not_implemented_and_says_so() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    for path in ["/v3/discovery:clusters", "/v3/discovery:listeners", "/v2/discovery:endpoints"] {
        let mut call = connection.call(path, &[("content-type", "application/json")]).await;
        assert_eq!(call.response().await.status(), StatusCode::NOT_IMPLEMENTED, "{path}");
        let words = call.chunk().await.unwrap();
        assert!(words.starts_with(b"REST polling is not supported: use api_type GRPC"), "{words:?}");
    }
    // As Envoy sends it.
    let mut http1 = served.connect_raw();
    let request = "POST /v3/discovery:clusters HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                   content-length: 2\r\nconnection: close\r\n\r\n{}";
    http1.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    http1.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 501 Not Implemented\r\n"), "{answer}");
    assert!(answer.contains("REST polling is not supported"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_grpc_is_an_unsupported_media_type() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    let path = Protocol::Delta.aggregated_method();
    for content_type in ["application/json", "application/grpc-web", "application/grpc+json", "text/html", ""] {
        let mut call = connection.call(path, &[("content-type", content_type)]).await;
        assert_eq!(call.response().await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type}");
    }
    let mut call = connection.call(path, &[]).await;
    assert_eq!(call.response().await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for content_type in ["application/grpc", "application/grpc+proto", "Application/GRPC; charset=utf-8"] {
        let mut call = connection.call(path, &[("content-type", content_type)]).await;
        call.send(&delta_wildcard());
        assert_eq!(call.response().await.status(), StatusCode::OK, "{content_type}");
        assert!(call.message().await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn grpc_over_http1_is_told_what_it_needs() {
    let served = Plane::small().serve();
    let mut http1 = served.connect_raw();
    let path = Protocol::Delta.aggregated_method();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    http1.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    http1.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_encoding_of_requests_is_refused_and_those_that_are_taken_are_named() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    let path = Protocol::Delta.aggregated_method();
    let mut call = connection.call(path, &[GRPC, ("grpc-encoding", "zstd")]).await;
    let response = call.response().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["grpc-accept-encoding"], "gzip,identity");
    let words = "requests in grpc-encoding zstd are not supported".to_owned();
    assert_eq!(status_of(response.headers()), (12, words));

    let mut call = connection.call(path, &[GRPC, ("grpc-encoding", "identity")]).await;
    call.send(&delta_wildcard());
    assert!(call.message().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_method_that_is_not_served_is_unimplemented() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    for path in ["/envoy.service.route.v3.VirtualHostDiscoveryService/StreamVirtualHosts", "/a/b", "/"] {
        let mut call = connection.call(path, &[GRPC]).await;
        let response = call.response().await;
        assert_eq!(status_of(response.headers()), (12, format!("no method {path}")));
    }
}

#[tokio::test(start_paused = true)]
async fn rule_003_a_method_of_one_type_implies_it() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    let mut call = connection.call("/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters", &[GRPC]).await;
    call.send(&xds_transport::wire::DeltaDiscoveryRequest::default());
    let response = call.delta().await.unwrap();
    assert_eq!((response.type_url.as_str(), response.resources.len()), (CDS, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_be_refused_for_what_it_says_before_any_request() {
    let plane = Plane::small();
    let served = plane.serve();
    let connection = served.connect().await;
    for path in [Protocol::Sotw.aggregated_method(), Protocol::Delta.aggregated_method()] {
        let mut call = connection.call(path, &[GRPC, ("x-refuse", "not you")]).await;
        let response = call.response().await;
        assert_eq!(status_of(response.headers()), (9, "not you".to_owned()));
    }
    assert_eq!(plane.count.all(), (0, 0, 0), "nothing was opened for it");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_answered_before_any_request() {
    let served = Plane::small().serve();
    let connection = served.connect().await;
    let path = Protocol::Delta.aggregated_method();
    let mut call = connection.call(path, &[GRPC, ("x-say", "hello")]).await;
    let response = call.response().await;
    assert_eq!(response.headers()["x-said"], "hello");
    assert_eq!(response.headers()["content-type"], "application/grpc");
    call.send(&delta_wildcard());
    assert!(call.message().await.is_some());
}
