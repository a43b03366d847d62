#![doc = include_str!("../README.md")]

mod cache;
mod interest;
mod links;
mod pull;
mod resource;
mod subscribe;
#[cfg(test)]
mod tests;

pub use cache::{Cache, Options, Outcome, Stored};
pub use interest::Interest;
pub use pull::{Pull, Pulled, Removals, Unanswered};
pub use resource::{Resource, TypeUrl, Version};
pub use subscribe::{Subscribed, SubscriberId};
