//! Why a watch has nothing, or nothing newer.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use xdstp_cache::{Cause, ResourceError, Version};

/// Why a [watch](crate::Watch) has nothing, or nothing newer. A value: it clones, and compares.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// No server can be reached: of several none that is asked, nor another that would be. They are tried on.
    #[error("no stream to {server} (as node {node:?}): {reason}")]
    Unreachable {
        /// The server; of several the last that is asked.
        server: Arc<str>,
        /// Who we said that we are.
        node: Arc<str>,
        /// What failed.
        reason: Arc<str>,
    },
    /// What came is of no use here, and its server was told so (a NACK).
    #[error("version {version} is of no use: {reason}")]
    Invalid {
        /// Which version; empty if it could not even be read.
        version: Version,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// Its server does not send it, and says why (TP3).
    #[error("refused (code {code}): {reason}")]
    Refused {
        /// A code of `google.rpc.Code`.
        code: i32,
        /// The server's words.
        reason: Arc<str>,
    },
    /// Its server says that it does not exist, or not any more.
    #[error("it does not exist")]
    Absent,
    /// Its server is there, was asked, and did not say anything of it in time.
    #[error("no answer within {after:?}")]
    Timeout {
        /// How long that was.
        after: Duration,
        /// Whether that counts as absence (gRFC A57): so it does unless the server is known to have
        /// `resource_timer_is_transient_error` (gRFC A88).
        is_absence: bool,
    },
    /// It cannot be asked for: the name is none, or not one of the type.
    #[error("{reason}")]
    BadName {
        /// Why.
        reason: Arc<str>,
    },
    /// A redirect or an entry of a list (TP1) leads nowhere.
    #[error("{locator}: {reason}")]
    Unresolved {
        /// Where to.
        locator: Arc<str>,
        /// What is wrong with that.
        reason: Arc<str>,
    },
    /// The bootstrap does not have the authority of the name: nobody is asked (gRFC A47).
    #[error("authority {authority:?} is not in the bootstrap (as node {node:?})")]
    UnknownAuthority {
        /// The authority.
        authority: Arc<str>,
        /// Who we say that we are.
        node: Arc<str>,
    },
    /// Its server cannot be spoken to: the bootstrap says how in a way that is not known here, or what is selected (TP2) cannot
    /// be said to it.
    #[error("{server}: {reason} (as node {node:?})")]
    Unusable {
        /// The server.
        server: Arc<str>,
        /// Who we say that we are.
        node: Arc<str>,
        /// What is not known, or cannot be said.
        reason: Arc<str>,
    },
}

impl Error {
    /// Whether it says that there is no such resource: its server does, or gRFC A57 takes its silence for that.
    ///
    /// ```
    /// use std::time::Duration;
    /// use xdstp_client::Error;
    ///
    /// assert!(Error::Absent.is_absence());
    /// assert!(!Error::Timeout { after: Duration::from_secs(30), is_absence: false }.is_absence());
    /// ```
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Absent | Self::Timeout { is_absence: true, .. })
    }

    pub(crate) fn of(error: &ResourceError, after: Duration, timer_is_transient: bool) -> Self {
        match &error.cause {
            Cause::Refused(version) => Self::Invalid { version: version.clone(), reason: error.message.clone() },
            Cause::Silence => Self::Timeout { after, is_absence: !timer_is_transient },
            Cause::Deleted => Self::Absent,
            _ if error.code == ResourceError::NOT_FOUND => Self::Absent,
            _ => Self::Refused { code: error.code, reason: error.message.clone() },
        }
    }
}
