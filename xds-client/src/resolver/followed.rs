//! A name or a collection, and where its redirects lead (TP1).

use std::sync::Arc;
use std::task::Waker;

use xds_transport::Frame;
use xdstp_cache::{Interest, Resource, TypeUrl};
use xdstp_uri::ResourceName;

use super::asked::Asked;
use super::find::{Find, Opens};
use super::parts::Parts;
use super::told::Told;
use crate::client::Inner;
use crate::error::Error;
use crate::federation::Redirect;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};

pub(crate) struct Followed {
    asked: Asked,
    /// What is in place of it, or of its members. Most have none.
    targets: Option<Box<Targets>>,
    /// How many redirects led here, and what opens the next.
    hops: u8,
    opens: Opens,
    /// The one resource that it is was told, or something in its place.
    told: bool,
    /// What there is is told again when another server counts.
    renotifies: bool,
}

struct Targets {
    client: Arc<Inner>,
    type_url: TypeUrl,
    parts: Parts<ResourceName, Target>,
    /// The collection was answered, and that is told once each redirect has led somewhere or nowhere.
    answered: bool,
}

struct Target {
    found: Box<dyn Find>,
    /// Nothing was heard of it yet.
    awaited: bool,
    /// What was told of it last is that there is nothing to go on with.
    failed: Option<Error>,
    /// What was there before is still in use.
    covered: bool,
    /// That, if it was a target, too: until then it is what counts for who asks where the content is from.
    before: Option<Box<dyn Find>>,
}

impl Followed {
    pub(super) fn open(
        client: &Arc<Inner>,
        type_url: &TypeUrl,
        interest: Interest,
        hops: (usize, Opens),
    ) -> Result<Self, Error> {
        Ok(Self::of(Asked::open(client, type_url, interest)?, hops))
    }

    pub(super) fn of(asked: Asked, (hops, opens): (usize, Opens)) -> Self {
        let hops = u8::try_from(hops).unwrap_or(u8::MAX);
        Self { asked, targets: None, hops, opens, told: false, renotifies: false }
    }

    /// What itself says.
    fn heard(&mut self, told: Told) -> Option<Told> {
        match told {
            Told::Put { name, resource } => match Redirect::of(&resource.value) {
                Some(_) => self.redirect(name, &resource),
                None => {
                    self.told = true;
                    self.forget(&name);
                    Some(Told::Put { name, resource })
                }
            },
            Told::Gone { ref name } | Told::Failed { name: Some(ref name), held: false, .. } => {
                self.told = false;
                self.forget(name);
                Some(told)
            }
            Told::Answered => match &mut self.targets {
                Some(targets) => {
                    targets.answered = true;
                    targets.answer()
                }
                None => Some(Told::Answered),
            },
            // What is held of it leads elsewhere, and there is nothing there.
            Told::Failed { name, error, held: true, keeps } if !self.told && self.is_one() => {
                Some(Told::Failed { name, error, held: false, keeps })
            }
            // Where it leads there is still nothing: that was told before this was in the way.
            Told::Cleared { name: None } if !self.told && self.is_one() => Some(self.failed().unwrap_or(told)),
            told => Some(told),
        }
    }

    fn failed(&self) -> Option<Told> {
        let error =
            self.targets.iter().flat_map(|targets| targets.parts.all()).find_map(|target| target.failed.clone())?;
        let Interest::Name(name) = self.asked.interest() else { return None };
        Some(Told::Failed { name: Some(name.clone()), error, held: false, keeps: true })
    }

    fn redirect(&mut self, name: ResourceName, resource: &Resource<Frame>) -> Option<Told> {
        let to = Redirect::of(&resource.value)?;
        let targets = self.targets.get_or_insert_with(|| {
            let (client, type_url) = self.asked.client_and_type();
            Box::new(Targets { client, type_url, parts: Parts::new(), answered: false })
        });
        // What a collection has is what its server says: no member is kept in place of another.
        let covered = self.told && !self.asked.interest().is_collection();
        #[cfg(test)]
        if covered && planted(Fault::LoseTarget) {
            return None;
        }
        match (self.opens)(&targets.client, &targets.type_url, to, usize::from(self.hops) + 1) {
            Ok(mut found) => {
                if self.renotifies {
                    found.renotify();
                }
                let before = targets.parts.remove(&name).filter(|_| covered).and_then(Target::into_used);
                targets.parts.insert(name, Target { found, awaited: true, failed: None, covered, before });
                None
            }
            Err(error) => {
                targets.parts.remove(&name);
                Some(Told::Failed { name: Some(name), error, held: covered, keeps: true })
            }
        }
    }

    fn forget(&mut self, name: &ResourceName) {
        self.targets.iter_mut().for_each(|targets| _ = targets.parts.remove(name));
    }
}

impl Find for Followed {
    fn next(&mut self, waker: &Waker) -> Option<Told> {
        while let Some(told) = self.asked.next(waker) {
            let told = self.heard(told);
            if told.is_some() {
                return told;
            }
        }
        let targets = self.targets.as_mut()?;
        if let Some(told) = targets.answer() {
            return Some(told);
        }
        let (name, told) = targets.parts.next(waker, Target::next)?;
        match told {
            Told::Put { .. } => self.told = true,
            Told::Failed { held: false, .. } => self.told = false,
            _ => {}
        }
        Some(told.of(&name))
    }

    fn first(&self) -> &Asked {
        &self.asked
    }

    fn first_mut(&mut self) -> &mut Asked {
        &mut self.asked
    }

    fn renotify(&mut self) {
        self.renotifies = true;
        self.asked.renotify();
        let targets = self.targets.iter_mut().flat_map(|targets| targets.parts.all_mut());
        targets.for_each(|target| target.found.renotify());
    }

    fn source(&self) -> &Asked {
        let targets = self.targets.iter().filter(|_| self.is_one());
        let target = targets.flat_map(|targets| targets.parts.all()).next();
        target.and_then(Target::used).map_or(&self.asked, |used| used.source())
    }

    fn is_stale(&self) -> bool {
        let mut targets = self.targets.iter().flat_map(|targets| targets.parts.all());
        self.asked.is_stale() || targets.any(|target| target.used().is_some_and(|used| used.is_stale()))
    }

    fn is_one(&self) -> bool {
        !self.asked.interest().is_collection()
    }
}

impl Targets {
    fn answer(&mut self) -> Option<Told> {
        let is_known = self.answered && !self.parts.all().any(|target| target.awaited);
        is_known.then(|| {
            self.answered = false;
            Told::Answered
        })
    }
}

impl Target {
    fn next(&mut self, waker: &Waker) -> Option<Told> {
        let mut told = self.found.next(waker)?;
        self.awaited = false;
        match &mut told {
            Told::Put { .. } => (self.failed, self.covered, self.before) = (None, false, None),
            Told::Failed { error, held, keeps, .. } => {
                *held = *held || self.covered && *keeps;
                if !*held {
                    (self.failed, self.covered, self.before) = (Some(error.clone()), false, None);
                }
            }
            Told::Cleared { .. } => self.failed = None,
            _ => {}
        }
        Some(told)
    }

    /// What the content in use is of: none if that is what is redirected.
    fn used(&self) -> Option<&dyn Find> {
        if self.covered { self.before.as_deref() } else { Some(&*self.found) }
    }

    fn into_used(self) -> Option<Box<dyn Find>> {
        if self.covered { self.before } else { Some(self.found) }
    }
}
