//! What is read of a store, once: what is too old or damaged is left out, and deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use xds_transport::{Frame, is_secret};
use xdstp_cache::Known;

use crate::state::bodies::Bodies;
use crate::state::format::{
    BODIES, FORMAT, FORMAT_KEY, Hash, KNOWN, Moment, PREFIX, RUNS_KEY, Record, SAVED_KEY, SCOPES, ScopeId, ScopeRecord,
    body_key, hash_of, read_key, seal, unseal,
};
use crate::state::identity::Identities;
use crate::state::saver::Saver;
use crate::state::store::{Entry, Listing, Op, Revision, Store, StoreError};
use crate::state::unwanted::{Runs, UNUSED};
use crate::state::value_format::ReadValues;

/// What was there.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) loaded: HashMap<ScopeId, Vec<Known<Frame>>>,
    /// Since when nobody said that it is so, in seconds since 1970.
    pub(crate) since: HashMap<ScopeId, u64>,
    /// What not only those said who would now.
    pub(crate) of_another: HashSet<ScopeId>,
    /// The origins of the configuration that any of it came from, by position.
    pub(crate) origins: BTreeSet<usize>,
    /// When the relay of before saved last, in seconds since 1970.
    pub(crate) saved: u64,
    /// What is not what was written.
    pub(crate) damaged: usize,
    /// Values under keys, by whose they are.
    pub(crate) values: HashMap<ScopeId, ReadValues>,
}

impl Read {
    pub(crate) fn of(
        store: &dyn Store,
        identities: &Identities,
        at: Moment,
        saver: &mut Saver,
    ) -> Result<Self, StoreError> {
        let format = store.list(FORMAT_KEY)?.entries.into_iter().find(|entry| entry.key == FORMAT_KEY);
        if let Some(other) = format.map(|entry| entry.value).filter(|format| format != FORMAT) {
            return Err(StoreError::Format(String::from_utf8_lossy(&other).into_owned()));
        }
        // All at one moment: somebody else may write meanwhile.
        let all = All::of(store.list(PREFIX)?);
        match all.has_format {
            true => {}
            false if all.is_empty => {
                saver.add(Op::put(FORMAT_KEY, FORMAT));
                return Ok(Self::default());
            }
            false => return Err(StoreError::Format("none is said".to_owned())),
        }
        let saved = all.saved.and_then(|saved| str::from_utf8(&saved).ok()?.parse().ok()).unwrap_or_default();
        let mut read = Self { saved, ..Self::default() };
        let mut scopes = read.scopes(all.scopes, at, saver);
        let bodies = read.bodies(all.bodies, &mut saver.bodies);
        let runs = read.runs(all.runs, all.revision, at, saver);
        read.known(all.known, &runs, (&scopes, &bodies), at, saver);
        let origins = identities.whose_all();
        let of_another = scopes.iter().filter(|(_, record)| {
            let origin = origins.get(&record.whose);
            origin.is_some_and(|origin| identities.is_of_another(*origin, &record.said_by))
        });
        read.of_another = of_another.map(|(id, _)| id.clone()).collect();
        read.of_another.iter().for_each(|id| saver.scopes.mix(id));
        let has = |id: &ScopeId| {
            let known = read.loaded.get(id).into_iter().flatten();
            known.into_iter().any(|known| matches!(known, Known::Present { .. }))
        };
        let whose = scopes.iter().filter(|(id, _)| has(id)).filter_map(|(_, record)| origins.get(&record.whose));
        read.origins = whose.copied().collect();
        // Before, there was one of each scope that was seen.
        scopes.retain(|id, _| {
            let is_kept = saver.scopes.has(id);
            if !is_kept {
                saver.add(Op::delete(id.key()));
            }
            is_kept
        });
        read.since_when(scopes, saver);
        read.read_values(store, at, saver)?;
        Ok(read)
    }

    /// The scopes that were in use not too long ago.
    fn scopes(&mut self, entries: Vec<Entry>, at: Moment, saver: &mut Saver) -> BTreeMap<ScopeId, ScopeRecord> {
        let mut used = BTreeMap::new();
        for entry in entries {
            let id = entry.key.strip_prefix(SCOPES).map(ScopeId::read);
            match unseal::<ScopeRecord>(&entry.key, &entry.value).zip(id) {
                Some((record, id)) if record.used.saturating_add(UNUSED) >= at.seconds() => _ = used.insert(id, record),
                Some(_) => saver.add(Op::delete(entry.key)),
                None => {
                    self.damaged += 1;
                    saver.add(Op::delete(entry.key));
                }
            }
        }
        used
    }

    /// Nobody says of them that they are so until somebody asks.
    fn since_when(&mut self, scopes: BTreeMap<ScopeId, ScopeRecord>, saver: &mut Saver) {
        for (id, mut record) in scopes {
            let since = record.stale_since.unwrap_or(self.saved);
            if record.stale_since.replace(since).is_none() {
                let key = id.key();
                let value = seal(&key, &record);
                saver.add(Op::Put(key, value));
            }
            self.since.insert(id, since);
        }
    }

