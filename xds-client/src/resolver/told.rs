//! What is told of what is looked for.

use xds_transport::Frame;
use xdstp_cache::Resource;
use xdstp_uri::ResourceName;

use crate::error::Error;

/// News.
pub(crate) enum Told {
    Put {
        name: ResourceName,
        resource: Resource<Frame>,
    },
    /// Of a collection.
    Gone {
        name: ResourceName,
    },
    Failed {
        /// Of which resource; none for all of it.
        name: Option<ResourceName>,
        error: Error,
        /// There is something to go on with.
        held: bool,
        /// Who has something to go on with from elsewhere does so.
        keeps: bool,
    },
    /// Nothing is wrong any more.
    Cleared {
        name: Option<ResourceName>,
    },
    Answered,
}

impl Told {
    /// The same of a resource of another name, in whose place it is.
    pub(crate) fn of(self, name: &ResourceName) -> Self {
        let of = Some(name.clone());
        match self {
            Self::Put { resource, .. } => Self::Put { name: name.clone(), resource },
            Self::Gone { .. } => Self::Gone { name: name.clone() },
            Self::Failed { error, held, keeps, .. } => Self::Failed { name: of, error, held, keeps },
            Self::Cleared { .. } => Self::Cleared { name: of },
            Self::Answered => Self::Answered,
        }
    }
}
