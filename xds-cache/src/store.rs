//! What a cache stores: resources, and what is known of names and of collections. Nothing in here knows a subscriber: where
//! the chain of a target's links begins, and for whom it keeps what is gone, is in `watchers.rs`. `cargo xtask house` holds it and
//! `subscribers` to that: neither names anything of the other.

mod aliases;
mod by_alias;
mod compiled;
mod departures;
mod errors;
mod idle;
mod list;
mod notes;
mod order;
mod renewal;
mod selection;
mod selectors;
mod slot;
mod tables;
mod tombstones;
mod turns;
mod varied;

pub use aliases::Aliases;
pub(crate) use departures::Departed;
pub(crate) use errors::{collection_of, refuses};
pub(crate) use list::{Answer, Gone, List};
pub(crate) use notes::Notes;
pub(crate) use selection::View;
pub(crate) use slot::{Slot, State};
pub(crate) use tables::Store;
pub(crate) use turns::{Turn, Turns};
pub(crate) use varied::{Lost, Settled, Varied};
