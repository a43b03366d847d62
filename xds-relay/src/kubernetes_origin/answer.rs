//! What is in an answer, as it comes.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::task::JoinHandle;

use super::failure::Failure;
use crate::causes::with_causes;

/// An answer that has begun.
pub(super) struct Answer {
    body: Incoming,
    _connection: Connection,
}

/// A connection that ends with this.
pub(super) struct Connection(pub(super) JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Answer {
    pub(super) fn new(body: Incoming, connection: Connection) -> Self {
        Self { body, _connection: connection }
    }

    /// What comes next: nothing at its end. Who stops waiting misses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            match frame.transpose().map_err(|error| Failure::Unreached(with_causes(&error)))? {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// All of it, if it is not more than so much.
    pub(super) async fn whole(mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            if whole.len() + bytes.len() > most {
                return Err(Failure::TooMuch(most));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}
