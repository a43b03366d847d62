//! What survives a restart: the last that servers said, served again while they are away.
//!
//! A [`Store`] is an engine with three methods: [`Memory`] for tests, [`Redb`] for one machine, and with the feature
//! `etcd` a cluster of that for several. [`State`] is what is kept there,
//! and a [`LastKnownGood`](crate::federation::LastKnownGood) of a [`Federation`](crate::federation::Federation).

mod aging;
mod aliases;
mod bodies;
mod changes;
#[cfg(feature = "etcd")]
mod etcd;
mod format;
mod identity;
mod keeping;
mod kept;
mod kept_values;
mod keys;
mod lent;
mod memory;
mod open;
mod passed_on;
mod prints;
mod read;
mod redb;
mod save;
mod saver;
mod scopes;
mod sharing;
mod store;
mod unwanted;
mod value_format;
mod values;
mod watched;
mod written;

pub use self::changes::Watch;
#[cfg(feature = "etcd")]
pub use self::etcd::{Etcd, EtcdOptions, EtcdOptionsError, Fenced, Lease};
pub use self::identity::Identities;
pub use self::keeping::Keeping;
pub use self::kept::State;
pub use self::kept_values::{KeptChange, KeptValue, KeptValues};
pub use self::keys::{Keys, KeysError};
pub use self::memory::Memory;
pub use self::redb::Redb;
pub use self::saver::Saved;
pub use self::sharing::Sharing;
pub use self::store::{Commit, Compare, Entry, Event, Limits, Listing, Op, Revision, Store, StoreError};
