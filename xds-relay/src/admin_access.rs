//! Who sees the admin pages, and by which names they are reached: as the configuration says now.

use std::sync::{Arc, Mutex};

use http::HeaderMap;

use crate::bearers::{self, Bearers};
use crate::config::Config;
use crate::error::Error;
use crate::lock::lock;

pub(crate) struct AdminAccess {
    /// All may see them who reach them, if there are none.
    tokens: Mutex<Option<Arc<Bearers>>>,
    hosts: Mutex<Arc<[String]>>,
}

impl AdminAccess {
    pub(crate) fn new(tokens: Option<Arc<Bearers>>, hosts: Vec<String>) -> Arc<Self> {
        Arc::new(Self { tokens: Mutex::new(tokens), hosts: Mutex::new(hosts.into()) })
    }

    /// Whether a request carries a token, where it must.
    pub(crate) fn lets_in(&self, headers: &HeaderMap) -> bool {
        self.tokens().is_none_or(|tokens| tokens.accepts(bearers::shown(headers).as_ref()))
    }

    pub(crate) fn tokens(&self) -> Option<Arc<Bearers>> {
        lock(&self.tokens).clone()
    }

    pub(crate) fn hosts(&self) -> Arc<[String]> {
        lock(&self.hosts).clone()
    }

    pub(crate) fn set_tokens(&self, tokens: Option<Arc<Bearers>>) {
        *lock(&self.tokens) = tokens;
    }

    pub(crate) fn set_hosts(&self, hosts: Vec<String>) {
        *lock(&self.hosts) = hosts.into();
    }
}

/// The tokens of who may look at the admin pages, if not all may.
///
/// # Errors
/// The file is not good.
pub(crate) fn admin_tokens(config: &Config) -> Result<Option<Arc<Bearers>>, Error> {
    let bad = |reason| Error::Field { field: "admin.token".to_owned(), reason };
    config.admin_token.as_ref().map(|file| Bearers::load(file).map(Arc::new).map_err(bad)).transpose()
}
