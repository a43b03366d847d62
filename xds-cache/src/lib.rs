#![doc = include_str!("../README.md")]
#![allow(
    clippy::indexing_slicing,
    reason = "an arena is indexed by a key that it gave, which no other one takes; the model test checks that it is not too old"
)]

mod aliases;
mod arena;
mod batch;
mod brought;
mod by_alias;
mod cache;
mod departed;
mod elsewhere;
mod errors;
mod evict;
mod id;
mod idle;
mod index;
mod interest;
mod keys;
mod links;
mod look;
mod missing;
mod moments;
mod name_set;
mod outcome;
mod pull;
mod resource;
mod resource_error;
mod resume;
mod subscribe;
mod table;
#[cfg(test)]
mod tests;
mod tombstones;
mod waiting;

pub use aliases::Aliases;
pub use cache::{Cache, Options, Stored};
pub use id::SubscriberId;
pub use interest::Interest;
pub use outcome::{Outcome, Outcomes};
pub use pull::{Pull, Pulled, Removals, Unanswered};
pub use resource::{Resource, TypeUrl, Version};
pub use resource_error::{Failed, ResourceError};
pub use subscribe::Subscribed;
