//! Who is at the other end of a connection by TLS.

use std::fmt;
use std::sync::Arc;

use http::Extensions;
use tonic::transport::server::TcpConnectInfo;

use crate::grpc::server::ClientCertificate;

/// Who is at the other end of a connection by TLS: what the connection below says of it, and the certificate that it showed. It
/// is among the extensions of each request, for layers and services; [`Opened`](crate::grpc::server::Opened) has what is in it,
/// each by itself. Clones share it.
///
/// ```
/// use std::net::SocketAddr;
/// use xds_transport::grpc::tls::TlsClient;
///
/// fn who(request: &http::Extensions) -> Option<(SocketAddr, Option<&str>)> {
///     let client: &TlsClient = request.get()?;
///     let shown = client.certificate();
///     Some((client.peer()?, shown.map(|shown| shown.subject())))
/// }
/// ```
#[derive(Clone)]
pub struct TlsClient(Arc<Extensions>);

impl TlsClient {
    /// Who is at the other end of this, and showed nothing yet.
    pub(super) fn new(below: impl Clone + Send + Sync + 'static) -> Self {
        let mut extensions = Extensions::new();
        extensions.insert(below);
        Self(Arc::new(extensions))
    }

    /// The same, who showed this.
    pub(super) fn showing(self, certificate: Option<ClientCertificate>) -> Self {
        let Some(certificate) = certificate else { return self };
        let mut extensions = Arc::unwrap_or_clone(self.0);
        extensions.insert(certificate);
        Self(Arc::new(extensions))
    }

    /// What it proved to be, if it was asked to.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        self.0.get()
    }

    /// Where it is, if it came over TCP.
    pub fn peer(&self) -> Option<std::net::SocketAddr> {
        self.below::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr)
    }

    /// What the connection below says of it: of TCP a [`TcpConnectInfo`], of others what their
    /// [`Connected`](tonic::transport::server::Connected) has.
    pub fn below<C: Send + Sync + 'static>(&self) -> Option<&C> {
        self.0.get()
    }

    /// Has what is in it stand for itself.
    pub(crate) fn unfold(extensions: &mut Extensions) {
        if let Some(Self(told)) = extensions.get().cloned() {
            extensions.extend(Arc::unwrap_or_clone(told));
        }
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.certificate().map(ClientCertificate::subject);
        f.debug_struct("TlsClient").field("peer", &self.peer()).field("subject", &subject).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};
    use tonic::transport::server::Connected;

    use super::*;

    #[tokio::test]
    async fn a_client_is_where_its_connection_says_and_nowhere_if_that_says_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        assert_eq!(TlsClient::new(far.connect_info()).peer(), Some(near.local_addr().unwrap()));
        assert_eq!(TlsClient::new(()).peer(), None);
    }
}
