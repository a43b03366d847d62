//! What stands at a locator that is no name (`file:` and `http:` of TP1): a document, of which there is no more to ask for.

use std::any::Any;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use bytes::Bytes;
use xdstp_uri::{Locator, ResourceName};

use crate::federation::document_part::part_for;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};
use crate::federation::lock::lock;
use crate::federation::origin::Held;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::supply::{Status, Supply};
use crate::federation::terms::Trouble;
use crate::federation::turns::Turns;

/// Where documents are read: a file system, or whatever else a locator leads to.
///
/// A document holds one resource, or a list collection, or several resources: whoever watches it has all of its type, and
/// who was led to it by a redirect, an `alt=` or an entry of a list has the only one.
pub trait Documents: Send + Sync + 'static {
    /// Watches the document at a locator, which has no directives, until what is returned is dropped. It returns soon: what
    /// the document holds is [told](OpenDocument::tell) as soon as that is known, and again as often as that changes. It is
    /// not called again for a document while that is open. What it returns may be dropped by any thread, also by one that is
    /// just telling.
    fn open(&self, locator: &Locator<'_>, document: OpenDocument) -> Box<dyn Any + Send + Sync>;
}

/// Why it is not known what a document holds. Nothing is taken away because of it: what it held before stays in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is not there, or may not be read. Who watches it hears that it is [unreachable](crate::federation::Trouble).
    #[error("{0}")]
    Unreadable(String),
    /// It can be read, and is of no use.
    #[error("{0}")]
    Malformed(String),
}

/// A document that somebody watches, to be told what it holds.
#[derive(Clone)]
pub struct OpenDocument(Weak<Document>);

impl OpenDocument {
    /// It holds this since `now`, or why that is not known. What is told last counts; names are the resources' own, and what
    /// is as it was is no news. Nothing happens once nobody watches it.
    pub fn tell(&self, outcome: Result<Vec<Held>, DocumentError>, now: Instant) {
        self.say(outcome.map(|held| Some(Arc::new(held))), now);
    }

    /// It is not there since `now`, and what it held is gone: there is not even a list without members. Where what is not there may
    /// just be on its way, that is an error instead.
    pub fn tell_gone(&self, now: Instant) {
        self.say(Ok(None), now);
    }

    fn say(&self, outcome: Result<Option<Arc<Vec<Held>>>, DocumentError>, now: Instant) {
        if let Some(document) = self.0.upgrade() {
            lock(&document.state).said = Some(Said { outcome, at: now });
            document.fill();
        }
    }

    /// Whether somebody watches it still.
    pub fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// A document, for as long as a scope has it for its supply.
pub(crate) struct Document {
    /// In canonical spelling.
    pub(crate) locator: Arc<str>,
    state: Mutex<State>,
    filling: Turns,
    /// What has it watched.
    watched: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

#[derive(Default)]
struct State {
    opened: bool,
    said: Option<Said>,
    /// One for each type that is looked for in it, and some that are gone.
    fed: Vec<Weak<Scope>>,
}

/// What was told last, and since when that is so.
#[derive(Clone)]
struct Said {
    /// Nothing: it is not there.
    outcome: Result<Option<Arc<Vec<Held>>>, DocumentError>,
    at: Instant,
}

impl Document {
    pub(crate) fn new(locator: &str) -> Self {
        let locator = locator.into();
        Self { locator, state: Mutex::default(), filling: Turns::default(), watched: Mutex::default() }
    }

    /// It feeds this scope, too, which is what keeps it.
    pub(crate) fn feed(self: Arc<Self>, scope: &Arc<Scope>, documents: &dyn Documents) {
        let is_first = {
            let state = &mut *lock(&self.state);
            state.fed.retain(|scope| scope.strong_count() > 0);
            state.fed.push(Arc::downgrade(scope));
            !std::mem::replace(&mut state.opened, true)
        };
        scope.feed_from(self.clone());
        if is_first {
            // Under no lock: it is anybody's code, which may tell at once.
            let opened = match Locator::parse(&self.locator) {
                Ok(locator) => documents.open(&locator, OpenDocument(Arc::downgrade(&self))),
                // It is the text of one.
                Err(_) => return,
            };
            *lock(&self.watched) = Some(opened);
        }
        self.fill();
    }

    /// Gives its scopes what was told last: one after the other, or what is older might come last, and not under the lock, for
    /// those are woken who watch.
    fn fill(&self) {
        self.filling.take(|| {
            let (said, fed) = {
                let State { said, fed, .. } = &*lock(&self.state);
                let Some(said) = said.clone() else { return };
                (said, fed.clone())
            };
            fed.iter().filter_map(Weak::upgrade).for_each(|scope| self.fill_one(&scope, &said));
        });
    }

    fn fill_one(&self, scope: &Scope, said: &Said) {
        let ScopeKey::Document(type_url, _) = scope.key.of_all() else { return };
        // A locator is old-style text to whoever does not know it, and a name here.
        let Ok(name) = ResourceName::parse(&self.locator) else { return };
        let now = said.at;
        let part = match &said.outcome {
            Ok(Some(held)) => part_for(type_url, held).map_err(DocumentError::Malformed),
            Ok(None) => Ok(None),
            Err(error) => Err(error.clone()),
        };
        match part {
            Ok(part) => {
                let part: Vec<_> =
                    part.into_iter().map(|resource| (type_url.clone(), name.clone(), resource)).collect();
                scope.replace(&part, now);
            }
            Err(DocumentError::Malformed(reason)) => {
                #[cfg(test)]
                if planted(Fault::DropForMalformed) {
                    scope.replace(&[], now);
                }
                scope.spoil(type_url, name, &reason, now);
            }
            Err(DocumentError::Unreadable(reason)) => {
                let trouble = Trouble { server: self.locator.clone(), reason: reason.into() };
                return scope.tell_unreachable(&Arc::new(trouble));
            }
        }
        scope.tell_reachable();
    }
}

/// It is not asked for anything: that a scope holds it is why it is open.
impl Supply for Document {
    fn ask(&self) {}

    fn label(&self) -> &str {
        &self.locator
    }

    fn status(&self) -> Status {
        let said = lock(&self.state).said.as_ref().map(|said| said.outcome.clone().map(drop));
        let connected = matches!(said, Some(Ok(())));
        let last_error = said.and_then(Result::err).map(|error| error.to_string());
        Status { connected, last_error, ..Status::default() }
    }

    fn unreachable_since(&self, _: Instant) -> Option<String> {
        match &lock(&self.state).said {
            Some(Said { outcome: Err(DocumentError::Unreadable(reason)), .. }) => Some(reason.clone()),
            _ => None,
        }
    }

    fn join(&self, _: u64, _: Bytes) {}

    fn leave(&self, _: u64) {}
}
