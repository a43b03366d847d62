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
        (Code::Unimplemented, _) => {
            let (asked, other) = (protocol.aggregated_method(), other(protocol));
            format!(
                "the origin has no {asked}: it may speak {other} (protocol: {other}), or have each type at a path of its \
                 own, which is not asked for here ({text})"
            )
        }
        _ => with_causes(text, status.source()),
    }
}

/// Whether it is for a message that is longer than is taken: tonic has a code for it, and these words.
pub(super) fn is_too_long(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("decoded message length too large")
}

fn other(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Delta => Protocol::Sotw.as_str(),
        Protocol::Sotw => Protocol::Delta.as_str(),
    }
}

/// An error and its causes: tonic's own texts say "transport error" only.
pub(crate) fn chain(error: &dyn Error) -> String {
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
