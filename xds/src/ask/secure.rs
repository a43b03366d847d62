//! TLS, as the command line asks for it.

use std::path::PathBuf;

use xdstp_client::Endpoint;
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::tls::{Tls, TlsError};

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Args {
    /// Speak TLS, with whom the system trusts; so do the next four
    #[arg(long)]
    tls: bool,
    /// Who may vouch for the server, in place of whom the system trusts: a PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Our certificate, for a server that asks for one: a PEM file
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of our certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that the server's certificate must have, in place of the one in --server
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
}

impl Args {
    /// The endpoint, with TLS if it is asked for.
    ///
    /// # Errors
    /// A file is not good, or the name is none.
    pub(crate) fn secure(&self, endpoint: Endpoint) -> Result<Endpoint, TlsError> {
        let Self { tls, ca, cert, key, server_name } = self;
        if !tls && ca.is_none() && cert.is_none() && server_name.is_none() {
            return Ok(endpoint);
        }
        let mut files = TlsFiles::default();
        files.ca_certificate.clone_from(ca);
        files.identity = cert.clone().zip(key.clone());
        let tls = Tls::from_files(files);
        let tls = match server_name {
            Some(name) => tls.with_server_name(name)?,
            None => tls,
        };
        tls.check()?;
        Ok(endpoint.with_tls(tls))
    }
}
