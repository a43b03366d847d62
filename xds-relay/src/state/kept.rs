//! The last that origins said, as it was read from a store, and as it is written there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Known, TypeUrl};

use crate::config::Config;
use crate::lock::lock;
use crate::relay_core::NodeGrouping;
use crate::state::bodies::Bodies;
use crate::state::format::{
    BODIES, FORMAT, FORMAT_KEY, Hash, KNOWN, Moment, PREFIX, Record, SAVED_KEY, SCOPES, ScopeId, ScopeRecord, hash_of,
    read_key, unseal,
};
use crate::state::identity::Identities;
use crate::state::save::Saver;
use crate::state::store::{Op, Store, StoreError};
use xdstp_client::federation::{LastKnownGood, Scope, ScopeKey};

/// How long what nobody asked for is kept, in seconds.
const UNUSED: u64 = 7 * 24 * 3600;
/// What is not kept: who has a key is who it says.
const OMITTED: [&str; 1] = ["type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"];
/// How many scopes that are not there any more wait to be written.
const DROPPED: usize = 1024;

/// What a relay knows of its origins, kept in a [`Store`]: it is served after a restart while they are away, and marked as
/// stale.
///
/// It is written by whoever calls [`RelayCore::save`](crate::relay_core::RelayCore::save), from time to time.
pub struct State {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) identities: Identities,
    inner: Mutex<Inner>,
    pub(crate) saver: Mutex<Saver>,
    /// When the relay of before saved last, in seconds since 1970.
    saved: u64,
    /// What was read that is not what was written.
    damaged: usize,
}

struct Inner {
    /// What nobody asked for yet.
    loaded: HashMap<ScopeId, Vec<Known<Frame>>>,
    /// When that was read, and now.
    read_at: Instant,
    now: Moment,
    /// Scopes that are not there any more, and noted something that was not written.
    dropped: Vec<Arc<Scope>>,
}

impl State {
    /// Reads what is kept of the origins of a configuration. `now` and `wall` are the same moment.
    ///
    /// # Errors
    /// It cannot be read, or is of a later format. What is damaged of it is left out, and [counted](Self::damaged).
    pub fn open(
        store: impl Store,
        config: &Config,
        grouping: &dyn NodeGrouping,
        now: Instant,
        wall: SystemTime,
    ) -> Result<Self, StoreError> {
        Self::read(store, Identities::new(config, grouping), now, wall)
    }

    pub(crate) fn read(
        store: impl Store,
        identities: Identities,
        now: Instant,
        wall: SystemTime,
    ) -> Result<Self, StoreError> {
        let at = Moment { now, wall };
        let mut saver = Saver::new(OMITTED.map(TypeUrl::from).into());
        let Read { loaded, saved, damaged } = read(&store, at, &mut saver)?;
        Ok(Self {
            store: Arc::new(store),
            identities,
            inner: Mutex::new(Inner { loaded, read_at: now, now: at, dropped: Vec::new() }),
            saver: Mutex::new(saver),
            saved,
            damaged,
        })
    }

    /// How many resources, collections and scopes were not what was written: they count as unknown.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// How many scopes were read that nobody asked for yet.
    pub fn waiting(&self) -> usize {
        lock(&self.inner).loaded.len()
    }

    /// How long ago the relay of before knew what was read: none, if nothing was.
    pub fn age(&self) -> Option<Duration> {
        (self.saved > 0).then(|| Duration::from_secs(lock(&self.inner).now.seconds().saturating_sub(self.saved)))
    }

    /// It is this time.
    pub(crate) fn set_time(&self, at: Moment) {
        lock(&self.inner).now = at;
    }

    /// The scopes that are not there any more, to be written once.
    pub(crate) fn take_dropped(&self) -> Vec<Arc<Scope>> {
        std::mem::take(&mut lock(&self.inner).dropped)
    }
}

impl LastKnownGood for State {
    fn load(&self, key: &ScopeKey, origin: usize) -> Option<Vec<Known<Frame>>> {
        let id = self.identities.of(key, origin)?;
        let mut inner = lock(&self.inner);
        let mut known = inner.loaded.remove(&id).unwrap_or_default();
        let now = inner.now.now;
        let since = now.saturating_duration_since(inner.read_at);
        drop(inner);
        known.retain_mut(|known| match known {
            Known::Present { resource, .. } => resource.value.expires().is_none_or(|expires| expires > now),
            Known::Gone { ago, .. } => {
                *ago += since;
                true
            }
            _ => true,
        });
        Some(known)
    }

