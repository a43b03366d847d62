//! A name or a collection that is asked for as another resource says: DPDS of TP2's draft.
//!
//! That resource is asked for first. Its value, or that it cannot be had, lets the name be asked for; that its server cannot be
//! reached does so where it is another than that of the name, which would wait for the same otherwise. Silence is none of
//! these: what ends the wait is the time that gRFC A57 gives every resource, and the log says so.

use std::sync::Arc;
use std::task::Waker;

use prost::Message;
use xds_transport::Frame;
use xds_transport::wire::Any;
use xds_transport::wire::SelectorsByType;
use xdstp_cache::{Interest, Resource, Selector, TypeUrl};

use super::holds::Holds;
use super::subscription::Subscription;
use super::told::Told;
use crate::client::{Dpds, Inner, Place};
use crate::error::Error;
#[cfg(feature = "lrs")]
use crate::federation::Position;
use crate::federation::ResourceStatus;
#[cfg(feature = "lrs")]
use crate::load::{LoadError, LoadReporter};

pub(crate) struct ByDpds {
    client: Arc<Inner>,
    type_url: TypeUrl,
    interest: Interest,
    place: Place,
    dpds: Subscription,
    /// The servers that have it are those of the name.
    of_same_servers: bool,
    said: Said,
    /// That no server can be reached was told, while nothing was said.
    lost: bool,
    /// By what it was asked for last, once it was.
    selector: Option<Option<Arc<Selector>>>,
    /// It, as it is in use.
    current: Option<Subscription>,
    /// It, as it is asked for now: it takes the place of what is in use when it is answered.
    next: Option<Box<Subscription>>,
    holds: Holds,
    /// What there is is told again when another server counts.
    renotifies: bool,
    /// What was told last is of no use to who watches.
    pub(super) unread: bool,
}

/// What is said of how the name is to be asked for.
enum Said {
    NothingYet,
    /// It cannot be had.
    Missed,
    With(Arc<SelectorsByType>),
}

impl ByDpds {
    /// # Errors
    /// Nobody can be asked how.
    pub(super) fn open(
        client: &Arc<Inner>,
        (type_url, interest): (&TypeUrl, &Interest),
        place: &Place,
        dpds: &Dpds,
    ) -> Result<Self, Error> {
        let of = Interest::Name(dpds.name.clone());
        let at = client.place_of(&of)?;
        Ok(Self {
            of_same_servers: client.has_same_servers(&at, place),
            dpds: Subscription::open(client, &dpds.type_url, of, (&at, None))?,
            client: client.clone(),
            type_url: type_url.clone(),
            interest: interest.clone(),
            place: place.clone(),
            said: Said::NothingYet,
            lost: false,
            selector: None,
            current: None,
            next: None,
            holds: Holds::default(),
            renotifies: false,
            unread: false,
        })
    }

    pub(super) fn client_and_type(&self) -> (Arc<Inner>, TypeUrl) {
        (self.client.clone(), self.type_url.clone())
    }

    pub(super) fn interest(&self) -> &Interest {
        &self.interest
    }

    pub(super) fn status(&self) -> Option<ResourceStatus> {
        match &self.current {
            Some(current) => current.status(),
            None => (!self.interest.is_collection()).then_some(ResourceStatus::Requested),
        }
    }

    pub(super) fn origin(&self) -> usize {
        self.place.origin
    }

    pub(super) fn server(&self) -> Arc<str> {
        self.current.as_ref().unwrap_or(&self.dpds).server()
    }

    pub(super) fn renotify(&mut self) {
        self.renotifies = true;
        self.current.iter_mut().for_each(Subscription::renotify);
        self.next.iter_mut().for_each(|next| next.renotify());
    }

    #[cfg(feature = "lrs")]
    pub(super) fn load_reporter(&self) -> Result<LoadReporter, LoadError> {
        match &self.current {
            Some(current) => current.load_reporter(),
            // It is awaited from the first.
            None => self.client.reporters().at(Position { origin: self.place.origin, server: 0 }),
        }
    }

    pub(super) fn is_stale(&self) -> bool {
        self.current.as_ref().is_some_and(Subscription::is_stale)
    }

    pub(super) fn next(&mut self, waker: &Waker) -> Option<Told> {
        loop {
            let told = if let Some(told) = self.holds.take() {
                Some(told)
            } else if let Some(told) = self.dpds.next(waker) {
                self.heard(told)
            } else if let Some(told) = self.current.as_mut().and_then(|current| current.next(waker)) {
                self.holds.hear(told, self.next.is_none())
            } else {
                let told = self.next.as_mut()?.next(waker)?;
                self.heard_next(told)
            };
            if told.is_some() {
                return told;
            }
        }
    }

