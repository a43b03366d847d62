//! Why collections are not sent of which something is sent all the same.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use xdstp_cache::{Interest, SubscriberId};
use xdstp_uri::ResourceName;

use crate::Protocol;
use crate::server::session::outgoing::BUDGET;
use crate::server::session::spelling::Spelling;
use crate::server::source::Source;
use crate::server::transmit::Transmit;

/// Of how many globs the resources of one response may be, where something has an error: each may bring its own.
const GLOBS: usize = 64;

/// What the resources of a response are of, where something of the type has an error.
///
/// What others ask for by its name is sent to who asks for its collection. Without the error it would be taken for the answer, by
/// whoever was told of the error on an earlier stream, or is a relay that tells others (rules 118, 150).
#[derive(Default)]
pub(crate) struct Refusals {
    /// Something has one, as far as is known.
    has_errors: bool,
    /// The globs that resources were of one after the other; none for those that no glob has.
    globs: Vec<Option<ResourceName>>,
    /// What the response says in any case.
    told: BTreeSet<ResourceName>,
}

impl Refusals {
    /// Another response is to be written, perhaps the `first`.
    #[inline]
    pub(crate) fn begin(&mut self, first: bool, has_errors: impl FnOnce() -> bool) {
        if first || self.has_errors {
            self.has_errors = has_errors();
            self.globs.clear();
            self.told.clear();
        }
    }

    /// What was pulled is of a type with errors, or not. Whether that is news: what was put before was not noted.
    #[inline]
    pub(crate) fn learn(&mut self, errors: bool) -> bool {
        errors && !std::mem::replace(&mut self.has_errors, true)
    }

    /// The response has this resource in it.
    #[inline]
    pub(crate) fn put(&mut self, name: &ResourceName) {
        if self.has_errors {
            self.note(name);
        }
    }

    fn note(&mut self, name: &ResourceName) {
        let is_same = self.globs.last().is_some_and(|last| match last {
            Some(glob) => name.answers(glob),
            None => name.glob_parent().is_none(),
        });
        if !is_same {
            self.globs.push(name.glob_parent());
        }
    }

    /// Whether there is room for one more resource.
    #[inline]
    pub(crate) fn goes_on(&self, transmit: &Transmit) -> ControlFlow<()> {
        let has_room = transmit.budget_used() < BUDGET && self.globs.len() < GLOBS;
        if has_room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// It has this error in it.
    pub(crate) fn tell(&mut self, name: &ResourceName) {
        if self.has_errors {
            self.told.insert(name.clone());
        }
    }

    /// Tells what is to be told beside the resources, to any of these subscribers of one client.
    pub(crate) fn push<I: Iterator<Item = SubscriberId>>(
        &mut self,
        ids: impl Fn() -> I,
        protocol: Protocol,
        spelling: &Spelling,
        transmit: &mut Transmit,
        source: &mut impl Source,
    ) {
        if self.globs.is_empty() {
            return;
        }
        let globs: BTreeSet<_> = std::mem::take(&mut self.globs).into_iter().flatten().map(Interest::Name).collect();
        for collection in [Interest::Wildcard].iter().chain(&globs) {
            for id in ids() {
                if let Some((name, error)) = source.pull_refusal(id, collection)
                    && self.told.insert(name.clone())
                {
                    transmit.push_error(protocol, spelling.of(&name), &error);
                }
            }
        }
    }
}
