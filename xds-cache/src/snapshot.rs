//! What a cache knows, as plain data: what is to survive a restart.

mod notes;
mod recall;

use std::sync::Arc;
use std::time::{Duration, Instant};

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::interest::Interest;
use crate::moments::{NEVER, Seq};
use crate::options::Options;
use crate::resource::Resource;
use crate::resource_error::{Failure, ResourceError};
use crate::store::{Answer, Gone, List, Slot, Store, Turn, Turns, Varied, collection_of};
use crate::text::{TypeUrl, Version};
use crate::variant::Variant;

/// One thing that a cache knows.
///
/// `V` is the content of a resource: a borrowed one as it comes out of a [`snapshot`](Cache::snapshot). Names, types and
/// versions are shared with the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Known<V> {
    /// A name went, and those are to be told who come back to its glob.
    Gone {
        /// Its type.
        type_url: TypeUrl,
        /// The glob that has its tombstone.
        glob: ResourceName,
        /// The name: the glob itself where that was said to be empty.
        name: ResourceName,
        /// How long ago it went.
        ago: Duration,
        /// Whether it was here, and is not only said not to exist.
        seen: bool,
    },
    /// A variant of a name went, which has others still.
    WentVariant {
        /// The type.
        type_url: TypeUrl,
        /// The name.
        name: ResourceName,
        /// The variant.
        variant: Arc<Variant>,
        /// How long ago it went.
        ago: Duration,
    },
    /// A variant came to a name that had others: who was away may hold what it took the place of.
    CameVariant {
        /// The type.
        type_url: TypeUrl,
        /// The name.
        name: ResourceName,
        /// The variant.
        variant: Arc<Variant>,
        /// How long ago it came.
        ago: Duration,
    },
    /// A resource is there.
    Present {
        /// Its type.
        type_url: TypeUrl,
        /// Its name.
        name: ResourceName,
        /// Which variant it is, if the name has any.
        variant: Option<Arc<Variant>>,
        /// The other names that it may be asked for by.
        aliases: Vec<ResourceName>,
        /// The resource.
        resource: Resource<V>,
    },
    /// Something of a collection was answered.
    Answered {
        /// Its type.
        type_url: TypeUrl,
        /// The collection.
        collection: Interest,
        /// How far.
        extent: Extent,
    },
    /// A name, or a glob, has an error.
    Failed {
        /// Its type.
        type_url: TypeUrl,
        /// The name.
        name: ResourceName,
        /// The error.
        error: ResourceError,
        /// Whether only those are told of it who ask for just this name.
        by_name: bool,
    },
    /// An origin gave a version to a whole type.
    TypeVersion {
        /// The type.
        type_url: TypeUrl,
        /// The version.
        version: Version,
    },
}

/// How much of a collection is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Some of it came, and more may be there.
    Begun,
    /// It was complete, and its origin was lost since: what it lacks may be there.
    Stale,
    /// What it lacks is not there.
    Complete,
}

impl<V> Known<V> {
    /// The same, with another form of the content: encoded, decoded, or owned.
    pub fn map<W>(self, content: impl FnOnce(V) -> W) -> Known<W> {
        match self {
            Self::Gone { type_url, glob, name, ago, seen } => Known::Gone { type_url, glob, name, ago, seen },
            Self::Present { type_url, name, variant, aliases, resource } => {
                let resource = resource.map(content);
                Known::Present { type_url, name, variant, aliases, resource }
            }
            Self::WentVariant { type_url, name, variant, ago } => Known::WentVariant { type_url, name, variant, ago },
            Self::CameVariant { type_url, name, variant, ago } => Known::CameVariant { type_url, name, variant, ago },
            Self::Answered { type_url, collection, extent } => Known::Answered { type_url, collection, extent },
            Self::Failed { type_url, name, error, by_name } => Known::Failed { type_url, name, error, by_name },
            Self::TypeVersion { type_url, version } => Known::TypeVersion { type_url, version },
        }
    }
}

