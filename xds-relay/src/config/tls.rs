//! Which files TLS is made with.

use std::path::PathBuf;

use super::fields::{ORIGIN_TLS_FIELDS, TLS_FIELDS};
use crate::yaml::{self, Error};

/// Who the relay is to its clients, and who may vouch for them. The files are PEM, and count anew when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenTls {
    /// The relay's certificate, and those between it and who vouches for it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who may vouch for clients: each must show a certificate. None is asked for without it.
    pub client_ca: Option<PathBuf>,
}

/// Who may vouch for an origin, and who the relay is to it. The files are PEM, and are read for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OriginTls {
    /// Who may vouch for the origin: whom the system trusts, if there is none.
    pub ca: Option<PathBuf>,
    /// The relay's certificate and its key, for an origin that asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the origin's certificate must have: that of its address otherwise.
    pub server_name: Option<String>,
}

pub(super) type File<'a> = &'a dyn Fn(&yaml::Node) -> Result<PathBuf, Error>;

pub(super) fn listen(node: &yaml::Node, file: File<'_>) -> Result<ListenTls, Error> {
    node.expect_fields(TLS_FIELDS)?;
    Ok(ListenTls {
        certificate: node.required_field("certificate", "expected the file of the relay's certificate", file)?,
        key: node.required_field("key", "expected the file of the certificate's key", file)?,
        client_ca: node.field("client_ca", file)?,
    })
}

pub(super) fn origin(node: &yaml::Node, file: File<'_>) -> Result<OriginTls, Error> {
    node.expect_fields(ORIGIN_TLS_FIELDS)?;
    let identity = match (node.field("certificate", file)?, node.field("key", file)?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => return node.refuse("a certificate without a key; expected both or neither"),
        (None, Some(_)) => return node.refuse("a key without a certificate; expected both or neither"),
    };
    let server_name = node.field("server_name", |node| {
        let name = node.text()?;
        match rustls::pki_types::ServerName::try_from(name) {
            Ok(_) => Ok(name.to_owned()),
            Err(_) => node.refuse(format!("`{name}`: expected the name of a host or an address")),
        }
    })?;
    Ok(OriginTls { ca: node.field("ca", file)?, identity, server_name })
}
