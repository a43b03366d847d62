//! What clients do, told to who listens.

use std::sync::{Arc, OnceLock};

use thiserror::Error;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use crate::grpc::server::client::Client;
use crate::server::Answer;

/// How many events wait for who listens.
const WAITING: usize = 1024;
/// How much of what a client says is told.
const WORDS: usize = 1024;

/// What a client did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Who did it.
    pub client: Client,
    /// What it was.
    pub what: What,
}

/// What a client may do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// It sent its first request, which says who it is.
    Came,
    /// It accepted a response.
    Accepted {
        /// The type of the response.
        type_url: TypeUrl,
        /// Its nonce.
        nonce: u64,
        /// What is in it; nothing, where it is a full state, which has all there is.
        resources: Arc<[ResourceName]>,
    },
    /// It rejected a response.
    Rejected {
        /// The type of the response.
        type_url: TypeUrl,
        /// Its nonce.
        nonce: u64,
        /// What is in it; nothing, where it is a full state, which has all there is.
        resources: Arc<[ResourceName]>,
        /// What the client said, or how that begins.
        message: String,
    },
    /// Its stream is over.
    Left,
}

impl What {
    pub(crate) fn of(type_url: &TypeUrl, answer: &Answer<'_>) -> Self {
        let (type_url, nonce, resources) = (type_url.clone(), answer.nonce, answer.resources.into());
        match answer.error {
            None => Self::Accepted { type_url, nonce, resources },
            Some(error) => Self::Rejected { type_url, nonce, resources, message: error.chars().take(WORDS).collect() },
        }
    }
}

/// What clients do, in order. Nobody waits for who listens: who is a thousand events behind misses the oldest.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

/// So many events were not listened to in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} events were missed")]
pub struct Missed(pub u64);

impl Events {
    /// The next one, once it happens; or how many were missed before it. `None` when nobody is left who could do anything.
    pub async fn next(&mut self) -> Option<Result<Event, Missed>> {
        match self.0.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Lagged(missed)) => Some(Err(Missed(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Tells events to all who listen. Before anybody does, it takes no memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sender(Arc<OnceLock<broadcast::Sender<Event>>>);

impl Sender {
    pub(crate) fn subscribe(&self) -> Events {
        Events(self.0.get_or_init(|| broadcast::Sender::new(WAITING)).subscribe())
    }

    /// Costs nothing where nobody listens.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(events) = self.0.get().filter(|events| events.receiver_count() > 0) {
            let _ = events.send(event());
        }
    }
}
