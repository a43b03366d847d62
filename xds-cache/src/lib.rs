#![doc = include_str!("../README.md")]
#![allow(
    clippy::indexing_slicing,
    reason = "an arena is indexed by a key that it gave, which no other one takes; the model test checks that it is not too old"
)]

mod answer;
mod arena;
mod batch;
mod cache;
mod change_set;
mod coverage;
mod disclaim;
mod edit;
mod elsewhere;
mod evict;
mod fail;
mod fill;
mod id;
mod index;
mod interest;
mod keys;
mod look;
mod looking;
mod moments;
mod notes;
mod open;
mod options;
mod outcome;
mod pull;
mod put;
mod recall;
mod remove;
mod resource;
mod resource_error;
mod resume;
mod selecting;
mod snapshot;
mod store;
mod subscribe;
mod subscribers;
#[cfg(test)]
mod tests;
mod text;
mod tombstones;
mod unsubscribe;
mod variant;
mod vary;
mod visit;
mod waiting;
mod wake;
mod wanted;
mod watchers;
mod within;

pub use cache::Cache;
pub use change_set::{Pull, Pulled, Removals, Unanswered, Visited};
pub use edit::{Edit, Woken};
pub use id::SubscriberId;
pub use interest::Interest;
pub use look::Stored;
pub use options::Options;
pub use outcome::{Outcome, Outcomes};
pub use resource::Resource;
pub use resource_error::{Cause, Failed, ResourceError};
pub use snapshot::{Extent, Known};
pub use store::Aliases;
pub use subscribe::Subscribed;
pub use text::{TypeUrl, Version};
pub use variant::{Overlap, Selector, Variant};
