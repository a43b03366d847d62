//! Where orders are taken that change what clients are served (`orders`).

use std::path::{Path, PathBuf};

use serde_json::Value;
use xdstp_client::UnixAddress;

use super::fields::ORDERS_FIELDS;
use super::listening::{address, unix, written_at};
use super::tls::{self, File, ListenTls};
use super::{Address, State, rules};
use crate::yaml::{self, Content, Error};

const EXPECTED: &str = "expected unix:PATH, or an address with how it is spoken to, or none";
/// In the directory of `state`.
const SOCKET: &str = "orders";

/// Where orders are taken, and from whom: apart from the admin pages, which only show.
///
/// ```
/// use xds_relay::config::Orders;
///
/// let orders = Orders::new("unix:/run/xds-relay/orders".parse()?);
/// assert!(orders.tls.is_none() && orders.token.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orders {
    /// Where. What is a socket in a file is for the user of the relay alone, and root.
    pub address: Address,
    /// How they are spoken to: in clear text, if there is none.
    pub tls: Option<ListenTls>,
    /// A file of bearer tokens, one of which an order must carry.
    pub token: Option<PathBuf>,
}

impl Orders {
    /// There, without more.
    pub fn new(address: Address) -> Self {
        Self { address, tls: None, token: None }
    }

    /// What is so where nothing is said of them, and there is something to order.
    ///
    /// # Errors
    /// The path is too long for a socket.
    pub(super) fn unsaid(state: &State) -> Result<Self, String> {
        let address = UnixAddress::at(state.path.join(SOCKET));
        let address = address.map_err(|error| {
            format!("orders are taken at a socket in the directory of state, if nothing is said of them: {error}")
        });
        Ok(Self::new(Address::Unix(address?)))
    }

    /// What is wrong with them beside the other addresses.
    pub(super) fn problem(&self, listen: &Address, admin: Option<&Address>) -> Option<String> {
        let Self { address, tls, token } = self;
        let is_apart = |other: &Address, what: &str| {
            rules::admin(address, other).err().map(|_| format!("the same address as {what}; expected another one"))
        };
        let taken = is_apart(listen, "listen").or_else(|| is_apart(admin?, "admin"));
        let is_known = token.is_some() || tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let is_guarded = match address {
            // One without a file is anybody's on this machine.
            Address::Unix(address) => is_known || address.path().is_some(),
            Address::Tcp(_) => is_known && (tls.is_some() || !rules::is_reached(address)),
        };
        taken.or_else(|| {
            (!is_guarded).then(|| {
                format!(
                    "`{address}`: whoever reaches it changes what clients are served; expected tls.client_ca, or a token \
                     (with tls, where other machines reach it), or unix:PATH"
                )
            })
        })
    }
}

/// An address, or an address and how it is spoken to; or none.
pub(super) fn orders(
    node: &yaml::Node,
    directory: &Path,
    state: Option<&State>,
    file: File<'_>,
) -> Result<Option<Orders>, Error> {
    let at = |node: &yaml::Node| {
        let is_socket = node.text().is_ok_and(UnixAddress::has_scheme);
        if is_socket && let Some(state) = state {
            let address = unix(node, directory)?;
            // That directory is made as the relay starts.
            if address.path().and_then(Path::parent) == Some(&state.path) {
                return Ok(Address::Unix(address));
            }
        }
        address(node, directory, EXPECTED)
    };
    if !matches!(node.content, Content::Mapping(_)) {
        let is_none = node.text()? == "none";
        return if is_none { Ok(None) } else { at(node).map(|at| Some(Orders::new(at))) };
    }
    node.expect_fields(ORDERS_FIELDS)?;
    let address = node.required_field("address", EXPECTED, at)?;
    let (tls, token) = (node.field("tls", |node| tls::listen(node, file))?, node.field("token", file)?);
    Ok(Some(Orders { address, tls, token }))
}

