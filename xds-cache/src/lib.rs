#![doc = include_str!("../README.md")]
#![allow(
    clippy::indexing_slicing,
    reason = "an arena is indexed by a key that it gave, which no other one takes; where debug assertions are, one that is too old is refused"
)]

mod along;
mod arena;
mod cache;
mod change_set;
mod edit;
mod evict;
mod id;
mod index;
mod interest;
mod keys;
mod look;
mod moments;
mod options;
mod outcome;
mod pull;
mod resource;
mod resource_error;
mod resume;
mod snapshot;
mod store;
mod subscribe;
mod subscribers;
#[cfg(test)]
mod tests;
mod text;
mod variant;
mod visit;
mod wake;
mod watchers;

pub use along::{Along, HeldAlong};
pub use cache::Cache;
pub use change_set::{Pull, Pulled, Removals, Unanswered, Visited};
pub use edit::{Edit, Woken};
pub use id::SubscriberId;
pub use interest::Interest;
pub use look::Stored;
pub use options::Options;
pub use outcome::{Outcome, Outcomes};
pub use pull::Place;
pub use resource::Resource;
pub use resource_error::{Cause, Failed, ResourceError};
pub use snapshot::{Extent, Known};
pub use store::Aliases;
pub use subscribe::Subscribed;
pub use text::{TypeUrl, Version};
pub use variant::{Selector, Variant};
