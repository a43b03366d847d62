//! What a connection says of its client, for whoever decides about a call.

use http::request::Parts;

/// The call, with all that its connection says of its client among its extensions, each by itself.
#[cfg(feature = "rustls-any")]
pub(super) fn of_client(mut request: Parts) -> Parts {
    crate::grpc::tls::TlsClient::unfold(&mut request.extensions);
    request
}

#[cfg(not(feature = "rustls-any"))]
pub(super) fn of_client(request: Parts) -> Parts {
    request
}
