//! TLS, as the command line asks for it.

use std::error::Error;
use std::path::PathBuf;

use xdstp_client::Endpoint;
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::tls::Tls;

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name. Commands within that have them, too.
#[group(skip)]
pub(crate) struct Args {
    /// Speak TLS, with whom the system trusts; so do the next four
    #[arg(long, global = true)]
    tls: bool,
    /// Who may vouch for the server, in place of whom the system trusts: a PEM file
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Our certificate, for a server that asks for one: a PEM file
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of our certificate: a PEM file
    #[arg(long, global = true, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that the server's certificate must have, in place of the one that it is reached by
    #[arg(long, global = true, value_name = "NAME")]
    server_name: Option<String>,
}

impl Args {
    /// The endpoint of `server`, with TLS if it is asked for.
    ///
    /// # Errors
    /// A file is not good, the name is none, or the server is to be spoken to in clear text.
    pub(crate) fn secure(&self, server: &str, endpoint: Endpoint) -> Result<Endpoint, Box<dyn Error>> {
        Ok(match self.tls(&[server])? {
            Some(tls) => endpoint.with_tls(tls),
            None => endpoint,
        })
    }

    /// How these servers are spoken to, if anything is asked for.
    ///
    /// # Errors
    /// A file is not good, the name is none, or a server is to be spoken to in clear text.
    pub(crate) fn tls(&self, servers: &[impl AsRef<str>]) -> Result<Option<Tls>, Box<dyn Error>> {
        let Self { tls, ca, cert, key, server_name } = self;
        let asked = [
            (*tls, "--tls"),
            (ca.is_some(), "--ca"),
            (cert.is_some(), "--cert"),
            (server_name.is_some(), "--server-name"),
        ];
        let Some((_, option)) = asked.into_iter().find(|(given, _)| *given) else { return Ok(None) };
        for server in servers.iter().map(AsRef::as_ref) {
            let scheme = server.split_once("://").map_or("", |(scheme, _)| scheme);
            if scheme.eq_ignore_ascii_case("http") {
                return Err(
                    format!("{option} is for TLS, and {server} is clear text; expected https:// or no scheme").into()
                );
            }
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
        Ok(Some(tls))
    }
}
