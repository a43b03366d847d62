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
    /// None where the redirect leads nowhere.
    found: Option<Box<dyn Find>>,
    /// Nothing was heard of it yet.
    awaited: bool,
    /// There is nothing to go on with, and why, of what its server said.
    failed: Option<Error>,
    /// Its server cannot be reached, and that was told last.
    lost: bool,
    /// What is in use.
    used: Used,
}

enum Used {
    /// It itself.
    This,
    /// What the resource was before it was a redirect.
    Redirected,
    /// What the resource led to before: its content as it was then, which it was known to be by its server or not.
    Before { found: Box<dyn Find>, stale: bool },
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
            // Where it leads there is still nothing: that was told before this was in the way, or will be.
            Told::Cleared { name: None } if !self.told && self.is_one() => match self.target() {
                Some(Target { lost: true, .. }) => None,
                Some(Target { failed: Some(error), .. }) => {
                    let name = self.asked.interest().as_str().parse().ok();
                    Some(Told::Failed { name, error: error.clone(), held: false, keeps: true })
                }
                _ => Some(told),
            },
            told => Some(told),
        }
    }

    /// Of the one resource that it is.
    fn target(&self) -> Option<&Target> {
        self.targets.iter().flat_map(|targets| targets.parts.all()).next()
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
        let opened = (self.opens)(&targets.client, &targets.type_url, to, usize::from(self.hops) + 1);
        let before = targets.parts.remove(&name);
        let used = match covered {
            true => before.map_or(Used::Redirected, Target::into_used),
            false => Used::This,
        };
        match opened {
            Ok(mut found) => {
                if self.renotifies {
                    found.renotify();
                }
                let target = Target { found: Some(found), awaited: true, failed: None, lost: false, used };
                targets.parts.insert(name, target);
                None
            }
            Err(error) => {
                // A collection has others to tell of.
                if !self.asked.interest().is_collection() {
                    let failed = (!covered).then(|| error.clone());
                    targets
                        .parts
                        .insert(name.clone(), Target { found: None, awaited: false, failed, lost: false, used });
                }
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
        targets.filter_map(|target| target.found.as_mut()).for_each(|found| found.renotify());
    }

    fn source(&self) -> &Asked {
        let target = self.target().filter(|_| self.is_one());
        target.and_then(Target::used).map_or(&self.asked, |used| used.source())
    }

    fn is_stale(&self) -> bool {
        let mut targets = self.targets.iter().flat_map(|targets| targets.parts.all());
        self.asked.is_stale() || targets.any(Target::is_stale)
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
        let mut told = self.found.as_mut()?.next(waker)?;
        self.awaited = false;
        match &mut told {
            Told::Put { .. } => (self.failed, self.lost, self.used) = (None, false, Used::This),
            Told::Failed { error, held, keeps, .. } => {
                *held = *held || *keeps && !matches!(self.used, Used::This);
                self.lost = matches!(error, Error::Unreachable { .. });
                if !*held {
                    self.used = Used::This;
                    self.failed = if self.lost { self.failed.take() } else { Some(error.clone()) };
                }
            }
            Told::Cleared { .. } => (self.failed, self.lost) = (None, false),
            _ => {}
        }
        Some(told)
    }

    /// What the content in use is of: none if that is what is redirected, or there is none.
    fn used(&self) -> Option<&dyn Find> {
        match &self.used {
            Used::This => self.found.as_deref(),
            Used::Before { found, .. } => Some(&**found),
            Used::Redirected => None,
        }
    }

    fn is_stale(&self) -> bool {
        match &self.used {
            Used::This => self.found.as_ref().is_some_and(|found| found.is_stale()),
            Used::Before { stale, .. } => *stale,
            Used::Redirected => false,
        }
    }

    /// What is in use, as that of another in its place.
    fn into_used(self) -> Used {
        let stale = self.is_stale();
        match (self.used, self.found) {
            (Used::This, Some(found)) => Used::Before { found, stale },
            (Used::This, None) => Used::Redirected,
            (used, _) => used,
        }
    }
}
