//! Who is asked: one server, or those that a bootstrap names, by the authority of each name.

use std::error::Error;
use std::path::PathBuf;

use xdstp_client::Client;
use xdstp_client::bootstrap::Bootstrap;
use xdstp_uri::ResourceName;
use xdstp_uri::a47;

use super::identity::Identity;

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
        let Some(file) = &self.bootstrap else { return Servers::one(&self.server, &self.identity) };
        let bootstrap = if file.as_os_str() == "env" { Bootstrap::from_env() } else { Bootstrap::from_file(file) }?;
        let mut names: Vec<String> = Vec::new();
        let of_authorities = bootstrap.authorities().keys().filter_map(|name| bootstrap.servers_of(Some(name)));
        for server in std::iter::once(bootstrap.servers()).chain(of_authorities).flatten() {
            if !names.iter().any(|name| name == server.uri()) {
                names.push(server.uri().to_owned());
            }
        }
        Ok(Servers { client: self.identity.client(bootstrap.clone())?, bootstrap: Some(bootstrap), names })
    }
}

impl Servers {
    /// # Errors
    /// The server or its files are not good.
    pub(crate) fn one(server: &str, identity: &Identity) -> Result<Self, Box<dyn Error>> {
        let client = Client::connect(identity.endpoint(server)?);
        Ok(Self { client, bootstrap: None, names: vec![server.to_owned()] })
    }

    /// What all of them are called.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
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
