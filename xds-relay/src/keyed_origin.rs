//! An origin that is values under keys, whoever keeps them: people and programs put texts of resources there, and as many relays as
//! like follow them.
//!
//! A value that is not good is refused, and the last good one of its key counts, over a restart, too, where a relay keeps what it
//! knows. A removal of much at once is held until it is seen again. What is asked for, and how it is told, is a matter of who keeps the keys: this is without I/O.

mod contents;
mod followed;
mod follower;
#[cfg(test)]
#[path = "../tests/support/logged.rs"]
pub(crate) mod logged;
mod losses;
mod name;
mod outline;
mod refusal;
mod relayed;
mod removals;
mod shown;
mod standing;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use self::contents::{Change, Contents, Read};
pub(crate) use self::followed::{Followed, GRACE, Keeper, READ_LOOKED, READ_WITHIN};
pub(crate) use self::follower::{Follower, Next};
pub(crate) use self::losses::{HELD, MUCH};
pub(crate) use self::name::{Name, shown_name};
pub(crate) use self::relayed::{Relayed, Teller, Told};
pub(crate) use self::removals::{Removals, said_of_removal};
pub(crate) use self::shown::shown;
#[cfg(test)]
pub(crate) use self::standing::Standing;
