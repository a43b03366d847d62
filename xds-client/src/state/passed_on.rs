//! What is noted of what is known, for who writes it where others read it: newest state only, and no more than so much.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use xdstp_cache::{Interest, TypeUrl};

use crate::federation::{Knows, ScopeKey, lock};
use crate::state::format::{ScopeId, ScopeRecord};
use crate::state::saver::Place;

/// A name, or a collection, of a type.
pub(crate) type Wish = (TypeUrl, Interest);

/// Of how many names it is noted what is known; of more, all is noted anew.
const MOST: usize = 200_000;
/// How long it is noted what went, by who does not write: until another relay writes in place of one that ended, and longer.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Nothing is noted before somebody wants it.
#[derive(Default)]
pub(crate) struct PassedOn(Mutex<Option<Notes>>);

#[derive(Default)]
struct Notes {
    /// Who notes writes, too: else only what went is of use, to who writes next.
    writes: bool,
    scopes: BTreeMap<ScopeId, Noted>,
    /// What was noted some time ago, by who does not write.
    before: BTreeMap<ScopeId, Noted>,
    since: Option<Instant>,
    names: usize,
    /// There was more than is noted.
    is_lost: bool,
    /// What was written already when this program began to.
    others: BTreeMap<ScopeId, BTreeSet<Wish>>,
}

/// What is known of a scope.
pub(crate) struct Noted {
    pub(crate) key: ScopeKey,
    pub(crate) is_watched: bool,
    pub(crate) record: ScopeRecord,
    pub(crate) knows: BTreeMap<Wish, Knows>,
}

/// What was noted since that was taken last.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) scopes: BTreeMap<ScopeId, Noted>,
    /// It is not all: what scopes know is to be noted anew.
    pub(crate) is_lost: bool,
}

impl PassedOn {
    /// From now on it is noted what goes.
    pub(crate) fn begin(&self, now: Instant) {
        let notes = &mut *lock(&self.0);
        let notes = notes.get_or_insert_default();
        if notes.writes || notes.since.is_none_or(|since| now.saturating_duration_since(since) >= REMEMBERED) {
            let before = std::mem::take(&mut notes.scopes);
            *notes = Notes { before, since: Some(now), ..Notes::default() };
        }
    }

    /// From now on all is noted; `others` is what is written already.
    pub(crate) fn write(&self, others: BTreeMap<ScopeId, BTreeSet<Wish>>) {
        let notes = &mut *lock(&self.0);
        let Notes { before, scopes, .. } = notes.take().unwrap_or_default();
        let mut all = Notes { writes: true, others, ..Notes::default() };
        for (id, noted) in before.into_iter().chain(scopes) {
            all.add(&id, noted.key, noted.is_watched, noted.record, noted.knows);
        }
        *notes = Some(all);
    }

    /// Whether anything is noted.
    pub(crate) fn is_wanted(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// What was written of a scope before this program wrote.
    pub(crate) fn others(&self, id: &ScopeId) -> BTreeSet<Wish> {
        lock(&self.0).as_ref().and_then(|notes| notes.others.get(id)).cloned().unwrap_or_default()
    }

    /// This is known, all of it at one moment.
    pub(crate) fn note(&self, place: &Place<'_>, knows: &[Knows]) {
        let Some(notes) = &mut *lock(&self.0) else { return };
        let of_use = knows.iter().filter(|knows| notes.is_of_use(place.id, knows));
        let of_use: BTreeMap<_, _> = of_use.map(|knows| (knows.of.clone(), knows.clone())).collect();
        if !of_use.is_empty() {
            notes.add(place.id, place.key.clone(), place.is_watched, (place.record)(), of_use);
        }
    }

    pub(crate) fn take(&self) -> Taken {
        let Some(notes) = &mut *lock(&self.0) else { return Taken::default() };
        notes.names = 0;
        Taken { scopes: std::mem::take(&mut notes.scopes), is_lost: std::mem::take(&mut notes.is_lost) }
    }
}

impl Notes {
    /// Of who does not write, what went, and that it is there again.
    fn is_of_use(&self, id: &ScopeId, knows: &Knows) -> bool {
        let is_noted = || {
            [&self.scopes, &self.before]
                .iter()
                .any(|all| all.get(id).is_some_and(|of| of.knows.contains_key(&knows.of)))
        };
        self.writes || knows.is_said || is_noted()
    }

    fn add(
        &mut self,
        id: &ScopeId,
        key: ScopeKey,
        is_watched: bool,
        record: ScopeRecord,
        knows: BTreeMap<Wish, Knows>,
    ) {
        if self.names >= MOST {
            (self.scopes, self.names, self.is_lost) = (BTreeMap::new(), 0, true);
        }
        let noted = Noted { key, is_watched, record: record.clone(), knows: BTreeMap::new() };
        let noted = self.scopes.entry(id.clone()).or_insert(noted);
        noted.record = record;
        for (of, mut knows) in knows {
            if let Some(before) = noted.knows.get(&of) {
                // That it went is not forgotten because it was looked at again, and is unknown still.
                knows.is_said |= before.is_said && knows.known.is_empty();
            } else {
                self.names += 1;
            }
            noted.knows.insert(of, knows);
        }
    }
}
