#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod client;
mod deadlines;
mod dialect;
mod frame;
#[cfg(any(feature = "grpc-client", feature = "grpc-server"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "grpc-client", feature = "grpc-server"))))]
pub mod grpc;
mod protocol;
mod put;
mod rate;
mod response;
pub mod server;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
mod types;
pub mod wire;

pub use dialect::Dialect;
pub use frame::{Frame, WrongType};
pub use protocol::Protocol;
pub use put::{Misfit, Put};
pub use rate::{Bucket, RateLimit};
pub use response::{Received, Rejected, Response};
pub use types::{Dependent, Reference, Step, TypeRule, TypeRules, TypeService, is_secret};
