//! What a watch yields.

use bytes::Bytes;
use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use crate::error::Error;

/// What a [`Watch`](crate::Watch) yields. After [`Failed`](Self::Failed) there is nothing to use; after
/// [`Ambient`](Self::Ambient) what there was is used on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<T = Bytes> {
    /// A resource is new or changed, or came after an error.
    Put {
        /// Its name.
        name: ResourceName,
        /// Its version: its server's, or else a hash of its content. Of several servers it is that of the one that changed it
        /// last: what is equal is no news.
        version: Version,
        /// Its content.
        resource: T,
    },
    /// A resource of a collection is gone.
    Removed {
        /// Its name.
        name: ResourceName,
    },
    /// There is nothing to use, or nothing any more.
    Failed {
        /// Of which resource; none for all that is watched.
        name: Option<ResourceName>,
        /// Why.
        error: Error,
    },
    /// What there is may be out of date, or is not any more.
    Ambient {
        /// Of which resource; none for all that is watched.
        name: Option<ResourceName>,
        /// Why; none if nothing is wrong any more.
        error: Option<Error>,
    },
    /// The wildcard or the glob was answered: from now on it is known, and empty if nothing came. Of what is
    /// [stale](crate::Watch::is_stale), it was before a restart.
    Answered,
}
