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

    /// What one key has, if it is there: whatever else begins with it need not be read.
    ///
    /// # Errors
    /// The store cannot be read.
    fn read(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.list(key)?.entries.into_iter().find(|entry| entry.key == key))
    }

    /// What is done after a revision to keys that begin with `prefix`.
    ///
    /// # Errors
    /// [`Compacted`](StoreError::Compacted): that is not known any more, and what is there is to be listed again.
    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError>;

    /// Does all of `ops`, in their order, if all of `compares` hold; or nothing. When it returns, they are durable as far as the
    /// engine knows how to make them.
    ///
    /// # Errors
    /// The store cannot be written, or takes less [at once](Self::limits). Whether anything was done is not known then: all of it
    /// or nothing.
    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError>;

    /// How much is committed at once: who has more makes several commits of it, in an order in which each may be the last.
    fn limits(&self) -> Limits {
        Limits::default()
    }
}

/// How much is committed at once. There is no limit, if nobody says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many ops.
    pub ops: usize,
    /// How many compares.
    pub compares: usize,
    /// How large all keys and values of both are together, in bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ops: usize::MAX, compares: usize::MAX, bytes: usize::MAX }
    }
}

/// What is under a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// By key.
    pub entries: Vec<Entry>,
    /// When that was so.
    pub revision: Revision,
    /// The keys that begin so and are no text (UTF-8): others may put what no entry has.
    pub no_text: Vec<Bytes>,
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
    /// Nobody is there who does it, and surely nothing was done.
    #[error("it is away: {0}")]
    Away(String),
    /// It did not say in time what was done, or lost its voice: what was to be committed may be.
    #[error("it is not known what was done: {0}")]
    Unsure(String),
    /// It says no, and surely nothing was done.
    #[error("it refuses: {0}")]
    Refused(String),
    /// What was written was to count only as long as a lease is held, and that is over: surely nothing was done.
    #[error("its lease is over")]
    Fenced,
    /// It does not take as much at once, and nothing was done.
    #[error(
        "{ops} ops and {compares} compares of {bytes} bytes are too much for one commit: at most {}, {} and {} bytes are one",
        limits.ops, limits.compares, limits.bytes
    )]
    TooLarge {
        /// How many ops there are.
        ops: usize,
        /// How many compares.
        compares: usize,
        /// How large they are together.
        bytes: usize,
        /// What it takes.
        limits: Limits,
    },
}

impl StoreError {
    /// Whether nobody answers: the same may be done another time, with nothing changed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Unsure(_))
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.into())
    }
}
