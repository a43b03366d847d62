//! One name or collection of one scope.

use std::sync::Arc;
use std::task::Waker;

use xdstp_cache::{Interest, Selector, SubscriberId, TypeUrl};
use xdstp_uri::{Locator, ResourceName};

use super::told::Told;
use crate::client::{Inner, Place};
use crate::error::Error;
#[cfg(feature = "lrs")]
use crate::federation::Position;
use crate::federation::{Heard, News, ResourceStatus, Scope};
#[cfg(feature = "lrs")]
use crate::load::{LoadError, LoadReporter};

/// It is asked for until this is dropped.
pub(crate) struct Subscription {
    /// Streams live for as long as somebody watches.
    client: Arc<Inner>,
    scope: Arc<Scope>,
    type_url: TypeUrl,
    interest: Interest,
    id: SubscriberId,
    pub(super) heard: Heard,
    /// All is to be told again when another server counts: what that goes by. Few watches ask for it.
    renotifies: Option<Box<Sender>>,
}

/// Which server counted when that was looked at last.
struct Sender(Option<usize>);

impl Subscription {
    /// At a place, by what is selected if by anything.
    ///
    /// # Errors
    /// It cannot be asked for there.
    pub(crate) fn open(
        client: &Arc<Inner>,
        type_url: &TypeUrl,
        interest: Interest,
        (place, selector): (&Place, Option<&Arc<Selector>>),
    ) -> Result<Self, Error> {
        let scope = client.scope_of(&interest, place, selector)?;
        Ok(Self::at(client, scope, type_url, interest))
    }

    /// Of the document at a locator, which is all that it is asked for.
    ///
    /// # Errors
    /// Nobody reads documents of its scheme.
    pub(super) fn of_document(client: &Arc<Inner>, type_url: &TypeUrl, to: &Locator<'_>) -> Result<Self, Error> {
        let scope = client.document_scope(type_url, to)?;
        let name = ResourceName::parse(&to.without_directives().to_canonical());
        let name = name.map_err(|error| Error::BadName { reason: error.to_string().into() })?;
        Ok(Self::at(client, scope, type_url, name.into()))
    }

    fn at(client: &Arc<Inner>, scope: Arc<Scope>, type_url: &TypeUrl, interest: Interest) -> Self {
        let id = scope.watch(type_url, &interest);
        let (client, type_url) = (client.clone(), type_url.clone());
        Self { client, scope, type_url, interest, id, heard: Heard::default(), renotifies: None }
    }

    pub(super) fn client_and_type(&self) -> (Arc<Inner>, TypeUrl) {
        (self.client.clone(), self.type_url.clone())
    }

    pub(crate) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// What is known of the resource; nothing of a collection, of which each resource has its own.
    pub(crate) fn status(&self) -> Option<ResourceStatus> {
        match &self.interest {
            Interest::Name(name) if !name.is_glob() => Some(self.scope.entry(&self.type_url, name).status),
            _ => None,
        }
    }

    /// Whether what is held is known from before a restart only.
    pub(crate) fn is_stale(&self) -> bool {
        match &self.interest {
            Interest::Name(name) if !name.is_glob() => self.scope.is_stale(&self.type_url, name),
            _ => self.scope.stale_count() > 0,
        }
    }

    /// Where it is found.
    pub(crate) fn origin(&self) -> usize {
        self.scope.origin()
    }

    /// The server that counts for it now.
    pub(crate) fn server(&self) -> Arc<str> {
        self.scope.terms().name
    }

    /// From now on all that there is is told again when another server counts.
    pub(crate) fn renotify(&mut self) {
        self.renotifies = Some(Box::new(Sender(self.scope.sender())));
    }

    /// Who reports load to the server that what is watched came from, or that it is awaited from.
    #[cfg(feature = "lrs")]
    pub(crate) fn load_reporter(&self) -> Result<LoadReporter, LoadError> {
        let server = self.scope.sender().unwrap_or_else(|| self.scope.current());
        self.client.reporters().at(Position { origin: self.scope.origin(), server })
    }

    fn look_for_switch(&mut self) {
        let Some(known) = &mut self.renotifies else { return };
        let Some(sender) = self.scope.sender() else { return };
        if known.0.replace(sender).is_some_and(|known| known != sender) {
            self.id = self.scope.watch_again(&self.type_url, &self.interest, self.id);
        }
    }

    /// What is news; if nothing is, the waker is told when something is.
    pub(crate) fn next(&mut self, waker: &Waker) -> Option<Told> {
        self.look_for_switch();
        let news = self.scope.next(&self.type_url, &self.interest, self.id, &mut self.heard, waker)?;
        let is_collection = self.interest.is_collection();
        let keeps = !self.scope.terms().rules.fail_on_data_errors;
        Some(match news {
            News::Put { name, resource } => Told::Put { name, resource },
            News::Gone { name } if is_collection => Told::Gone { name },
            News::Gone { name } => Told::Failed { name: Some(name), error: Error::Absent, held: false, keeps },
            News::Failed { name, error, held } => match self.client.error(&self.scope, &error) {
                // What a collection has is what its server says, and nothing else of it is kept.
                Error::Absent if is_collection && !Interest::from(name.clone()).is_collection() => Told::Gone { name },
                said => Told::Failed { name: Some(name), error: said, held, keeps: keeps || error.is_transient() },
            },
            News::Answered => Told::Answered,
            News::Lost { trouble, held } => {
                Told::Failed { name: None, error: self.client.unreachable(&trouble), held, keeps: true }
            }
            News::Back => Told::Cleared { name: None },
        })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.scope.unwatch(&self.type_url, self.id) {
            self.client.left();
        }
    }
}

/// The name of the message that a type URL stands for.
pub(super) fn message_of(type_url: &TypeUrl) -> &str {
    type_url.as_str().rsplit('/').next().unwrap_or_default()
}
