//! What one client uses, as it is counted.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use xds_transport::{Bucket, RateLimit};
use xdstp_client::federation::{Federation, OverLimit, ScopeKey};

use crate::config::ClientLimit;
use crate::lock::lock;

#[derive(Default)]
pub(super) struct Used {
    pub(super) streams: usize,
    pub(super) reports: usize,
    /// Node groups.
    pub(super) groups: Scopes,
    pub(super) authorities: Scopes,
    /// What is left of new streams, by the limits that there are of them.
    pub(super) new_streams: Vec<Bucket>,
    /// How many scopes were looked at since the last sweep, because there was no room for one more.
    looked: usize,
}

/// How many scopes of a client are looked at in a second, however often it is refused one: each may be busy.
const LOOKS: usize = 1024;

/// Scopes of one kind that a client is served from, or that stay though it left them last.
#[derive(Default)]
pub(super) struct Scopes {
    of: HashMap<ScopeKey, Entered>,
    /// Those that it is not served from any more.
    left: HashSet<ScopeKey>,
    listed: usize,
}

struct Entered {
    /// How many subscribers of the client are served from there.
    subscribers: u32,
    /// It is one that the configuration says there is.
    is_listed: bool,
}

impl Scopes {
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn has(&self, key: &ScopeKey) -> bool {
        self.of.contains_key(key)
    }

    /// How many of these count where one more is asked for: of its part of what all have, as there, those that are listed do not.
    pub(super) fn counted(&self, is_part: bool) -> usize {
        if is_part { self.of.len().saturating_sub(self.listed) } else { self.of.len() }
    }

    /// One more subscriber is served from there.
    pub(super) fn enter(&mut self, key: &ScopeKey, is_listed: bool) {
        if let Some(entered) = self.of.get_mut(key) {
            if entered.subscribers == 0 {
                self.left.remove(key);
            }
            entered.subscribers = entered.subscribers.saturating_add(1);
            return;
        }
        self.listed += usize::from(is_listed);
        self.of.insert(key.clone(), Entered { subscribers: 1, is_listed });
    }

    /// One fewer is: whether it was the last.
    pub(super) fn leave(&mut self, key: &ScopeKey) -> bool {
        let Some(entered) = self.of.get_mut(key) else { return false };
        entered.subscribers = entered.subscribers.saturating_sub(1);
        let is_last = entered.subscribers == 0;
        if is_last {
            self.left.insert(key.clone());
        }
        is_last
    }

    /// Forgets one that nobody is served from.
    pub(super) fn forget(&mut self, key: &ScopeKey) {
        if self.left.remove(key)
            && let Some(entered) = self.of.remove(key)
        {
            self.listed -= usize::from(entered.is_listed);
        }
    }
}

impl Used {
    pub(super) fn of(&mut self, is_report: bool) -> &mut usize {
        if is_report { &mut self.reports } else { &mut self.streams }
    }

    pub(super) fn has_stream(&self) -> bool {
        self.streams + self.reports > 0
    }

    pub(super) fn is_nothing(&self) -> bool {
        !self.has_stream() && self.groups.len() + self.authorities.len() == 0 && self.new_streams.is_empty()
    }

    pub(super) fn scopes(&mut self, kind: ClientLimit) -> &mut Scopes {
        if kind == ClientLimit::Groups { &mut self.groups } else { &mut self.authorities }
    }

    pub(super) fn has_left(&self) -> bool {
        !(self.groups.left.is_empty() && self.authorities.left.is_empty())
    }

    /// One more in this second.
    pub(super) fn opens(&mut self, most: Option<OverLimit>, now: Instant) -> Result<(), OverLimit> {
        let Some(over) = most else { return Ok(()) };
        let burst = u32::try_from(over.most).unwrap_or(u32::MAX).max(1);
        let limit = RateLimit { burst, every: Duration::from_secs(1) / burst };
        if !self.new_streams.iter().any(|bucket| bucket.limit() == limit) {
            self.new_streams.retain_mut(|bucket| !bucket.is_full(now));
            // One is all that most clients ever have.
            self.new_streams.reserve_exact(1);
            self.new_streams.push(Bucket::new(limit));
        }
        // Where several rules are for a client, a stream under one of them counts for the others.
        for bucket in &mut self.new_streams {
            if !bucket.has_token(now) && bucket.limit() == limit {
                return Err(over);
            }
        }
        self.new_streams.iter_mut().for_each(Bucket::take);
        Ok(())
    }
}

/// Of the scopes that a client is not served from any more, forgets those that are gone, that nothing is asked for any more, or that
/// others are served from. What it uses is not locked while they are looked at.
pub(super) fn forget_left(used: &Mutex<Used>, federation: &Federation) {
    let left: Vec<_> = {
        let used = &mut *lock(used);
        used.looked = 0;
        used.groups.left.iter().chain(&used.authorities.left).cloned().collect()
    };
    forget(used, federation, left);
}

/// The same of those of one kind, for who has as many as it may have: of so many until the next sweep, which looks at all.
pub(super) fn forget_some(used: &Mutex<Used>, federation: &Federation, kind: ClientLimit) {
    let left: Vec<_> = {
        let used = &mut *lock(used);
        let looks = LOOKS.saturating_sub(used.looked);
        let left: Vec<_> = used.scopes(kind).left.iter().take(looks).cloned().collect();
        used.looked += left.len();
        left
    };
    forget(used, federation, left);
}

fn forget(used: &Mutex<Used>, federation: &Federation, left: Vec<ScopeKey>) {
    // One that only remembers what went is asked of nobody.
    let costs = |key: &ScopeKey| {
        let scope = federation.scope_of(key);
        scope.is_some_and(|scope| scope.subscriber_count() == 0 && scope.supply().is_some())
    };
    let over: Vec<_> = left.into_iter().filter(|key| !costs(key)).collect();
    let Used { groups, authorities, .. } = &mut *lock(used);
    for scopes in [groups, authorities] {
        over.iter().for_each(|key| scopes.forget(key));
    }
}

/// Of which limit a scope is one.
pub(super) fn kind(key: &ScopeKey) -> Option<ClientLimit> {
    match key.of_all() {
        ScopeKey::Authority(_) => Some(ClientLimit::Authorities),
        ScopeKey::Group(..) => Some(ClientLimit::Groups),
        // What is selected is asked for apart, as a group is.
        ScopeKey::EveryNode | ScopeKey::Private(_) => key.selector().map(|_| ClientLimit::Groups),
        _ => None,
    }
}

pub(super) fn check(most: Option<OverLimit>, used: usize) -> Result<(), OverLimit> {
    match most {
        Some(over) if used > over.most => Err(over),
        _ => Ok(()),
    }
}
