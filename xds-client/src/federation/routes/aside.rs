//! What is new of one part of a subscriber: passed on, or set aside until all parts are pulled.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use xds_transport::Frame;
use xdstp_cache::Pull;
use xdstp_uri::ResourceName;

use super::MAX_NOTED;
use crate::federation::core::Federation;
use crate::federation::part::Part;
use crate::federation::scope::Scope;
use crate::federation::subscriber::{News, Said, Stub, contests, news_of};

/// What is not simply passed on.
#[derive(Default)]
pub(super) struct Aside {
    /// Names that several parts may have.
    pub(super) contested: Vec<(ResourceName, News)>,
    /// What this stream is to fetch for itself.
    pub(super) stubs: Vec<Stub>,
    /// What is served from a shared scope now, and was fetched for this stream before.
    pub(super) served: HashSet<ResourceName>,
}

impl Aside {
    /// How many names wait to be looked at.
    pub(super) fn noted(&self) -> usize {
        self.contested.len() + self.stubs.len()
    }

    /// Whether everything was passed on.
    pub(super) fn is_empty(&self) -> bool {
        self.noted() == 0 && self.served.is_empty()
    }

    /// Whether as many of a kind wait as may.
    pub(super) fn is_full(&self) -> bool {
        self.contested.len() >= MAX_NOTED || self.stubs.len() >= MAX_NOTED
    }

    fn contest(&mut self, name: &ResourceName, news: News) -> ControlFlow<()> {
        self.contested.push((name.clone(), news));
        // What waits to be looked at is bounded, too.
        if self.contested.len() < MAX_NOTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn fetch(&mut self, stub: Stub) -> ControlFlow<()> {
        self.stubs.push(stub);
        if self.stubs.len() < MAX_NOTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// One round over the parts of a subscriber.
pub(super) struct Round<'a> {
    pub(super) federation: &'a Federation,
    /// What this stream fetches for itself.
    pub(super) private: &'a HashMap<ResourceName, Arc<Scope>>,
    /// More than one part may have a name.
    pub(super) several: bool,
    pub(super) said: &'a mut Said,
    pub(super) aside: Aside,
}

impl Round<'_> {
    /// What is new of a shared scope.
    #[inline]
    pub(super) fn of_shared(
        &mut self,
        part: &Part,
        pull: Pull<'_, Frame>,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.several
            && let Some((name, news)) = contests(self.federation, part, &pull, self.said)
        {
            return self.aside.contest(name, news);
        }
        let name = match &pull {
            Pull::Put { name, resource, .. } if resource.value.do_not_cache() => {
                return self.aside.fetch(Stub::of(name, &part.scope, resource));
            }
            Pull::Put { name, .. } | Pull::Removed { name, .. } => *name,
            _ => return visitor(pull),
        };
        if self.private.contains_key(name) {
            self.aside.served.insert(name.clone());
            if !self.several && self.said.contains_key(name) {
                // What was fetched for this client went out a moment before: the rest is said in the next.
                return self.aside.contest(name, news_of(self.federation, part, &pull));
            }
        }
        visitor(pull)
    }

    /// What is new of a scope of this stream alone.
    pub(super) fn of_private(
        &mut self,
        pull: Pull<'_, Frame>,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (Pull::Put { name, .. } | Pull::Removed { name, .. }) = &pull else { return visitor(pull) };
        // Rule 103: no name twice in a response.
        if self.aside.served.contains(*name) {
            return ControlFlow::Continue(());
        }
        self.said.insert((*name).clone(), matches!(pull, Pull::Removed { .. }));
        visitor(pull)
    }
}
