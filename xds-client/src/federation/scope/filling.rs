//! What an origin that has all there is puts into a scope.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Cause, Extent, Interest, Known, Resource, ResourceError, TypeUrl, Version, Woken};
use xdstp_uri::ResourceName;

use super::{BATCH, Scope};
use crate::federation::changes::Changes;
use crate::federation::origin::Unreadable;

/// What is wrong with resources, by type.
type Refused = BTreeMap<TypeUrl, Vec<(ResourceName, ResourceError)>>;

impl Scope {
    /// Makes the scope hold exactly this: what an authoritative origin does. Once it has, what is not there does not exist.
    ///
    /// Where it is for one program, that reads what is new: what it refuses, its watches hear of, and what was there before of such
    /// a name stays.
    pub fn replace(&self, resources: &[(TypeUrl, ResourceName, Resource<Frame>)], now: Instant) {
        self.replace_but(resources, &[], now);
    }

    /// The same, but that of some names it is not known whether they are there: nobody is told that they are gone, or is sent a full
    /// state without them who may hold them, and what there was of them stays.
    pub fn replace_but(
        &self,
        resources: &[(TypeUrl, ResourceName, Resource<Frame>)],
        unreadable: &[Unreadable],
        now: Instant,
    ) {
        let mut gone = self.held();
        let there = resources.iter().map(|(type_url, name, _)| (type_url, name));
        for (type_url, name) in there.chain(unreadable.iter().map(|of| (&of.type_url, &of.name))) {
            if let Some(names) = gone.get_mut(type_url) {
                names.remove(name);
            }
        }
        // What fills it as it begins to be used may be from long ago.
        let heard = self.lock().filled_at.map(|_| now);
        let refused = self.put(resources, heard, now);
        // Before anything is told to be gone, or is known to be.
        self.leave_unknown(unreadable, heard, now);
        for (type_url, names) in gone {
            self.store(&type_url, Changes { removed: names.into_iter().collect(), ..Changes::default() }, now);
        }
        self.refuse(refused, now);
        self.change(heard, |state| {
            state.filled_at = Some(now);
            let mut edit = state.cache.edit(now);
            edit.fill();
            edit.finish()
        });
    }

    /// Has what an authoritative origin had before a restart, or has by now as far as it has said: that is there, and stale until the scope
    /// is [filled](Self::replace). Of nothing else anything is known before; and once it is, this changes nothing.
    pub fn remember(&self, resources: &[(TypeUrl, ResourceName, Resource<Frame>)], now: Instant) {
        let collections: BTreeSet<_> = resources
            .iter()
            .map(|(type_url, name, _)| (type_url, name.glob_parent().map_or(Interest::Wildcard, Interest::Name)))
            .collect();
        for batch in resources.chunks(BATCH) {
            let read = batch.iter().filter_map(|(type_url, name, resource)| {
                let mut resource = resource.clone();
                self.read(type_url, name, &mut resource, 0).ok()?;
                Some((type_url, name, resource))
            });
            let read: Vec<_> = read.collect();
            self.change(None, |state| {
                if state.filled_at.is_some() {
                    return Woken::default();
                }
                let mut edit = state.cache.edit(now);
                for (type_url, name, resource) in read {
                    match edit.resource(type_url, name).map(|held| (&held.version, held.digest())) {
                        Some(held) if held == (&resource.version, resource.digest()) => {}
                        // The origin says so now.
                        Some(_) => _ = edit.put(type_url, name, resource),
                        None => {
                            let (type_url, name) = (type_url.clone(), name.clone());
                            let known = Known::Present { type_url, name, variant: None, aliases: Vec::new(), resource };
                            edit.recall(known);
                        }
                    }
                }
                edit.finish()
            });
        }
        // Behind its members: who is sent full states has them together.
        self.change(None, |state| {
            let mut edit = state.cache.edit(now);
            for (type_url, collection) in collections {
                edit.recall(Known::Answered { type_url: type_url.clone(), collection, extent: Extent::Stale });
            }
            edit.finish()
        });
    }

    /// What its origin has of a name is of no use, before anything can be made of it: what there was stays.
    pub(crate) fn spoil(&self, type_url: &TypeUrl, name: ResourceName, reason: &str, now: Instant) {
        let error = ResourceError::new(ResourceError::INVALID_ARGUMENT, reason);
        let error = error.found_by(Cause::Refused(Version::from("")));
        self.refuse([(type_url.clone(), vec![(name, error)])].into(), now);
    }

