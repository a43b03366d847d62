//! Files as an origin: a directory of resources in Envoy's own JSON form.
//!
//! A file (`.yaml`, `.yml` or `.json`) holds what Envoy's `path_config_source` reads, and is interchangeable with it:
//!
//! ```yaml
//! resources:
//! - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
//!   name: backend
//!   connect_timeout: 1s
//! ```
//!
//! The name of a resource is the field of the message that holds it; a message without one is wrapped as
//! `{name: …, resource: {"@type": …}}`, the JSON form of the protocol's own `Resource`. A wrapper may also give
//! `version`, `ttl` (seconds: `60s`) and `aliases`, and in place of `name` a `resource_name` with the
//! `dynamic_parameter_constraints` of a variant (TP2); no two of a name may be for the same parameters.
//!
//! JSON is read as the YAML that it is. What Envoy's YAML 1.1 and today's 1.2 read differently is refused (`no`, `on`,
//! `0777` without quotes), and so is a pair of `\u` escapes for one character beyond the basic plane: write the
//! character.
//!
//! What Envoy would refuse for its values is an error where [`Descriptors::with_validation`] says so, as it is for an origin of a
//! configuration.
//!
//! This is the only part of the relay that knows Envoy's types, by reflection over [`Descriptors`]. [`load`] reads a
//! directory, [`Watch`] reports its changes, and [`Descriptors::to_json`] is the way back.
//!
//! ```
//! use xds_relay::file_origin::{Descriptors, load_embedded};
//!
//! let descriptors = Descriptors::built_in()?;
//! let text = r#"
//! resources:
//! - {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: backend}
//! "#;
//! let resources = load_embedded(&[("clusters.yaml", text)], &descriptors)?;
//! assert_eq!(resources[0].name, "backend");
//!
//! let error = load_embedded(&[("bad.yaml", "resources:\n- name: x\n")], &descriptors).unwrap_err();
//! assert_eq!(error.to_string(), "bad.yaml:2:3: resources[0]: neither `@type` nor `resource` is given");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client reads such files at `file:` locators (xRFC TP1) with these descriptors, which decode for
//! [`xdstp_client::Files`]: `Files::within(["/etc/xds"], Descriptors::built_in()?)`.

mod dangling;
mod decode;
mod descriptors;
mod document;
mod encode;
mod encoded;
mod environment;
mod error;
mod files;
mod glance;
mod held;
mod import;
mod load;
mod name;
mod problems;
mod reader;
mod redact;
mod resource;
mod secrets;
mod served;
mod validate;
mod variant_keys;
mod watch;
mod wrapper;
mod written;

pub use self::descriptors::{Descriptors, DescriptorsError};
pub(crate) use self::encoded::check_encoded;
pub use self::error::FileError;
pub use self::files::resource_files;
pub(crate) use self::held::held;
pub use self::import::{Import, ImportedFile, import, import_file};
pub(crate) use self::load::{descriptors_of, directory_of, load_origin, load_text, load_value};
pub use self::load::{load, load_embedded};
pub(crate) use self::redact::without_secrets;
pub use self::resource::FileResource;
pub(crate) use self::served::Served;
pub(crate) use self::watch::Reading;
pub use self::watch::Watch;
