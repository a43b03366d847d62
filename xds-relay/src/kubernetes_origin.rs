//! Kubernetes as an origin: resources that are in objects of its API, served by as many relays as follow them, with no control plane.
//!
//! An object is a `ConfigMap`, whose keys in `data` are each a text as a [file](crate::file_origin) has it, a resource or a list of
//! several; or an `XdsResource`, whose `spec` is a resource. It is listed, and watched from there.
//!
//! What changes in an object is one change. A value that is not good is refused, and the last good one of its key stays; so does all
//! while the API server does not answer. A resource that is in two objects is served of the older one.
//!
//! The client is a few requests of HTTP/1.1 on what is in the tree already, each with bounds: list and watch are all that is needed. The crate
//! `kube` (5.0, with a client, rustls and a watcher) would be 53 crates more than the 154 that a relay has.

mod answer;
mod api;
mod collection;
mod dial;
mod failure;
mod followed;
mod following;
mod leaving;
mod lines;
mod object;
#[cfg(test)]
mod tests;
mod value;
mod watching;

pub(crate) use self::followed::follow_all;
pub(crate) use self::following::Following;
