//! Who wants a name, or a collection: all that what is stored knows of subscribers.

use crate::keys::LinkKey;

/// The links to one target.
#[derive(Default)]
pub(crate) struct Watchers {
    /// Where the chain of those begins that are up to date.
    pub(crate) clean: Option<LinkKey>,
    /// How many there are.
    pub(crate) count: u32,
}
