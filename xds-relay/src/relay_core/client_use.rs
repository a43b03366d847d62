//! What one client uses up over all of its streams: no more than its rule says, or than is one client's part.
//!
//! It is counted for every client, limited or not, so that a limit that is new holds for what is there. What is
//! counted is kept no longer than it is used, but for what outlives a stream: that some were opened a moment ago, and scopes
//! that stay for a while though nobody else is served from them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use xdstp_client::federation::{Federation, OverLimit, ScopeKey};

use crate::config::{ClientLimit, ClientLimits, Limits};
use crate::lock::lock;
use crate::relay_core::client_parts::ClientParts;
use crate::relay_core::identity::Identity;

mod used;

use self::used::{Scopes, Used, check, forget_left, forget_some, kind};

/// Clients, for as long as there is something to count of them.
pub(crate) struct ClientUses {
    table: Mutex<Table>,
    parts: ClientParts,
}

#[derive(Default)]
struct Table {
    clients: HashMap<Identity, Arc<Known>>,
    /// Those with something that is forgotten once it is over: who have no stream, or have left a scope.
    leaving: HashSet<Identity>,
    /// How many there were.
    known: u64,
}

/// A client, as all of its streams have it.
struct Known {
    identity: Identity,
    /// Of no other, ever.
    number: u64,
    /// It changes with every name.
    names: AtomicUsize,
    /// Names that it brought along, and that count until they are compared.
    brought: AtomicUsize,
    used: Mutex<Used>,
}

/// What a client uses, of which this is one of the streams.
pub struct ClientUse {
    all: Arc<ClientUses>,
    client: Arc<Known>,
    is_report: bool,
    /// Which rule is for it, and what that allows, where there are rules. There is one of these for each stream.
    under: Mutex<Option<Box<(usize, ClientLimits)>>>,
}

impl ClientUses {
    /// Of nobody yet.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self { table: Mutex::default(), parts: ClientParts::of(limits) })
    }

    /// The part of one client is of these from now on. What clients use stays.
    pub(crate) fn set(&self, limits: &Limits) {
        self.parts.set(limits);
    }

    /// The part of one client of so much of something, if that is limited.
    pub(crate) fn part_of(&self, all: usize) -> Option<usize> {
        self.parts.of_all(all)
    }

    /// One more stream of a client, under the rule at a position, where there are rules.
    ///
    /// # Errors
    /// It has as many as it may have, or opens too many.
    pub(crate) fn open(
        self: &Arc<Self>,
        (identity, is_report): (Identity, bool),
        under: Option<(usize, ClientLimits)>,
        now: Instant,
    ) -> Result<ClientUse, OverLimit> {
        let mut table = lock(&self.table);
        let client = match table.clients.get(&identity) {
            Some(client) => client.clone(),
            None => {
                table.known += 1;
                Known::new(identity, table.known)
            }
        };
        let kind = if is_report { ClientLimit::LoadReports } else { ClientLimit::Streams };
        let most = |kind| self.most(kind, &client.identity, under.as_ref().map(|under| &under.1));
        {
            let mut used = lock(&client.used);
            check(most(kind), *used.of(is_report) + 1)?;
            used.opens(most(ClientLimit::NewStreams), now)?;
            *used.of(is_report) += 1;
        }
        table.clients.entry(client.identity.clone()).or_insert_with(|| client.clone());
        drop(table);
        Ok(ClientUse { all: self.clone(), client, is_report, under: Mutex::new(under.map(Box::new)) })
    }

    /// What is said where there is more than a client may have, if that is limited: by its rule, else by its part of what all have.
    fn most(&self, kind: ClientLimit, client: &Identity, limits: Option<&ClientLimits>) -> Option<OverLimit> {
        let what = kind.what();
        if let Some(most) = limits.and_then(|limits| kind.most(limits)) {
            return Some(OverLimit { key: kind.path(), what, most: most.get() });
        }
        // All who come from this machine are one, and of how many nobody knows: they have no part.
        let part = if client.is_this_machine() { None } else { self.parts.most(kind) };
        part.map(|most| OverLimit { key: kind.part_path(), what, most })
    }

    /// Forgets of clients what is over: to be called every second or so.
    pub(crate) fn sweep(&self, federation: &Federation, now: Instant) {
        let known = {
            let Table { clients, leaving, .. } = &*lock(&self.table);
            leaving.iter().filter_map(|identity| clients.get(identity).cloned()).collect::<Vec<_>>()
        };
        // Scopes may be busy. Who opens a stream meanwhile does not wait for them.
        known.iter().for_each(|client| forget_left(&client.used, federation));
        let Table { clients, leaving, .. } = &mut *lock(&self.table);
        leaving.retain(|identity| {
            let Some(client) = clients.get(identity) else { return false };
            let mut used = lock(&client.used);
            if used.has_stream() {
                return used.has_left();
            }
            used.new_streams.retain_mut(|bucket| !bucket.is_full(now));
            let is_over = used.is_nothing();
            drop(used);
            if is_over {
                clients.remove(identity);
            }
            !is_over
        });
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        lock(&self.table).clients.len()
    }
}

