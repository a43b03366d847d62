//! What one client uses up over all of its streams, where its rule limits that.
//!
//! It is counted for every client under a rule, limited or not, so that a limit that is new holds for what is there. What is
//! counted is kept no longer than it is used, but for what outlives a stream: that some were opened a moment ago, and scopes
//! that stay for a while though nobody else is served from them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use xds_transport::{Bucket, RateLimit};
use xdstp_client::federation::{Federation, OverLimit, ScopeKey};

use crate::config::{ClientLimit, ClientLimits};
use crate::lock::lock;
use crate::relay_core::identity::Identity;

/// Clients, for as long as there is something to count of them.
#[derive(Default)]
pub(crate) struct ClientUses(Mutex<Table>);

#[derive(Default)]
struct Table {
    clients: HashMap<Identity, Arc<Mutex<Used>>>,
    /// Those without a stream.
    idle: HashSet<Identity>,
}

/// What a client uses, of which this is one of the streams.
pub struct ClientUse {
    all: Arc<ClientUses>,
    identity: Identity,
    is_report: bool,
    used: Arc<Mutex<Used>>,
    /// Which rule is for it, and what that allows.
    under: Mutex<(usize, ClientLimits)>,
}

#[derive(Default)]
struct Used {
    streams: usize,
    reports: usize,
    names: usize,
    /// Node groups, and how many subscribers are served from each: none of those that stay, and that this client left last.
    groups: BTreeMap<ScopeKey, usize>,
    /// The same of authorities.
    authorities: BTreeMap<ScopeKey, usize>,
    /// What is left of new streams, by the limits that there are of them.
    new_streams: Vec<Bucket>,
}

impl ClientUses {
    /// One more stream of a client, under the rule at a position.
    ///
    /// # Errors
    /// It has as many as it may have, or opens too many.
    pub(crate) fn open(
        self: &Arc<Self>,
        (identity, is_report): (Identity, bool),
        (rule, limits): (usize, ClientLimits),
        now: Instant,
    ) -> Result<ClientUse, OverLimit> {
        let mut table = lock(&self.0);
        let used = table.clients.get(&identity).cloned().unwrap_or_default();
        {
            let mut used = lock(&used);
            let kind = if is_report { ClientLimit::LoadReports } else { ClientLimit::Streams };
            check(kind, &limits, *used.of(is_report) + 1)?;
            used.opens(&limits, now)?;
            *used.of(is_report) += 1;
        }
        table.clients.insert(identity.clone(), used.clone());
        drop(table);
        Ok(ClientUse { all: self.clone(), identity, is_report, used, under: Mutex::new((rule, limits)) })
    }

    /// Forgets of clients without a stream what is over: to be called every second or so.
    pub(crate) fn sweep(&self, federation: &Federation, now: Instant) {
        let known = {
            let Table { clients, idle } = &*lock(&self.0);
            idle.iter().filter_map(|identity| clients.get(identity).cloned()).collect::<Vec<_>>()
        };
        // Scopes may be busy. Who opens a stream meanwhile does not wait for them.
        known.iter().for_each(|used| forget_left(used, federation));
        let Table { clients, idle } = &mut *lock(&self.0);
        idle.retain(|identity| {
            let Some(used) = clients.get(identity) else { return false };
            let mut used = lock(used);
            if !used.has_stream() {
                used.new_streams.retain_mut(|bucket| !bucket.is_full(now));
            }
            let (stays, is_over) = (!used.has_stream() && !used.is_nothing(), used.is_nothing());
            drop(used);
            if is_over {
                clients.remove(identity);
            }
            stays
        });
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        lock(&self.0).clients.len()
    }
}

impl ClientUse {
    /// Another rule is for its client from now on.
    pub(crate) fn is_under(&self, rule: usize, limits: ClientLimits) {
        *lock(&self.under) = (rule, limits);
    }

    /// Which rule is for its client: its position.
    pub(crate) fn rule(&self) -> usize {
        lock(&self.under).0
    }

    /// Who its client is.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How much its client uses of each, and how much it may.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (ClientLimit, usize, Option<usize>)> {
        let ((_, limits), used) = (*lock(&self.under), lock(&self.used));
        let all = [
            (ClientLimit::Streams, used.streams),
            (ClientLimit::LoadReports, used.reports),
            (ClientLimit::Groups, used.groups.len()),
            (ClientLimit::Authorities, used.authorities.len()),
            (ClientLimit::Names, used.names),
        ];
        all.into_iter().map(move |(kind, used)| (kind, used, kind.most(&limits).map(usize::from)))
    }

    /// It was not opened for another reason: what it took of new ones is given back.
    pub(crate) fn undo(self, now: Instant) {
        if lock(&self.under).1.new_streams_per_second.is_some() {
            lock(&self.used).new_streams.retain_mut(|bucket| {
                bucket.put_back();
                !bucket.is_full(now)
            });
        }
    }

    /// One type of the stream is about to be served from a scope.
    ///
    /// # Errors
    /// There would be more of them than there may.
    pub(crate) fn enters(&self, key: &ScopeKey, federation: &Federation) -> Result<(), OverLimit> {
        let Some(kind) = kind(key) else { return Ok(()) };
        let limits = lock(&self.under).1;
        let mut used = lock(&self.used);
        if let Some(subscribers) = used.scopes(kind).get_mut(key) {
            *subscribers += 1;
            return Ok(());
        }
        if check(kind, &limits, used.scopes(kind).len() + 1).is_err() {
            drop(used);
            forget_left(&self.used, federation);
            used = lock(&self.used);
            // Another stream may have come first.
            if !used.scopes(kind).contains_key(key) {
                check(kind, &limits, used.scopes(kind).len() + 1)?;
            }
        }
        *used.scopes(kind).entry(key.clone()).or_default() += 1;
        Ok(())
    }

    /// It is not any more.
    pub(crate) fn leaves(&self, key: &ScopeKey) {
        let Some(kind) = kind(key) else { return };
        // One that stays costs what it did: whoever is not limited need not be told.
        let stays = kind.most(&lock(&self.under).1).is_some();
        let mut used = lock(&self.used);
        let Some(subscribers) = used.scopes(kind).get_mut(key) else { return };
        *subscribers = subscribers.saturating_sub(1);
        if *subscribers == 0 && !stays {
            used.scopes(kind).remove(key);
        }
    }

    /// So many names more.
    ///
    /// # Errors
    /// There would be more than there may.
    pub(crate) fn grows(&self, names: usize) -> Result<(), OverLimit> {
        let limits = lock(&self.under).1;
        let mut used = lock(&self.used);
        let all = used.names.saturating_add(names);
        check(ClientLimit::Names, &limits, all)?;
        used.names = all;
        Ok(())
    }

    /// Whether there may be so many names more.
    ///
    /// # Errors
    /// There would be more than there may.
    pub(crate) fn may_grow(&self, names: usize) -> Result<(), OverLimit> {
        let limits = lock(&self.under).1;
        check(ClientLimit::Names, &limits, lock(&self.used).names.saturating_add(names))
    }

    /// So many fewer.
    pub(crate) fn shrinks(&self, names: usize) {
        let mut used = lock(&self.used);
        used.names = used.names.saturating_sub(names);
    }
}