    fn dropped(&self, scope: Arc<Scope>) {
        let dropped = &mut lock(&self.inner).dropped;
        // Of more, what is kept is there until nobody has asked for it for long.
        if dropped.len() < DROPPED && self.identities.of(&scope.key, scope.origin).is_some() {
            dropped.push(scope);
        }
    }
}

#[derive(Default)]
struct Read {
    loaded: HashMap<ScopeId, Vec<Known<Frame>>>,
    saved: u64,
    damaged: usize,
}

fn read(store: &dyn Store, at: Moment, saver: &mut Saver) -> Result<Read, StoreError> {
    let format = store.list(FORMAT_KEY)?.entries.into_iter().find(|entry| entry.key == FORMAT_KEY);
    match format.map(|entry| entry.value) {
        Some(format) if format == FORMAT => {}
        Some(other) => return Err(StoreError::Format(String::from_utf8_lossy(&other).into_owned())),
        None if store.list(PREFIX)?.entries.is_empty() => {
            saver.add(Op::put(FORMAT_KEY, FORMAT));
            return Ok(Read::default());
        }
        None => return Err(StoreError::Format("none is said".to_owned())),
    }
    let mut read = Read::default();
    let saved = store.list(SAVED_KEY)?.entries.into_iter().next().map(|entry| entry.value);
    read.saved = saved.and_then(|saved| str::from_utf8(&saved).ok()?.parse().ok()).unwrap_or_default();
    let used = scopes(store, at, saver, &mut read.damaged)?;
    let bodies = bodies(store, &mut saver.bodies, &mut read.damaged)?;
    let mut known = store.list(KNOWN)?.entries;
    // What changed last comes last.
    known.sort_by_key(|entry| entry.revision);
    for entry in known {
        let good = read_key(&entry.key).and_then(|(scope, of, interest)| {
            let record: Record = unseal(&entry.key, &entry.value)?;
            let hash: Option<Hash> = record.body.as_slice().try_into().ok();
            let alone = record.content.clone().map(|content| (hash_of(&content), content));
            let body = alone.or_else(|| Some((hash?, bodies.get(&hash?)?.clone())));
            (record.body.is_empty() || body.is_some()).then_some((scope, of, interest, record, body))
        });
        let Some((scope, of, interest, record, body)) = good else {
            read.damaged += 1;
            saver.add(Op::delete(entry.key));
            continue;
        };
        if !used.contains(&scope) {
            saver.add(Op::delete(entry.key));
            continue;
        }
        if let Some((hash, _)) = &body {
            saver.bodies.read(&entry.key, *hash, record.content.is_some());
        }
        saver.note_gone(&entry.key, record.gone);
        let known = record.known(of, interest, body.map(|(_, body)| body), at);
        read.loaded.entry(scope).or_default().extend(known);
    }
    Ok(read)
}

/// The scopes that were in use not too long ago.
fn scopes(
    store: &dyn Store,
    at: Moment,
    saver: &mut Saver,
    damaged: &mut usize,
) -> Result<HashSet<ScopeId>, StoreError> {
    let mut used = HashSet::new();
    for entry in store.list(SCOPES)?.entries {
        let id = entry.key.strip_prefix(SCOPES).map(ScopeId::read);
        match unseal::<ScopeRecord>(&entry.key, &entry.value).zip(id) {
            Some((record, id)) if record.used.saturating_add(UNUSED) >= at.seconds() => _ = used.insert(id),
            Some(_) => saver.add(Op::delete(entry.key)),
            None => {
                *damaged += 1;
                saver.add(Op::delete(entry.key));
            }
        }
    }
    Ok(used)
}

/// The bodies that are what they were.
fn bodies(store: &dyn Store, kept: &mut Bodies, damaged: &mut usize) -> Result<HashMap<Hash, Bytes>, StoreError> {
    let mut bodies = HashMap::new();
    for entry in store.list(BODIES)?.entries {
        let hash = hash_of(&entry.value);
        if crate::state::format::body_key(&hash) == entry.key {
            kept.orphan(hash);
            bodies.insert(hash, entry.value);
        } else {
            *damaged += 1;
        }
    }
    Ok(bodies)
}
