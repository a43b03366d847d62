//! Who sees the admin pages, who may change something there, and by which names they are reached: as the configuration says now.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http::HeaderMap;

use crate::bearers::{self, Bearers};
use crate::config::Config;
use crate::error::Error;
use crate::lock::lock;

pub(crate) struct AdminAccess {
    let_in: Mutex<LetIn>,
    hosts: Mutex<Arc<[String]>>,
}

/// Who is let in.
#[derive(Clone)]
pub(crate) struct LetIn {
    /// All may see the pages who reach them, if there are none.
    pub(crate) readers: Option<Arc<Bearers>>,
    pub(crate) writers: Writers,
}

/// Who may change something.
#[derive(Clone)]
pub(crate) enum Writers {
    /// Who may see it.
    Readers,
    /// Who carries one of these.
    Bearing(Arc<Bearers>),
    /// Who sees the pages is somebody, and nobody is said to be more.
    Nobody,
}

impl AdminAccess {
    pub(crate) fn new(let_in: LetIn, hosts: Vec<String>) -> Arc<Self> {
        Arc::new(Self { let_in: Mutex::new(let_in), hosts: Mutex::new(hosts.into()) })
    }

    /// Whether a request carries a token, where it must. Who may change something may see it, too.
    pub(crate) fn lets_in(&self, headers: &HeaderMap) -> bool {
        let LetIn { readers, writers } = self.let_in();
        let shown = bearers::shown(headers);
        let is_writer = || matches!(&writers, Writers::Bearing(tokens) if tokens.accepts(shown.as_ref()));
        readers.is_none_or(|tokens| tokens.accepts(shown.as_ref())) || is_writer()
    }

    /// Whether who is let in may change something.
    pub(crate) fn lets_change(&self, headers: &HeaderMap) -> bool {
        match self.let_in().writers {
            Writers::Readers => true,
            Writers::Bearing(tokens) => tokens.accepts(bearers::shown(headers).as_ref()),
            Writers::Nobody => false,
        }
    }

    /// All that there are.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Arc<Bearers>> {
        let LetIn { readers, writers } = self.let_in();
        let writers = if let Writers::Bearing(tokens) = writers { Some(tokens) } else { None };
        readers.into_iter().chain(writers)
    }

    fn let_in(&self) -> LetIn {
        lock(&self.let_in).clone()
    }

    pub(crate) fn hosts(&self) -> Arc<[String]> {
        lock(&self.hosts).clone()
    }

    pub(crate) fn let_in_only(&self, let_in: LetIn) {
        *lock(&self.let_in) = let_in;
    }

    pub(crate) fn set_hosts(&self, hosts: Vec<String>) {
        *lock(&self.hosts) = hosts.into();
    }
}

impl LetIn {
    /// All who get there, and who carries one of these tokens where there are some. They may change what can be changed.
    pub(crate) fn to_all(tokens: Option<Arc<Bearers>>) -> Self {
        Self { readers: tokens, writers: Writers::Readers }
    }

    /// Who may see the admin pages, and change something there, as a configuration says.
    ///
    /// # Errors
    /// A file is not good.
    pub(crate) fn to_admin(config: &Config) -> Result<Self, Error> {
        let load = |file: &Option<PathBuf>, field: &str| {
            let bad = |reason| Error::Field { field: field.to_owned(), reason };
            file.as_ref().map(|file| Bearers::load(file).map(Arc::new).map_err(bad)).transpose()
        };
        let readers = load(&config.admin_token, "admin.token")?;
        let by_certificate = config.admin_tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let writers = match load(&config.admin_write_token, "admin.write_token")? {
            Some(tokens) => Writers::Bearing(tokens),
            None if readers.is_some() || by_certificate => Writers::Nobody,
            None => Writers::Readers,
        };
        Ok(Self { readers, writers })
    }
}
