//! Whether a server can be reached, for who counts that.

use std::sync::Arc;

use crate::federation::observer::Reached;
use crate::federation::server::Server;

/// As one stream knows it.
pub(super) struct Reachable {
    server: Arc<Server>,
    /// None: nothing is known yet.
    is: Option<Reached>,
}

impl Reachable {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, is: None }
    }

    /// There is a stream, which says nothing of a server that failed before (gRFC A78).
    pub(super) fn opened(&mut self) {
        if self.is.is_none() {
            self.turn(Reached::Opened);
        }
    }

    pub(super) fn answered(&mut self) {
        self.turn(Reached::Answered);
    }

    /// A stream ended without an answer, or there was none.
    pub(super) fn failed(&mut self) {
        self.turn(Reached::Failed);
    }

    /// It is another server: nothing is known of that.
    pub(super) fn forget(&mut self) {
        let was = self.is.take();
        if was.is_some() {
            self.server.observer.reached(&self.server.name, was, None);
        }
    }

    fn turn(&mut self, is: Reached) {
        let was = self.is.replace(is);
        if was != Some(is) {
            self.server.observer.reached(&self.server.name, was, Some(is));
        }
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        self.forget();
    }
}
