//! What a relay keeps where it survives a restart: the last that its origins said, served again while they are away.
//!
//! A [`Store`] is an engine with three methods: [`Memory`] for tests, [`Redb`] for one machine.

mod changes;
mod memory;
mod redb;
mod store;

pub use self::changes::Watch;
pub use self::memory::Memory;
pub use self::redb::Redb;
pub use self::store::{Commit, Compare, Entry, Event, Listing, Op, Revision, Store, StoreError};
