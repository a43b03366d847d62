//! The keys of a cache's entries.

use crate::arena::keys;

keys! {
    /// Of a type of resources.
    TypeKey,
    /// Of the slot of a name.
    SlotKey,
    /// Of the list of a collection.
    ListKey,
    /// Of a link: one interest of one subscriber.
    LinkKey,
    /// Of what a link to a list has beside it.
    WalkKey,
    /// Of a subscriber.
    SubscriberKey,
    /// Of what subscribers select among variants by.
    SelectorKey,
}

/// What a subscriber may be interested in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Target {
    Slot(SlotKey),
    List(ListKey),
}
