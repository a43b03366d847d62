//! TLS to an origin, by rustls: who may vouch for it, and who we are to it.
//!
//! Files are read whenever a connection is made. One that was replaced counts from the next connection on, however it was
//! replaced, and streams that are open go on. While a file is not good no connection is made, and each attempt says
//! which file and why.
//!
//! ```
//! use xdstp_client::Endpoint;
//! use xdstp_client::bootstrap::TlsFiles;
//! use xdstp_client::tls::Tls;
//!
//! let mut files = TlsFiles::default();
//! files.ca_certificate = Some("no/such/ca.pem".into());
//! let tls = Tls::from_files(files).with_server_name("control-plane.example.com")?;
//! assert!(tls.check().unwrap_err().to_string().starts_with("no/such/ca.pem: "));
//!
//! let endpoint = Endpoint::new("10.0.0.1:18000")?.with_tls(tls);
//! assert_eq!(endpoint.uri(), "https://10.0.0.1:18000/");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tonic::transport::Uri;

use xds_transport::grpc::tls::Pem;
pub use xds_transport::grpc::tls::{ExpiryWatch, Reminder, Role, Stage, TlsError, Validity, provider};

use crate::bootstrap::TlsFiles;

/// What gRPC speaks in TLS (RFC 7301).
const ALPN: &[u8] = b"h2";

/// TLS to an origin: see [the module](self). Clones share what was read.
#[derive(Clone, Debug)]
pub struct Tls {
    from: From,
    server_name: Option<ServerName<'static>>,
}

#[derive(Clone, Debug)]
enum From {
    Files { files: TlsFiles, read: Arc<Mutex<Option<Read>>> },
    Config(Arc<ClientConfig>),
}

/// What was in the files, and what came of it: sessions are resumed for as long as it is the same.
#[derive(Debug)]
struct Read {
    contents: Contents,
    config: Arc<ClientConfig>,
}

/// The files in use, as they are.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    ca: Option<Pem>,
    identity: Option<(Pem, Pem)>,
}

impl Default for Tls {
    /// The system says who may vouch for the origin, and we are nobody.
    fn default() -> Self {
        Self::from_files(TlsFiles::default())
    }
}

impl Tls {
    /// TLS with what these files say. How often they are to be read again does not count: see [the module](self).
    #[must_use]
    pub fn from_files(files: TlsFiles) -> Self {
        Self { from: From::Files { files, read: Arc::default() }, server_name: None }
    }

    /// TLS with a configuration of one's own: a verifier, a source of certificates, a provider. ALPN is set to HTTP/2.
    #[must_use]
    pub fn from_config(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![ALPN.to_vec()];
        Self { from: From::Config(Arc::new(config)), server_name: None }
    }

    /// The origin must show a certificate of this name or address, whatever it is dialed by.
    ///
    /// # Errors
    /// It is neither.
    pub fn with_server_name(self, name: &str) -> Result<Self, TlsError> {
        Ok(Self { server_name: Some(server_name(name)?), ..self })
    }

    /// Reads the files, to know whether they are good.
    ///
    /// # Errors
    /// Which is not, and why.
    pub fn check(&self) -> Result<(), TlsError> {
        self.config().map(drop)
    }

    /// Between which times the certificates are good that the next connection is made with, ours and of who may vouch for the
    /// origin: reads files. Of a configuration, and of whom the system trusts, there are none.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use xdstp_client::tls::{ExpiryWatch, Tls, TlsError};
    ///
    /// /// To be called every so often.
    /// fn look(watch: &mut ExpiryWatch, tls: &Tls) -> Result<(), TlsError> {
    ///     for reminder in watch.look(tls.validity()?, SystemTime::now()) {
    ///         eprintln!("{reminder}");
    ///     }
    ///     Ok(())
    /// }
    /// # look(&mut ExpiryWatch::default(), &Tls::default()).unwrap();
    /// ```
    ///
    /// # Errors
    /// A file cannot be read, or is none of certificates.
    pub fn validity(&self) -> Result<Vec<Validity>, TlsError> {
        let From::Files { files, .. } = &self.from else { return Ok(Vec::new()) };
        let own = files.identity.as_ref().map(|(certificate, _)| (certificate, Role::Shown));
        let authorities = files.ca_certificate.as_ref().map(|ca| (ca, Role::Authority));
        let mut all = Vec::new();
        for (file, role) in own.into_iter().chain(authorities) {
            all.extend(Pem::read(file)?.validity(role)?);
        }
        Ok(all)
    }

    /// What a connection is made with: reads files.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let (files, read) = match &self.from {
            From::Config(config) => return Ok(config.clone()),
            From::Files { files, read } => (files, read),
        };
        let contents = Contents::of(files)?;
        let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.contents == contents) {
            return Ok(read.config.clone());
        }
        let config = Arc::new(contents.config()?);
        *read = Some(Read { contents, config: config.clone() });
        Ok(config)
    }

    /// What a connection is made with for who speaks something else in TLS (RFC 7301): reads files.
    ///
    /// ```
    /// use xdstp_client::bootstrap::TlsFiles;
    /// use xdstp_client::tls::Tls;
    ///
    /// let mut files = TlsFiles::default();
    /// files.ca_certificate = Some("no/such/ca.pem".into());
    /// assert!(Tls::from_files(files).config_for(b"http/1.1").is_err());
    /// ```
    ///
    /// # Errors
    /// A file is not good.
    pub fn config_for(&self, alpn: &[u8]) -> Result<Arc<ClientConfig>, TlsError> {
        let mut config = ClientConfig::clone(&*self.config()?);
        config.alpn_protocols = vec![alpn.to_vec()];
        Ok(Arc::new(config))
    }

    /// The name that the certificate of a server at an address must have.
    ///
    /// # Errors
    /// The address has no host that could be one.
    pub fn name_of(&self, uri: &Uri) -> Result<ServerName<'static>, TlsError> {
        self.server_name.clone().map_or_else(|| server_name(uri.host().unwrap_or_default()), Ok)
    }
}

impl Contents {
    fn of(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |file: &Path| Pem::read(file);
        let ca = files.ca_certificate.as_deref().map(read).transpose()?;
        let identity = match &files.identity {
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
            None => None,
        };
        Ok(Self { ca, identity })
    }

    fn config(&self) -> Result<ClientConfig, TlsError> {
        let roots = match &self.ca {
            Some(ca) => ca.roots()?,
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Provider)?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            Some((certificate, key)) => builder
                .with_client_auth_cert(certificate.certificates()?, key.key()?)
                .map_err(|reason| TlsError::identity(certificate.file(), key.file(), reason))?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // The system's own store may have some that rustls does not take.
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    Err(TlsError::NoSystemRoots { reasons: reasons.join("; ") })
}

fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(address.to_owned()).map_err(|_| TlsError::ServerName { name: host.to_owned() })
}
