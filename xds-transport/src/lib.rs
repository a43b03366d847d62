#![doc = include_str!("../README.md")]

mod frame;
mod response;
mod type_rules;
pub mod client;
pub mod server;
pub mod wire;

pub use frame::Frame;
pub use response::{Received, Rejected, Response};
pub use type_rules::{Dependent, TypeRule, TypeRules};