impl<V> Cache<V> {
    /// All that the cache knows and a restart should not lose: resources, the oldest change first, tombstones of globs, how
    /// far collections are answered, errors and versions of types. It is in an order that [`restore`](Self::restore) can
    /// take it in.
    ///
    /// Nothing of subscribers is in it, and so not what only they keep known: that a name is absent, because somebody asked
    /// for it, and what is kept of a resource that is gone until they are told.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Known, Options, Resource};
    ///
    /// let (now, options) = (Instant::now(), Options::default());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(options.clone());
    /// let mut edit = cache.edit(now);
    /// edit.put(&clusters, &"cart".parse()?, Resource::unversioned(7, "body"));
    /// let _ = edit.finish();
    ///
    /// let kept: Vec<Known<String>> = cache.snapshot(now).map(|known| known.map(|body| body.to_string())).collect();
    /// let restored = Cache::restore(options, kept, now);
    /// assert_eq!(restored.resource(&clusters, &"cart".parse()?).unwrap().value, "body");
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn snapshot(&self, now: Instant) -> impl Iterator<Item = Known<&V>> {
        let mut slots: Vec<_> = self.store.slots().values().filter(|slot| slot.state.is_present()).collect();
        slots.sort_unstable_by_key(|slot| slot.seq);
        let present = slots.into_iter().flat_map(|slot| self.known_resources(slot));
        let versions = self.store.types().values().filter_map(|of| {
            let (type_url, version) = (of.url.clone(), of.version.clone()?);
            Some(Known::TypeVersion { type_url, version })
        });
        let beside = self.known_turns(now).chain(self.known_answers()).chain(self.known_errors()).chain(versions);
        self.known_gone(now).chain(present).chain(beside)
    }

