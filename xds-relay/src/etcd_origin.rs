//! Etcd as an origin: resources that people, CI and `xds push` put under keys, served by as many relays as follow them, with no
//! control plane.
//!
//! A resource is under the key `PREFIXres/TYPE/NAME` ([`Key`]). Its value is an encoded `google.protobuf.Any` or
//! `envoy.service.discovery.v3.Resource`, or a text, YAML or JSON, as [files](crate::file_origin) have it:
//!
//! ```text
//! etcdctl put mesh/res/envoy.config.cluster.v3.Cluster/web '{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web}'
//! ```
//!
//! What is put in one transaction is one change. A value that is not good is refused, and the last good one of its key stays;
//! so does all while etcd is away.

mod followed;
mod following;
mod key;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use self::followed::follow_all;
pub(crate) use self::following::Following;
pub use self::key::{Key, KeyError};
pub(crate) use self::value::Reader;
pub use self::value::encode;