    /// What is said of how it is to be asked for.
    fn heard(&mut self, told: Told) -> Option<Told> {
        let waits = matches!(self.said, Said::NothingYet);
        let error = match told {
            Told::Put { resource, .. } => match read(&resource) {
                Ok(selectors) => {
                    self.place.dpds().iter().for_each(|dpds| dpds.found());
                    self.said = Said::With(selectors);
                    return self.ask();
                }
                Err(error) => error,
            },
            Told::Failed { held: false, error: error @ Error::Unreachable { .. }, .. }
                if !waits || self.of_same_servers =>
            {
                self.lost |= waits;
                return waits.then_some(Told::Failed { name: None, error, held: false, keeps: true });
            }
            Told::Failed { held: false, error, .. } => error,
            Told::Cleared { .. } => {
                return std::mem::take(&mut self.lost).then_some(Told::Cleared { name: None });
            }
            // What it said is followed on.
            Told::Failed { held: true, .. } | Told::Gone { .. } | Told::Answered => return None,
        };
        self.place.dpds().iter().for_each(|dpds| dpds.missed(&error));
        self.said = Said::Missed;
        self.ask()
    }

    /// Asks for it as was said, unless it is asked for like that already.
    fn ask(&mut self) -> Option<Told> {
        let said = match &self.said {
            Said::With(selectors) => selectors.of(&self.type_url),
            Said::Missed | Said::NothingYet => None,
        };
        let opened = self.client.selector(&self.place, said).and_then(|selector| {
            if self.selector.as_ref() == Some(&selector) {
                return Ok(None);
            }
            self.selector = Some(selector.clone());
            let interest = self.interest.clone();
            Subscription::open(&self.client, &self.type_url, interest, (&self.place, selector.as_ref())).map(Some)
        });
        match opened {
            Ok(None) => {}
            Ok(Some(mut found)) => {
                if self.renotifies {
                    found.renotify();
                }
                self.holds.turn();
                self.next = Some(Box::new(found));
                if self.holds.is_empty() {
                    self.turned();
                }
            }
            Err(error) => {
                // Said as before, it is asked for anew: that tells what this is the end of.
                (self.next, self.selector) = (None, None);
                self.holds.spoil();
                let (name, held) = (self.name(), !self.holds.is_empty());
                return Some(Told::Failed { name, error, held, keeps: true });
            }
        }
        std::mem::take(&mut self.lost).then_some(Told::Cleared { name: None })
    }

    /// What is said of it as it is asked for now, while what it was before is in use.
    fn heard_next(&mut self, told: Told) -> Option<Told> {
        let (told, is_answer) = match told {
            // That is for who is in use to say.
            Told::Failed { name: None, .. } | Told::Cleared { .. } => return None,
            Told::Failed { name, error: error @ Error::Timeout { .. }, held, .. } => {
                (Told::Failed { name, error, held, keeps: true }, false)
            }
            Told::Failed { name: Some(name), error, held, keeps } => {
                let is_all = self.interest == Interest::Name(name.clone());
                (Told::Failed { name: Some(name), error, held, keeps }, is_all)
            }
            Told::Put { .. } | Told::Gone { .. } => (told, !self.interest.is_collection()),
            Told::Answered => (told, true),
        };
        let told = self.holds.hear(told, true);
        if is_answer {
            self.turned();
        }
        told
    }

    /// It is not asked for as before any more.
    fn turned(&mut self) {
        self.current = self.next.take().map(|next| *next);
        self.holds.turned();
    }

    fn name(&self) -> Option<xdstp_uri::ResourceName> {
        match &self.interest {
            Interest::Name(name) if !self.interest.is_collection() => Some(name.clone()),
            _ => None,
        }
    }
}

/// What a resource says of all types.
fn read(resource: &Resource<Frame>) -> Result<Arc<SelectorsByType>, Error> {
    let made = resource.value.decoded().and_then(|made| Arc::clone(made).downcast().ok());
    made.map_or_else(
        || {
            let bad = |reason: String| Error::Invalid { version: resource.version.clone(), reason: reason.into() };
            let any = Any::decode(resource.value.any().clone()).map_err(|error| bad(error.to_string()))?;
            SelectorsByType::decode(&any.value).map(Arc::new).map_err(|error| bad(error.to_string()))
        },
        Ok,
    )
}