    pub(crate) fn known_resources<'a>(&'a self, slot: &'a Slot<V>) -> impl Iterator<Item = Known<&'a V>> {
        let of = &self.store[slot.type_key];
        let known = |variant, resource: &'a Resource<V>| {
            let (type_url, name, resource) = (of.url.clone(), slot.name.clone(), resource.as_ref());
            let aliases = of.aliases.of(&slot.name).iter().cloned().collect();
            Known::Present { type_url, name, variant, aliases, resource }
        };
        let itself = slot.state.resource().map(|resource| known(None, resource));
        let variants = slot.state.varied().into_iter().flat_map(Varied::iter);
        itself.into_iter().chain(variants.map(move |(variant, resource)| known(Some(variant.clone()), resource)))
    }

    fn known_gone(&self, now: Instant) -> impl Iterator<Item = Known<&V>> {
        let mut gone: Vec<(Seq, Known<&V>)> = Vec::new();
        for list in self.store.lists().values() {
            gone.extend(list.gone.iter().filter_map(|gone| Some((gone.seq, self.known_tombstone(list, gone, now)?))));
        }
        gone.sort_by_key(|(seq, _)| *seq);
        gone.into_iter().map(|(_, gone)| gone)
    }

    fn known_turns(&self, now: Instant) -> impl Iterator<Item = Known<&V>> {
        let varied = self.store.slots().values().filter_map(|slot| Some((slot, slot.state.varied()?)));
        varied.flat_map(move |(slot, varied)| {
            let of = move |turn: &Turn| {
                let (type_url, name) = (self.store[slot.type_key].url.clone(), slot.name.clone());
                (type_url, name, turn.variant.clone(), now.saturating_duration_since(turn.at))
            };
            let went = varied.went.iter().map(move |went| {
                let (type_url, name, variant, ago) = of(went);
                Known::WentVariant { type_url, name, variant, ago }
            });
            went.chain(varied.came.iter().map(move |came| {
                let (type_url, name, variant, ago) = of(came);
                Known::CameVariant { type_url, name, variant, ago }
            }))
        })
    }

    pub(crate) fn known_tombstone(&self, list: &List, gone: &Gone, now: Instant) -> Option<Known<&V>> {
        let (type_url, glob) = (self.store[list.type_key].url.clone(), list.glob.clone()?);
        let ago = now.saturating_duration_since(gone.at);
        Some(Known::Gone { type_url, glob, name: gone.name.clone(), ago, seen: !gone.unseen })
    }

    fn known_answers(&self) -> impl Iterator<Item = Known<&V>> {
        let lists = self.store.lists().values().filter(|_| !self.store.options.authoritative);
        lists.filter_map(|list| self.known_answer(list))
    }

    pub(crate) fn known_answer(&self, list: &List) -> Option<Known<&V>> {
        let extent = match list.answer {
            Answer::None => return None,
            Answer::Begun => Extent::Begun,
            Answer::Stale => Extent::Stale,
            Answer::Complete => Extent::Complete,
        };
        let collection = list.glob.clone().map_or(Interest::Wildcard, Interest::Name);
        Some(Known::Answered { type_url: self.store[list.type_key].url.clone(), collection, extent })
    }

    fn known_errors(&self) -> impl Iterator<Item = Known<&V>> {
        let mut errors: Vec<_> = self
            .store
            .types()
            .values()
            .flat_map(|of| of.errors.iter().map(|(name, failure)| (failure, of.url.clone(), name.clone())))
            .collect();
        errors.sort_unstable_by_key(|(failure, ..)| failure.seq);
        errors.into_iter().map(|(failure, type_url, name)| Known::Failed {
            type_url,
            name,
            error: failure.error.clone(),
            by_name: !failure.listed,
        })
    }

    /// A cache that knows what another one knew: who comes to it is told what that one would have told them.
    ///
    /// In a relay's cache, whether what is not in it is absent is for the caller to say. As it comes out of a
    /// [`snapshot`](Self::snapshot), a collection that was complete is complete again. Where time has passed since, what is
    /// restored proves that something was there, and never that something is not: then call
    /// [`origin_lost`](Self::origin_lost) before anybody subscribes.
    ///
    /// What nobody subscribes to is known until it is [evicted](Self::evict), as it was before. What the
    /// [capacity](Options::capacity) has no room for is left out.
    pub fn restore(options: Options, known: impl IntoIterator<Item = Known<V>>, now: Instant) -> Self {
        let mut cache = Self::new(options);
        for known in known {
            match known {
                Known::Present { type_url, name, variant: Some(variant), resource, .. } => {
                    cache.restore_variant(&type_url, &name, &variant, resource, now);
                }
                Known::Present { type_url, name, variant: None, aliases, resource } => {
                    cache.upsert_raw_with_aliases(&type_url, &name, aliases, resource, now, &mut Vec::new());
                }
                Known::Gone { type_url, glob, name, ago, seen } => {
                    if let Some(at) = now.checked_sub(ago).filter(|_| glob.is_glob()) {
                        cache.restore_gone(
                            &type_url,
                            glob,
                            Gone { name, seq: 0, at, born: NEVER, unseen: !seen, plain: false },
                        );
                    }
                }
                Known::WentVariant { type_url, name, variant, ago } => {
                    cache.restore_turn(&type_url, &name, variant, now.checked_sub(ago), |varied| &mut varied.went);
                }
                Known::CameVariant { type_url, name, variant, ago } => {
                    cache.restore_turn(&type_url, &name, variant, now.checked_sub(ago), |varied| &mut varied.came);
                }
                Known::Answered { type_url, collection, extent } => {
                    cache.store.restore_answer(&type_url, &collection, extent);
                }
                Known::Failed { type_url, name, error, by_name } => {
                    cache.store.restore_error(&type_url, name, error, !by_name);
                }
                Known::TypeVersion { type_url, version } => cache.set_type_version(&type_url, Some(version)),
            }
        }
        cache.expire(now);
        (cache.totals, cache.visits) = Default::default();
        cache
    }

    fn restore_variant(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        variant: &Variant,
        resource: Resource<V>,
        now: Instant,
    ) {
        self.change_type(type_url, now, |cache, type_key| {
            cache.store_variant(type_key, name, variant, resource, now, &mut Vec::new())
        });
        // Nobody has selected any: this puts it in its place in the order of changes.
        self.settle(&mut Vec::new());
        // When it came is known apart from that.
        if let Some(at) = self.store.find(type_url, name)
            && let Some(varied) = self.store[at].state.varied_mut()
        {
            varied.came = Turns::default();
        }
    }

    fn restore_turn(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        variant: Arc<Variant>,
        at: Option<Instant>,
        turns: impl Fn(&mut Varied<V>) -> &mut Turns,
    ) {
        let seq = self.store.seq;
        if let (Some(slot), Some(at)) = (self.store.find(type_url, name), at)
            && let Some(varied) = self.store[slot].state.varied_mut()
        {
            turns(varied).note(Turn { variant, seq, at });
        }
    }

    fn restore_gone(&mut self, type_url: &TypeUrl, glob: ResourceName, gone: Gone) {
        let type_key = self.store.type_key(type_url);
        let list = self.store.list(type_key, &Interest::Name(glob));
        let too_many = gone.unseen && self.store[list].unseen >= self.store.options.tombstones;
        if !too_many {
            let seq = self.store.next_seq();
            self.bury(list, Gone { seq, ..gone }, &mut Vec::new());
        }
        self.store[list].watched = true;
        self.store.drop_list_if_unused(list);
        self.store.drop_type_if_unused(type_key);
    }
}

impl<V> Store<V> {
    fn restore_answer(&mut self, type_url: &TypeUrl, collection: &Interest, extent: Extent) {
        if self.options.authoritative || !collection.is_collection() {
            return;
        }
        let type_key = self.type_key(type_url);
        if let Some(at) = self.answered_list(type_key, collection) {
            self[at].answer = match extent {
                Extent::Begun => Answer::Begun,
                Extent::Stale => Answer::Stale,
                Extent::Complete => Answer::Complete,
            };
            self[at].watched = true;
            self.renew_list(at);
        }
        self.drop_type_if_unused(type_key);
    }

    fn restore_error(&mut self, type_url: &TypeUrl, name: ResourceName, error: ResourceError, listed: bool) {
        let type_key = self.type_key(type_url);
        let seq = self.next_seq();
        if let Some(collection) = collection_of(&name).filter(|_| listed) {
            let list = self.list(type_key, &collection);
            self[list].failed.insert(seq, name.clone());
        }
        self.set_error(type_key, name, Failure { error, seq, listed, at: None });
    }
}
