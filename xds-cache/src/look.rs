//! Looking at what is stored.

use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::interest::Interest;
use crate::resource::Resource;
use crate::resource_error::ResourceError;
use crate::store::{Answer, Slot, State, Varied};
use crate::text::TypeUrl;
use crate::variant::Variant;

/// One resource, as [`Cache::resources`] lists it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stored<'a, V> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// Its name.
    pub name: &'a ResourceName,
    /// Which variant it is, if the name has any.
    pub variant: Option<&'a Variant>,
    /// The resource; `None` when the name is known not to exist.
    pub resource: Option<&'a Resource<V>>,
    /// When its content last changed, by the caller's clock, to a tenth of a second.
    pub changed_at: Option<Instant>,
    /// How many subscribers asked for it by name.
    pub watchers: u32,
    /// Whether it is [of before](Cache::is_stale).
    pub stale: bool,
}

impl<V> Cache<V> {
    /// The resource of a name, or of what the name is an alias of. Of variants, the one for who has no parameters.
    pub fn resource(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&Resource<V>> {
        let type_key = *self.store.type_keys.get(type_url)?;
        let canonical = self.store[type_key].aliases.canonical(name).unwrap_or(name);
        self.store.select(self.store.slot_of(type_key, canonical)?, None).map(|(_, resource)| resource)
    }

    /// Every name the cache knows something about.
    pub fn resources(&self) -> impl Iterator<Item = Stored<'_, V>> {
        self.store.slots().values().flat_map(|slot| self.stored(slot))
    }

    /// Whether a wildcard also covers `xdstp:` names: see [`Options`](crate::Options::wildcard_covers_xdstp).
    pub fn wildcard_covers_xdstp(&self) -> bool {
        self.store.options.wildcard_covers_xdstp
    }

    /// A part of the same, of at most `most` names, and where the next part begins if there is one; the first begins at 0. For who
    /// must not keep others from the cache for as long as all of it takes: what comes or goes between two parts may be in
    /// none of them.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Options, Resource};
    ///
    /// let mut cache = Cache::new(Options::default());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// for name in ["a", "b", "c"] {
    ///     let mut edit = cache.edit(Instant::now());
    ///     edit.put(&clusters, &name.parse().unwrap(), Resource::unversioned(7, ()));
    ///     let _ = edit.finish();
    /// }
    /// let (mut names, mut next) = (Vec::new(), Some(0));
    /// while let Some(from) = next {
    ///     let (part, after) = cache.resources_from(from, 2);
    ///     names.extend(part.map(|stored| stored.name.to_string()));
    ///     next = after;
    /// }
    /// assert_eq!(names, ["a", "b", "c"]);
    /// ```
    pub fn resources_from(&self, from: usize, most: usize) -> (impl Iterator<Item = Stored<'_, V>>, Option<usize>) {
        let (part, next) = self.store.slots().part(from, most);
        (part.flat_map(|slot| self.stored(slot)), next)
    }

    fn stored<'a>(&'a self, slot: &'a Slot<V>) -> impl Iterator<Item = Stored<'a, V>> {
        let stale = !self.store.stale.is_empty()
            && self.store.slot_of(slot.type_key, &slot.name).is_some_and(|at| self.store.is_stale(at));
        let stored = move |variant, resource| Stored {
            type_url: &self.store[slot.type_key].url,
            name: &slot.name,
            variant,
            resource,
            changed_at: slot.changed_at.and_then(|at| self.store.moments.time(at)),
            watchers: slot.watchers.count,
            stale,
        };
        let variants = slot.state.varied().into_iter().flat_map(Varied::iter);
        let itself =
            (!matches!(slot.state, State::Unknown | State::Varied(_))).then(|| stored(None, slot.state.resource()));
        itself.into_iter().chain(variants.map(move |(variant, resource)| stored(Some(&**variant), Some(resource))))
    }

