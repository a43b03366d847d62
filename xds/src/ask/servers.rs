//! Who is asked: one server, or those that a bootstrap names, by the authority of each name.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xdstp_client::Client;
use xdstp_client::bootstrap::Bootstrap;
use xdstp_uri::{ResourceName, Scheme, a47};

use super::documents::{self, Readers};
use super::identity::Identity;
use super::wanted::{Name, Wanted};
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
    documents: documents::Args,
    #[command(flatten)]
    identity: Identity,
}

/// Who may be asked.
pub(crate) struct Servers {
    client: Client,
    /// None: one server is asked for everything.
    bootstrap: Option<Bootstrap>,
    /// What all of them are called, each once; and each document that is asked for, which is where that comes from.
    names: Vec<String>,
    /// What documents are read at locators.
    schemes: Vec<Scheme>,
}

impl Where {
    /// Those that may be asked for what is wanted.
    ///
    /// # Errors
    /// The server, its files, the bootstrap or who reads documents are not good.
    pub(crate) fn servers(&self, wanted: &Wanted) -> Result<Servers, Box<dyn Error>> {
        let readers = self.documents.readers()?;
        let schemes: Vec<_> =
            [Scheme::File, Scheme::Http].into_iter().filter(|scheme| readers.reads(*scheme)).collect();
        let servers = self.reading(readers)?;
        let mut servers = Servers { schemes, ..servers };
        let documents = wanted.names(&servers.schemes).filter_map(|(_, name)| name.ok()).filter(Name::is_document);
        for document in documents {
            self.documents.check(document.as_str())?;
            servers.names.push(document.as_str().to_owned());
        }
        Ok(servers)
    }

    fn reading(&self, readers: Readers) -> Result<Servers, Box<dyn Error>> {
        let Some(file) = &self.bootstrap else {
            return Servers::keeping(&self.server, &self.identity, self.state.as_deref(), readers);
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
            client: self.identity.client(bootstrap.clone(), self.state.as_deref(), readers)?,
            bootstrap: Some(bootstrap),
            names,
            schemes: Vec::new(),
        })
    }
}

impl Servers {
    /// # Errors
    /// The server or its files are not good.
    pub(crate) fn one(server: &str, identity: &Identity) -> Result<Self, Box<dyn Error>> {
        Self::keeping(server, identity, None, Readers { files: None, http: None })
    }

    /// A client that needs no server, and what what it has is called.
    pub(crate) fn brought(name: &str, client: Client) -> Self {
        Self { client, bootstrap: None, names: vec![name.to_owned()], schemes: Vec::new() }
    }

    fn keeping(
        server: &str,
        identity: &Identity,
        state: Option<&Path>,
        Readers { files, http }: Readers,
    ) -> Result<Self, Box<dyn Error>> {
        let mut single = Client::single(identity.endpoint(server)?);
        if let Some(directory) = state {
            single = single.state(directory);
        }
        if let Some(files) = files {
            single = single.files(files);
        }
        if let Some(http) = http {
            single = single.http(http);
        }
        Ok(Self { client: single.build(), bootstrap: None, names: vec![server.to_owned()], schemes: Vec::new() })
    }

    /// What all of them are called.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Of which schemes documents are read at locators.
    pub(super) fn schemes(&self) -> &[Scheme] {
        &self.schemes
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

    /// The place of the server that is asked first for a name, or of a document.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn of(&self, name: &Name) -> Result<usize, String> {
        if name.is_document() {
            return self.place(name.as_str()).ok_or_else(|| "it is not read".to_owned());
        }
        let Some(bootstrap) = &self.bootstrap else { return Ok(0) };
        a47::look_up_authority(bootstrap, name.name()).map_err(|error| error.to_string())?;
        self.of_authority(name.name()).ok_or_else(|| "the bootstrap has no server for it".to_owned())
    }

    /// The place of the first server that a bootstrap has for a name.
    pub(super) fn of_authority(&self, name: &ResourceName) -> Option<usize> {
        let bootstrap = self.bootstrap.as_ref()?;
        let found = a47::look_up_authority(bootstrap, name).ok()?;
        let server = bootstrap.servers_of(found.authority.as_deref())?.first()?;
        self.place(server.uri())
    }
}
