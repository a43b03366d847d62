//! Why collections are not sent of which something is sent all the same.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use xdstp_cache::{Interest, SubscriberId};
use xdstp_uri::{NameKey, ResourceName};

use crate::Protocol;
use crate::server::session::spelling::Spelling;
use crate::server::source::Source;
use crate::server::transmit::{BUDGET, Transmit};

/// Of how many globs the resources of one response may be, where a collection is refused and as many are asked for: each may bring
/// its own error.
const GLOBS: usize = 64;

/// What the resources of a response are of, where a collection of the type is refused, as far as is known.
///
/// What others ask for by its name is sent to who asks for its collection. Without the error it would be taken for the answer, by
/// whoever was told of the error on an earlier stream, or is a relay that tells others (rules 118, 150).
#[derive(Default)]
pub(crate) struct Refusals(Option<Box<Response>>);

/// What there is in a response.
#[derive(Default)]
struct Response {
    /// No more than there is room for are asked for: it is not cut, whoever else asks for what is refused.
    asks_for_few: bool,
    /// A resource, at least.
    put: bool,
    /// The globs that its resources are of.
    globs: HashSet<ResourceName>,
    /// Why collections are not sent that it says in any case.
    told: BTreeSet<ResourceName>,
}

impl Refusals {
    /// Another response is to be written, perhaps the `first`.
    #[inline]
    pub(crate) fn begin(&mut self, first: bool, most: impl FnOnce() -> usize) {
        if first || self.0.is_some() {
            let most = most();
            let response = || Box::new(Response { asks_for_few: most <= GLOBS, ..Response::default() });
            self.0 = (most > 0).then(response);
        }
    }

    /// Whether no collection is refused, as far as is known.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// What was pulled is of a type of which a collection is refused, or not. Whether that is news: what was put before was not
    /// noted.
    #[inline]
    pub(crate) fn learn(&mut self, refused: bool) -> bool {
        let is_news = refused && self.0.is_none();
        if is_news {
            self.0 = Some(Box::default());
        }
        is_news
    }

    /// The response has this resource in it.
    #[inline]
    pub(crate) fn put(&mut self, name: &ResourceName) {
        if let Some(response) = &mut self.0 {
            response.put(name);
        }
    }

    /// Whether there is room for one more resource.
    #[inline]
    pub(crate) fn goes_on(&self, transmit: &Transmit) -> ControlFlow<()> {
        let is_full = self.0.as_ref().is_some_and(|response| !response.asks_for_few && response.globs.len() >= GLOBS);
        let has_room = transmit.budget_used() < BUDGET && !is_full;
        if has_room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// The response is to have this error in it. Whether it has not yet, as far as that is of a collection.
    pub(crate) fn tell(&mut self, name: &ResourceName) -> bool {
        let Some(response) = &mut self.0 else { return true };
        !Interest::from(name.clone()).is_collection() || response.told.insert(name.clone())
    }

    /// Tells what is to be told beside the resources, to any of these subscribers of one client: of `all` that is asked for, or else
    /// of what they are of.
    pub(crate) fn push(
        &mut self,
        all: bool,
        ids: impl Iterator<Item = SubscriberId>,
        protocol: Protocol,
        spelling: &Spelling,
        transmit: &mut Transmit,
        source: &mut impl Source,
    ) {
        let Some(Response { put, globs, told, .. }) = self.0.as_deref_mut() else { return };
        if !*put && !all {
            return;
        }
        let globs: BTreeSet<_> = globs.drain().collect();
        let collections: Vec<_> =
            [Interest::Wildcard].into_iter().chain(globs.into_iter().map(Interest::Name)).collect();
        for id in ids {
            source.pull_refusals(id, (!all).then_some(&collections[..]), &mut |name, error| {
                if told.insert(name.clone()) {
                    transmit.push_error(protocol, spelling.of(name), error);
                }
            });
        }
    }
}

impl Response {
    fn put(&mut self, name: &ResourceName) {
        self.put = true;
        if let Some(glob) = name.glob_parent_key()
            && !self.globs.contains(&glob as &dyn NameKey)
        {
            self.globs.extend(name.glob_parent());
        }
    }
}
