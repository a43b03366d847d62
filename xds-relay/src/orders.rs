//! Taking orders: where, from whom, and how they are spoken to.

use std::future::Future;
use std::io;
use std::sync::Arc;

use crate::admin::{Inspect, Secured, orders};
use crate::admin_access::{AdminAccess, LetIn};
use crate::bearers::Bearers;
use crate::config::{Address, Config};
use crate::error::Error;
use crate::socket::Listener;
use crate::tls::{Downstream, With};

/// A relay's address for orders.
pub(crate) struct Orders {
    listener: Listener,
    pub(crate) guards: OrderGuards,
}

/// Who is let in, and how they are spoken to.
#[derive(Clone)]
pub(crate) struct OrderGuards {
    pub(crate) access: Arc<AdminAccess>,
    pub(crate) tls: Option<Arc<Downstream>>,
}

impl Orders {
    /// Takes the address, if there is to be one.
    ///
    /// # Errors
    /// Somebody has it, or a file is not good.
    pub(crate) fn bind(config: &Config) -> Result<Option<Self>, Error> {
        let Some(orders) = &config.orders else { return Ok(None) };
        let tls = orders.tls.as_ref().map(|files| Downstream::load(files, With::Orders)).transpose()?;
        let access = AdminAccess::new(LetIn::to_all(order_tokens(config)?), config.admin_hosts.clone());
        let listener = Listener::bind_private(&orders.address);
        let bad = |source| Error::Listen { address: orders.address.clone(), field: "orders", source };
        let listener = listener.map_err(bad)?;
        Ok(Some(Self { listener, guards: OrderGuards { access, tls: tls.map(Arc::new) } }))
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn address(&self) -> io::Result<Address> {
        self.listener.address()
    }

    /// Takes orders until `shutdown` resolves.
    ///
    /// # Errors
    /// The listener fails.
    pub(crate) async fn serve(
        self,
        relay: Arc<dyn Inspect>,
        config: &Config,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let OrderGuards { access, tls } = self.guards;
        let listener = Secured::new(self.listener, tls);
        orders::serve(access, listener, relay, config.limits.admin_idle, shutdown).await
    }
}

/// The tokens of who may order, if not all may who get there.
///
/// # Errors
/// The file is not good.
pub(crate) fn order_tokens(config: &Config) -> Result<Option<Arc<Bearers>>, Error> {
    let bad = |reason| Error::Field { field: "orders.token".to_owned(), reason };
    let file = config.orders.as_ref().and_then(|orders| orders.token.as_ref());
    file.map(|file| Bearers::load(file).map(Arc::new).map_err(bad)).transpose()
}
