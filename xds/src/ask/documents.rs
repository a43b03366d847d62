//! What may be read at locators that are no names of an xDS server, which is nothing unless the command line says so: whoever
//! serves a list may write any locator.

use std::error::Error;
use std::path::PathBuf;

use xds_relay::file_origin::Descriptors;
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::tls::Tls;
use xdstp_client::{Files, Http};
use xdstp_uri::{Locator, Scheme};

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Args {
    /// A directory whose files `file:` locators may lead to, with all below it; of others none is read
    #[arg(long, value_name = "DIR")]
    files: Vec<PathBuf>,
    /// A server that `http:` locators may lead to, as http://HOST:PORT, or https://HOST:PORT where it speaks TLS; others are not asked
    #[arg(long, value_name = "SERVER")]
    http: Vec<String>,
    /// Who may vouch for the servers of --http, in place of whom the system trusts: a PEM file
    #[arg(long, value_name = "FILE", requires = "http")]
    http_ca: Option<PathBuf>,
}

/// Who reads documents.
pub(super) struct Readers {
    pub(super) files: Option<Files>,
    pub(super) http: Option<Http>,
}

impl Args {
    /// # Errors
    /// A directory or a file is not good, or a server is none.
    pub(super) fn readers(&self) -> Result<Readers, Box<dyn Error>> {
        let Self { files, http, http_ca } = self;
        if files.is_empty() && http.is_empty() {
            return Ok(Readers { files: None, http: None });
        }
        // YAML and JSON are those of the relay's files.
        let types = Descriptors::built_in()?;
        for directory in files {
            // One that comes later is not what somebody means who writes it here.
            if !directory.is_dir() {
                return Err(format!("{}: it is no directory", directory.display()).into());
            }
        }
        let reads_files = (!files.is_empty()).then(|| Files::within(files, types.clone()));
        if http.is_empty() {
            return Ok(Readers { files: reads_files, http: None });
        }
        let mut trusted = TlsFiles::default();
        trusted.ca_certificate.clone_from(http_ca);
        let tls = Tls::from_files(trusted);
        if http_ca.is_some() {
            tls.check()?;
        }
        Ok(Readers { files: reads_files, http: Some(Http::of(http, types)?.with_tls(tls)) })
    }
}

impl Args {
    /// # Errors
    /// It is a file that is in none of the directories: nobody reads it.
    pub(super) fn check(&self, document: &str) -> Result<(), String> {
        let Ok(locator) = Locator::parse(document) else { return Ok(()) };
        let path = PathBuf::from(format!("/{}", locator.id()));
        let found = path.canonicalize().unwrap_or_else(|_| path.clone());
        let within = |directory: &PathBuf| {
            let written = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
            let real = directory.canonicalize().unwrap_or_else(|_| written.clone());
            path.starts_with(written) || found.starts_with(real)
        };
        match locator.scheme() != Scheme::File || self.files.iter().any(within) {
            true => Ok(()),
            false => Err(format!("{document}: it is in no directory of --files")),
        }
    }
}

impl Readers {
    pub(super) fn reads(&self, scheme: Scheme) -> bool {
        match scheme {
            Scheme::File => self.files.is_some(),
            Scheme::Http => self.http.is_some(),
            _ => false,
        }
    }
}
