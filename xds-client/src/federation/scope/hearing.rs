//! What the watches of a scope are told.

use std::sync::Arc;
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Resource, ResourceError};
use xdstp_uri::ResourceName;

use crate::federation::states::Status;
use crate::federation::terms::Trouble;

/// What a watch hears next.
pub(crate) enum News {
    Put { name: ResourceName, resource: Resource<Frame> },
    Gone { name: ResourceName },
    Failed { name: ResourceName, error: ResourceError, held: bool },
    Answered,
    Lost { trouble: Arc<Trouble>, held: bool },
    Back,
}

/// What there is of a resource.
pub(crate) struct Shown {
    pub(crate) status: Status,
    pub(crate) resource: Option<Resource<Frame>>,
    pub(crate) error: Option<ResourceError>,
    /// When that was said or found.
    pub(crate) failed_at: Option<Instant>,
}

/// What a watch was told that is not its resources'.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// How often it had changed whether a server can be reached.
    pub(super) turns: u32,
    /// It was told that none can.
    pub(super) lost: bool,
    /// Its collection was answered, and it is yet to be told.
    pub(super) answered: bool,
    /// What it was told last is of no use to who watches: there is nothing to go on with.
    pub(crate) unread: bool,
}

/// Whether a server can be reached, as far as anybody who watches cares.
#[derive(Default)]
pub(super) struct Reach {
    pub(super) trouble: Option<Arc<Trouble>>,
    pub(super) turns: u32,
    /// Some watch was not told of the trouble, for another server may answer it.
    pub(super) withholds: bool,
}

impl Reach {
    /// No server can be reached. Whether anybody is to be told.
    pub(super) fn lose(&mut self, trouble: Arc<Trouble>) -> bool {
        let is_new = self.trouble.as_ref() != Some(&trouble);
        if is_new {
            self.trouble = Some(trouble);
            self.turns = self.turns.wrapping_add(1);
        }
        std::mem::take(&mut self.withholds) || is_new
    }

    /// One answers, or nothing is known of any. Whether anybody is to be told.
    pub(super) fn find(&mut self) -> bool {
        self.withholds = false;
        let was_lost = self.trouble.take().is_some();
        if was_lost {
            self.turns = self.turns.wrapping_add(1);
        }
        was_lost
    }
}
