//! One resource, and another that is used while nobody can be asked for it (`#alt=` of TP1).
//!
//! TP1 leaves open when. It is as among the servers of one authority (gRFC A71): the other is asked when no server of the first can
//! be reached and nothing is known of it there; it is left when the first has the resource. Silence is no reason, nor is an
//! answer. What is in use is kept while the first says that it has none, unless its server wants that dropped (gRFC A88).

use std::sync::Arc;
use std::task::Waker;

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::{Locator, ResourceName};

use super::asked::Asked;
use super::find::{Find, Opens};
use super::told::Told;
use crate::client::Inner;
use crate::error::Error;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};

pub(crate) struct Alternative {
    client: Arc<Inner>,
    type_url: TypeUrl,
    hops: usize,
    opens: Opens,
    first: Box<dyn Find>,
    to: Locator<'static>,
    other: Option<Other>,
    /// What there is is told again when another server counts.
    renotifies: bool,
}

struct Other {
    found: Box<dyn Find>,
    /// It is in use.
    used: bool,
}

impl Alternative {
    pub(super) fn new(
        client: &Arc<Inner>,
        type_url: &TypeUrl,
        first: Box<dyn Find>,
        to: Locator<'static>,
        (hops, opens): (usize, Opens),
    ) -> Self {
        Self {
            client: client.clone(),
            type_url: type_url.clone(),
            hops,
            opens,
            first,
            to,
            other: None,
            renotifies: false,
        }
    }

    /// What the first says.
    fn heard(&mut self, told: Told) -> Option<Told> {
        let is_used = self.other.as_ref().is_some_and(|other| other.used);
        match told {
            #[cfg(test)]
            Told::Put { .. } if planted(Fault::KeepAlternative) => Some(told),
            Told::Put { .. } => {
                self.other = None;
                Some(told)
            }
            Told::Failed { error: Error::Unreachable { .. }, held: false, .. } => match self.turn() {
                Ok(()) => None,
                Err(error) => Some(Told::Failed { name: self.name().cloned(), error, held: false, keeps: true }),
            },
            Told::Failed { name, error, held: false, keeps } if is_used && keeps => {
                Some(Told::Failed { name, error, held: true, keeps })
            }
            Told::Failed { held: false, .. } => {
                self.other = None;
                Some(told)
            }
            // It can be asked again, and the other is in use until it answers.
            Told::Cleared { .. } if is_used => None,
            told => Some(told),
        }
    }

    /// What it is the alternative of.
    fn name(&self) -> Option<&ResourceName> {
        match self.first().interest() {
            Interest::Name(name) => Some(name),
            Interest::Wildcard => None,
        }
    }

    /// The other is asked, too.
    fn turn(&mut self) -> Result<(), Error> {
        if self.other.is_none() {
            let mut found = (self.opens)(&self.client, &self.type_url, &self.to, self.hops)?;
            if self.renotifies {
                found.renotify();
            }
            self.other = Some(Other { found, used: false });
        }
        Ok(())
    }
}

impl Find for Alternative {
    fn next(&mut self, waker: &Waker) -> Option<Told> {
        while let Some(told) = self.first.next(waker) {
            let told = self.heard(told);
            if told.is_some() {
                return told;
            }
        }
        let other = self.other.as_mut()?;
        let told = other.found.next(waker)?;
        match &told {
            Told::Put { .. } => other.used = true,
            Told::Failed { held: false, .. } => other.used = false,
            _ => {}
        }
        Some(match self.name() {
            Some(name) => told.of(name),
            None => told,
        })
    }

    fn first(&self) -> &Asked {
        self.first.first()
    }

    fn first_mut(&mut self) -> &mut Asked {
        self.first.first_mut()
    }

    fn renotify(&mut self) {
        self.renotifies = true;
        self.first.renotify();
        self.other.iter_mut().for_each(|other| other.found.renotify());
    }

    fn source(&self) -> &Asked {
        match &self.other {
            Some(other) if other.used => other.found.source(),
            _ => self.first.source(),
        }
    }

    fn is_stale(&self) -> bool {
        match &self.other {
            Some(other) if other.used => other.found.is_stale(),
            _ => self.first.is_stale(),
        }
    }

    fn is_one(&self) -> bool {
        true
    }
}
