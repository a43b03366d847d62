//! Which cluster of etcd, which keys of it, and who we are there.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use xdstp_client::state::{Etcd, EtcdOptions};

use crate::ask::{Secure, seconds};

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(super) struct Args {
    /// Members of the cluster, as host:port or URI, tried in turn
    #[arg(long, value_name = "ENDPOINT,…", required = true, value_delimiter = ',')]
    etcd: Vec<String>,
    /// What the keys begin with, as the relays have it (origins[].etcd.prefix), such as mesh/
    #[arg(long, value_parser = prefix)]
    pub(super) prefix: String,
    #[command(flatten)]
    secure: Secure,
    /// Who we are to etcd, where that is by password: over TLS only
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// A file with nothing but the user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// How long to wait for each answer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
}

fn prefix(text: &str) -> Result<String, String> {
    let is_good = text.ends_with('/') && !text.contains(char::is_control);
    is_good.then(|| text.to_owned()).ok_or_else(|| "expected a text that ends with /, such as mesh/".to_owned())
}

impl Args {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// A file is not good, or an address is none.
    pub(super) fn open(&self) -> Result<Etcd, Box<dyn Error>> {
        let options = EtcdOptions::new(&self.etcd, &self.prefix)?.with_deadline(self.timeout);
        let options = match self.secure.tls(&self.etcd)? {
            Some(tls) => options.with_tls(tls),
            None => options,
        };
        let options = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => {
                let unread = |error: &dyn Error| format!("{}: {error}", file.display());
                let password = fs::read_to_string(file).map_err(|error| unread(&error))?;
                options.with_user(user, password.trim_end_matches(['\r', '\n']))?
            }
            _ => options,
        };
        Ok(Etcd::open(options)?)
    }
}
