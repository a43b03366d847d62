//! What differs between resource types, as data that a caller can replace: their rules, and the methods that serve them.

mod envoy;
mod envoy_references;
mod reference;
mod rule;
mod rules;
mod secret;
mod service;

pub use reference::{Reference, Step};
pub use rule::{Dependent, TypeRule};
pub(crate) use rule::{no_method, no_sotw};
pub use rules::TypeRules;
pub use secret::is_secret;
pub use service::TypeService;
