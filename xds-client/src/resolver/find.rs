//! What somebody looks for: made of parts, each of which is looked for like it.

use std::sync::Arc;
use std::task::Waker;

use xdstp_cache::TypeUrl;
use xdstp_uri::Locator;

use super::asked::Asked;
use super::told::Told;
use crate::client::Inner;
use crate::error::Error;

/// What somebody looks for.
pub(crate) trait Find: Send {
    /// What is news; if nothing is, the waker is told when something may be.
    fn next(&mut self, waker: &Waker) -> Option<Told>;

    /// What was asked for first of all.
    fn first(&self) -> &Asked;
    fn first_mut(&mut self) -> &mut Asked;

    /// From now on all that there is is told again when another server counts for it.
    fn renotify(&mut self) {
        self.first_mut().renotify();
    }

    /// What that came from which is told of it, or is awaited: what a redirect or an alternative leads to.
    fn source(&self) -> &Asked {
        self.first()
    }

    /// Whether any of what is told of it is known from before a restart only.
    fn is_stale(&self) -> bool {
        self.source().is_stale()
    }

    /// Whether it is one resource, by its name.
    fn is_one(&self) -> bool;
}

/// Finds the one resource that a locator leads to, after so many redirects, or says why it leads to none. It is given to
/// what it is made of.
pub(super) type Opens = fn(&Arc<Inner>, &TypeUrl, &Locator<'_>, usize) -> Result<Box<dyn Find>, Error>;
