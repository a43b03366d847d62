//! Names of listeners, and which entry of the bootstrap a name belongs to.

use alloc::{
    borrow::Cow,
    string::{String, ToString},
};
use core::fmt;

use super::{Target, TemplatePrefixError, check_template_prefix, default_template, expand_template};
use crate::{ResourceName, percent};

/// What names depend on in a gRPC bootstrap. The methods are named for the fields.
pub trait Bootstrap {
    /// The template for targets without an authority; absent: `%s`.
    fn client_default_listener_resource_name_template(&self) -> Option<&str>;

    /// The template for servers; without one, no server can be made.
    fn server_listener_resource_name_template(&self) -> Option<&str>;

    /// The entry of `authorities` under this key, decoded; the empty key is for `xdstp:///…`.
    fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>>;
}

/// What names depend on in an entry of `authorities`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorityEntry<'a> {
    /// The template for targets with this authority; absent: [`default_template`].
    pub client_listener_resource_name_template: Option<&'a str>,
    /// The entry has `xds_servers` of its own (not an empty list).
    pub has_servers: bool,
}

impl<'a> AuthorityEntry<'a> {
    /// An entry with or without a template and servers of its own.
    #[must_use]
    pub const fn new(client_listener_resource_name_template: Option<&'a str>, has_servers: bool) -> Self {
        Self { client_listener_resource_name_template, has_servers }
    }
}

/// The name of the listener that a client asks for.
///
/// As expanded: parse it into a [`ResourceName`] before subscribing, so that its parameters are sorted.
///
/// # Errors
/// The target's authority is not in the bootstrap, or the template there is for another authority.
pub fn client_listener_name(bootstrap: &impl Bootstrap, target: &Target) -> Result<String, ListenerError> {
    let Some(authority) = target.authority() else {
        let template = bootstrap.client_default_listener_resource_name_template().unwrap_or("%s");
        return Ok(expand_template(template, target.path()));
    };
    let entry = bootstrap
        .authority(authority)
        .ok_or_else(|| ListenerError::UnknownAuthority(UnknownAuthority { authority: authority.to_string() }))?;
    let template = match entry.client_listener_resource_name_template {
        Some(template) => {
            check_template_prefix(authority, template).map_err(ListenerError::TemplatePrefix)?;
            Cow::Borrowed(template)
        }
        None => Cow::Owned(default_template(authority)),
    };
    Ok(expand_template(&template, target.path()))
}

/// The name of the listener that a server asks for, which listens on this address.
///
/// # Errors
/// The bootstrap has no template for servers.
pub fn server_listener_name(bootstrap: &impl Bootstrap, address: &str) -> Result<String, ListenerError> {
    let template = bootstrap.server_listener_resource_name_template().ok_or(ListenerError::MissingServerTemplate)?;
    Ok(expand_template(template, address))
}

/// Which entry of the bootstrap a name belongs to, and whose servers have it.
///
/// # Errors
/// An `xdstp:` name of an authority that the bootstrap does not have.
pub fn look_up_authority(bootstrap: &impl Bootstrap, name: &ResourceName) -> Result<Lookup, UnknownAuthority> {
    let Some(authority) = name.authority() else {
        return Ok(Lookup { authority: None, servers: Servers::TopLevel });
    };
    let authority = percent::decode(authority).into_owned();
    match bootstrap.authority(&authority) {
        Some(AuthorityEntry { has_servers: true, .. }) => {
            Ok(Lookup { authority: Some(authority), servers: Servers::Authority })
        }
        Some(_) => Ok(Lookup { authority: Some(authority), servers: Servers::TopLevel }),
        None => Err(UnknownAuthority { authority }),
    }
}

/// Where in the bootstrap a name belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lookup {
    /// The key of the entry of `authorities`; `None` for an opaque name.
    pub authority: Option<String>,
    /// Whose servers to ask.
    pub servers: Servers,
}

/// Whose servers to ask for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Servers {
    /// The list at the top of the bootstrap.
    TopLevel,
    /// The list in the entry of the name's authority.
    Authority,
}

/// The name of the endpoints of an EDS cluster: its `service_name` or, without one, the cluster's own name.
///
/// # Errors
/// An `xdstp:` cluster without a service name: its own name is of another resource type.
///
/// # Examples
/// ```
/// use xdstp_uri::a47::eds_resource_name;
///
/// assert_eq!(eds_resource_name("web", None), Ok("web"));
/// assert!(eds_resource_name("xdstp://a/envoy.config.cluster.v3.Cluster/web", None).is_err());
/// ```
pub fn eds_resource_name<'a>(
    cluster: &'a str,
    service_name: Option<&'a str>,
) -> Result<&'a str, EdsServiceNameRequired> {
    match service_name.filter(|name| !name.is_empty()) {
        Some(name) => Ok(name),
        None if cluster.starts_with("xdstp:") => Err(EdsServiceNameRequired { cluster: cluster.to_string() }),
        None => Ok(cluster),
    }
}

/// Why there is no listener name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerError {
    /// The target's authority is not in the bootstrap.
    UnknownAuthority(UnknownAuthority),
    /// The template of the target's authority is for another authority.
    TemplatePrefix(TemplatePrefixError),
    /// There is no template for servers.
    MissingServerTemplate,
}

impl ListenerError {
    /// The kind as a word for logs and other machines, such as `unknown_authority`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::UnknownAuthority(_) => "unknown_authority",
            Self::TemplatePrefix(_) => "template_prefix",
            Self::MissingServerTemplate => "missing_server_template",
        }
    }
}

impl fmt::Display for ListenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAuthority(error) => error.fmt(f),
            Self::TemplatePrefix(error) => error.fmt(f),
            Self::MissingServerTemplate => {
                f.write_str("expected server_listener_resource_name_template in the bootstrap")
            }
        }
    }
}

impl core::error::Error for ListenerError {}

/// An authority is not in the bootstrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAuthority {
    authority: String,
}

impl UnknownAuthority {
    /// The authority, decoded.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for UnknownAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "authority {:?} is not in the bootstrap", self.authority)
    }
}

impl core::error::Error for UnknownAuthority {}

/// An EDS cluster with an `xdstp:` name has no `service_name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdsServiceNameRequired {
    cluster: String,
}

impl EdsServiceNameRequired {
    /// The name of the cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }
}

impl fmt::Display for EdsServiceNameRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {:?}: expected an EDS service_name, as the cluster has an xdstp name", self.cluster)
    }
}

impl core::error::Error for EdsServiceNameRequired {}
