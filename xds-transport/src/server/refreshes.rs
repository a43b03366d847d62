//! The TTLs that a client was told, and when to say that the resources live on.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use crate::deadlines::Deadlines;
use crate::frame::Frame;

/// How often a resource is refreshed within its TTL (rule 111).
const PER_TTL: u32 = 3;

/// What must be refreshed before it is over.
///
/// What this server answers for is refreshed as long as it has it. What came from an origin is refreshed when the
/// origin did so, and never on its behalf (rule 148).
#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    told: HashMap<ResourceName, Refresh>,
    due: Deadlines<ResourceName>,
}

#[derive(Debug)]
struct Refresh {
    version: Version,
    /// When the client forgets the resource.
    until: Instant,
    due: Instant,
    /// The response that said so.
    nonce: u64,
}

/// The response that tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) now: Instant,
    nonce: u64,
}

impl Told {
    pub(crate) fn new(now: Instant, nonce: u64) -> Self {
        Self { now, nonce }
    }
}

impl Refreshes {
    /// A resource is sent. Without a TTL, one that it had is taken back (rule 111).
    pub(crate) fn put(&mut self, told: Told, name: &ResourceName, version: &Version, ttl: Option<Duration>) {
        self.forget(name);
        let Some(ttl) = ttl else { return };
        // A TTL beyond what the clock can hold is none.
        let (Some(until), due) = (told.now.checked_add(ttl), told.now + ttl / PER_TTL) else { return };
        self.due.insert(due, name.clone());
        self.told.insert(name.clone(), Refresh { version: version.clone(), until, due, nonce: told.nonce });
    }

    pub(crate) fn forget(&mut self, name: &ResourceName) {
        if self.told.is_empty() {
            return;
        }
        if let Some(refresh) = self.told.remove(name) {
            self.due.remove(refresh.due, name.clone());
        }
    }

    pub(crate) fn clear(&mut self) {
        self.told.clear();
        self.due.clear();
    }

    /// The client refused a response: what it brought cannot be refreshed, because the client does not have it.
    pub(crate) fn refused(&mut self, nonce: u64) {
        let refused: Vec<_> = self.told.iter().filter(|(_, refresh)| refresh.nonce == nonce).collect();
        let refused: Vec<_> = refused.into_iter().map(|(name, _)| name.clone()).collect();
        for name in refused {
            self.forget(&name);
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    /// The client has a resource from a stream before, and may have waited long for a word of it.
    pub(crate) fn resumed(&mut self, now: Instant, name: ResourceName, version: Version) {
        self.due.insert(now, name.clone());
        self.told.insert(name, Refresh { version, until: now, due: now, nonce: 0 });
    }

    /// Something to look at now: a name, and the version that the client has.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Due> {
        let name = self.due.pop(now)?;
        let Refresh { version, until, .. } = self.told.remove(&name)?;
        Some(Due { name, version, until })
    }

    /// The TTL to tell the client of a resource that it has, if that is news. Otherwise it is looked at again later.
    pub(crate) fn extend(&mut self, due: &Due, frame: &Frame, told: Told) -> Option<Duration> {
        let ttl = frame.remaining_ttl(told.now)?;
        if frame.expires().is_some_and(|expires| expires <= due.until) {
            // The origin has not refreshed it yet. Ever shorter waits must end: what is over is removed by whoever
            // holds the source.
            if ttl > LAST_LOOK {
                self.put(told, &due.name, &due.version, Some(ttl));
            }
            return None;
        }
        self.put(told, &due.name, &due.version, Some(ttl));
        Some(ttl)
    }
}

/// A resource that lives no longer than this is not looked at again before its end.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// A resource that may have to be refreshed.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) name: ResourceName,
    pub(crate) version: Version,
    until: Instant,
}
