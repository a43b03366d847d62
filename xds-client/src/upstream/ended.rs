//! Why a stream ended, in words that say what to do where something can be done.

use std::error::Error;

use tonic::{Code, Status};
use xds_transport::grpc::client::NotGrpc;
use xds_transport::{Protocol, TypeService};
use xdstp_cache::ResourceError;

use crate::endpoint::Methods;

/// What a stream that speaks `protocol`, by such methods, ended with.
pub(super) fn words(status: &Status, protocol: Protocol, methods: &Methods) -> String {
    let text = text(status);
    match (status.code(), methods) {
        _ if !is_grpc(status) => text,
        (Code::Unimplemented, Methods::Aggregated) => {
            let (asked, other) = (protocol.aggregated_method(), other(protocol));
            format!(
                "the origin has no {asked}: it may speak {other} (protocol: {other}), or have a method for each type \
                 (methods: per_type) ({text})"
            )
        }
        (Code::Unimplemented, Methods::OfType(service)) => no_method(service, protocol, &text),
        (Code::Unimplemented, Methods::PerType) => {
            let other = other(protocol);
            format!(
                "the origin has no method for any type that is asked for: it may speak {other} (protocol: {other}), or have \
                 one method for all types (methods: ads) ({text})"
            )
        }
        _ => with_causes(text, status.source()),
    }
}

/// Whether it is for a method that the origin does not have.
pub(super) fn has_no_method(status: &Status) -> bool {
    status.code() == Code::Unimplemented && is_grpc(status)
}

/// Where gRPC is not spoken, neither protocol is.
fn is_grpc(status: &Status) -> bool {
    status.source().is_none_or(|source| !source.is::<NotGrpc>())
}

/// What the stream of one type ended with, beside others.
pub(super) fn words_of_type(status: &Status) -> String {
    with_causes(text(status), status.source())
}

/// It was closed from here, for what came on it.
pub(super) fn unread(words: &str) -> ResourceError {
    ResourceError::new(Code::Internal as i32, words)
}

/// That there is no method of a service, which was found out by such an end.
pub(super) fn no_method(service: &TypeService, protocol: Protocol, text: &str) -> String {
    format!("the origin has no {} ({text})", service.method(protocol))
}

/// A status as it came.
pub(super) fn text(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
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
