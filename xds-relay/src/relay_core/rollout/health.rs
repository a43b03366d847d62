//! How those are who are served a candidate: counted, without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use super::tally::{Part, Tally};
use crate::relay_core::client_look::PATIENCE;
use crate::releases::Release;

/// How many clients are told apart: who comes after these is counted nowhere, not among all either, unless it refuses something. And how
/// many refusals, and clients that refuse anything.
pub(crate) const MOST: usize = 10_000;
/// How much is told of what a client calls itself, and of its words, in letters.
const LETTERS: usize = 200;
/// How many that have gone are told to other relays, and how long after they went.
const MOST_GONE: usize = 1000;
const GONE: Duration = Duration::from_secs(5);

/// Who a client is, over all its streams if it says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClientName {
    Node(Arc<str>),
    /// One that says no id is another one with each stream.
    Stream(u64),
}

/// What happened since this was taken last: clients wait for no more than that this is written down.
#[derive(Default)]
pub(crate) struct Heard {
    served: BTreeSet<ClientName>,
    refused: BTreeSet<Refusal>,
    /// Who did, of which type, and with which words: one client that refuses much leaves room for others.
    refusing: BTreeMap<(ClientName, TypeUrl), String>,
    refused_stable: BTreeSet<(ClientName, TypeUrl)>,
}

/// A full state does not say of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Refusal {
    client: ClientName,
    type_url: TypeUrl,
    name: Option<ResourceName>,
}

/// All streams, as they were looked at.
pub(crate) struct Look {
    /// Which candidate there was.
    pub(crate) candidate: Option<Release>,
    pub(crate) streams: Vec<StreamLook>,
}

/// A stream, as it was looked at.
pub(crate) struct StreamLook {
    pub(crate) client: ClientName,
    /// Whether it is served the candidate.
    pub(crate) is_served: bool,
    /// What was asked for of the scope on it; none where nobody looked, or could.
    pub(crate) types: Option<Vec<TypeLook>>,
}

/// A type of that stream.
pub(crate) struct TypeLook {
    pub(crate) type_url: TypeUrl,
    pub(crate) unanswered_since: Option<Instant>,
    /// Whether the last answer is an ACK.
    pub(crate) accepts: bool,
}

/// The clients of a candidate, and who could not be pleased before.
#[derive(Default)]
pub(crate) struct Health {
    candidate: Option<Release>,
    /// Who is served it or was.
    clients: BTreeMap<ClientName, Served>,
    refusals: BTreeSet<Refusal>,
    /// Who refused anything of it.
    refusing: BTreeSet<ClientName>,
    /// The first of them, and its words.
    first: Option<(Refusal, String)>,
    /// Who refused something of a type of what is stable, and has accepted nothing of that type since.
    refuse_stable: BTreeSet<(ClientName, TypeUrl)>,
    /// When the streams were looked at last, or the candidate began: who is new is served it since then at most.
    looked: Option<Instant>,
}

struct Served {
    since: Instant,
    is_served: bool,
    is_silent: bool,
    /// Since when it has no stream.
    gone: Option<Instant>,
}

impl Heard {
    /// A client is served the candidate.
    pub(crate) fn served(&mut self, client: ClientName) {
        insert(&mut self.served, client);
    }

    /// It refused something of that, with these words: of no names, all there is of a type.
    pub(crate) fn refused(&mut self, client: &ClientName, type_url: &TypeUrl, names: &[ResourceName], words: &str) {
        if self.refusing.len() < MOST {
            let words = || words.chars().take(LETTERS).collect();
            self.refusing.entry((client.clone(), type_url.clone())).or_insert_with(words);
        }
        let all = names.is_empty().then_some(None);
        for name in names.iter().cloned().map(Some).chain(all) {
            insert(&mut self.refused, Refusal { client: client.clone(), type_url: type_url.clone(), name });
        }
    }

    /// It refused something of what is stable.
    pub(crate) fn refused_stable(&mut self, client: ClientName, type_url: &TypeUrl) {
        insert(&mut self.refused_stable, (client, type_url.clone()));
    }
}

