//! Who is told of what: subscribers, their links, and what they are yet to be told. Nothing in here knows a resource.
//!
//! An update needs no memory for that: it moves links from the chain of what changed to those of their subscribers.

mod aliased;
mod all;
mod brought;
mod chains;
mod claims;
mod full_state;
mod link;
mod linking;
mod links;
mod looked;
mod name_set;
mod names;
mod owed;
mod places;
mod subscriber;
mod targets;

pub(crate) use all::Subscribers;
pub(crate) use full_state::FullState;
pub(crate) use link::{Chain, Link, Walk};
pub(crate) use linking::New;
pub(crate) use looked::Look;
pub(crate) use names::Names;
pub(crate) use owed::Debt;
pub(crate) use subscriber::Subscriber;
