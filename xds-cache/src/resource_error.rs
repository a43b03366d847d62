//! Why a resource is not sent: the resource errors of proposal TP3.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::moments::Seq;
use crate::text::Version;

/// Why an origin does not send a resource, or a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ResourceError {
    /// A code of `google.rpc.Code`.
    pub code: i32,
    /// What is wrong, for people.
    pub message: Arc<str>,
    /// Who found that.
    pub cause: Cause,
}

/// Who found what is wrong with a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The origin said it (TP3).
    #[default]
    Said,
    /// The origin does not have it any more, and what is here of it stays in use.
    Deleted,
    /// Who asked for it has no use for what came at this version.
    Refused(Version),
    /// The origin did not say anything of it in time.
    Silence,
    /// The origin has something of it that is of no use: others may have what it had before, and whether it is there, is not known here.
    Unreadable,
    /// The origin cannot be asked for it, or not now: it said nothing of it. It is an error to who reads errors, and no answer: to
    /// nobody it is not there, and a collection is not refused.
    Unasked,
}

impl ResourceError {
    /// What came is of no use to who asked for it.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// Nothing was said of it in time.
    pub const DEADLINE_EXCEEDED: i32 = 4;
    /// The name does not exist: the same as a removal.
    pub const NOT_FOUND: i32 = 5;
    /// The client may not have it.
    pub const PERMISSION_DENIED: i32 = 7;

    /// An error with a code of `google.rpc.Code`, and a message.
    pub fn new(code: i32, message: impl Into<Arc<str>>) -> Self {
        Self { code, message: message.into(), cause: Cause::Said }
    }

    /// The same, found otherwise than by the origin's word.
    ///
    /// ```
    /// use xdstp_cache::{Cause, ResourceError};
    ///
    /// let error = ResourceError::new(3, "no address").found_by(Cause::Refused("v2".into()));
    /// assert_eq!(error.to_string(), "no address (code 3)");
    /// ```
    #[must_use]
    pub fn found_by(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Whether a client must go on using what it has: all but `NOT_FOUND` and `PERMISSION_DENIED` say nothing
    /// about the resource itself.
    pub fn is_transient(&self) -> bool {
        !matches!(self.code, Self::NOT_FOUND | Self::PERMISSION_DENIED)
    }

    /// Whether it is not known if the resource is there.
    pub(crate) fn leaves_unknown(&self) -> bool {
        self.cause == Cause::Unreadable
    }
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

/// One entry of what [`Cache::pull_errors`](crate::Cache::pull_errors) visits.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failed<'a> {
    /// The name of a resource, or a glob.
    pub name: &'a ResourceName,
    /// What is wrong with it.
    pub error: &'a ResourceError,
    /// The resource, or a member of the glob, is there: the error stands beside it.
    pub beside: bool,
    /// Whether clients that know no errors must be told that it is removed: it is not there (rule 117). Not where
    /// the error is transient and the client said that it holds the resource, nor where it is [not known](Cause::Unreadable) to be gone.
    pub removed: bool,
}

impl<'a> Failed<'a> {
    /// An entry, for a source over several caches.
    pub fn new(name: &'a ResourceName, error: &'a ResourceError, beside: bool, removed: bool) -> Self {
        Self { name, error, beside, removed }
    }
}

/// An error as the cache keeps it.
pub(crate) struct Failure {
    pub(crate) error: ResourceError,
    /// When it was told to the cache.
    pub(crate) seq: Seq,
    /// Whether those who want the glob of the name are told of it.
    pub(crate) listed: bool,
    /// When, by the caller's clock; not of what is from before.
    pub(crate) at: Option<Instant>,
}

/// How an error is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// See [`Edit::fail_by_name`](crate::Edit::fail_by_name).
    pub(crate) asked: bool,
    /// See [`Edit::fail_beside`](crate::Edit::fail_beside).
    pub(crate) beside: bool,
}