    /// All variants of a name; the one that it has without any is the [plain](Variant::plain) one.
    pub fn variants(&self, type_url: &TypeUrl, name: &ResourceName) -> impl Iterator<Item = (&Variant, &Resource<V>)> {
        let state = self.store.find(type_url, name).map(|at| &self.store[at].state);
        let plain = state.and_then(State::resource).map(|resource| (Variant::plain(), resource));
        let varied = state.and_then(State::varied).into_iter().flat_map(Varied::iter);
        plain.into_iter().chain(varied.map(|(variant, resource)| (&**variant, resource)))
    }

    /// A variant of a name.
    pub fn variant(&self, type_url: &TypeUrl, name: &ResourceName, variant: &Variant) -> Option<&Resource<V>> {
        match &self.store[self.store.find(type_url, name)?].state {
            State::Varied(varied) => varied.variant(if variant.is_plain() { Variant::plain() } else { variant }),
            state => state.resource().filter(|_| variant.is_plain()),
        }
    }

    /// Whether a name has been answered, with an error too, or something of a collection has.
    pub fn is_known(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        let Some(type_key) = self.store.type_keys.get(type_url) else { return self.store.has_all() };
        let of = &self.store[*type_key];
        match interest {
            Interest::Name(name) if !name.is_glob() => match self.store.slot_of(*type_key, name) {
                Some(at) => !matches!(self.store[at].state, State::Unknown),
                None => {
                    let answered = of.errors.contains_key(name) || of.aliases.canonical(name).is_some();
                    self.store.has_all() || answered
                }
            },
            collection => self
                .store
                .list_of(*type_key, collection)
                .map_or(self.store.has_all(), |list| self.store[list].answer != Answer::None),
        }
    }

    /// Whether the resource of a name is there, or one of a collection.
    pub fn holds_any(&self, type_url: &TypeUrl, interest: &Interest) -> bool {
        match interest {
            Interest::Name(name) if !name.is_glob() => self.resource(type_url, name).is_some(),
            collection => {
                let list = self.store.type_keys.get(type_url).and_then(|of| self.store.list_of(*of, collection));
                list.is_some_and(|list| self.store[list].live > 0)
            }
        }
    }

    /// What a name stands for, whose resource is there (rule 105): the last that claimed it as an alias.
    pub fn canonical(&self, type_url: &TypeUrl, alias: &ResourceName) -> Option<&ResourceName> {
        let type_key = self.store.type_keys.get(type_url)?;
        self.store[*type_key].aliases.canonical(alias)
    }

    /// The error of a name, or of a glob.
    pub fn error(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<&ResourceError> {
        let of = &self.store[*self.store.type_keys.get(type_url)?];
        Some(&of.errors.get(name)?.error)
    }

    /// Whether the wildcard or a glob of a type has an error that says that it is not sent.
    pub fn refuses(&self, type_url: &TypeUrl) -> bool {
        self.store.type_keys.get(type_url).is_some_and(|at| self.store[*at].refused > 0)
    }

    /// When the cache was told that error, by the caller's clock; not of one that it was [made](Self::restore) with.
    pub fn failed_at(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<Instant> {
        self.store[*self.store.type_keys.get(type_url)?].errors.get(name)?.at
    }

    /// Every error there is.
    pub fn errors(&self) -> impl Iterator<Item = (&TypeUrl, &ResourceName, &ResourceError)> {
        self.store
            .types()
            .values()
            .flat_map(|of| of.errors.iter().map(|(name, failure)| (&of.url, name, &failure.error)))
    }

    /// What is held of a name, to change what is not its content, such as how long it lives: nobody is told. Of
    /// variants, the plain one.
    pub fn value_mut(&mut self, type_url: &TypeUrl, name: &ResourceName) -> Option<&mut V> {
        let at = self.store.find(type_url, name)?;
        self.store.note_name(self.store[at].type_key, name);
        let resource = match &mut self.store[at].state {
            State::Varied(varied) => varied.variant_mut(Variant::plain()),
            state => state.resource_mut(),
        };
        resource.map(|resource| &mut resource.value)
    }
}
