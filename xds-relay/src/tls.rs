//! TLS on both sides: who the relay is to clients, with files that count anew when they change, and whom it takes for an
//! origin.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::UnixTime;
use rustls::server::{NoClientAuth, ParsedCertificate, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tokio_rustls::{Accept, TlsAcceptor};
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::tls::pem::Pem;
use xdstp_client::tls::{Tls, TlsError, provider};

use crate::causes::with_causes;
use crate::config::{Config, ListenTls, OriginTls};
use crate::error::Error;

/// How often the files are looked at: whoever replaces them seldom waits for it.
const LOOK: Duration = Duration::from_secs(1);

/// Who is spoken to.
#[derive(Clone, Copy)]
pub(crate) enum With {
    /// Clients: in gRPC, and in HTTP/1 for an answer that says what is wrong.
    Clients,
    /// Who looks at the admin pages.
    Admin,
}

impl With {
    fn section(self) -> &'static str {
        match self {
            Self::Clients => "tls",
            Self::Admin => "admin.tls",
        }
    }

    fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Clients => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Self::Admin => vec![b"http/1.1".to_vec()],
        }
    }
}

/// What they are spoken to with.
pub(crate) enum Downstream {
    /// What a program brought, which sees to it itself.
    Brought(Arc<ServerConfig>),
    Files(Box<Followed>),
}

/// Files, and what is made of them.
pub(crate) struct Followed {
    with: With,
    current: Mutex<Current>,
}

struct Current {
    files: ListenTls,
    contents: Contents,
    config: Arc<ServerConfig>,
}

/// Other files, and what is made of them, to count from now on.
pub(crate) struct Replacement(Current);

/// The files, as they are.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Pem,
    key: Pem,
    client_ca: Option<Pem>,
}

impl Downstream {
    /// Reads the files.
    ///
    /// # Errors
    /// One is not good.
    pub(crate) fn load(files: &ListenTls, with: With) -> Result<Self, Error> {
        let Replacement(current) = Self::read(files, with)?;
        Ok(Self::Files(Box::new(Followed { with, current: Mutex::new(current) })))
    }

    /// The same, for what has other files already.
    ///
    /// # Errors
    /// One is not good.
    pub(crate) fn read(files: &ListenTls, with: With) -> Result<Replacement, Error> {
        let client_ca = files.client_ca.as_deref();
        Current::of(files, with)
            .map(Replacement)
            .map_err(|error| of_field(with.section(), &error, &[("key", Some(&files.key)), ("client_ca", client_ca)]))
    }

    /// Whether it can have other files: a program's is its own.
    pub(crate) fn is_of_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// Who comes from now on is spoken to with these.
    pub(crate) fn replace(&self, Replacement(current): Replacement) {
        if let Self::Files(followed) = self {
            *followed.lock() = current;
        }
    }

    /// As a program says.
    pub(crate) fn of(mut config: ServerConfig) -> Self {
        config.alpn_protocols = With::Clients.alpn();
        Self::Brought(Arc::new(config))
    }

    /// Begins to speak TLS on a connection, with the files as they were a moment ago.
    pub(crate) fn accept<I: AsyncRead + AsyncWrite + Unpin>(&self, io: I) -> Accept<I> {
        let config = match self {
            Self::Brought(config) => config.clone(),
            Self::Files(followed) => followed.lock().config.clone(),
        };
        TlsAcceptor::from(config).accept(io)
    }

