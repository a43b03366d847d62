//! TLS on both sides: who the relay is to clients, with files that count anew when they change, and whom it takes for an
//! origin.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use xds_transport::grpc::tls::{Accepting, Pem, ServerFiles, ServerTls, TlsError};
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::tls::{Tls, Validity};

use crate::causes::with_causes;
use crate::config::{Config, ListenTls, OriginTls};
use crate::error::Error;

/// Who is spoken to.
#[derive(Clone, Copy)]
pub(crate) enum With {
    /// Clients: in gRPC, and in HTTP/1 for an answer that says what is wrong.
    Clients,
    /// Who looks at the admin pages.
    Admin,
    /// Who orders what clients are served.
    Orders,
}

impl With {
    fn section(self) -> &'static str {
        match self {
            Self::Clients => "tls",
            Self::Admin => "admin.tls",
            Self::Orders => "orders.tls",
        }
    }

    fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Clients => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Self::Admin | Self::Orders => vec![b"http/1.1".to_vec()],
        }
    }
}

/// What they are spoken to with.
pub(crate) struct Downstream {
    tls: ServerTls,
    /// A program that brought it sees to it itself.
    is_brought: bool,
}

/// Other files, and what is made of them, to count from now on.
pub(crate) struct Replacement(ServerTls);

impl Downstream {
    /// Reads the files.
    ///
    /// # Errors
    /// One is not good.
    pub(crate) fn load(files: &ListenTls, with: With) -> Result<Self, Error> {
        let Replacement(tls) = Self::read(files, with)?;
        Ok(Self { tls, is_brought: false })
    }

    /// The same, for what has other files already.
    ///
    /// # Errors
    /// One is not good.
    pub(crate) fn read(files: &ListenTls, with: With) -> Result<Replacement, Error> {
        let ListenTls { certificate, key, client_ca } = files;
        let mut read = ServerFiles::new(certificate, key).with_alpn(with.alpn());
        if let Some(ca) = client_ca {
            read = read.with_client_ca(ca);
        }
        let others = [("key", Some(key.as_path())), ("client_ca", client_ca.as_deref())];
        ServerTls::load(read).map(Replacement).map_err(|error| of_field(with.section(), &error, &others))
    }

    /// Whether it can have other files: a program's is its own.
    pub(crate) fn is_of_files(&self) -> bool {
        !self.is_brought
    }

    /// Who comes from now on is spoken to with these.
    pub(crate) fn replace(&self, Replacement(others): Replacement) {
        self.tls.replace(&others);
    }

    /// As a program says.
    pub(crate) fn of(mut config: ServerConfig) -> Self {
        config.alpn_protocols = With::Clients.alpn();
        Self { tls: ServerTls::from_config(config), is_brought: true }
    }

    /// Begins to speak TLS on a connection, with the files as they were a moment ago.
    pub(crate) fn accept<I: AsyncRead + AsyncWrite + Unpin>(&self, io: I) -> Accepting<I> {
        self.tls.accept(io)
    }

    /// Between which times its certificates are good, as they were read last: a program's are its own.
    pub(crate) fn validity(&self) -> Vec<Validity> {
        self.tls.validity()
    }

    /// Reads the files again every so often. What is not good does not count, and is said once.
    pub(crate) async fn follow(self: Arc<Self>) {
        let looked = |looked| match looked {
            Ok(()) => {
                let certificate = self.tls.certificate().unwrap_or_default();
                tracing::info!(certificate = %certificate.display(), "certificates are read anew");
            }
            Err(error) => {
                tracing::warn!("new certificates do not count, those before do: {}", with_causes(&error));
            }
        };
        self.tls.follow(looked).await;
    }
}

/// Whether all certificates of a configuration that the relay shows are good at present, of which nobody is told before he shows
/// them.
///
/// # Errors
/// Which is not, and why.
pub(crate) fn check_dates(config: &Config) -> Result<(), Error> {
    let of_orders = config.orders.as_ref().map_or(&None, |orders| &orders.tls);
    let listening = [(With::Clients, &config.tls), (With::Admin, &config.admin_tls), (With::Orders, of_orders)];
    let downstream = listening.into_iter().filter_map(|(with, files)| Some((with, files.as_ref()?)));
    let downstream = downstream.map(|(with, files)| (with.section().to_owned(), &files.certificate));
    let of_origins = config.origins.iter().filter_map(|origin| {
        let (certificate, _) = origin.tls.as_ref()?.identity.as_ref()?;
        Some((config.field_of(origin, "tls"), certificate))
    });
    downstream.chain(of_origins).try_for_each(|(section, file)| {
        let checked = Pem::read(file).and_then(|pem| pem.check_date());
        checked.map_err(|error| of_field(&section, &error, &[]))
    })
}

/// Whom the relay takes for an origin, and who it says it is, as `field` says.
///
/// # Errors
/// A file is not good.
pub(crate) fn towards(origin: &OriginTls, field: &str) -> Result<Tls, Error> {
    let read = || {
        let tls = towards_files(origin);
        tls.check()?;
        match &origin.server_name {
            Some(name) => tls.with_server_name(name),
            None => Ok(tls),
        }
    };
    let key = origin.identity.as_ref().map(|(_, key)| key.as_path());
    read().map_err(|error| of_field(field, &error, &[("key", key), ("ca", origin.ca.as_deref())]))
}

/// The same, as it is in files.
pub(crate) fn towards_files(origin: &OriginTls) -> Tls {
    let mut files = TlsFiles::default();
    files.ca_certificate.clone_from(&origin.ca);
    files.identity.clone_from(&origin.identity);
    Tls::from_files(files)
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
