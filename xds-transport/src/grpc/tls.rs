//! TLS, by rustls: certificates and keys in files, and a server's connections.
//!
//! A server's files are looked at once a second, and what is in them counts from the next handshake on, however they were
//! replaced: Kubernetes and cert-manager move a link. Streams that are open go on. What is not good does not count, and what
//! did before still does. That a certificate is about to expire is said in time: a notice has it.
//!
//! ```
//! use tonic::transport::Server;
//! use tonic::transport::server::TcpIncoming;
//! use xds_transport::grpc::server::ControlPlane;
//! use xds_transport::grpc::tls::{ServerFiles, ServerTls};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let files = ServerFiles::new("/etc/xds/tls.crt", "/etc/xds/tls.key").with_client_ca("/etc/xds/clients.pem");
//! let tls = ServerTls::load(files)?;
//! let connections = TcpIncoming::bind("[::]:18000".parse()?)?.with_nodelay(Some(true));
//! let plane = ControlPlane::new();
//! Server::builder()
//!     .add_routes(plane.service().into_routes())
//!     .serve_with_incoming(tls.incoming(connections).with_notices(|notice| eprintln!("{notice}")))
//!     .await?;
//! # Ok(())
//! # }
//! let error = ServerTls::load(ServerFiles::new("no/such.pem", "no/such.key")).unwrap_err();
//! assert!(error.to_string().starts_with("no/such.pem: "));
//! ```

mod error;
mod expiry;
mod pem;
mod provider;
#[cfg(feature = "grpc-server")]
mod server;
mod validity;

pub use self::error::TlsError;
pub use self::expiry::{ExpiryWatch, Reminder};
pub use self::pem::Pem;
pub use self::provider::provider;
#[cfg(feature = "grpc-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc-server")))]
pub use self::server::{Accepting, HandshakeError, Incoming, Notice, Secured, ServerFiles, ServerTls, TlsClient};
pub use self::validity::{Role, Stage, Validity};
