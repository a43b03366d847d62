//! What a relay keeps where it survives a restart: the last that its origins said, served again while they are away.
//!
//! A [`Store`] is an engine with three methods: [`Memory`] for tests, [`Redb`] for one machine. [`State`] is what is kept there.

mod bodies;
mod changes;
mod format;
mod identity;
mod keeping;
mod kept;
mod keys;
mod memory;
mod open;
mod read;
mod redb;
mod save;
mod store;
mod watched;

pub(crate) use self::format::Moment;
pub(crate) use self::keeping::Keeping;
pub(crate) use self::keys::Keys;
pub(crate) use self::open::{check, open};

pub use self::changes::Watch;
pub use self::kept::State;
pub use self::keys::KeysError;
pub use self::memory::Memory;
pub use self::redb::Redb;
pub use self::save::Saved;
pub use self::store::{Commit, Compare, Entry, Event, Listing, Op, Revision, Store, StoreError};
