//! Which files a server's TLS is made with, and what is made of them.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use crate::grpc::tls::error::TlsError;
use crate::grpc::tls::pem::Pem;
use crate::grpc::tls::provider::provider;
use crate::grpc::tls::server::sessions::without_sessions;
use crate::grpc::tls::validity::{Role, Validity};

/// What gRPC speaks in TLS (RFC 7301).
pub(super) const ALPN: &[u8] = b"h2";

type Verifier = Result<Arc<dyn ClientCertVerifier>, Box<dyn Error + Send + Sync>>;
type MakeVerifier = Arc<dyn Fn(RootCertStore) -> Verifier + Send + Sync>;

/// Who a server is, and who may vouch for its clients. The files are PEM.
///
/// ```
/// use xds_transport::grpc::tls::{ServerFiles, ServerTls};
///
/// let files = ServerFiles::new("no/such.crt", "no/such.key").with_client_ca("no/such.pem");
/// assert!(ServerTls::load(files).unwrap_err().to_string().starts_with("no/such.pem: "));
/// ```
#[derive(Clone)]
pub struct ServerFiles {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    alpn: Vec<Vec<u8>>,
    verifier: Option<MakeVerifier>,
}

/// The files, as they are.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Pem,
    key: Pem,
    client_ca: Option<Pem>,
}

impl ServerFiles {
    /// The server's certificate, behind it those between it and who vouches for it, and its key. Clients are asked for no
    /// certificate.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        Self { certificate, key, client_ca: None, alpn: vec![ALPN.to_vec()], verifier: None }
    }

    /// Each client must show a certificate that one of these vouches for, each time that it connects: sessions are not resumed.
    #[must_use]
    pub fn with_client_ca(self, file: impl Into<PathBuf>) -> Self {
        Self { client_ca: Some(file.into()), ..self }
    }

    /// Clients are verified by what this makes, each time files are read, of those who may vouch for them: of nobody, if no
    /// file says. So it is for who asks for certificates and does without, or has rules of its own for SPIFFE domains.
    ///
    /// ```
    /// use rustls::server::WebPkiClientVerifier;
    /// use xds_transport::grpc::tls::{ServerFiles, provider};
    ///
    /// let files = ServerFiles::new("tls.crt", "tls.key").with_client_ca("clients.pem").with_verifier(|roots| {
    ///     let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    ///     Ok(verifier.allow_unauthenticated().build()?)
    /// });
    /// # drop(files);
    /// ```
    #[must_use]
    pub fn with_verifier(self, make: impl Fn(RootCertStore) -> Verifier + Send + Sync + 'static) -> Self {
        Self { verifier: Some(Arc::new(make)), ..self }
    }

    /// What may be spoken (ALPN), the preferred first, in place of HTTP/2 alone.
    #[must_use]
    pub fn with_alpn<P: Into<Vec<u8>>>(self, protocols: impl IntoIterator<Item = P>) -> Self {
        Self { alpn: protocols.into_iter().map(Into::into).collect(), ..self }
    }

    /// Reads them all.
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        let client_ca = self.client_ca.as_deref().map(Pem::read).transpose()?;
        Ok(Contents { certificate: Pem::read(&self.certificate)?, key: Pem::read(&self.key)?, client_ca })
    }

    /// What is made of them.
    pub(super) fn config(&self, contents: &Contents) -> Result<ServerConfig, TlsError> {
        let Contents { certificate, key, .. } = contents;
        let verifier = self.client_verifier(contents)?;
        let verifies = verifier.offer_client_auth();
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Provider)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificate.certificates()?, key.key()?)
            .map_err(|reason| TlsError::identity(certificate.file(), key.file(), reason))?;
        config.alpn_protocols.clone_from(&self.alpn);
        if verifies {
            without_sessions(&mut config);
        }
        Ok(config)
    }

    fn client_verifier(&self, contents: &Contents) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let roots = contents.client_ca.as_ref().map(Pem::roots).transpose()?;
        let file = contents.client_ca.as_ref().unwrap_or(&contents.certificate).file();
        match (&self.verifier, roots) {
            (Some(make), roots) => {
                make(roots.unwrap_or_else(RootCertStore::empty)).map_err(|error| TlsError::bad(file, error))
            }
            (None, Some(roots)) => WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .map_err(|error| TlsError::bad(file, error)),
            (None, None) => Ok(Arc::new(NoClientAuth)),
        }
    }
}

impl Contents {
    /// The server's certificate.
    pub(super) fn certificate(&self) -> &Pem {
        &self.certificate
    }

    /// Of all certificates.
    pub(super) fn validity(&self) -> Vec<Validity> {
        let authorities = self.client_ca.as_ref().map(|ca| (ca, Role::Authority));
        let files = [(&self.certificate, Role::Shown)].into_iter().chain(authorities);
        // What counts has been read as certificates before.
        files.flat_map(|(pem, role)| pem.validity(role).unwrap_or_default()).collect()
    }
}

impl fmt::Debug for ServerFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { certificate, key, client_ca, .. } = self;
        let mut debug = f.debug_struct("ServerFiles");
        debug.field("certificate", certificate).field("key", key).field("client_ca", client_ca).finish_non_exhaustive()
    }
}
