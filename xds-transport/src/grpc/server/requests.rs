//! Reading the requests of one stream: by a task of its own, because a response body whose window
//! is full is not polled, and two full windows must not wait for each other.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;

use crate::grpc::now;
use crate::grpc::server::service::StreamState;
use crate::grpc::server::unfinished::Share;
use crate::server::{ProtocolError, Source};

/// Length of the gRPC message prefix: a flag and four bytes of length.
const PREFIX: usize = 5;

/// Hands every request to the stream until the client sends no more.
pub(crate) async fn read<S: Source + Send + 'static>(
    mut body: Body,
    state: Arc<StreamState<S>>,
    limit: usize,
    mut unfinished: Share,
) {
    let mut buffer = BytesMut::new();
    let end = loop {
        match body.frame().await {
            None if buffer.is_empty() => return state.half_close(),
            None => break Status::internal("the requests end within one"),
            Some(Err(status)) => break Status::cancelled(status.to_string()),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    buffer.extend_from_slice(&data);
                    if let Err(status) = handle_messages(&mut buffer, &state, limit) {
                        break status;
                    }
                    if let Err(error) = unfinished.keep(buffer.len()) {
                        break state.refusal(&error);
                    }
                    if buffer.is_empty() {
                        // The first request may have been large, and the next one is an ACK.
                        buffer = BytesMut::new();
                    }
                }
            }
        }
    };
    state.end_with(end);
}

fn handle_messages<S: Source>(buffer: &mut BytesMut, state: &StreamState<S>, limit: usize) -> Result<(), Status> {
    let mut work = false;
    while let Some(message) = next_message(buffer, state, limit)? {
        let mut inner = state.lock();
        let inner = &mut *inner;
        let Some(source) = inner.source.as_mut() else { return Ok(()) };
        inner.stream.handle_message(now(), message, source).map_err(|error| status_of(&error))?;
        // Most requests are ACKs that leave nothing to do.
        work = inner.stream.has_work(source);
    }
    if work {
        state.wake.wake();
    }
    Ok(())
}

fn next_message<S: Source>(
    buffer: &mut BytesMut,
    state: &StreamState<S>,
    limit: usize,
) -> Result<Option<Bytes>, Status> {
    let Some((prefix, _)) = buffer.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let [flag, length @ ..] = *prefix;
    if flag != 0 {
        // An encoding was not declared: one that is, is refused before.
        return Err(Status::internal("a compressed request without grpc-encoding"));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(state.refusal(&ProtocolError::TooLong { what: "request", length, limit }));
    }
    if buffer.len() < PREFIX + length {
        return Ok(None);
    }
    buffer.advance(PREFIX);
    Ok(Some(buffer.split_to(length).freeze()))
}

pub(crate) fn status_of(error: &ProtocolError) -> Status {
    Status::new(tonic::Code::from_i32(error.code()), error.to_string())
}