/// As a file has it.
pub(super) fn written(orders: Option<&Orders>, tls: Option<Value>, token: Option<Value>) -> Value {
    written_at(orders.map(|orders| &orders.address), [("tls", tls), ("token", token)])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Config;

    fn config(more: &str) -> Result<Config, String> {
        let directory = tempfile::tempdir().unwrap();
        ["tokens", "a.pem", "a.key"].iter().for_each(|file| fs::write(directory.path().join(file), "").unwrap());
        let text = format!(
            "origins: [{{ name: files, files: . }}]\nstate: {{ path: state }}\nrollout: [{{ scope: old-style }}]\n{more}\n"
        );
        let config = Config::parse(directory.path().join("relay.yaml"), &text).map_err(|error| error.to_string())?;
        assert_eq!(serde_json::from_value::<Config>(config.to_value().unwrap()).unwrap(), config);
        assert_eq!(config.validate(), Ok(()));
        Ok(config)
    }

    #[test]
    fn they_are_taken_beside_what_is_kept_where_there_are_releases_and_nothing_is_said() {
        let read = config("").unwrap();
        let path = read.state.unwrap().path.join("orders");
        assert_eq!(read.orders, Some(Orders::new(Address::Unix(UnixAddress::at(path).unwrap()))));
        assert_eq!(config("orders: none").unwrap().orders, None);
        let without = Config::parse("relay.yaml", "origins: [{ name: files, files: . }]\nstate: { path: . }");
        assert_eq!(without.unwrap().orders, None);
        assert_eq!(Config::new([]).orders, None);
    }

    #[test]
    fn who_reaches_them_is_to_be_somebody() {
        const TLS: &str = "tls: { certificate: a.pem, key: a.key";
        for good in [
            "unix:x".to_owned(),
            "{ address: '127.0.0.1:1', token: tokens }".to_owned(),
            format!("{{ address: '127.0.0.1:1', {TLS}, client_ca: a.pem }} }}"),
            format!("{{ address: '0.0.0.0:1', {TLS}, client_ca: a.pem }} }}"),
            format!("{{ address: '0.0.0.0:1', token: tokens, {TLS} }} }}"),
            "{ address: 'unix-abstract:x', token: tokens }".to_owned(),
        ] {
            assert!(config(&format!("orders: {good}")).unwrap().orders.is_some(), "{good}");
        }
        for (bad, problem) in [
            ("127.0.0.1:1".to_owned(), "orders: `127.0.0.1:1`: whoever reaches it changes what clients are served"),
            (format!("{{ address: '127.0.0.1:1', {TLS} }} }}"), "orders: `127.0.0.1:1`: whoever reaches it"),
            ("{ address: '0.0.0.0:1', token: tokens }".to_owned(), "orders: `0.0.0.0:1`: whoever reaches it"),
            ("unix-abstract:x".to_owned(), "orders: `unix-abstract:x`: whoever reaches it"),
            ("{ token: tokens }".to_owned(), "orders.address: missing; expected unix:PATH"),
            ("127.0.0.1:18000".to_owned(), "orders: the same address as listen; expected another one"),
            ("127.0.0.1:18001".to_owned(), "orders: the same address as admin; expected another one"),
            ("x".to_owned(), "orders: `x`: expected unix:PATH"),
            ("{ address: none }".to_owned(), "orders.address: `none`: expected unix:PATH"),
        ] {
            let error = config(&format!("orders: {bad}")).unwrap_err();
            assert!(error.contains(problem), "{bad}: {error}");
        }
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_told_with_what_is_to_be_said() {
        let path = "x".repeat(120);
        let text = format!(
            "origins: [{{ name: files, files: . }}]\nstate: {{ path: {path} }}\nrollout: [{{ scope: old-style }}]\n"
        );
        let error = Config::parse("relay.yaml", &text).unwrap_err().to_string();
        assert!(error.contains("2:16: state.path: orders are taken at a socket in the directory of state"), "{error}");
        assert!(Config::parse("relay.yaml", &format!("{text}orders: none")).is_ok());
    }
}
