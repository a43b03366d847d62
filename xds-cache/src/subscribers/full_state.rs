//! The last full state that a subscriber was sent.

use std::collections::{BTreeSet, HashMap};

use xdstp_uri::ResourceName;

use crate::keys::LinkKey;
use crate::moments::Seq;

/// The last full state of a subscriber.
#[derive(Default)]
pub(crate) struct FullState {
    /// What was there then, was in it.
    pub(crate) of: Seq,
    /// What was gone, and was in it all the same, by when it went.
    pub(crate) leaving: HashMap<ResourceName, Seq>,
    /// Links that were not there yet.
    pub(crate) later: BTreeSet<LinkKey>,
    /// What was in it because of links that are not there any more, and is wanted still.
    pub(crate) others: BTreeSet<ResourceName>,
}

impl FullState {
    /// The subscriber has one more link.
    pub(crate) fn came(&mut self, link: LinkKey) {
        self.later.insert(link);
    }
}