impl Health {
    /// There is another candidate, or none: nothing is known of it. What there was may be stable now.
    pub(crate) fn begin(&mut self, candidate: Option<Release>, stable: Option<Release>, now: Instant) {
        let refusals = std::mem::take(&mut self.refusals);
        if self.candidate.is_some() && self.candidate == stable {
            refusals.into_iter().for_each(|of| insert(&mut self.refuse_stable, (of.client, of.type_url)));
        }
        self.clients.clear();
        self.refusing.clear();
        self.first = None;
        (self.candidate, self.looked) = (candidate, Some(now));
    }

    /// That happened, up to now.
    pub(crate) fn hear(&mut self, heard: Heard, now: Instant) {
        let Heard { served, refused, refusing, refused_stable } = heard;
        served.into_iter().for_each(|client| self.is_served(client, now));
        refused_stable.into_iter().for_each(|of| insert(&mut self.refuse_stable, of));
        let mut first = None;
        for (of_type, words) in refusing {
            self.is_served(of_type.0.clone(), now);
            if !self.refuse_stable.contains(&of_type) {
                insert(&mut self.refusing, of_type.0.clone());
                first.get_or_insert((of_type, words));
            }
        }
        if let Some(((client, type_url), words)) = first.filter(|_| self.first.is_none()) {
            let is_first = |refusal: &&Refusal| refusal.client == client && refusal.type_url == type_url;
            self.first = refused.iter().find(is_first).map(|refusal| (refusal.clone(), words));
        }
        for refusal in refused {
            let of_type = (refusal.client, refusal.type_url);
            if !self.refuse_stable.contains(&of_type) {
                insert(&mut self.refusals, Refusal { client: of_type.0, type_url: of_type.1, name: refusal.name });
            }
        }
    }

    /// These are at other relays, and counted there.
    pub(super) fn are_elsewhere(&mut self, prints: &BTreeSet<u64>) {
        let is_there = |name: &ClientName| name.print().is_some_and(|print| prints.contains(&print));
        if !prints.is_empty() {
            self.clients.retain(|name, client| client.gone.is_none() || !is_there(name));
        }
    }

    /// So the streams are now.
    pub(crate) fn look(&mut self, look: Option<&Look>, now: Instant) {
        if let Some(look) = look.filter(|look| look.candidate == self.candidate) {
            let served = look.streams.iter().filter(|stream| stream.is_served);
            served.for_each(|stream| self.is_served(stream.client.clone(), now));
            self.look_at_clients(&look.streams, now);
            self.look_who_accepts(&look.streams);
        }
        self.looked = Some(now);
    }

    /// Who refused something of what is stable.
    pub(crate) fn refusing(&self) -> BTreeSet<ClientName> {
        self.refuse_stable.iter().map(|(client, _)| client.clone()).collect()
    }

    /// How many clients of a candidate are how; nothing is known of one that was not [shown](Self::begin) yet. `missed` are the prints
    /// of those whom other relays miss; none where there are no others. Who has gone and may be at another relay is lost if they are
    /// told of it.
    pub(super) fn tally(&self, candidate: Release, missed: Option<&BTreeSet<u64>>, now: Instant) -> Option<Tally> {
        if self.candidate != Some(candidate) {
            return None;
        }
        let silent: Vec<_> = self.clients.iter().filter(|(_, client)| client.is_silent).collect();
        let gone_for = |least| {
            let is_gone = move |client: &Served| client.gone.is_some_and(|gone| has_passed(gone, now, least));
            self.clients.iter().filter(move |(_, client)| is_gone(client)).map(|(name, _)| name)
        };
        let prints = |least| gone_for(least).filter_map(ClientName::print).take(MOST_GONE).collect::<Vec<_>>();
        let lost_prints = prints(PATIENCE);
        let is_lost: BTreeSet<_> = lost_prints.iter().copied().collect();
        let is_missed = |print: &u64| missed.is_some_and(|missed| missed.contains(print));
        let is_any_missed = missed.is_some_and(|missed| !missed.is_empty());
        let here = self.clients.iter().filter(|(_, client)| client.gone.is_none() && is_any_missed);
        let here = here.filter_map(|(name, _)| name.print()).filter(is_missed);
        let lost = gone_for(PATIENCE).count();
        // Nobody says of these whether they are elsewhere.
        let named = gone_for(PATIENCE).filter(|name| matches!(name, ClientName::Node(_))).count();
        let untold = if missed.is_some() { named.saturating_sub(lost_prints.len()) } else { 0 };
        let unknown = self.refusing.iter().filter(|client| !self.clients.contains_key(*client)).count();
        let of_refused = || match &self.first {
            Some((refusal, words)) => told(refusal, words),
            None => self.refusals.first().map(|refusal| told(refusal, "")).unwrap_or_default(),
        };
        let first = |name: Option<&ClientName>| name.map(ToString::to_string).unwrap_or_default();
        Some(Tally {
            all: (self.clients.len() + unknown - untold) as u64,
            served: self.clients.values().filter(|client| client.is_served).count() as u64,
            refused: Part::of(self.refusals.len(), of_refused),
            refusing: self.refusing.len() as u64,
            silent: Part::of(silent.len(), || first(silent.first().map(|(name, _)| *name))),
            lost: Part::of(lost - untold, || first(gone_for(PATIENCE).next())),
            gone: prints(GONE).into_iter().filter(|print| !is_lost.contains(print)).collect(),
            lost_prints,
            here: here.collect(),
            ..Tally::of(candidate)
        })
    }

