//! Who wants a name, or a collection, and who is sent full states: all that what is stored knows of subscribers.

use std::collections::BTreeSet;

use crate::arena::Key;
use crate::keys::{LinkKey, SubscriberKey};

/// The links to one target.
#[derive(Default)]
pub(crate) struct Watchers {
    /// Where the chain of those begins that are up to date.
    pub(crate) clean: Option<LinkKey>,
    /// How many there are.
    pub(crate) count: u32,
}

/// The subscribers to a type that are sent full states.
#[derive(Default)]
pub(crate) struct Readers {
    all: BTreeSet<SubscriberKey>,
    /// The one that was the last found to have something to hear.
    behind: Option<SubscriberKey>,
}

impl Readers {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn insert(&mut self, reader: SubscriberKey) {
        self.all.insert(reader);
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, reader: SubscriberKey) -> bool {
        self.all.remove(&reader)
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SubscriberKey> {
        self.all.iter()
    }

    /// Whether one of them `is_behind`: first asked is the one that was so the last time.
    pub(crate) fn any_behind(&mut self, is_behind: impl Fn(SubscriberKey) -> bool) -> bool {
        let there = self.behind.unwrap_or(SubscriberKey::FIRST);
        let found = self.all.range(there..).chain(self.all.range(..there)).copied().find(|reader| is_behind(*reader));
        self.behind = found.or(self.behind);
        found.is_some()
    }
}