    /// Has the program read the resources of a type that came before it had a use for them. What it refuses goes: nobody had it
    /// read.
    pub(crate) fn reread(&self, type_url: &TypeUrl) {
        let (mut unread, at): (Vec<(ResourceName, Resource<Frame>)>, Instant) = {
            let state = self.lock();
            let Some(at) = state.filled_at else { return };
            let of_type = state.cache.resources().filter(|stored| stored.type_url == type_url);
            let unread = of_type.filter_map(|stored| {
                let resource = stored.resource.filter(|resource| resource.value.decoded().is_none())?;
                Some((stored.name.clone(), resource.clone()))
            });
            (unread.collect(), at)
        };
        let mut refused = Vec::new();
        unread.retain_mut(|(name, resource)| match self.read(type_url, name, resource, 0) {
            Ok(()) => true,
            Err(error) => {
                refused.push((name.clone(), error));
                false
            }
        });
        self.change(None, |state| {
            let mut edit = state.cache.edit(at);
            for (name, read) in unread {
                let is_same = edit.resource(type_url, &name).is_some_and(|held| held.digest() == read.digest());
                if let Some(held) = edit.value_mut(type_url, &name).filter(|_| is_same) {
                    *held = read.value;
                }
            }
            edit.finish()
        });
        let removed = refused.iter().map(|(name, _)| name.clone()).collect();
        self.store(type_url, Changes { removed, ..Changes::default() }, at);
        self.refuse([(type_url.clone(), refused)].into(), at);
    }

    /// These are known to be neither there nor gone.
    fn leave_unknown(&self, unreadable: &[Unreadable], heard: Option<Instant>, now: Instant) {
        for batch in unreadable.chunks(BATCH) {
            self.change(heard, |state| {
                let mut edit = state.cache.edit(now);
                for Unreadable { type_url, name, reason } in batch {
                    let error = ResourceError::new(ResourceError::INVALID_ARGUMENT, reason.clone());
                    edit.fail(type_url, name, error.found_by(Cause::Unreadable));
                }
                edit.finish()
            });
        }
    }

    /// The names of which there is something, or may be, and those that something is wrong with.
    fn held(&self) -> BTreeMap<TypeUrl, BTreeSet<ResourceName>> {
        let state = self.lock();
        let there = state.cache.resources().filter(|stored| stored.resource.is_some());
        let there = there.map(|stored| (stored.type_url, stored.name));
        let wrong = state.cache.errors().filter(|(.., error)| self.is_watched() || error.cause == Cause::Unreadable);
        let wrong = wrong.map(|(type_url, name, _)| (type_url, name));
        let mut held: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (type_url, name) in there.chain(wrong) {
            held.entry(type_url.clone()).or_default().insert(name.clone());
        }
        held
    }

    /// What is refused of that is returned.
    pub(crate) fn put(
        &self,
        resources: &[(TypeUrl, ResourceName, Resource<Frame>)],
        heard: Option<Instant>,
        now: Instant,
    ) -> Refused {
        let mut refused = Refused::new();
        for batch in resources.chunks(BATCH) {
            let mut read = Vec::with_capacity(batch.len());
            for (type_url, name, resource) in batch {
                let mut resource = resource.clone();
                match self.read(type_url, name, &mut resource, 0) {
                    Ok(()) => read.push((type_url, name, resource)),
                    Err(error) => refused.entry(type_url.clone()).or_default().push((name.clone(), error)),
                }
            }
            self.change(heard, |state| {
                let mut edit = state.cache.edit(now);
                for (type_url, name, resource) in read {
                    edit.put(type_url, name, resource);
                }
                edit.finish()
            });
        }
        refused
    }

    /// What is wrong as it was is no news.
    fn refuse(&self, refused: Refused, now: Instant) {
        for (type_url, mut errors) in refused {
            errors.retain(|(name, error)| self.lock().cache.error(&type_url, name) != Some(error));
            for (name, error) in &errors {
                tracing::warn!(scope = %self.key, %type_url, %name, "refused: {}", error.message);
            }
            if !errors.is_empty() {
                self.store(&type_url, Changes { errors, ..Changes::default() }, now);
            }
        }
    }
}
