//! Of whom is asked: of one server, or of those that a bootstrap names, by the authority of each name.

use std::borrow::Cow;
use std::error::Error;
use std::path::PathBuf;

use xdstp_client::bootstrap::{Bootstrap, CallCreds, ChannelCreds, Server};
use xdstp_client::tls::Tls;
use xdstp_client::token::TokenFile;
use xdstp_client::{Endpoint, UnixAddress};
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
        let endpoint = endpoint(server).map_err(|error| format!("{}: {}", server.uri(), with_causes(&*error)))?;
        let endpoint = self.identity.introduce(endpoint, bootstrap.node()).map_err(|error| error.to_string())?;
        self.all.push((server.uri().to_owned(), endpoint));
        self.asked.push(server.clone());
        Ok(self.all.len() - 1)
    }
}

fn endpoint(server: &Server) -> Result<Endpoint, Box<dyn Error>> {
    let mut endpoint = Endpoint::new(&address(server.uri()))?;
    match server.channel_creds() {
        ChannelCreds::Insecure => {}
        ChannelCreds::Tls(files) => {
            let tls = Tls::from_files(files.clone());
            tls.check()?;
            endpoint = endpoint.with_tls(tls);
        }
        ChannelCreds::GoogleDefault => return Err("google_default is not supported".into()),
        _ => return Err("its channel_creds are not supported".into()),
    }
    for creds in server.call_creds() {
        let CallCreds::JwtTokenFile(file) = creds else { return Err("its call_creds are not supported".into()) };
        let token = TokenFile::new(file);
        token.check()?;
        endpoint = endpoint.with_token(token)?;
    }
    Ok(endpoint)
}

/// The address in a target of gRPC: a name that DNS has, on the port that gRPC takes when there is none.
fn address(target: &str) -> Cow<'_, str> {
    let address = match target.strip_prefix("dns:") {
        None if target.contains(":/") || UnixAddress::has_scheme(target) => return target.into(),
        None => target,
        // A name server may be named, too. The system's own is as good.
        Some(rest) => {
            rest.strip_prefix("//").and_then(|rest| rest.split_once('/')).map_or(rest, |(_, address)| address)
        }
    };
    let has_port = address.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    if has_port { address.into() } else { format!("{address}:443").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_that_of_the_target() {
        for (target, expected) in [
            ("a:1", "a:1"),
            ("a", "a:443"),
            ("[::1]", "[::1]:443"),
            ("[::1]:1", "[::1]:1"),
            ("dns:a:1", "a:1"),
            ("dns:///a:1", "a:1"),
            ("dns:///a", "a:443"),
            ("dns://8.8.8.8/a:1", "a:1"),
            ("unix:///a", "unix:///a"),
            ("unix:a", "unix:a"),
        ] {
            assert_eq!(address(target), expected);
        }
    }

    #[test]
    fn what_cannot_be_spoken_to_as_the_bootstrap_says_is_not_spoken_to() {
        for server in [
            Server::new("a:1", ChannelCreds::GoogleDefault),
            Server::new("xds:///a", ChannelCreds::Insecure),
            Server::new("a:1", ChannelCreds::Insecure).with_call_creds(CallCreds::JwtTokenFile("Cargo.toml".into())),
        ] {
            assert!(endpoint(&server).is_err(), "{server:?}");
        }
    }
}
