//! Where the relay listens, and how the admin pages are spoken to.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xdstp_client::UnixAddress;

use super::fields::ADMIN_FIELDS;
use super::tls::{self, File, ListenTls};
use super::{Address, DEFAULT_ADMIN, rules};
use crate::yaml::{self, Content, Error};

const EXPECTED: &str = "expected IP:PORT, such as 127.0.0.1:18001, unix:PATH, or none";

/// The admin pages.
pub(super) struct Admin {
    pub(super) address: Option<Address>,
    pub(super) tls: Option<ListenTls>,
    pub(super) token: Option<PathBuf>,
    pub(super) write_token: Option<PathBuf>,
}

impl Admin {
    /// What they are where nothing is said of them.
    pub(super) fn unsaid() -> Self {
        Self::at(Some(DEFAULT_ADMIN))
    }

    fn at(address: Option<Address>) -> Self {
        Self { address, tls: None, token: None, write_token: None }
    }
}

/// An address, or an address and how it is spoken to.
pub(super) fn admin(node: &yaml::Node, directory: &Path, listen: &Address, file: File<'_>) -> Result<Admin, Error> {
    let address = |node: &yaml::Node| {
        let admin = address(node, directory, EXPECTED)?;
        rules::admin(&admin, listen).or_else(|problem| node.refuse(problem))?;
        Ok(admin)
    };
    let admin = if matches!(node.content, Content::Mapping(_)) {
        node.expect_fields(ADMIN_FIELDS)?;
        let (tls, token) = (node.field("tls", |node| tls::listen(node, file))?, node.field("token", file)?);
        let write_token = node.field("write_token", file)?;
        let address = node.field("address", address)?.unwrap_or(DEFAULT_ADMIN);
        rules::admin(&address, listen).or_else(|problem| node.refuse(problem))?;
        Admin { address: Some(address), tls, token, write_token }
    } else if node.text()? == "none" {
        Admin::at(None)
    } else {
        Admin::at(Some(address(node)?))
    };
    rules::admin_reach(
        admin.address.as_ref(),
        admin.tls.as_ref(),
        admin.token.as_deref(),
        admin.write_token.as_deref(),
    )
    .or_else(|problem| node.refuse(problem))?;
    Ok(admin)
}

pub(super) fn address(node: &yaml::Node, directory: &Path, expected: &str) -> Result<Address, Error> {
    let text = node.text()?;
    if !UnixAddress::has_scheme(text) {
        return text.parse().map(Address::Tcp).or_else(|_| node.refuse(format!("`{text}`: {expected}")));
    }
    let address = unix(node, directory)?;
    rules::socket(&address).or_else(|problem| node.refuse(problem))?;
    Ok(Address::Unix(address))
}

pub(super) fn unix(node: &yaml::Node, directory: &Path) -> Result<UnixAddress, Error> {
    let address = node.text()?.parse().and_then(|address: UnixAddress| address.within(directory));
    address.or_else(|error| node.refuse(error.to_string()))
}

/// As a file would have it.
pub(super) fn written_at<const N: usize>(address: Option<&Address>, others: [(&str, Option<Value>); N]) -> Value {
    let address = address.map_or(json!("none"), |address| json!(address.to_string()));
    if others.iter().all(|(_, value)| value.is_none()) {
        return address;
    }
    let fields = [("address", Some(address))].into_iter().chain(others);
    fields.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
