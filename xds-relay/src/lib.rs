#![doc = include_str!("../README.md")]

use std::{future::Future, io, net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, sync::oneshot, time::timeout};

pub mod admin;
pub mod config;
pub mod metrics;

pub use crate::config::{Config, ConfigError, ExampleMesh};

/// Why a relay cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({field}): {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The field of the configuration that names it.
        field: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A server failed.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}

/// A relay that has its addresses.
#[derive(Debug)]
pub struct Relay {
    config: Config,
    listener: TcpListener,
    admin: Option<TcpListener>,
}

/// Runs a relay until `shutdown` resolves and its streams are drained.
///
/// # Errors
/// An address is taken, or a server fails.
pub async fn run(config: Config, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    Relay::bind(config).await?.run(shutdown).await
}

impl Relay {
    /// Takes the addresses of the configuration.
    ///
    /// # Errors
    /// An address is taken or not of this machine.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let listener = listen(config.listen, "listen").await?;
        let admin = match config.admin {
            Some(address) => Some(listen(address, "admin").await?),
            None => None,
        };
        Ok(Self { config, listener, admin })
    }

    /// Where xDS is served.
    ///
    /// # Errors
    /// The system does not say.
    pub fn listen_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where the admin pages are, if anywhere.
    ///
    /// # Errors
    /// The system does not say.
    pub fn admin_address(&self) -> io::Result<Option<SocketAddr>> {
        self.admin.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// Serves until `shutdown` resolves, then drains for at most the configured time.
    ///
    /// # Errors
    /// A server fails.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let (stop, stopped) = oneshot::channel::<()>();
        let admin = async {
            match self.admin {
                Some(listener) => {
                    let stopped = async move { drop(stopped.await) };
                    admin::serve(listener, Arc::new(Placeholder(metrics::Metrics::new([]))), stopped).await
                }
                None => stopped.await.or(Ok(())),
            }
        };
        tokio::pin!(admin);
        tokio::select! {
            result = &mut admin => result?,
            () = shutdown => {
                drop(stop);
                timeout(self.config.drain, admin).await.unwrap_or(Ok(()))?;
            }
        }
        Ok(())
    }
}

async fn listen(address: SocketAddr, field: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, field, source })
}

/// Stands where the relay will be.
struct Placeholder(metrics::Metrics);

impl admin::Inspect for Placeholder {
    fn ready(&self) -> admin::Readiness {
        admin::Readiness::NotReady("the relay core is not built in".to_owned())
    }

    fn config_dump(&self) -> admin::ConfigDump {
        admin::ConfigDump::default()
    }

    fn metrics(&self) -> &metrics::Metrics {
        &self.0
    }

    fn gauges(&self) -> metrics::Gauges {
        metrics::Gauges::default()
    }
}