impl Drop for ClientUse {
    fn drop(&mut self) {
        let mut table = lock(&self.all.0);
        let mut used = lock(&self.used);
        let of = used.of(self.is_report);
        *of = of.saturating_sub(1);
        if used.has_stream() {
            return;
        }
        let is_over = used.is_nothing();
        drop(used);
        if is_over {
            table.clients.remove(&self.identity);
        } else {
            table.idle.insert(self.identity.clone());
        }
    }
}

impl Used {
    fn of(&mut self, is_report: bool) -> &mut usize {
        if is_report { &mut self.reports } else { &mut self.streams }
    }

    fn has_stream(&self) -> bool {
        self.streams + self.reports > 0
    }

    fn is_nothing(&self) -> bool {
        !self.has_stream() && self.groups.is_empty() && self.authorities.is_empty() && self.new_streams.is_empty()
    }

    fn scopes(&mut self, kind: ClientLimit) -> &mut BTreeMap<ScopeKey, usize> {
        if kind == ClientLimit::Groups { &mut self.groups } else { &mut self.authorities }
    }

    /// The scopes that it is not served from any more.
    fn left(&self) -> Vec<ScopeKey> {
        let all = self.groups.iter().chain(&self.authorities);
        all.filter(|(_, subscribers)| **subscribers == 0).map(|(key, _)| key.clone()).collect()
    }

    /// One more in this second.
    fn opens(&mut self, limits: &ClientLimits, now: Instant) -> Result<(), OverLimit> {
        let Some(most) = limits.new_streams_per_second else { return Ok(()) };
        let burst = u32::try_from(most.get()).unwrap_or(u32::MAX);
        let limit = RateLimit { burst, every: Duration::from_secs(1) / burst };
        if !self.new_streams.iter().any(|bucket| bucket.limit() == limit) {
            self.new_streams.retain_mut(|bucket| !bucket.is_full(now));
            self.new_streams.push(Bucket::new(limit));
        }
        // Where several rules are for a client, a stream under one of them counts for the others.
        for bucket in &mut self.new_streams {
            if !bucket.has_token(now) && bucket.limit() == limit {
                return Err(over(ClientLimit::NewStreams, most.get()));
            }
        }
        self.new_streams.iter_mut().for_each(Bucket::take);
        Ok(())
    }
}

/// Of the scopes that a client is not served from any more, forgets those that are gone, that nothing is asked for any more, or that
/// others are served from. What it uses is not locked while they are looked at.
fn forget_left(used: &Mutex<Used>, federation: &Federation) {
    let left = lock(used).left();
    // One that only remembers what went is asked of nobody.
    let costs = |key: &ScopeKey| {
        let scope = federation.scope_of(key);
        scope.is_some_and(|scope| scope.subscriber_count() == 0 && scope.supply().is_some())
    };
    let over: Vec<_> = left.into_iter().filter(|key| !costs(key)).collect();
    let Used { groups, authorities, .. } = &mut *lock(used);
    for scopes in [groups, authorities] {
        over.iter().for_each(|key| {
            if scopes.get(key) == Some(&0) {
                scopes.remove(key);
            }
        });
    }
}

/// Of which limit a scope is one.
fn kind(key: &ScopeKey) -> Option<ClientLimit> {
    match key.of_all() {
        ScopeKey::Authority(_) => Some(ClientLimit::Authorities),
        ScopeKey::Group(..) => Some(ClientLimit::Groups),
        // What is selected is asked for apart, as a group is.
        ScopeKey::EveryNode | ScopeKey::Private(_) => key.selector().map(|_| ClientLimit::Groups),
        _ => None,
    }
}

fn check(kind: ClientLimit, limits: &ClientLimits, used: usize) -> Result<(), OverLimit> {
    match kind.most(limits) {
        Some(most) if used > most.get() => Err(over(kind, most.get())),
        _ => Ok(()),
    }
}

fn over(kind: ClientLimit, most: usize) -> OverLimit {
    OverLimit { key: kind.path(), what: kind.what(), most }
}

#[cfg(test)]
mod tests;
