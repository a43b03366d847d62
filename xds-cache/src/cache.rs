//! A cache: what it stores, and who is told of it.

use std::time::Instant;

use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::TypeKey;
use crate::options::Options;
use crate::outcome::Outcomes;
use crate::store::Store;
use crate::subscribers::Subscribers;
use crate::text::{TypeUrl, Version};

/// The resources of one scope: by type, by name.
///
/// Plain data: no lock, no clock, no task. It is changed by an [`edit`](Self::edit), which says at its end who has something
/// to pull; the change itself is stored once, whoever is interested.
///
/// ```
/// use std::time::Instant;
/// use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource};
/// use std::ops::ControlFlow;
///
/// let now = Instant::now();
/// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// let mut cache = Cache::new(Options::default());
/// let subscriber = cache.open(&clusters);
/// cache.subscribe(subscriber, &Interest::Wildcard);
/// # cache.pull(subscriber, Removals::Include, &mut |_| ControlFlow::Continue(()));
///
/// let mut edit = cache.edit(now);
/// edit.put(&clusters, &"backend".parse().unwrap(), Resource::new("1".into(), 7, "body"));
/// assert!(edit.finish().into_iter().eq([subscriber]));
///
/// let mut names = Vec::new();
/// cache.pull(subscriber, Removals::Include, &mut |pull| {
///     if let Pull::Put { name, .. } = pull {
///         names.push(name.to_string());
///     }
///     ControlFlow::Continue(())
/// });
/// assert_eq!(names, ["backend"]);
/// ```
pub struct Cache<V> {
    pub(crate) store: Store<V>,
    pub(crate) subscribers: Subscribers,
    pub(crate) totals: Outcomes,
    /// How many additions were visited.
    pub(crate) visits: u64,
    /// The same before the pull that goes on, and how many names that has looked at.
    pub(crate) looks: u64,
    /// Who has something to pull because of an edit that was dropped, and was not said to be told.
    pub(crate) unnamed: Vec<SubscriberId>,
}

impl<V> Cache<V> {
    /// An empty cache.
    pub fn new(options: Options) -> Self {
        Self {
            store: Store::new(options),
            subscribers: Subscribers::default(),
            totals: Outcomes::default(),
            visits: 0,
            looks: 0,
            unnamed: Vec::new(),
        }
    }

    /// What was done to the cache since it was made.
    pub fn totals(&self) -> Outcomes {
        self.totals
    }

    /// A call that stores something of a type: what it has no room for goes when all of it is in.
    pub(crate) fn change_type<T>(
        &mut self,
        type_url: &TypeUrl,
        now: Instant,
        change: impl FnOnce(&mut Self, TypeKey) -> T,
    ) -> T {
        self.expire(now);
        let type_key = self.store.type_key(type_url);
        let result = change(self, type_key);
        self.store.drop_type_if_unused(type_key);
        self.make_room();
        result
    }

    /// Records the version an origin gave to a whole type, as SotW does, to be passed on unchanged (rule 146).
    pub fn set_type_version(&mut self, type_url: &TypeUrl, version: Option<Version>) {
        let type_key = self.store.type_key(type_url);
        if self.store[type_key].version != version {
            self.store.note(type_key, || Interest::Wildcard);
        }
        self.store[type_key].version = version;
    }

    /// The version an origin gave to the whole type of a subscriber.
    pub fn type_version(&self, id: SubscriberId) -> Option<&Version> {
        let subscriber = self.is_open(id).then(|| &self.subscribers[id])?;
        self.store[subscriber.type_key].version.as_ref()
    }
}