    fn is_served(&mut self, client: ClientName, now: Instant) {
        if self.clients.len() < MOST || self.clients.contains_key(&client) {
            let since = self.looked.unwrap_or(now);
            let new = Served { since, is_served: true, is_silent: false, gone: None };
            self.clients.entry(client).or_insert(new);
        }
    }

    fn look_at_clients(&mut self, streams: &[StreamLook], now: Instant) {
        let mut was_silent = BTreeSet::new();
        for (name, client) in &mut self.clients {
            if std::mem::take(&mut client.is_silent) {
                was_silent.insert(name.clone());
            }
            client.is_served = false;
            client.gone.get_or_insert(now);
        }
        for StreamLook { client: name, is_served, types } in streams {
            let Some(client) = self.clients.get_mut(name) else { continue };
            client.gone = None;
            client.is_served |= is_served;
            client.is_silent |= *is_served
                && match types {
                    Some(types) => types.iter().any(|of| of.is_silent(client.since, now)),
                    // It is as it was, as far as anybody knows.
                    None => was_silent.contains(name),
                };
        }
    }

    fn look_who_accepts(&mut self, streams: &[StreamLook]) {
        // What a client says of the candidate is no answer to what is stable.
        for stream in streams.iter().filter(|stream| !stream.is_served) {
            for of in stream.types.iter().flatten().filter(|of| of.accepts) {
                self.refuse_stable.remove(&(stream.client.clone(), of.type_url.clone()));
            }
        }
        let here: BTreeSet<_> = streams.iter().map(|stream| &stream.client).collect();
        let is_full = self.refuse_stable.len() >= MOST;
        self.refuse_stable.retain(|(client, _)| {
            let may_return = matches!(client, ClientName::Node(_)) && !is_full;
            may_return || here.contains(client)
        });
    }
}

impl TypeLook {
    /// Who owed an answer before it was served the candidate was silent already.
    fn is_silent(&self, since: Instant, now: Instant) -> bool {
        self.unanswered_since.is_some_and(|sent| sent >= since && has_passed(sent, now, PATIENCE))
    }
}

/// What was refused, by whom, and in which words: what clients say is cut, and shows no more than it is.
fn told(Refusal { client, type_url, name }: &Refusal, words: &str) -> String {
    let said = |text: &str| text.chars().take(LETTERS).flat_map(char::escape_debug).collect::<String>();
    let name = said(name.as_ref().map_or("something", ResourceName::as_str));
    let words = if words.is_empty() { String::new() } else { format!(": {}", said(words)) };
    format!("{name} ({type_url}) by {}{words}", said(&client.to_string()))
}

impl ClientName {
    /// What other relays know it by: none of one that is nobody elsewhere.
    fn print(&self) -> Option<u64> {
        let Self::Node(id) = self else { return None };
        let hash: [u8; 32] = Sha256::digest(id.as_bytes()).into();
        hash.first_chunk().copied().map(u64::from_be_bytes)
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(id) => f.write_str(id),
            Self::Stream(number) => write!(f, "stream {number}"),
        }
    }
}

fn has_passed(since: Instant, now: Instant, least: Duration) -> bool {
    now.saturating_duration_since(since) >= least
}

fn insert<T: Ord>(all: &mut BTreeSet<T>, one: T) {
    if all.len() < MOST {
        all.insert(one);
    }
}

#[cfg(test)]
mod tests;
