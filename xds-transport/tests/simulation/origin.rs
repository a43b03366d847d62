//! What the origin holds, and the replicas that serve it.

mod others;
mod replica;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use xds_transport::Protocol;
use xds_transport::{Frame, Put};
use xdstp_cache::{Interest, Resource, ResourceError, Version};
use xdstp_uri::ResourceName;

pub(crate) use self::replica::Replica;
use crate::faults::Fault;
use crate::world::{Of, World};

/// `google.rpc.Code.UNAVAILABLE`.
const UNAVAILABLE: i32 = 14;

pub(crate) struct Origin {
    content: Vec<BTreeMap<ResourceName, (u8, Resource<Frame>)>>,
    /// The moment of the last change of a name.
    changed: Vec<BTreeMap<ResourceName, u64>>,
    /// The moment of its last removal.
    removed: Vec<BTreeMap<ResourceName, u64>>,
    pub(crate) moment: u64,
    /// When what is there came.
    born: Vec<BTreeMap<ResourceName, u64>>,
    departed: Vec<BTreeMap<ResourceName, Vec<Departed>>>,
    /// Bodies a name ever had.
    ever: HashSet<(Of, ResourceName, u8)>,
    /// Errors of names and globs, each with the moment it came.
    errors: Vec<BTreeMap<ResourceName, (ResourceError, u64)>>,
    /// How often the version of a type was given.
    given: Vec<u64>,
    /// When what it has from others is over, in ms.
    until: Vec<BTreeMap<ResourceName, u64>>,
    /// Globs whose error ended while they had members, and the moment it had come.
    ended: BTreeMap<(Of, ResourceName), u64>,
    /// When what is there was last sent for more than another TTL.
    anew: Vec<BTreeMap<ResourceName, u64>>,
    /// The bodies that names had, each since a moment.
    bodies: Vec<BTreeMap<ResourceName, Bodies>>,
    /// In ms.
    pub(crate) now: u64,
    /// Contents by SotW version: an equal version means an equal content, wherever it comes from (rules 33, 34).
    pub(crate) versions: BTreeMap<(Of, String), Content>,
    pub(crate) replicas: Vec<Replica>,
}

/// What a name had when it went.
pub(crate) struct Departed {
    pub(crate) body: u8,
    pub(crate) version: Version,
    lived: Range<u64>,
}

/// What a name had, and since which moment; none while it was not there.
type Bodies = Vec<(u64, Option<u8>)>;

/// Names and bodies.
pub(crate) type Content = BTreeMap<ResourceName, u8>;

