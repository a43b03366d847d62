//! What changed since somebody looked who keeps it elsewhere, too.

use std::collections::BTreeSet;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::interest::Interest;
use crate::keys::{ListKey, TypeKey};
use crate::snapshot::Known;
use crate::store::{Notes, Store};
use crate::text::TypeUrl;

impl<V> Cache<V> {
    /// Notes from now on of which names and collections what is known changes, so that it can be kept elsewhere without a
    /// look at all of it: `most` of them, and of more only that they are more.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Known, Options, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// cache.note_changes(1000);
    /// let mut edit = cache.edit(Instant::now());
    /// edit.put(&clusters, &"cart".parse()?, Resource::unversioned(7, "body"));
    /// let _ = edit.finish();
    ///
    /// let noted = cache.take_noted(10).unwrap();
    /// assert_eq!(noted, [(clusters, Interest::Name("cart".parse()?))]);
    /// let (of, interest) = &noted[0];
    /// assert!(matches!(cache.known_of(of, interest, Instant::now())[..], [Known::Present { .. }]));
    /// assert!(!cache.has_noted());
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn note_changes(&mut self, most: usize) {
        self.store.notes = Some(Box::new(Notes::of(most)));
    }

    /// Whether something was noted.
    pub fn has_noted(&self) -> bool {
        self.store.notes.as_ref().is_some_and(|notes| notes.any())
    }

    /// Takes up to so many of what was noted. `None`: there was too much, and all of it may be other than it was.
    pub fn take_noted(&mut self, most: usize) -> Option<Vec<(TypeUrl, Interest)>> {
        self.store.notes.as_mut().map_or(Some(Vec::new()), |notes| notes.take(most))
    }

    /// Notes that a name may be other than it was, though nothing of it changes here: something was kept of it elsewhere, and a
    /// word on it is newer than that.
    pub fn note(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        if let Some(notes) = &mut self.store.notes {
            notes.note(type_url.clone(), Interest::Name(name.clone()));
        }
    }

    /// Notes that all of it may be other than it was.
    pub fn note_all(&mut self) {
        if let Some(notes) = &mut self.store.notes {
            notes.note_all();
        }
    }

    /// What is known of a name, or of a collection itself: as a [`snapshot`](Self::snapshot) has it, but for errors.
    pub fn known_of(&self, type_url: &TypeUrl, interest: &Interest, now: Instant) -> Vec<Known<&V>> {
        let Some(type_key) = self.store.type_keys.get(type_url).copied() else { return Vec::new() };
        match interest {
            Interest::Name(name) if !name.is_glob() => {
                let slot = self.store.slot_of(type_key, name).map(|at| &self.store[at]);
                let known: Vec<_> = slot.into_iter().flat_map(|slot| self.known_resources(slot)).collect();
                match known.is_empty() {
                    true => self.known_gone_name(type_key, name, now).into_iter().collect(),
                    false => known,
                }
            }
            collection => {
                let list = self.store.list_of(type_key, collection).map(|list| &self.store[list]);
                let answered = list.and_then(|list| self.known_answer(list));
                let version = self.store[type_key].version.clone().filter(|_| *collection == Interest::Wildcard);
                let version = version.map(|version| Known::TypeVersion { type_url: type_url.clone(), version });
                answered.into_iter().chain(version).collect()
            }
        }
    }

    /// Takes by what other names a resource could be asked for when it was [evicted](Self::evict), if that was before its last
    /// change was [taken](Self::take_noted): of it nothing is known any more, and who keeps what it was earlier keeps it under no
    /// other aliases.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Resource};
    ///
    /// let (now, mut options) = (Instant::now(), Options::default());
    /// options.authoritative = false;
    /// let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost".into();
    /// let [shop, alias] = ["routes/shop", "routes/shop.example"].map(|name| name.parse().unwrap());
    /// let mut cache = Cache::new(options);
    /// cache.note_changes(1000);
    /// let mut edit = cache.edit(now);
    /// edit.put_with_aliases(&hosts, &shop, [alias], Resource::unversioned(7, "body"));
    /// let _ = edit.finish();
    /// cache.evict(&hosts, &Interest::Name(shop.clone()), now);
    ///
    /// assert_eq!(cache.take_evicted(&hosts, &shop).map(|aliases| aliases.len()), Some(1));
    /// assert_eq!(cache.take_evicted(&hosts, &shop), None);
    /// ```
    pub fn take_evicted(&mut self, type_url: &TypeUrl, name: &ResourceName) -> Option<BTreeSet<ResourceName>> {
        self.store.notes.as_mut()?.take_evicted(type_url, name)
    }

    fn known_gone_name(&self, type_key: TypeKey, name: &ResourceName, now: Instant) -> Option<Known<&V>> {
        let [_, directory] = self.store.collections_of(type_key, name);
        let list = &self.store[directory?];
        // The last word on a name is the newest.
        let gone = list.gone.iter().rev().find(|gone| gone.name == *name)?;
        self.known_tombstone(list, gone, now)
    }
}

impl<V> Store<V> {
    pub(crate) fn note(&mut self, type_key: TypeKey, interest: impl FnOnce() -> Interest) {
        if self.notes.as_ref().is_none_or(|notes| notes.is_all()) {
            return;
        }
        let type_url = self[type_key].url.clone();
        if let Some(notes) = &mut self.notes {
            notes.note(type_url, interest());
        }
    }

    pub(crate) fn note_name(&mut self, type_key: TypeKey, name: &ResourceName) {
        self.note(type_key, || Interest::Name(name.clone()));
    }

    pub(crate) fn note_evicted(&mut self, type_key: TypeKey, name: &ResourceName, aliases: BTreeSet<ResourceName>) {
        if self.notes.is_none() {
            return;
        }
        let type_url = self[type_key].url.clone();
        if let Some(notes) = &mut self.notes {
            notes.evict(&type_url, name, aliases);
        }
    }

    /// Something is known of a collection as a whole that was not, or it is not known any more.
    pub(crate) fn note_list(&mut self, at: ListKey) {
        if self.notes.is_some() {
            let collection = self[at].glob.clone().map_or(Interest::Wildcard, Interest::Name);
            self.note(self[at].type_key, || collection);
        }
    }
}
