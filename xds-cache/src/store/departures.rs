//! What is gone, as it was: for subscribers that are sent full states, and are yet to be told.

use std::collections::VecDeque;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::keys::SelectorKey;
use crate::moments::Seq;
use crate::resource::Resource;
use crate::watchers::Readers;

/// How much of what is gone is kept of one type.
const MOST: usize = 1000;

/// What is gone of one type, and for whom it is kept.
pub(crate) struct Departures<V> {
    /// Oldest first.
    pub(crate) departed: VecDeque<Departed<V>>,
    /// The subscribers that are sent full states.
    pub(crate) readers: Readers,
}

pub(crate) struct Departed<V> {
    pub(crate) name: ResourceName,
    pub(crate) resource: Resource<V>,
    pub(crate) born: Seq,
    pub(crate) gone: Seq,
    pub(crate) at: Instant,
    /// For whom it was there, and since when there was any for them, if it was a variant.
    pub(crate) by: Option<Vec<(Option<SelectorKey>, Seq)>>,
}

impl<V> Default for Departures<V> {
    fn default() -> Self {
        Self { departed: VecDeque::new(), readers: Readers::default() }
    }
}

impl<V> Departures<V> {
    /// A resource is gone, after all that is in here.
    pub(crate) fn push(
        &mut self,
        name: &ResourceName,
        resource: Resource<V>,
        lived: std::ops::Range<Seq>,
        at: Instant,
        by: Option<Vec<(Option<SelectorKey>, Seq)>>,
    ) {
        if self.readers.is_empty() {
            return;
        }
        self.departed.push_back(Departed { name: name.clone(), resource, born: lived.start, gone: lived.end, at, by });
        self.departed.drain(..self.departed.len().saturating_sub(MOST));
    }

    /// Drops what went before a moment.
    pub(crate) fn expire(&mut self, before: Instant) {
        let old = self.departed.partition_point(|departed| departed.at <= before);
        self.departed.drain(..old);
    }

    /// Drops all of it: everybody was told.
    pub(crate) fn clear(&mut self) {
        self.departed = VecDeque::new();
    }
}
