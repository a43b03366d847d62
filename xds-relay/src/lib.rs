#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod admin;
pub mod aggregation;
mod causes;
mod check;
pub mod config;
mod connections;
mod downstream;
#[cfg(feature = "file-origin")]
#[cfg_attr(docsrs, doc(cfg(feature = "file-origin")))]
pub mod file_origin;
mod health;
mod incoming;
mod load_reports;
pub mod metrics;
mod origins;
pub mod relay_core;
mod serve;
mod struct_json;
mod text_file;
mod yaml;

pub use crate::check::{FileContent, check};
pub use crate::config::{Config, ConfigError, ExampleMesh};
pub use crate::serve::{Error, Relay, run};