    /// The bodies that are what they were.
    fn bodies(&mut self, entries: Vec<Entry>, kept: &mut Bodies) -> HashMap<Hash, Bytes> {
        let mut bodies = HashMap::new();
        for entry in entries {
            let hash = hash_of(&entry.value);
            if body_key(&hash) == entry.key {
                kept.orphan(hash);
                bodies.insert(hash, entry.value);
            } else {
                self.damaged += 1;
            }
        }
        bodies
    }

    /// The runs until now, of which one more is over: it came to this revision.
    fn runs(&self, value: Option<Bytes>, revision: Revision, at: Moment, saver: &mut Saver) -> Runs {
        // What is damaged is less than is needed to forget anything before its time.
        let runs = value.and_then(|value| unseal::<Runs>(RUNS_KEY, &value));
        let mut runs = runs.unwrap_or_default();
        runs.end(revision, if self.saved == 0 { at.seconds() } else { self.saved });
        saver.add(Op::Put(RUNS_KEY.to_owned(), seal(RUNS_KEY, &runs)));
        runs
    }

    fn known(
        &mut self,
        mut known: Vec<Entry>,
        runs: &Runs,
        (scopes, bodies): (&BTreeMap<ScopeId, ScopeRecord>, &HashMap<Hash, Bytes>),
        at: Moment,
        saver: &mut Saver,
    ) {
        // What changed last comes last.
        known.sort_by_key(|entry| entry.revision);
        for entry in known {
            let mut anew = false;
            let good = read_key(&entry.key).and_then(|(scope, of, interest)| {
                let record: Record = unseal(&entry.key, &entry.value)?;
                if is_secret(of.as_str()) && saver.keys().is_none() {
                    return Some((scope, of, interest, record, None));
                }
                let (record, is_to_be_encrypted) = record.decrypt(&entry.key, saver.keys())?;
                anew = is_to_be_encrypted;
                let hash: Option<Hash> = record.body.as_slice().try_into().ok();
                let body = record.content.clone().or_else(|| bodies.get(&hash?).cloned());
                (record.body.is_empty() || body.is_some()).then_some((scope, of, interest, record, body))
            });
            let Some((scope, of, interest, record, body)) = good else {
                self.damaged += 1;
                // Others may have what it takes to read it.
                if !saver.is_after_others() {
                    saver.add(Op::delete(entry.key));
                }
                continue;
            };
            let asked = runs.of(entry.revision).unwrap_or_default();
            let is_old = asked.0.saturating_add(UNUSED) < at.seconds();
            // What is not to be kept may have been by another version.
            let is_kept_by_others = saver.omits(&of) && saver.is_after_others();
            if is_old || !scopes.contains_key(&scope) || saver.omits(&of) {
                if !is_kept_by_others {
                    saver.add(Op::delete(entry.key));
                }
                continue;
            }
            let own = body.as_ref().filter(|_| !is_secret(of.as_str()));
            let together = record.body.as_slice().try_into().ok().filter(|_| record.content.is_none());
            saver.bodies.read(&entry.key, own.map(|content| (&**content, together)));
            saver.scopes.add(&scope);
            if anew {
                saver.set_secret(entry.key.clone(), record.clone());
            }
            saver.note_written(&entry.key, &entry.value, asked.0, at);
            saver.note_gone(&entry.key, record.gone);
            saver.aliases.set(&entry.key, &record.aliases);
            let shared = body.as_ref().filter(|_| record.content.is_none()).map_or(0, Bytes::len);
            saver.unwanted.add(&entry.key, entry.revision, asked, entry.key.len() + entry.value.len() + shared);
            let known = record.known(of, interest, body, at);
            self.loaded.entry(scope).or_default().extend(known);
        }
    }
}

/// All that is in a store, by what it is.
#[derive(Default)]
struct All {
    is_empty: bool,
    has_format: bool,
    saved: Option<Bytes>,
    runs: Option<Bytes>,
    scopes: Vec<Entry>,
    bodies: Vec<Entry>,
    known: Vec<Entry>,
    revision: Revision,
}

impl All {
    fn of(listing: Listing) -> Self {
        let Listing { entries, revision, .. } = listing;
        let mut all = Self { is_empty: entries.is_empty(), revision, ..Self::default() };
        for entry in entries {
            match &*entry.key {
                FORMAT_KEY => all.has_format = true,
                SAVED_KEY => all.saved = Some(entry.value),
                RUNS_KEY => all.runs = Some(entry.value),
                key if key.starts_with(SCOPES) => all.scopes.push(entry),
                key if key.starts_with(BODIES) => all.bodies.push(entry),
                key if key.starts_with(KNOWN) => all.known.push(entry),
                _ => {}
            }
        }
        all
    }
}
