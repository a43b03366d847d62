//! `xds push` and `xds rm`: resources that relays follow in etcd.

mod changes;
mod cluster;
pub(crate) mod push;
pub(crate) mod rm;
