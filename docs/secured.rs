//! Connections by TLS for tonic's `Server`: to copy from the chapter on what is secure.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use xds_transport::grpc::server::ClientCertificate;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How many connections wait for the server to take them.
const WAITING: usize = 16;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What `server.pem`, `server.key` and `clients.pem` of a directory say: who we are, and who may vouch for clients.
///
/// # Errors
/// One of them is not good.
pub fn config(directory: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let certificates = |file| CertificateDer::pem_file_iter(directory.join(file))?.collect::<Result<Vec<_>, _>>();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates("clients.pem")?);
    // For one of your own, give the builder another verifier.
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates("server.pem")?, PrivateKeyDer::from_pem_file(directory.join("server.key"))?)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// The connections that clients make, each by the configuration that is there when it begins.
pub fn connections(
    listener: TcpListener,
    config: watch::Receiver<Arc<ServerConfig>>,
) -> impl Stream<Item = io::Result<Secured>> {
    let (ready, connections) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while !ready.is_closed() {
            // Without descriptors there are none for a moment.
            let Ok((io, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (acceptor, ready) = (TlsAcceptor::from(config.borrow().clone()), ready.clone());
            // A task of its own: who is slow keeps nobody else waiting.
            tokio::spawn(async move {
                if let Ok(Ok(io)) = tokio::time::timeout(HANDSHAKE, Secured::accept(&acceptor, io)).await {
                    let _ = ready.send(Ok(io)).await;
                }
            });
        }
    });
    ReceiverStream::new(connections)
}

/// A connection to somebody who showed a certificate.
#[derive(Debug)]
pub struct Secured {
    io: TlsStream<TcpStream>,
    client: ClientCertificate,
}

impl Secured {
    async fn accept(acceptor: &TlsAcceptor, io: TcpStream) -> io::Result<Self> {
        io.set_nodelay(true)?;
        let io = acceptor.accept(io).await?;
        let chain = io.get_ref().1.peer_certificates().unwrap_or_default();
        let client = ClientCertificate::new(chain.iter().map(|one| one.to_vec()));
        let client = client.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no certificate"))?;
        Ok(Self { io, client })
    }
}

/// What is here is among the extensions of each request.
impl Connected for Secured {
    type ConnectInfo = ClientCertificate;

    fn connect_info(&self) -> ClientCertificate {
        self.client.clone()
    }
}

impl AsyncRead for Secured {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
