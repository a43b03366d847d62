//! A name or a collection, asked for by the parameters that are for it (TP2).

use std::sync::Arc;
use std::task::Waker;

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::Locator;

use super::by_dpds::ByDpds;
use super::subscription::{Subscription, message_of};
use super::told::Told;
use crate::client::Inner;
use crate::error::Error;
use crate::federation::ResourceStatus;
#[cfg(feature = "lrs")]
use crate::load::{LoadError, LoadReporter};

/// It is asked for until this is dropped.
pub(crate) enum Asked {
    Once(Subscription),
    ByDpds(Box<ByDpds>),
}

impl Asked {
    /// # Errors
    /// It is the name of another type, nobody has it, or who has it cannot be asked by what is selected.
    pub(super) fn open(client: &Arc<Inner>, type_url: &TypeUrl, interest: Interest) -> Result<Self, Error> {
        let message = message_of(type_url);
        if let Interest::Name(name) = &interest
            && let Some(named) = name.resource_type().filter(|named| *named != message)
        {
            let reason = format!("it is the name of a {named}, not of a {message}");
            return Err(Error::BadName { reason: reason.into() });
        }
        let place = client.place_of(&interest)?;
        if let Some(dpds) = place.dpds() {
            match ByDpds::open(client, (type_url, &interest), &place, dpds) {
                Ok(found) => return Ok(Self::ByDpds(Box::new(found))),
                Err(error) => dpds.missed(&error),
            }
        }
        let selector = client.selector(&place, None)?;
        Ok(Self::Once(Subscription::open(client, type_url, interest, (&place, selector.as_ref()))?))
    }

    /// What the document at a locator has of a type.
    ///
    /// # Errors
    /// Nobody reads documents of its scheme.
    pub(super) fn document(client: &Arc<Inner>, type_url: &TypeUrl, to: &Locator<'_>) -> Result<Self, Error> {
        Ok(Self::Once(Subscription::of_document(client, type_url, to)?))
    }

    pub(super) fn client_and_type(&self) -> (Arc<Inner>, TypeUrl) {
        match self {
            Self::Once(subscription) => subscription.client_and_type(),
            Self::ByDpds(found) => found.client_and_type(),
        }
    }

    pub(crate) fn interest(&self) -> &Interest {
        match self {
            Self::Once(subscription) => subscription.interest(),
            Self::ByDpds(found) => found.interest(),
        }
    }

    /// What is known of the resource; nothing of a collection, of which each resource has its own.
    pub(crate) fn status(&self) -> Option<ResourceStatus> {
        match self {
            Self::Once(subscription) => subscription.status(),
            Self::ByDpds(found) => found.status(),
        }
    }

    /// Where it is found.
    pub(crate) fn origin(&self) -> usize {
        match self {
            Self::Once(subscription) => subscription.origin(),
            Self::ByDpds(found) => found.origin(),
        }
    }

    /// The server that counts for it now.
    pub(crate) fn server(&self) -> Arc<str> {
        match self {
            Self::Once(subscription) => subscription.server(),
            Self::ByDpds(found) => found.server(),
        }
    }

    /// From now on all that there is is told again when another server counts.
    pub(crate) fn renotify(&mut self) {
        match self {
            Self::Once(subscription) => subscription.renotify(),
            Self::ByDpds(found) => found.renotify(),
        }
    }

    /// Who reports load to the server that what is watched came from, or that it is awaited from.
    #[cfg(feature = "lrs")]
    pub(crate) fn load_reporter(&self) -> Result<LoadReporter, LoadError> {
        match self {
            Self::Once(subscription) => subscription.load_reporter(),
            Self::ByDpds(found) => found.load_reporter(),
        }
    }

    /// Whether what is held is known from before a restart only.
    pub(crate) fn is_stale(&self) -> bool {
        match self {
            Self::Once(subscription) => subscription.is_stale(),
            Self::ByDpds(found) => found.is_stale(),
        }
    }

    /// What came of it last is of no use to who watches it.
    pub(crate) fn is_unread(&self) -> bool {
        match self {
            Self::Once(subscription) => subscription.heard.unread,
            Self::ByDpds(found) => found.unread,
        }
    }

    pub(crate) fn set_unread(&mut self, is: bool) {
        match self {
            Self::Once(subscription) => subscription.heard.unread = is,
            Self::ByDpds(found) => found.unread = is,
        }
    }

    /// What is news; if nothing is, the waker is told when something is.
    pub(super) fn next(&mut self, waker: &Waker) -> Option<Told> {
        match self {
            Self::Once(subscription) => subscription.next(waker),
            Self::ByDpds(found) => found.next(waker),
        }
    }
}