    /// Reads the files again every so often. What is not good does not count, and is said once.
    pub(crate) async fn follow(self: Arc<Self>) {
        let Self::Files(followed) = &*self else { return std::future::pending().await };
        let mut said: Option<String> = None;
        loop {
            sleep(LOOK).await;
            let this = self.clone();
            // A disk may not answer.
            let looked = tokio::task::spawn_blocking(move || match &*this {
                Self::Brought(_) => Ok(false),
                Self::Files(followed) => followed.look(),
            });
            let looked = looked.await;
            let words = match looked {
                Ok(Ok(changed)) => {
                    if changed {
                        let certificate = followed.lock().files.certificate.clone();
                        tracing::info!(certificate = %certificate.display(), "certificates are read anew");
                    }
                    None
                }
                Ok(Err(error)) => Some(with_causes(&error)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(words) = words.as_ref().filter(|words| said.as_ref() != Some(words)) {
                tracing::warn!("new certificates do not count, those before do: {words}");
            }
            said = words;
        }
    }
}

impl Followed {
    /// Whether there was anything new.
    fn look(&self) -> Result<bool, TlsError> {
        let files = self.lock().files.clone();
        let contents = Contents::of(&files)?;
        if self.lock().contents == contents {
            return Ok(false);
        }
        let new = Current::made(files, contents, self.with)?;
        let mut current = self.lock();
        // Unless there are others meanwhile.
        let counts = current.files == new.files;
        if counts {
            *current = new;
        }
        Ok(counts)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn of(files: &ListenTls, with: With) -> Result<Self, TlsError> {
        Self::made(files.clone(), Contents::of(files)?, with)
    }

    fn made(files: ListenTls, contents: Contents, with: With) -> Result<Self, TlsError> {
        let config = Arc::new(contents.config(with)?);
        say_if_not_in_date(&contents.certificate);
        Ok(Self { files, contents, config })
    }
}

impl Contents {
    fn of(files: &ListenTls) -> Result<Self, TlsError> {
        let read = |file: &Path| Pem::read(file);
        let client_ca = files.client_ca.as_deref().map(read).transpose()?;
        Ok(Self { certificate: read(&files.certificate)?, key: read(&files.key)?, client_ca })
    }

    fn config(&self, with: With) -> Result<ServerConfig, TlsError> {
        let provider = provider();
        let verifier = match &self.client_ca {
            Some(ca) => WebPkiClientVerifier::builder_with_provider(Arc::new(ca.roots()?), provider.clone())
                .build()
                .map_err(|error| TlsError::bad(ca.file(), error))?,
            None => Arc::new(NoClientAuth),
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Provider)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.certificate.certificates()?, self.key.key()?)
            .map_err(|reason| TlsError::identity(self.certificate.file(), self.key.file(), reason))?;
        config.alpn_protocols = with.alpn();
        Ok(config)
    }
}

/// Whether all certificates of a configuration that the relay shows are good at present, of which nobody is told before he shows
/// them.
///
/// # Errors
/// Which is not, and why.
pub(crate) fn check_dates(config: &Config) -> Result<(), Error> {
    let listening = [(With::Clients, &config.tls), (With::Admin, &config.admin_tls)];
    let downstream = listening.into_iter().filter_map(|(with, files)| Some((with, files.as_ref()?)));
    let downstream = downstream.map(|(with, files)| (with.section().to_owned(), &files.certificate));
    let of_origins = config.origins.iter().filter_map(|origin| {
        let (certificate, _) = origin.tls.as_ref()?.identity.as_ref()?;
        Some((config.field_of(origin, "tls"), certificate))
    });
    downstream.chain(of_origins).try_for_each(|(section, file)| {
        let checked = Pem::read(file).and_then(|pem| check_date(&pem));
        checked.map_err(|error| of_field(&section, &error, &[]))
    })
}

fn check_date(pem: &Pem) -> Result<(), TlsError> {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    use rustls::Error::InvalidCertificate;
    let chain = pem.certificates()?;
    let Some((own, others)) = chain.split_first() else { return Ok(()) };
    let bad = |error: rustls::Error| TlsError::bad(pem.file(), error);
    let own = ParsedCertificate::try_from(own).map_err(bad)?;
    // Nobody vouches for it here: its dates are looked at before that.
    let nobody = RootCertStore::empty();
    let algorithms = provider().signature_verification_algorithms.all;
    match verify_server_cert_signed_by_trust_anchor(&own, &nobody, others, UnixTime::now(), algorithms) {
        Err(error @ InvalidCertificate(Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })) => {
            Err(bad(error))
        }
        _ => Ok(()),
    }
}

/// Clients may have another clock: that is said, and no reason to serve nobody.
fn say_if_not_in_date(pem: &Pem) {
    if let Err(error) = check_date(pem) {
        tracing::error!("who is shown this certificate refuses it: {error}");
    }
}

/// Whom the relay takes for an origin, and who it says it is, as `field` says.
///
/// # Errors
/// A file is not good.
pub(crate) fn towards(origin: &OriginTls, field: &str) -> Result<Tls, Error> {
    let mut files = TlsFiles::default();
    files.ca_certificate.clone_from(&origin.ca);
    files.identity.clone_from(&origin.identity);
    let read = || {
        let tls = Tls::from_files(files);
        tls.check()?;
        if let Some((certificate, _)) = &origin.identity {
            say_if_not_in_date(&Pem::read(certificate)?);
        }
        match &origin.server_name {
            Some(name) => tls.with_server_name(name),
            None => Ok(tls),
        }
    };
    let key = origin.identity.as_ref().map(|(_, key)| key.as_path());
    read().map_err(|error| of_field(field, &error, &[("key", key), ("ca", origin.ca.as_deref())]))
}

/// What is wrong, with the field that names the file: that of the certificate, where it is none of `others`.
fn of_field(section: &str, error: &TlsError, others: &[(&str, Option<&Path>)]) -> Error {
    let field = match error {
        TlsError::Unreadable { file, .. } | TlsError::Bad { file, .. } => {
            let named = others.iter().find(|(_, named)| *named == Some(file.as_path()));
            format!("{section}.{}", named.map_or("certificate", |(field, _)| field))
        }
        TlsError::Identity { .. } => format!("{section}.key"),
        TlsError::ServerName { .. } => format!("{section}.server_name"),
        _ => section.to_owned(),
    };
    Error::Field { field, reason: with_causes(error) }
}

/// Why a client is not spoken to by TLS.
pub(crate) fn refusal(error: &io::Error) -> String {
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<rustls::Error>());
    match reason {
        Some(rustls::Error::InvalidMessage(_)) => format!("it speaks clear text, or something else ({error})"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_not_good_does_not_replace_what_is() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            fs::write(directory.path().join(name), text).unwrap();
            directory.path().join(name)
        };
        let made = || rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let (first, second) = (made(), made());
        let files = ListenTls {
            certificate: write("a.pem", &first.cert.pem()),
            key: write("a.key", &first.signing_key.serialize_pem()),
            client_ca: None,
        };
        let Downstream::Files(tls) = Downstream::load(&files, With::Clients).unwrap() else { panic!("files") };
        let before = tls.lock().config.clone();
        assert!(!tls.look().unwrap(), "nothing is new");

        write("a.pem", &second.cert.pem());
        let error = tls.look().unwrap_err().to_string();
        assert!(error.contains("a.pem with the key "), "{error}");
        write("a.pem", "torn");
        tls.look().unwrap_err();
        fs::remove_file(&files.certificate).unwrap();
        tls.look().unwrap_err();
        assert!(Arc::ptr_eq(&tls.lock().config, &before));

        write("a.pem", &second.cert.pem());
        write("a.key", &second.signing_key.serialize_pem());
        assert!(tls.look().unwrap());
        assert!(!Arc::ptr_eq(&tls.lock().config, &before));
    }
}
