//! What every engine does.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::state::changes::Watch;
use crate::state::keys::KeysError;

/// How often something was committed to a store: it only grows. Versions that clients see are never made of it.
pub type Revision = u64;

/// A place for values by key, that others may change too. It is asked while no lock is held: it may call the client that it keeps
/// what is known of, and nobody who watches waits for it.
///
/// ```
/// use xdstp_client::state::{Commit, Compare, Memory, Op, Store};
///
/// let store = Memory::default();
/// let done = store.commit(&[Op::put("zone/a", "1")], &[Compare::absent("zone/a")])?;
/// assert_eq!(done, Commit::Done(1));
/// assert_eq!(store.commit(&[Op::delete("zone/a")], &[Compare::absent("zone/a")])?, Commit::Conflict);
///
/// let listing = store.list("zone/")?;
/// assert_eq!((listing.entries.len(), listing.revision), (1, 1));
/// # Ok::<(), xdstp_client::state::StoreError>(())
/// ```
pub trait Store: Send + Sync + 'static {
    /// All whose keys begin with `prefix`, in their order, at one revision.
    ///
    /// # Errors
    /// The store cannot be read.
    fn list(&self, prefix: &str) -> Result<Listing, StoreError>;

    /// What is done after a revision to keys that begin with `prefix`.
    ///
    /// # Errors
    /// [`Compacted`](StoreError::Compacted): that is not known any more, and what is there is to be listed again.
    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError>;

    /// Does all of `ops`, in their order, if all of `compares` hold; or nothing. When it returns, they are durable as far as the
    /// engine knows how to make them.
    ///
    /// # Errors
    /// The store cannot be written. Whether anything was done is not known then: all of it or nothing.
    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError>;
}

/// What is under a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// By key.
    pub entries: Vec<Entry>,
    /// When that was so.
    pub revision: Revision,
}

/// A value and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Any text.
    pub key: String,
    /// Any bytes.
    pub value: Bytes,
    /// When it was put.
    pub revision: Revision,
}

/// A part of what is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A key has this value from now on.
    Put(String, Bytes),
    /// It has none.
    Delete(String),
}

impl Op {
    /// A key is to have a value.
    pub fn put(key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Self::Put(key.into(), value.into())
    }

    /// A key is to have no value.
    pub fn delete(key: impl Into<String>) -> Self {
        Self::Delete(key.into())
    }

    /// The key that it is about.
    pub fn key(&self) -> &str {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }

    /// How much is to be kept of it, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.key().len() + if let Self::Put(_, value) = self { value.len() } else { 0 }
    }
}

/// What must be so for anything to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compare {
    /// A key.
    pub key: String,
    /// When its value was put; 0 if it has none.
    pub revision: Revision,
}

impl Compare {
    /// It was last put at that revision.
    pub fn unchanged(key: impl Into<String>, revision: Revision) -> Self {
        Self { key: key.into(), revision }
    }

    /// It has no value.
    pub fn absent(key: impl Into<String>) -> Self {
        Self::unchanged(key, 0)
    }
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what conflicts was not done"]
pub enum Commit {
    /// It was done, and this is the revision since.
    Done(Revision),
    /// Something to compare was otherwise, and nothing was done.
    Conflict,
}

/// What was done to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// With the others of this revision.
    pub revision: Revision,
    /// What.
    pub op: Op,
}

/// Why a store does not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has it.
    #[error("another process has it open")]
    Locked,
    /// What is in it is of a later version of this program, or of the engine.
    #[error("it is of another format: {0}")]
    Format(String),
    /// It is not what was written.
    #[error("it is damaged: {0}")]
    Corrupt(String),
    /// What secrets are kept with is not good.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// It was removed while it was open.
    #[error("its file is not there any more")]
    Gone,
    /// What was done after the revision that is asked about is not known any more.
    #[error("the changes since then are not kept")]
    Compacted,
    /// The file system says no.
    #[error("{0}")]
    Io(Arc<io::Error>),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.into())
    }
}
