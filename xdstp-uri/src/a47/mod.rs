//! gRFC A47, *xDS Federation*: from what a gRPC application asks for to the name of a listener, and from a name to the
//! servers that have it.
//!
//! Reading the bootstrap file is left to the client; a [`Bootstrap`] answers the few questions that names depend on.
//!
//! # Examples
//! ```
//! use xdstp_uri::a47::{self, AuthorityEntry, Bootstrap, Servers, Target};
//!
//! struct Example;
//!
//! impl Bootstrap for Example {
//!     fn client_default_listener_resource_name_template(&self) -> Option<&str> {
//!         Some("xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/%s?project_id=1234")
//!     }
//!     fn server_listener_resource_name_template(&self) -> Option<&str> {
//!         Some("xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/%s?project_id=1234")
//!     }
//!     fn authority(&self, name: &str) -> Option<AuthorityEntry<'_>> {
//!         match name {
//!             "xds.authority.com" => Some(AuthorityEntry::default()),
//!             "xds.other.com" => Some(AuthorityEntry::new(None, true)),
//!             _ => None,
//!         }
//!     }
//! }
//!
//! let name = a47::client_listener_name(&Example, &Target::parse("xds:server.example.com")?)?;
//! assert_eq!(
//!     name,
//!     "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/server.example.com?project_id=1234"
//! );
//!
//! let name = a47::client_listener_name(&Example, &Target::parse("xds://xds.other.com/server.other.com")?)?;
//! let lookup = a47::look_up_authority(&Example, &name.parse()?)?;
//! assert_eq!(name, "xdstp://xds.other.com/envoy.config.listener.v3.Listener/server.other.com");
//! assert_eq!((lookup.authority.as_deref(), lookup.servers), (Some("xds.other.com"), Servers::Authority));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod listener;
mod target;
mod template;

pub use listener::{
    AuthorityEntry, Bootstrap, EdsServiceNameRequired, ListenerError, Lookup, Servers, UnknownAuthority,
    client_listener_name, eds_resource_name, look_up_authority, server_listener_name,
};
pub use target::{DataPlaneAuthority, InvalidTarget, Target};
pub use template::{
    TemplatePrefixError, check_template_prefix, default_template, expand_template, percent_encode_path,
};
