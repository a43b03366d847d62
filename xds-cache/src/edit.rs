//! A batch of changes, and who is to be told of it.

mod answer;
mod batch;
mod fail;
mod fill;
mod put;
mod remove;
mod tombstones;
mod vary;

use std::ops::Deref;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::text::{TypeUrl, Version};

impl<V> Cache<V> {
    /// A batch of changes at one moment, such as an origin's answer: however many there are, a subscriber is named once.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Resource};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// # cache.pull(subscriber, xdstp_cache::Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    ///
    /// let mut edit = cache.edit(Instant::now());
    /// edit.put(&clusters, &"cart".parse()?, Resource::unversioned(7, "body"));
    /// edit.remove(&clusters, &"shop".parse()?);
    /// assert!(edit.finish().into_iter().eq([subscriber]));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn edit(&mut self, now: Instant) -> Edit<'_, V> {
        self.edit_reusing(now, Woken::default())
    }

    /// An [`edit`](Self::edit) that names who is to be told in the memory in which one before it did, who all were told by now:
    /// once that has room for all of them, it allocates nothing for that.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals, Resource, Woken};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// let mut woken = Woken::default();
    /// for digest in [7, 8] {
    ///     cache.pull(subscriber, Removals::Include, &mut |_| std::ops::ControlFlow::Continue(()));
    ///     let mut edit = cache.edit_reusing(Instant::now(), woken);
    ///     edit.put(&clusters, &"cart".parse()?, Resource::unversioned(digest, "body"));
    ///     woken = edit.finish();
    ///     assert!(woken.iter().eq([subscriber]));
    /// }
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn edit_reusing(&mut self, now: Instant, told: Woken) -> Edit<'_, V> {
        let Woken(mut woken) = told;
        woken.clear();
        woken.append(&mut self.unnamed);
        Edit { inherits: !woken.is_empty(), cache: self, now, woken }
    }
}

/// Changes to a cache: each is made at once, and [`finish`](Self::finish) says who is to be told.
///
/// One that is dropped instead has changed what it has changed. Who is to be told of that is not forgotten: the next edit
/// of the cache names them with its own, because a subscriber that is not woken would wait for ever.
///
/// The cache can be looked at meanwhile, and is as it was changed so far.
#[must_use = "who is to be told of the changes is known when they are finished"]
pub struct Edit<'a, V> {
    cache: &'a mut Cache<V>,
    now: Instant,
    woken: Vec<SubscriberId>,
    /// Some of these are of an edit that was dropped, and may have been woken by something else meanwhile.
    inherits: bool,
}

