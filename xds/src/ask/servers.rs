//! Who is asked: one server, or those that a bootstrap names, by the authority of each name.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xdstp_client::Client;
use xdstp_client::bootstrap::Bootstrap;
use xdstp_uri::ResourceName;
use xdstp_uri::a47;

use super::identity::Identity;
use crate::show::{complain, visible};

/// How long a disk may take.
const DISK: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
// Flattened into the arguments of another command, whose group has this name.
#[group(skip)]
pub(crate) struct Where {
    /// The server, as host:port, URI or unix:PATH
    #[arg(long, default_value = "127.0.0.1:18000")]
    server: String,
    /// A gRPC bootstrap, which has servers by the authorities of names, and the node: a file, or `env` for what
    /// GRPC_XDS_BOOTSTRAP or GRPC_XDS_BOOTSTRAP_CONFIG says
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["server", "tls", "ca", "cert", "key", "server_name", "node", "cluster"]
    )]
    bootstrap: Option<PathBuf>,
    /// A directory to keep what the servers say, which is shown as stale where they cannot be reached later
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    identity: Identity,
}

/// Who may be asked.
pub(crate) struct Servers {
    client: Client,
    /// None: one server is asked for everything.
    bootstrap: Option<Bootstrap>,
    /// What all of them are called, each once.
    names: Vec<String>,
}

impl Where {
    /// # Errors
    /// The server, its files or the bootstrap are not good.
    pub(crate) fn servers(&self) -> Result<Servers, Box<dyn Error>> {
        let Some(file) = &self.bootstrap else {
            return Servers::keeping(&self.server, &self.identity, self.state.as_deref());
        };
        let bootstrap = if file.as_os_str() == "env" { Bootstrap::from_env() } else { Bootstrap::from_file(file) }?;
        let mut names: Vec<String> = Vec::new();
        let of_authorities = bootstrap.authorities().keys().filter_map(|name| bootstrap.servers_of(Some(name)));
        for server in std::iter::once(bootstrap.servers()).chain(of_authorities).flatten() {
            if !names.iter().any(|name| name == server.uri()) {
                names.push(server.uri().to_owned());
            }
        }
        Ok(Servers {
            client: self.identity.client(bootstrap.clone(), self.state.as_deref())?,
            bootstrap: Some(bootstrap),
            names,
        })
    }
}

impl Servers {
    /// # Errors
    /// The server or its files are not good.
    pub(crate) fn one(server: &str, identity: &Identity) -> Result<Self, Box<dyn Error>> {
        Self::keeping(server, identity, None)
    }

    fn keeping(server: &str, identity: &Identity, state: Option<&Path>) -> Result<Self, Box<dyn Error>> {
        let endpoint = identity.endpoint(server)?;
        let client = match state {
            Some(directory) => Client::connect_keeping(endpoint, directory),
            None => Client::connect(endpoint),
        };
        Ok(Self { client, bootstrap: None, names: vec![server.to_owned()] })
    }

    /// What all of them are called.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Writes down what is known, where that is kept; or has read what was.
    pub(crate) async fn flush(&self) {
        match tokio::time::timeout(DISK, self.client.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => complain(visible(&error.to_string())),
            Err(_) => complain("nothing is kept: the disk does not answer"),
        }
    }

    /// The place among all of what a server is called.
    pub(super) fn place(&self, server: &str) -> Option<usize> {
        self.names.iter().position(|name| name == server)
    }

    /// The place of the server that is asked first for a name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn of(&self, name: &ResourceName) -> Result<usize, String> {
        let Some(bootstrap) = &self.bootstrap else { return Ok(0) };
        let found = a47::look_up_authority(bootstrap, name).map_err(|error| error.to_string())?;
        let server = bootstrap.servers_of(found.authority.as_deref()).and_then(<[_]>::first);
        server
            .and_then(|server| self.place(server.uri()))
            .ok_or_else(|| "the bootstrap has no server for it".to_owned())
    }
}
