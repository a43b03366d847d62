//! A client of one server, where more is to be said.

#[cfg(feature = "state")]
use std::path::PathBuf;
use std::sync::Arc;

use xdstp_uri::Scheme;

use super::beside::Beside;
use super::brought::Brought;
use super::inner::Inner;
#[cfg(feature = "state")]
use super::kept;
use super::{Client, one_server};
use crate::endpoint::Endpoint;
use crate::federation::Documents;

/// What is said of a client of one server before it is made: see [`Client::single`].
pub struct Single {
    endpoint: Endpoint,
    brought: Brought,
    #[cfg(feature = "state")]
    directory: Option<PathBuf>,
}

impl Single {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            brought: Brought::default(),
            #[cfg(feature = "state")]
            directory: None,
        }
    }

    /// Reads files at `file:` locators by this: see [`Builder::files`](super::Builder::files).
    #[must_use]
    pub fn files(self, files: impl Documents) -> Self {
        self.documents(Scheme::File, files)
    }

    /// Fetches what is at `http:` locators by this: see [`Builder::http`](super::Builder::http).
    #[must_use]
    pub fn http(self, http: impl Documents) -> Self {
        self.documents(Scheme::Http, http)
    }

    /// Keeps what the server says in this directory: see [`Builder::state`](super::Builder::state).
    #[cfg(feature = "state")]
    #[must_use]
    pub fn state(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..self }
    }

    /// The client. Outside of a tokio runtime nothing can be watched by it.
    pub fn build(self) -> Client {
        let own = self.endpoint.selector.clone();
        #[cfg(feature = "state")]
        let shared = match self.directory {
            Some(directory) => kept::one_server(self.endpoint, &self.brought, directory),
            None => one_server::shared(self.endpoint, &self.brought, None),
        };
        #[cfg(not(feature = "state"))]
        let shared = one_server::shared(self.endpoint, &self.brought, None);
        Client(Arc::new(Inner { shared: Arc::new(shared), own, beside: Beside::default() }))
    }

    fn documents(mut self, scheme: Scheme, documents: impl Documents) -> Self {
        self.brought.documents.insert(scheme, Arc::new(documents));
        self
    }
}
