//! The TTLs that a client was told, and when to say that the resources live on.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use xdstp_cache::Version;
use xdstp_uri::ResourceName;

use crate::deadlines::Deadlines;
use crate::frame::Frame;
use crate::server::transmit::Transmit;

/// How often a resource is refreshed within its TTL (rule 111).
const PER_TTL: u32 = 3;
/// However short a TTL is, this long passes between two refreshes.
const LEAST_WAIT: Duration = Duration::from_millis(10);
/// A resource that lives no longer than this is not looked at again before its end.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// What must be refreshed before it is over.
///
/// What this server answers for is refreshed as long as it has it. What came from an origin is refreshed when the
/// origin did so, and never on its behalf (rule 148).
#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    told: HashMap<ResourceName, Refresh>,
    due: Deadlines<ResourceName>,
    /// What was refreshed alone, by its response: the answer says whether the client has it.
    alone: HashMap<u64, ResourceName>,
}

#[derive(Debug)]
struct Refresh {
    version: Version,
    /// When the client forgets the resource.
    until: Instant,
    due: Instant,
    /// The response that said so.
    nonce: u64,
    last: Last,
    /// It was refused together with others: whether the client has it, only a response of its own can tell.
    unsure: bool,
}

/// What the client was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// The resource.
    Content,
    /// That it lives on.
    Heartbeat,
    /// By us nothing: it said itself that it has it.
    Nothing,
    /// That it lives on, which the client refused because it had let it go.
    Refused,
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
        let Some(until) = told.now.checked_add(ttl) else { return };
        let due = told.now + (ttl / PER_TTL).max(LEAST_WAIT);
        self.due.insert(due, name.clone());
        self.told.insert(
            name.clone(),
            Refresh { version: version.clone(), until, due, nonce: told.nonce, last: Last::Content, unsure: false },
        );
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
        self.alone.clear();
    }

    /// The client accepted a response.
    pub(crate) fn accepted(&mut self, nonce: u64) {
        if self.alone.is_empty() {
            return;
        }
        if let Some(name) = self.alone.remove(&nonce)
            && let Some(refresh) = self.told.get_mut(&name)
        {
            refresh.unsure = false;
        }
    }

    /// The client refused a response of so many resources. What came alone, it does not have: that cannot be refreshed.
    /// Of several it may have all but one (rule 29), which must not be over because of that one. And a heartbeat is
    /// refused for what was over before it came: that is sent again.
    pub(crate) fn refused(&mut self, now: Instant, nonce: u64, resources: u32) {
        if let Some(name) = self.alone.remove(&nonce) {
            // What was sent since is answered by itself.
            if self.told.get(&name).is_some_and(|refresh| refresh.nonce == nonce) {
                self.forget(&name);
            }
            return;
        }
        let refused = self.told.iter().filter(|(_, refresh)| refresh.nonce == nonce);
        let refused: Vec<_> = refused.map(|(name, _)| name.clone()).collect();
        for name in refused {
            match self.told.get_mut(&name) {
                Some(refresh) if refresh.last == Last::Heartbeat => {
                    refresh.last = Last::Refused;
                    self.due.remove(refresh.due, name.clone());
                    refresh.due = now;
                    self.due.insert(now, name);
                }
                Some(refresh) if resources > 1 => refresh.unsure = true,
                _ => self.forget(&name),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    /// The client has a resource from a stream before, and may have waited long for a word of it.
    pub(crate) fn resumed(&mut self, now: Instant, name: ResourceName, version: Version) {
        self.due.insert(now, name.clone());
        let refresh = Refresh { version, until: now, due: now, nonce: 0, last: Last::Nothing, unsure: false };
        self.told.insert(name, refresh);
    }

    /// Whether what is next may go in a response: what needs one of its own waits for one that is empty yet.
    pub(crate) fn fits(&self, response: &Transmit) -> bool {
        let unsure = |name| self.told.get(name).is_some_and(|refresh| refresh.unsure);
        response.is_empty() || !self.due.first().is_some_and(unsure)
    }

    /// Something to look at now: a name, and the version that the client has.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Due> {
        let name = self.due.pop(now)?;
        let Refresh { version, until, nonce, last, unsure, .. } = self.told.remove(&name)?;
        let has_it = match last {
            Last::Content | Last::Heartbeat => now < until,
            Last::Nothing => true,
            Last::Refused => false,
        };
        Some(Due { name, version, until, nonce, last, has_it, alone: unsure })
    }

    /// The TTL to tell the client of a resource that it has, if that is news. Otherwise it is looked at again later.
    pub(crate) fn extend(&mut self, due: &Due, frame: &Frame, told: Told) -> Option<Duration> {
        let ttl = frame.remaining_ttl(told.now)?;
        if frame.expires().is_some_and(|expires| expires <= due.until) {
            // The origin has not refreshed it yet. Ever shorter waits must end: what is over is removed by whoever
            // holds the source.
            if ttl > LAST_LOOK {
                self.put(Told { nonce: due.nonce, ..told }, &due.name, &due.version, Some(ttl));
                if let Some(refresh) = self.told.get_mut(&due.name) {
                    // Nothing is told of it, and an answer to what is told says nothing of it.
                    (refresh.last, refresh.unsure) = (due.last, due.alone);
                }
            }
            return None;
        }
        self.put(told, &due.name, &due.version, Some(ttl));
        if let Some(refresh) = self.told.get_mut(&due.name) {
            refresh.last = if due.has_it { Last::Heartbeat } else { Last::Content };
            refresh.unsure = due.alone;
        }
        if due.alone {
            self.alone.insert(told.nonce, due.name.clone());
        }
        Some(ttl)
    }
}

/// A resource that may have to be refreshed.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) name: ResourceName,
    pub(crate) version: Version,
    until: Instant,
    /// The response that told of it last, and what that said.
    nonce: u64,
    last: Last,
    /// The client was told of it in time: it knows what a heartbeat is about.
    pub(crate) has_it: bool,
    /// It needs a response of its own.
    pub(crate) alone: bool,
}
