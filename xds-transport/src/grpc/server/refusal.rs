//! Requests that are no gRPC of ours, answered so that who reads the answer knows what to do.

use axum::body::Body;
use http::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use tonic::Status;

/// An answer in plain HTTP to what is no gRPC at all.
pub(crate) fn of_other_protocols<B>(request: &Request<B>) -> Option<Response<Body>> {
    if is_rest(request.uri().path()) {
        let words =
            "REST polling is not supported: use api_type GRPC, DELTA_GRPC, AGGREGATED_GRPC or AGGREGATED_DELTA_GRPC\n";
        return Some(plain(StatusCode::NOT_IMPLEMENTED, words));
    }
    let content_type = request.headers().get(CONTENT_TYPE).map_or(b"".as_slice(), HeaderValue::as_bytes);
    if !is_grpc(content_type) {
        return Some(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected content-type: application/grpc\n"));
    }
    if request.version() < Version::HTTP_2 {
        return Some(plain(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2\n"));
    }
    if request.method() != http::Method::POST {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "gRPC needs POST\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Some(response);
    }
    None
}

/// An answer to requests in an encoding that is not taken: it says which are.
pub(crate) fn of_encoding(encoding: &[u8]) -> Response<Body> {
    let encoding = String::from_utf8_lossy(encoding).escape_debug().to_string();
    let mut response =
        Status::unimplemented(format!("requests in grpc-encoding {encoding} are not supported")).into_http();
    name_encodings(response.headers_mut());
    response
}

/// Requests may be compressed. Responses are not: their bodies are shared by all who are sent them.
pub(crate) fn name_encodings(headers: &mut HeaderMap) {
    headers.insert("grpc-encoding", HeaderValue::from_static("identity"));
    headers.insert("grpc-accept-encoding", HeaderValue::from_static("gzip,identity"));
}

/// `/v3/discovery:clusters` and its like: Envoy's `api_type: REST`.
fn is_rest(path: &str) -> bool {
    let version_and_method = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    version_and_method
        .is_some_and(|(version, method)| ["v2", "v3"].contains(&version) && method.starts_with("discovery:"))
}

/// Messages are protobuf; parameters are nobody's business.
fn is_grpc(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    [b"application/grpc".as_slice(), b"application/grpc+proto"].iter().any(|grpc| essence.eq_ignore_ascii_case(grpc))
}

fn plain(status: StatusCode, words: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::new(http_body_util::Full::from(words)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_method_is_told_which_one_there_is() {
        let request = |method: &str| {
            let request = Request::builder().method(method).version(Version::HTTP_2).uri("/a.Service/Method");
            request.header(CONTENT_TYPE, "application/grpc").body(()).unwrap()
        };
        assert!(of_other_protocols(&request("POST")).is_none());
        let refused = of_other_protocols(&request("GET")).unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers().get(ALLOW).unwrap(), "POST");
    }
}
