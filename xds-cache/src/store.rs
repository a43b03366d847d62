//! What a cache stores: resources, and what is known of names and of collections. Nothing in here knows a subscriber.

mod aliases;
mod by_alias;
mod departures;
mod errors;
mod idle;
mod list;
mod order;
mod renewal;
mod slot;
mod tables;
mod tombstones;

pub use aliases::Aliases;
pub(crate) use departures::Departed;
pub(crate) use errors::glob_of;
pub(crate) use list::{Answer, Gone, List};
pub(crate) use slot::{Slot, State};
pub(crate) use tables::Store;