impl Origin {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            content: vec![BTreeMap::new(); World::KINDS],
            changed: vec![BTreeMap::new(); World::KINDS],
            removed: vec![BTreeMap::new(); World::KINDS],
            moment: 0,
            born: vec![BTreeMap::new(); World::KINDS],
            departed: (0..World::KINDS).map(|_| BTreeMap::new()).collect(),
            ever: HashSet::new(),
            errors: vec![BTreeMap::new(); World::KINDS],
            given: vec![0; World::KINDS],
            until: vec![BTreeMap::new(); World::KINDS],
            ended: BTreeMap::new(),
            anew: vec![BTreeMap::new(); World::KINDS],
            bodies: vec![BTreeMap::new(); World::KINDS],
            now: 0,
            versions: BTreeMap::new(),
            replicas: (0..2).map(|_| Replica::new(world)).collect(),
        }
    }

    pub(crate) fn put(&mut self, world: &World, of: Of, name: usize, body: u8, ttl: Option<u64>, now: Instant) {
        let Some(name) = world.kinds[of].names.get(name) else { return };
        self.until[of].remove(name);
        self.store(world, of, name, body, world.resource(of, name, body, ttl), now);
    }

    /// What another answers for: it is over when its time is, and refreshed by being lent again.
    pub(crate) fn lend(&mut self, world: &World, of: Of, name: usize, body: u8, ttl: u64, now: Instant) {
        let name = &world.kinds[of].names[name];
        let mut resource = world.resource(of, name, body, Some(ttl));
        resource.value = resource.value.until(Some(now + Duration::from_millis(ttl)));
        self.until[of].insert(name.clone(), self.now + ttl);
        self.store(world, of, name, body, resource, now);
    }

    fn store(&mut self, world: &World, of: Of, name: &ResourceName, body: u8, resource: Resource<Frame>, now: Instant) {
        let same = |(was, there): &(u8, Resource<Frame>)| *was == body && there.value.ttl() == resource.value.ttl();
        let news = !self.content[of].get(name).is_some_and(same) || self.errors[of].contains_key(name);
        // A glob's error ends with what its members are sent for, but not for another TTL.
        let as_it_was = self.body(of, name) == Some(body);
        let anew = !as_it_was || self.errors[of].contains_key(name);
        if anew
            && let Some(glob) = name.glob_parent()
            && let Some((_, failed)) = self.errors[of].remove(&glob)
        {
            self.note(of, &glob);
            self.ended.insert((of, glob), failed);
        }
        if news {
            self.errors[of].remove(name);
            self.note(of, name);
            self.ever.insert((of, name.clone(), body));
        }
        if anew {
            self.anew[of].insert(name.clone(), self.moment);
            self.bodies[of].entry(name.clone()).or_default().push((self.moment, Some(body)));
        }
        if self.body(of, name).is_none() {
            self.born[of].insert(name.clone(), self.moment);
        }
        self.content[of].insert(name.clone(), (body, resource.clone()));
        for replica in &mut self.replicas {
            let url = &world.kinds[of].url;
            match world.setup.variants {
                Some(form) => form.put(replica.varied(url, name, now), body, &resource),
                None => {
                    replica.edit(now, |edit| _ = edit.put_checked(&world.rules, url, name, resource.clone()).unwrap());
                }
            }
        }
        if news {
            self.give_version(world, of);
        }
    }

    /// What is over by now goes.
    pub(crate) fn expire(&mut self, world: &World, now: Instant) {
        for of in 0..World::KINDS {
            while let Some((name, _)) = self.until[of].iter().find(|(_, until)| **until <= self.now) {
                let name = name.clone();
                self.remove_name(world, of, &name, now);
            }
        }
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.until.iter().flat_map(BTreeMap::values).min().copied()
    }

    /// When what it has from another is over, in ms.
    pub(crate) fn until(&self, of: Of, name: &ResourceName) -> Option<u64> {
        self.until[of].get(name).copied()
    }

    pub(crate) fn remove(&mut self, world: &World, of: Of, name: usize, now: Instant) {
        self.remove_name(world, of, &world.kinds[of].names[name], now);
    }

    fn remove_name(&mut self, world: &World, of: Of, name: &ResourceName, now: Instant) {
        // What others have of it may stay; that the whole name is gone ends what is wrong with it.
        let stays = self.moment.is_multiple_of(2) && self.body(of, name).is_some() && self.error(of, name).is_none();
        let varied = world.setup.variants.filter(|_| stays);
        self.forget(of, name);
        for replica in &mut self.replicas {
            let url = &world.kinds[of].url;
            match varied {
                Some(form) => form.remove(replica.varied(url, name, now)),
                None => replica.edit(now, |edit| edit.remove(url, name)),
            }
        }
        self.give_version(world, of);
    }

    pub(crate) fn touch(&mut self, world: &World, of: Of, name: usize, now: Instant) {
        let name = &world.kinds[of].names[name];
        if self.body(of, name).is_some() {
            self.errors[of].remove(name);
            self.note(of, name);
        } else if world.setup.variants.is_some() {
            return;
        }
        for replica in &mut self.replicas {
            replica.edit(now, |edit| edit.touch(&world.kinds[of].url, name));
        }
    }

    /// What is wrong with a name, or a glob.
    pub(crate) fn fail(&mut self, world: &World, of: Of, what: usize, code: i32, now: Instant) {
        let Interest::Name(name) = &world.kinds[of].interests[what] else { return };
        // That its members may not be had, and are there: nobody says both.
        if name.is_glob() && code != UNAVAILABLE && self.has(of, name) {
            return;
        }
        let error = ResourceError::new(code, format!("{code} of {name}"));
        if self.errors[of].get(name).is_some_and(|(before, _)| *before == error) {
            return;
        }
        if code == ResourceError::NOT_FOUND && !name.is_glob() {
            self.forget(of, name);
            self.give_version(world, of);
        }
        self.moment += 1;
        self.ended.remove(&(of, name.clone()));
        self.errors[of].insert(name.clone(), (error.clone(), self.moment));
        for replica in &mut self.replicas {
            replica.edit(now, |edit| edit.fail(&world.kinds[of].url, name, error.clone()));
        }
    }

    /// A glob has all its members: it does not fail any more.
    pub(crate) fn answer(&mut self, world: &World, of: Of, what: usize, now: Instant) {
        let interest = &world.kinds[of].interests[what];
        let Interest::Name(glob) = interest else { return };
        if let Some((_, failed)) = self.errors[of].remove(glob) {
            self.note(of, glob);
            if self.has(of, glob) {
                self.ended.insert((of, glob.clone()), failed);
            }
        }
        for replica in &mut self.replicas {
            replica.edit(now, |edit| edit.answered(&world.kinds[of].url, interest));
        }
    }

    /// A replica that starts anew knows what there is, and not what there was.
    pub(crate) fn restart(&mut self, world: &World, replica: usize, now: Instant, fault: Option<Fault>) {
        let mut anew = Replica::new(world);
        if fault == Some(Fault::ServeBeforeLoaded) {
            self.replicas[replica] = anew;
            return;
        }
        for (of, content) in self.content.iter().enumerate() {
            let url = &world.kinds[of].url;
            for (name, (body, resource)) in content {
                match world.setup.variants {
                    Some(form) => form.put(anew.varied(url, name, now), *body, resource),
                    None => anew.edit(now, |edit| _ = edit.put(url, name, resource.clone())),
                }
            }
            for (name, (error, _)) in &self.errors[of] {
                anew.edit(now, |edit| edit.fail(url, name, error.clone()));
            }
            if let Some(version) = self.type_version(of) {
                anew.cache.set_type_version(url, Some(version));
            }
        }
        self.replicas[replica] = anew;
    }

    fn forget(&mut self, of: Of, name: &ResourceName) {
        self.note(of, name);
        self.removed[of].insert(name.clone(), self.moment);
        self.until[of].remove(name);
        if let (Some((body, resource)), Some(born)) = (self.content[of].remove(name), self.born[of].remove(name)) {
            let departed = Departed { body, version: resource.version, lived: born..self.moment };
            self.departed[of].entry(name.clone()).or_default().push(departed);
            self.bodies[of].entry(name.clone()).or_default().push((self.moment, None));
        }
        self.errors[of].remove(name);
    }

    fn note(&mut self, of: Of, name: &ResourceName) {
        self.moment += 1;
        self.changed[of].insert(name.clone(), self.moment);
    }

    /// All of a type is of another version from now on.
    fn give_version(&mut self, world: &World, of: Of) {
        if !world.setup.type_versions {
            return;
        }
        self.given[of] += 1;
        let version = self.type_version(of);
        for Replica { cache, .. } in &mut self.replicas {
            cache.set_type_version(&world.kinds[of].url, version.clone());
        }
    }

    /// The version that was given to a type, if any.
    pub(crate) fn type_version(&self, of: Of) -> Option<Version> {
        Some(self.given[of]).filter(|given| *given > 0).map(|given| format!("t{given}").into())
    }

    /// The error of a name or a glob, and the moment it came.
    pub(crate) fn error(&self, of: Of, name: &ResourceName) -> Option<&(ResourceError, u64)> {
        self.errors[of].get(name)
    }

    /// Whether a name, or a member of a glob, is there.
    pub(crate) fn has(&self, of: Of, name: &ResourceName) -> bool {
        self.content[of].keys().any(|there| there.answers(name))
    }

    /// Whether the error of a glob ended, and nothing that is there says so: a full state repeats what is as it was, and what
    /// went and came back between two of them.
    pub(crate) fn ended_unsaid(&self, world: &World, of: Of, glob: &ResourceName) -> bool {
        let Some(failed) = self.ended.get(&(of, glob.clone())) else { return false };
        let full_state = world.setup.protocol == Protocol::Sotw && world.rule(of).full_state_in_sotw;
        let body_then = |name| {
            let bodies = self.bodies[of].get(name)?.iter().rev();
            bodies.skip_while(|(since, _)| since > failed).map(|(_, body)| *body).next()?
        };
        let mut members = self.content[of].iter().filter(|(name, _)| name.answers(glob));
        !members.any(|(name, (body, _))| {
            let is_news = self.anew[of].get(name).is_some_and(|at| at > failed);
            is_news && !(full_state && body_then(name) == Some(*body))
        })
    }

    /// How long a name lives from now, in ms.
    pub(crate) fn ttl(&self, of: Of, name: &ResourceName) -> Option<u64> {
        let ttl = self.resource(of, name)?.value.ttl()?.as_millis() as u64;
        Some(self.until(of, name).map_or(ttl, |until| until - self.now))
    }

    pub(crate) fn body(&self, of: Of, name: &ResourceName) -> Option<u8> {
        self.content[of].get(name).map(|(body, _)| *body)
    }

    pub(crate) fn resource(&self, of: Of, name: &ResourceName) -> Option<&Resource<Frame>> {
        self.content[of].get(name).map(|(_, resource)| resource)
    }

    /// What was there at a moment, and is gone.
    pub(crate) fn departed(&self, of: Of, name: &ResourceName, moment: u64) -> Option<&Departed> {
        self.departed[of].get(name)?.iter().find(|departed| departed.lived.contains(&moment))
    }

    /// When a name changed last; 0 for never.
    pub(crate) fn changed(&self, of: Of, name: &ResourceName) -> u64 {
        self.changed[of].get(name).copied().unwrap_or(0)
    }

    /// Whether a name was there at a moment, and at all times after it.
    pub(crate) fn is_there_since(&self, of: Of, name: &ResourceName, moment: u64) -> bool {
        self.born[of].get(name).is_some_and(|born| *born <= moment)
    }

    /// Whether a name was there no more at some time after a moment.
    pub(crate) fn removed_since(&self, of: Of, name: &ResourceName, moment: u64) -> bool {
        self.removed[of].get(name).is_some_and(|removed| *removed > moment)
    }

    pub(crate) fn had(&self, of: Of, name: &ResourceName, body: u8) -> bool {
        self.ever.contains(&(of, name.clone(), body))
    }

    /// Whether a cache that nobody uses any more holds the content and nothing else.
    pub(crate) fn check_at_rest(&self, world: &World) -> Result<(), String> {
        for Replica { cache, .. } in &self.replicas {
            if cache.subscriber_count() > 0 {
                return Err(format!("{} subscribers are left of closed streams", cache.subscriber_count()));
            }
            let kept: BTreeSet<_> = cache
                .resources()
                .filter(|stored| world.setup.variants.is_none_or(|form| form.is_own(stored.variant)))
                .map(|stored| (stored.type_url.as_str(), stored.name, stored.watchers, stored.resource.is_some()))
                .collect();
            let content = self.content.iter().enumerate();
            let content: BTreeSet<_> = content
                .flat_map(|(of, content)| content.keys().map(move |name| (world.kinds[of].url.as_str(), name, 0, true)))
                .collect();
            if kept != content {
                return Err(format!("a cache nobody uses holds {kept:?} and not {content:?}"));
            }
        }
        Ok(())
    }
}
