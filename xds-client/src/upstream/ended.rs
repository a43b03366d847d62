//! Why a stream ended, in words that say what to do where something can be done.

use std::error::Error;

use tonic::{Code, Status};
use xds_transport::Protocol;
use xds_transport::grpc::client::NotGrpc;

/// What a stream that speaks `protocol` ended with.
pub(super) fn words(status: &Status, protocol: Protocol) -> String {
    let text = format!("{:?}: {}", status.code(), status.message());
    // Where gRPC is not spoken, neither protocol is.
    let is_grpc = status.source().is_none_or(|source| !source.is::<NotGrpc>());
    match (status.code(), protocol) {
        _ if !is_grpc => text,
        (Code::Unimplemented, Protocol::Delta) => {
            format!("the origin does not serve delta: set protocol: sotw ({text})")
        }
        (Code::Unimplemented, Protocol::Sotw) => {
            format!("the origin does not serve sotw: set protocol: delta ({text})")
        }
        _ => with_causes(text, status.source()),
    }
}

/// An error and its causes: tonic's own texts say "transport error" only.
pub(super) fn chain(error: &dyn Error) -> String {
    with_causes(error.to_string(), error.source())
}

fn with_causes(mut text: String, mut cause: Option<&dyn Error>) -> String {
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}
