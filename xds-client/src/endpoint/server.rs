//! A server of a bootstrap, as it is spoken to.

use std::borrow::Cow;

use thiserror::Error;

use super::{Endpoint, EndpointError};
#[cfg(feature = "rustls-any")]
use crate::bootstrap::CallCreds;
use crate::bootstrap::{ChannelCreds, Server};
#[cfg(feature = "rustls-any")]
use crate::tls::{Tls, TlsError};
#[cfg(feature = "rustls-any")]
use crate::token::{TokenError, TokenFile};
use crate::unix_address::UnixAddress;

/// A server of a bootstrap cannot be spoken to as it says.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Its address is none.
    #[error(transparent)]
    Address(#[from] EndpointError),
    /// One of its files is not good.
    #[cfg(feature = "rustls-any")]
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token that its calls are to carry is not good.
    #[cfg(feature = "rustls-any")]
    #[error(transparent)]
    Token(#[from] TokenError),
    /// It is to be spoken to in a way that is not known here.
    #[error("{what} is not supported")]
    Unsupported {
        /// What is not.
        what: &'static str,
    },
}

impl Endpoint {
    /// A server of a bootstrap, which is to be [told](Self::with_node) who we are.
    ///
    /// # Errors
    /// It is spoken to in another way than is known here, its address is none, or its files are not good.
    pub fn of_server(server: &Server) -> Result<Self, ServerError> {
        let endpoint = Self::of_server_unread(server)?;
        #[cfg(feature = "rustls-any")]
        endpoint.check_files()?;
        Ok(endpoint)
    }

    /// The same, where its files may become good: they are read for each connection and each stream anyway.
    pub(crate) fn of_server_unread(server: &Server) -> Result<Self, ServerError> {
        let endpoint = Self::new(&address(server.uri()))?;
        let endpoint = match server.channel_creds() {
            ChannelCreds::Insecure => endpoint,
            #[cfg(feature = "rustls-any")]
            ChannelCreds::Tls(files) => endpoint.with_tls(Tls::from_files(files.clone())),
            #[cfg(not(feature = "rustls-any"))]
            ChannelCreds::Tls(_) => {
                return Err(ServerError::Unsupported { what: "tls, without which this program was built," });
            }
            ChannelCreds::GoogleDefault => return Err(ServerError::Unsupported { what: "google_default" }),
        };
        endpoint.calling_as(server)
    }

    /// Its calls carry what the bootstrap says, all of it (gRFC A97).
    #[cfg(feature = "rustls-any")]
    fn calling_as(self, server: &Server) -> Result<Self, ServerError> {
        server
            .call_creds()
            .iter()
            .try_fold(self, |endpoint, CallCreds::JwtTokenFile(file)| Ok(endpoint.with_token(TokenFile::new(file))?))
    }

    #[cfg(feature = "rustls-any")]
    fn check_files(&self) -> Result<(), ServerError> {
        self.tls.iter().try_for_each(Tls::check)?;
        self.tokens.iter().try_for_each(|token| match token.check() {
            // There may be another by the time it is needed.
            Ok(()) | Err(TokenError::Expired { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }

    #[cfg(not(feature = "rustls-any"))]
    fn calling_as(self, server: &Server) -> Result<Self, ServerError> {
        match server.call_creds() {
            [] => Ok(self),
            _ => Err(ServerError::Unsupported {
                what: "call_creds, which go over TLS, without which this program was built,",
            }),
        }
    }
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
    use crate::bootstrap::CallCreds;

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
            assert!(Endpoint::of_server(&server).is_err(), "{server:?}");
        }
        assert!(Endpoint::of_server(&Server::new("unix:a", ChannelCreds::Insecure)).is_ok());
    }

    #[cfg(feature = "rustls-any")]
    #[test]
    fn calls_carry_all_the_tokens_that_a_bootstrap_names_over_tls_only() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| directory.path().join(name));
        // Its claims are {"exp":99999999999}.
        files.iter().for_each(|file| std::fs::write(file, "e30.eyJleHAiOjk5OTk5OTk5OTk5fQ.c2ln").unwrap());
        let server = |creds| {
            let server = Server::new("a:1", creds);
            files.iter().fold(server, |server, file| server.with_call_creds(CallCreds::JwtTokenFile(file.clone())))
        };
        let tls = ChannelCreds::Tls(crate::bootstrap::TlsFiles::default());
        assert_eq!(Endpoint::of_server(&server(tls.clone())).unwrap().tokens.len(), 2);
        let refused = Endpoint::of_server(&server(ChannelCreds::Insecure)).unwrap_err();
        assert!(matches!(refused, ServerError::Address(EndpointError::TokenInClearText { .. })), "{refused}");
        // One that has expired may be replaced by the time it is needed: its claims are {"exp":1}.
        std::fs::write(&files[1], "e30.eyJleHAiOjF9.c2ln").unwrap();
        assert!(Endpoint::of_server(&server(tls.clone())).is_ok());
        std::fs::remove_file(&files[1]).unwrap();
        assert!(matches!(Endpoint::of_server(&server(tls)), Err(ServerError::Token(_))));
    }
}