impl Known {
    fn new(identity: Identity, number: u64) -> Arc<Self> {
        let (names, brought) = Default::default();
        Arc::new(Self { identity, number, names, brought, used: Mutex::default() })
    }
}

impl ClientUse {
    /// Another rule is for its client from now on, or none as there are no rules.
    pub(crate) fn is_under(&self, under: Option<(usize, ClientLimits)>) {
        *lock(&self.under) = under.map(Box::new);
    }

    /// Which rule is for its client: its position.
    pub(crate) fn rule(&self) -> Option<usize> {
        lock(&self.under).as_ref().map(|under| under.0)
    }

    /// Who its client is.
    pub(crate) fn identity(&self) -> &Identity {
        &self.client.identity
    }

    /// The same as a number, for as long as anything is counted of the client.
    pub(crate) fn number(&self) -> u64 {
        self.client.number
    }

    /// How much its client uses of each, and how much it may.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (ClientLimit, usize, Option<usize>)> {
        let (names, used) = (self.client.names.load(Ordering::Relaxed), lock(&self.client.used));
        let all = [
            (ClientLimit::Streams, used.streams),
            (ClientLimit::LoadReports, used.reports),
            (ClientLimit::Groups, used.groups.len()),
            (ClientLimit::Authorities, used.authorities.len()),
            (ClientLimit::Names, names),
        ];
        drop(used);
        all.map(|(kind, used)| (kind, used, self.most(kind).map(|over| over.most))).into_iter()
    }

    /// It was not opened for another reason: what it took of new ones is given back.
    pub(crate) fn undo(self, now: Instant) {
        if self.most(ClientLimit::NewStreams).is_some() {
            lock(&self.client.used).new_streams.retain_mut(|bucket| {
                bucket.put_back();
                !bucket.is_full(now)
            });
        }
    }

    /// What is said where there is more than its client may have, if that is limited.
    fn most(&self, kind: ClientLimit) -> Option<OverLimit> {
        let under = lock(&self.under);
        self.all.most(kind, &self.client.identity, under.as_ref().map(|under| &under.1))
    }

    /// The same of names that it asks for, and how many more count with these: of its part of what all may have, as there, those that
    /// it brought along.
    fn most_names(&self) -> (Option<OverLimit>, usize) {
        let most = self.most(ClientLimit::Names);
        let is_part = most.as_ref().is_some_and(|most| ClientLimit::is_part(most.key));
        (most, if is_part { self.client.brought.load(Ordering::Relaxed) } else { 0 })
    }

    /// One type of the stream is about to be served from a scope.
    ///
    /// # Errors
    /// There would be more of them than there may.
    pub(crate) fn enters(&self, key: &ScopeKey, federation: &Federation) -> Result<(), OverLimit> {
        let Some(kind) = kind(key) else { return Ok(()) };
        let is_listed = federation.lists(key);
        let most = self.most(kind);
        let is_part = most.as_ref().is_some_and(|most| ClientLimit::is_part(most.key));
        let may = |scopes: &Scopes| {
            let is_free = scopes.has(key) || is_part && is_listed;
            if is_free { Ok(()) } else { check(most.clone(), scopes.counted(is_part) + 1) }
        };
        let mut used = lock(&self.client.used);
        if may(used.scopes(kind)).is_err() {
            drop(used);
            forget_some(&self.client.used, federation, kind);
            used = lock(&self.client.used);
            // Another stream may have come first.
            may(used.scopes(kind))?;
        }
        used.scopes(kind).enter(key, is_listed);
        Ok(())
    }

    /// It is not any more.
    pub(crate) fn leaves(&self, key: &ScopeKey) {
        let Some(kind) = kind(key) else { return };
        // One that stays costs what it did: whoever is not limited need not be told.
        let stays = self.most(kind).is_some();
        let mut used = lock(&self.client.used);
        if !used.scopes(kind).leave(key) {
            return;
        }
        if stays {
            drop(used);
            lock(&self.all.table).leaving.insert(self.client.identity.clone());
        } else {
            used.scopes(kind).forget(key);
        }
    }

    /// So many names more.
    ///
    /// # Errors
    /// There would be more than there may.
    pub(crate) fn grows(&self, names: usize) -> Result<(), OverLimit> {
        let (most, beside) = self.most_names();
        let may_be = most.as_ref().map_or(usize::MAX, |over| over.most.saturating_sub(beside));
        let grow = |of: usize| Some(of.saturating_add(names)).filter(|all| *all <= may_be);
        match self.client.names.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow) {
            Ok(_) => Ok(()),
            Err(_) => most.map_or(Ok(()), Err),
        }
    }

    /// Whether there may be so many names more.
    ///
    /// # Errors
    /// There would be more than there may.
    pub(crate) fn may_grow(&self, names: usize) -> Result<(), OverLimit> {
        let (most, beside) = self.most_names();
        check(most, self.client.names.load(Ordering::Relaxed).saturating_add(names).saturating_add(beside))
    }

    /// So many fewer.
    pub(crate) fn shrinks(&self, names: usize) {
        lower(&self.client.names, names);
    }

    /// So many names more that it brings along. Of what its rule allows they are no part.
    ///
    /// # Errors
    /// There would be more than its part of what all may have.
    pub(crate) fn brings(&self, names: usize) -> Result<(), OverLimit> {
        let most = self.most(ClientLimit::Names).filter(|most| ClientLimit::is_part(most.key));
        let wanted = self.client.names.load(Ordering::Relaxed);
        let brought = self.client.brought.fetch_add(names, Ordering::Relaxed).saturating_add(names);
        check(most, brought.saturating_add(wanted)).inspect_err(|_| lower(&self.client.brought, names))
    }

    /// So many of these fewer.
    pub(crate) fn brought(&self, names: usize) {
        lower(&self.client.brought, names);
    }
}

impl Drop for ClientUse {
    fn drop(&mut self) {
        let mut table = lock(&self.all.table);
        let mut used = lock(&self.client.used);
        let of = used.of(self.is_report);
        *of = of.saturating_sub(1);
        if used.has_stream() {
            return;
        }
        let is_over = used.is_nothing();
        drop(used);
        if is_over {
            table.clients.remove(&self.client.identity);
        } else {
            table.leaving.insert(self.client.identity.clone());
        }
    }
}

fn lower(count: &AtomicUsize, by: usize) {
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |of| Some(of.saturating_sub(by)));
}

#[cfg(test)]
mod tests;
