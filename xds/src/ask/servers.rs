//! Of whom is asked: of one server, or of those that a bootstrap names, by the authority of each name.

use std::error::Error;
use std::path::PathBuf;

use xdstp_client::Endpoint;
use xdstp_client::bootstrap::{Bootstrap, Server};
use xdstp_uri::ResourceName;
use xdstp_uri::a47;

use super::identity::Identity;
use crate::show::with_causes;

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

/// The servers that are asked, each once.
#[derive(Debug)]
pub(crate) struct Servers<'a> {
    identity: &'a Identity,
    bootstrap: Option<Bootstrap>,
    /// Those of the bootstrap that were asked for, in the order of `all`.
    asked: Vec<Server>,
    all: Vec<(String, Endpoint)>,
}

impl Where {
    /// # Errors
    /// The server, its files or the bootstrap are not good.
    pub(crate) fn servers(&self) -> Result<Servers<'_>, Box<dyn Error>> {
        let Some(file) = &self.bootstrap else { return Servers::one(&self.server, &self.identity) };
        let bootstrap = if file.as_os_str() == "env" { Bootstrap::from_env() } else { Bootstrap::from_file(file) }?;
        Ok(Servers { identity: &self.identity, bootstrap: Some(bootstrap), asked: Vec::new(), all: Vec::new() })
    }
}

impl<'a> Servers<'a> {
    /// # Errors
    /// The server or its files are not good.
    pub(crate) fn one(server: &str, identity: &'a Identity) -> Result<Self, Box<dyn Error>> {
        let all = vec![(server.to_owned(), identity.endpoint(server)?)];
        Ok(Self { identity, bootstrap: None, asked: Vec::new(), all })
    }

    /// All that are asked, by what they are called.
    pub(crate) fn all(&self) -> &[(String, Endpoint)] {
        &self.all
    }

    /// The place in `all` of the server that is asked for a name.
    ///
    /// # Errors
    /// There is none, or not one that we could speak to.
    pub(super) fn of(&mut self, name: &ResourceName) -> Result<usize, String> {
        let Some(bootstrap) = &self.bootstrap else { return Ok(0) };
        let found = a47::look_up_authority(bootstrap, name).map_err(|error| error.to_string())?;
        // Of several the first: those behind it are for when it is away.
        let server = bootstrap.servers_of(found.authority.as_deref()).and_then(<[_]>::first);
        let server = server.ok_or("the bootstrap has no server for it")?;
        if let Some(place) = self.asked.iter().position(|asked| asked == server) {
            return Ok(place);
        }
        let endpoint = Endpoint::of_server(server);
        let endpoint = endpoint.map_err(|error| format!("{}: {}", server.uri(), with_causes(&error)))?;
        let endpoint = self.identity.introduce(endpoint, bootstrap.node()).map_err(|error| error.to_string())?;
        self.all.push((server.uri().to_owned(), endpoint));
        self.asked.push(server.clone());
        Ok(self.all.len() - 1)
    }
}
