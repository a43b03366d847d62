//! What can be wrong with what is kept.

use xdstp_client::state::StoreError;

use crate::releases::control::error::ControlError;
use crate::releases::release::Release;

/// Why releases are not read or not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredError {
    /// It may not be done, whatever is kept.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The store does not do what it should.
    #[error("releases are not kept: {0}")]
    Store(#[from] StoreError),
    /// What is there is not what was written. Nothing is done with it: what was frozen or rolled back must not be forgotten.
    #[error(
        "{key} is damaged: {problem}; nothing of this scope is released before it is forgotten as a whole or restored"
    )]
    Damaged {
        /// Under which key.
        key: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// It is of a later version of this program, which is to be used.
    #[error("{key} is of format {format}, and this program reads up to {reads}")]
    Format {
        /// Under which key.
        key: String,
        /// The format.
        format: u32,
        /// The last one that is read.
        reads: u32,
    },
    /// There is no such release, or not any more, or not all of it.
    #[error("release {0} is not kept")]
    NotKept(Release),
    /// A resource of a release has not the content that its manifest says.
    #[error("the content of {name} ({type_url}) is not there")]
    NoBody {
        /// Its type.
        type_url: String,
        /// Its name.
        name: String,
    },
    /// The origin has something that cannot be read, and what is stable has nothing in its place: a release without it would take it away.
    #[error("{name} ({type_url}) cannot be read, and what is stable does not have it: {reason}")]
    Unreadable {
        /// Its type.
        type_url: String,
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Others changed the control value again and again; what is ordered may be ordered again.
    #[error("others change the releases of this scope at the same time")]
    Contended,
    /// The store was put back to an earlier state, and is told what was since.
    #[error("the store was put back to an earlier state, and is about to be told what was since")]
    PutBack,
    /// Something was done since whoever orders looked.
    #[error("something was done since you looked: it is at {is} now")]
    Changed {
        /// What [tells](super::Stored::mark) it now.
        is: String,
    },
}

impl StoredError {
    /// Whether the store does not answer, or not with what was asked for.
    pub(crate) fn is_of_store(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// What is there and cannot be used.
    pub(super) fn damage(&self) -> Option<Damage> {
        match self {
            Self::Damaged { key, problem } => Some(Damage::new(&**key, problem)),
            Self::Format { key, .. } => Some(Damage::new(&**key, LATER)),
            _ => None,
        }
    }
}

/// What is wrong with what another version wrote.
pub(super) const LATER: &str = "it is of a later format";

/// Something that was kept and cannot be used. It is as if it were not there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Under which key.
    pub key: String,
    /// What is wrong.
    pub problem: &'static str,
}

impl Damage {
    pub(crate) fn new(key: impl Into<String>, problem: &'static str) -> Self {
        Self { key: key.into(), problem }
    }
}

impl From<Damage> for StoredError {
    fn from(Damage { key, problem }: Damage) -> Self {
        Self::Damaged { key, problem }
    }
}