impl<V> Edit<'_, V> {
    /// Who has something to pull because of this edit, each once: not who had something to pull already.
    pub fn finish(mut self) -> Woken {
        self.cache.settle(&mut self.woken);
        let mut woken = std::mem::take(&mut self.woken);
        if self.inherits {
            woken.sort_unstable();
            woken.dedup();
        }
        Woken(woken)
    }

    /// Makes a change that has no name of its own here.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Cache<V>, Instant, &mut Vec<SubscriberId>) -> T) -> T {
        change(self.cache, self.now, &mut self.woken)
    }

    /// Records that a name does not exist. A tombstone is left for the collections it belongs to.
    pub fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.cache.remove(type_url, name, self.now, &mut self.woken);
    }

    /// Does what [`remove`](Self::remove) does, for the answer to who asked for just this name, though nobody here may ask
    /// for it any more. Of such names that were never here, not more are told to those who want a collection that they
    /// belong to than it keeps [tombstones](crate::Options::tombstones): whoever asks decides how many there are.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut options = Options::default();
    /// (options.authoritative, options.tombstones) = (false, 2);
    /// let mut cache = Cache::<()>::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// let mut edit = cache.edit(Instant::now());
    /// for name in ["a", "b", "c", "d"] {
    ///     edit.deny(&clusters, &name.parse().unwrap());
    /// }
    /// let _ = edit.finish();
    /// let mut told = 0;
    /// cache.pull(subscriber, Removals::Include, &mut |_| {
    ///     told += 1;
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(told, 2);
    /// ```
    pub fn deny(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.cache.remove_asked(type_url, name, true, self.now, &mut self.woken);
    }

    /// Does what [`remove`](Self::remove) does for those who ask for just this name, and nobody else is told: it is a name that
    /// none of them has ever held. What is here all the same is removed for everybody.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Removals};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut options = Options::default();
    /// options.authoritative = false;
    /// let mut cache = Cache::<()>::new(options);
    /// let [all, one] = [Interest::Wildcard, Interest::Name("a".parse().unwrap())].map(|interest| {
    ///     let subscriber = cache.open(&clusters);
    ///     cache.subscribe(subscriber, &interest);
    ///     subscriber
    /// });
    /// let mut edit = cache.edit(Instant::now());
    /// edit.remove_by_name(&clusters, &"a".parse().unwrap());
    /// let _ = edit.finish();
    /// let told = [all, one].map(|subscriber| {
    ///     let mut told = 0;
    ///     cache.pull(subscriber, Removals::Include, &mut |_| {
    ///         told += 1;
    ///         ControlFlow::Continue(())
    ///     });
    ///     told
    /// });
    /// assert_eq!(told, [0, 1]);
    /// ```
    pub fn remove_by_name(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.cache.remove_by_name(type_url, name, self.now, &mut self.woken);
    }

    /// Records that the answer to a collection has begun, and may go on: who holds nothing of it may be served what is
    /// there, and nothing is told to be gone before the answer is complete (rule 151).
    pub fn begun(&mut self, type_url: &TypeUrl, collection: &Interest) {
        self.cache.begin_answer(type_url, collection, &mut self.woken);
    }

    /// Records that a collection is sent after all: its [error](Self::fail) is over with what comes of it, and how far it is answered is
    /// as it was.
    ///
    /// ```
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, ResourceError};
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut options = Options::default();
    /// options.authoritative = false;
    /// let mut cache = Cache::<()>::new(options);
    /// let subscriber = cache.open(&clusters);
    /// cache.subscribe(subscriber, &Interest::Wildcard);
    /// let mut edit = cache.edit(Instant::now());
    /// edit.fail(&clusters, &"*".parse().unwrap(), ResourceError::new(ResourceError::PERMISSION_DENIED, "ask by name"));
    /// assert_eq!(edit.errors().count(), 1);
    /// edit.recover(&clusters, &Interest::Wildcard);
    /// assert_eq!(edit.errors().count(), 0);
    /// # let _ = edit.finish();
    /// ```
    pub fn recover(&mut self, type_url: &TypeUrl, collection: &Interest) {
        self.cache.recover_collection(type_url, collection, &mut self.woken);
    }

    /// Records that a collection holds all there is: who waits for an empty one is told so (rules 86, 99). That stays known
    /// until it is [evicted](Self::evict), or forgotten for lack of room.
    pub fn answered(&mut self, type_url: &TypeUrl, collection: &Interest) {
        self.cache.answered(type_url, collection, &mut self.woken);
    }

    /// Records the version an origin gave to a whole type: see [`Cache::set_type_version`].
    pub fn set_type_version(&mut self, type_url: &TypeUrl, version: Option<Version>) {
        self.cache.set_type_version(type_url, version);
    }

    /// What is held of a name, to change what is not its content: see [`Cache::value_mut`].
    pub fn value_mut(&mut self, type_url: &TypeUrl, name: &ResourceName) -> Option<&mut V> {
        self.cache.value_mut(type_url, name)
    }

    /// Forgets what only an interest kept, but what `keeps` says: see [`Cache::evict_unless`].
    pub fn evict_unless(&mut self, type_url: &TypeUrl, interest: &Interest, keeps: &dyn Fn(&ResourceName) -> bool) {
        self.cache.evict_unless(type_url, interest, self.now, keeps);
    }

    /// Notes that a name may be other than it was, though nothing of it changes here: see [`Cache::note`].
    pub fn note(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        self.cache.note(type_url, name);
    }

    /// Notes that all of it may be other than it was: see [`Cache::note_all`].
    pub fn note_all(&mut self) {
        self.cache.note_all();
    }

    /// Forgets what only an interest kept: see [`Cache::evict`].
    pub fn evict(&mut self, type_url: &TypeUrl, interest: &Interest) {
        self.cache.evict(type_url, interest, self.now);
    }
}

impl<V> Deref for Edit<'_, V> {
    type Target = Cache<V>;

    fn deref(&self) -> &Cache<V> {
        self.cache
    }
}

impl<V> Drop for Edit<'_, V> {
    fn drop(&mut self) {
        self.cache.settle(&mut self.woken);
        self.cache.unnamed.append(&mut self.woken);
    }
}

/// Who has something to pull: to be woken, and not under a lock that they need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "who is not woken waits for ever"]
pub struct Woken(Vec<SubscriberId>);

impl Woken {
    /// The same, to be looked at.
    pub fn iter(&self) -> impl Iterator<Item = SubscriberId> {
        self.0.iter().copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Woken {
    type Item = SubscriberId;
    type IntoIter = std::vec::IntoIter<SubscriberId>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
