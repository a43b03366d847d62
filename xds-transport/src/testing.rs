//! Whether a [`Source`] is one: what sessions rely on, as scenarios that anybody's source can be put through.
//!
//! A source says how its content changes, by [`Edit`]; [`conforms`] does the rest. Most of it are histories of changes,
//! subscriptions and pulls, some written down and some drawn, and beside each a model of what the subscriber must be told by
//! then, and what it may be told. Each history is pulled in parts of several sizes.
//!
//! A source that passes keeps what a session cannot see to: that nothing is told twice and nothing forgotten (rules 37, 48,
//! 52, 53, 65, 70, 71), to nobody who did not ask for it (rule 63), and in order (rules 122, 134). What is its session's is
//! not looked at, nor whether it wakes its stream, nor which variants it chooses (TP2).

mod drawn;
mod history;
mod model;
mod reader;
mod scenarios;
mod told;

use std::time::Instant;

use thiserror::Error;
use xdstp_cache::{Cache, Resource, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::put::Put;
use crate::server::Source;
use crate::types::TypeRules;

/// A source whose content a test may change.
///
/// It is empty at first, and all there is: a name that was not put does not exist. It serves any type, `xdstp:` names and
/// others; of a wildcard it is only expected that it covers the others.
pub trait Edit: Source {
    /// There is this resource, at this version, from now on.
    fn put(&mut self, type_url: &TypeUrl, name: &ResourceName, resource: Resource<Frame>, now: Instant);

    /// It is gone.
    fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant);

    /// It is not to be had, and this is why; or there is something wrong with it, as it is. A source that has no errors does
    /// nothing, and says false.
    fn fail(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError, now: Instant) -> bool;
}

/// What a source does that its sessions do not expect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{scenario}, pulled in parts of {part}: {what}, after {}", history.join("; "))]
#[non_exhaustive]
pub struct Violation {
    /// The scenario that shows it.
    pub scenario: &'static str,
    /// How many entries each pull was to visit, at most.
    pub part: usize,
    /// What is wrong, with the rule of the protocol that it breaks.
    pub what: String,
    /// What was done before.
    pub history: Vec<String>,
}

/// Puts a source through all scenarios. Each has one of its own, which is to be empty.
///
/// # Errors
/// With the first thing that is wrong.
///
/// ```
/// use xds_transport::{Frame, testing};
/// use xdstp_cache::{Cache, Options};
///
/// testing::conforms(|| Cache::<Frame>::new(Options::default()))?;
/// # Ok::<(), testing::Violation>(())
/// ```
pub fn conforms<S: Edit>(mut source: impl FnMut() -> S) -> Result<(), Violation> {
    scenarios::run_all(&mut source)
}

impl Edit for Cache<Frame> {
    fn put(&mut self, type_url: &TypeUrl, name: &ResourceName, resource: Resource<Frame>, now: Instant) {
        // Of a type that nobody describes nothing is refused.
        let mut edit = self.edit(now);
        let _ = edit.put_checked(&TypeRules::default(), type_url, name, resource);
        let _ = edit.finish();
    }

    fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant) {
        let mut edit = self.edit(now);
        edit.remove(type_url, name);
        let _ = edit.finish();
    }

    fn fail(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError, now: Instant) -> bool {
        let mut edit = self.edit(now);
        edit.fail(type_url, name, error);
        let _ = edit.finish();
        true
    }
}

impl<S: Edit + ?Sized> Edit for Box<S> {
    fn put(&mut self, type_url: &TypeUrl, name: &ResourceName, resource: Resource<Frame>, now: Instant) {
        (**self).put(type_url, name, resource, now);
    }

    fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, now: Instant) {
        (**self).remove(type_url, name, now);
    }

    fn fail(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError, now: Instant) -> bool {
        (**self).fail(type_url, name, error, now)
    }
}
