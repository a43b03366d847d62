#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod admin;
mod admin_access;
pub mod aggregation;
pub mod api;
mod bearers;
mod beside;
mod builder;
mod causes;
mod certificates;
mod check;
mod checks;
mod claim;
mod client_rules;
mod client_status;
pub mod config;
mod connections;
mod content;
mod descriptors;
#[cfg(any(feature = "file-origin", feature = "otlp"))]
mod dialed;
mod downstream;
mod drain;
mod drift;
mod error;
mod etcd;
#[cfg(feature = "file-origin")]
#[cfg_attr(docsrs, doc(cfg(feature = "file-origin")))]
pub mod etcd_origin;
mod exported;
mod file_content;
#[cfg(feature = "file-origin")]
#[cfg_attr(docsrs, doc(cfg(feature = "file-origin")))]
pub mod file_origin;
#[cfg(feature = "file-origin")]
#[cfg_attr(docsrs, doc(cfg(feature = "file-origin")))]
pub mod followed_server;
mod health;
mod hex;
mod incoming;
mod kept_body;
#[cfg(feature = "file-origin")]
mod keyed_origin;
#[cfg(feature = "file-origin")]
mod kubernetes;
#[cfg(feature = "file-origin")]
#[cfg_attr(docsrs, doc(cfg(feature = "file-origin")))]
pub mod kubernetes_origin;
mod load_reports;
mod lock;
mod logging;
pub mod metrics;
mod node_text;
mod orders;
mod origins;
mod pages;
mod proto_json;
mod reached;
pub mod relay_core;
mod releaser;
pub mod releases;
mod reload;
mod replicas;
mod seats;
mod serve;
mod shared_known;
mod snapshot;
mod socket;
pub mod state;
mod statsd;
mod struct_json;
mod text_file;
mod tls;
mod traces;
mod yaml;

pub use crate::builder::{RelayBuilder, run};
pub use crate::check::check;
pub use crate::config::{Config, ConfigError, ExampleMesh};
pub use crate::error::Error;
pub use crate::file_content::FileContent;
pub use crate::releaser::Releaser;
pub use crate::reload::{ReadOnce, Reloaded, Reloader};
pub use crate::serve::Relay;
