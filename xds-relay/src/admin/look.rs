//! Looking at the relay, one at a time: it takes time, and memory.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::admin::inspect::Inspect;

/// How many orders wait for what is kept, at most.
const ORDERS: usize = 4;

/// What the pages are of.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) relay: Arc<dyn Inspect>,
    /// A dump is as large as the relay's state in names: one look at a time bounds the memory.
    looks: Arc<Semaphore>,
    /// What an origin said is as large: one comparison at a time, which looks may come between.
    pub(super) comparisons: Arc<Semaphore>,
    /// What reads what is kept waits for a disk: no other look waits for that.
    pub(super) past: Arc<Semaphore>,
    /// So does what is ordered: so many at a time.
    pub(super) orders: Arc<Semaphore>,
    /// Whether they have buttons.
    pub(super) takes_orders: bool,
}

impl Pages {
    pub(super) fn new(relay: Arc<dyn Inspect>) -> Self {
        let (looks, comparisons) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        let (past, orders) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(ORDERS)));
        Self { relay, looks, comparisons, past, orders, takes_orders: false }
    }

    /// The same where orders are taken.
    pub(super) fn taking_orders(relay: Arc<dyn Inspect>) -> Self {
        Self { takes_orders: true, ..Self::new(relay) }
    }

    /// The same of what is kept of releases.
    pub(super) fn of_past(self) -> Self {
        Self { looks: self.past.clone(), ..self }
    }

    /// What is seen of the relay, on a thread that may block.
    ///
    /// # Errors
    /// It shuts down, or what looks fails: an answer that says so.
    pub(super) async fn look<T: Send + 'static>(
        self,
        look: impl FnOnce(&dyn Inspect) -> T + Send + 'static,
    ) -> Result<T, Response> {
        // The permit goes along, so that a client that hangs up does not let the next look start beside this one.
        let Ok(permit) = self.looks.acquire_owned().await else { return Err(failed("shutting down")) };
        let looked = spawn_blocking(move || {
            let found = look(&*self.relay);
            drop(permit);
            found
        });
        looked.await.map_err(|error| failed(&error.to_string()))
    }
}

pub(super) fn failed(reason: &str) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")).into_response()
}
