//! What is noted of what is known, for who writes it where others read it: newest state only, and no more than so much.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use xdstp_cache::{Interest, TypeUrl};

use crate::federation::{Knows, ScopeKey, lock};
use crate::state::format::{ScopeId, ScopeRecord};
use crate::state::saver::Place;

/// Of how many names it is noted what is known before that is to be written at once; of scopes beyond that all is noted anew, later.
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
    /// Scopes that know more than is noted.
    lost: BTreeSet<ScopeId>,
}

/// What is known of a scope.
#[derive(Clone)]
pub(crate) struct Noted {
    pub(crate) key: ScopeKey,
    pub(crate) is_watched: bool,
    pub(crate) record: ScopeRecord,
    pub(crate) knows: BTreeMap<(TypeUrl, Interest), Knows>,
}

/// What was noted since that was taken last.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) scopes: BTreeMap<ScopeId, Noted>,
    /// Of which what they know is to be noted anew.
    pub(crate) lost: BTreeSet<ScopeId>,
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

    /// From now on all is noted.
    pub(crate) fn write(&self) {
        let notes = &mut *lock(&self.0);
        let Notes { before, scopes, .. } = notes.take().unwrap_or_default();
        let all = notes.insert(Notes { writes: true, ..Notes::default() });
        before.into_iter().chain(scopes).for_each(|(id, noted)| all.add(&id, noted));
    }

    /// Whether anything is noted.
    pub(crate) fn is_wanted(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Whether that is so much that it is to be written now.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.0).as_ref().is_some_and(|notes| notes.names >= MOST)
    }

    /// This is known, all of it at one moment; `recalled` is what was known before a restart, and not confirmed since: others may know better.
    pub(crate) fn note(&self, place: &Place<'_>, knows: &[Knows], recalled: bool) {
        let Some(notes) = &mut *lock(&self.0) else { return };
        let is_full = notes.names >= MOST;
        let is_of_use = |knows: &&Knows| match notes.writes && !is_full && !recalled {
            true => true,
            // That it is there again, too.
            false => knows.is_said || !knows.known.is_empty() && notes.has(place.id, knows),
        };
        let of_use: BTreeMap<_, _> =
            knows.iter().filter(is_of_use).map(|knows| (knows.of.clone(), knows.clone())).collect();
        if is_full && of_use.len() < knows.len() {
            notes.lost.insert(place.id.clone());
        }
        if !of_use.is_empty() {
            let (key, is_watched, record) = (place.key.clone(), place.is_watched, (place.record)());
            notes.add(place.id, Noted { key, is_watched, record, knows: of_use });
        }
    }

    pub(crate) fn take(&self) -> Taken {
        let Some(notes) = &mut *lock(&self.0) else { return Taken::default() };
        notes.names = 0;
        Taken { scopes: std::mem::take(&mut notes.scopes), lost: std::mem::take(&mut notes.lost) }
    }

    /// That these went was not written after all.
    pub(crate) fn give_back(&self, gone: BTreeMap<ScopeId, Noted>) {
        let Some(notes) = &mut *lock(&self.0) else { return };
        let newer = std::mem::take(&mut notes.scopes);
        notes.names = 0;
        gone.into_iter().chain(newer).for_each(|(id, noted)| notes.add(&id, noted));
    }
}

impl Taken {
    /// What of it nobody will say again.
    pub(crate) fn gone(&self) -> BTreeMap<ScopeId, Noted> {
        let of_scope = |(id, noted): (&ScopeId, &Noted)| {
            let said = noted.knows.iter().filter(|(_, knows)| knows.is_said);
            let knows: BTreeMap<_, _> = said.map(|(of, knows)| (of.clone(), knows.clone())).collect();
            let Noted { key, is_watched, record, .. } = noted;
            let noted = Noted { key: key.clone(), is_watched: *is_watched, record: record.clone(), knows };
            (!noted.knows.is_empty()).then(|| (id.clone(), noted))
        };
        self.scopes.iter().filter_map(of_scope).collect()
    }
}

impl Notes {
    fn has(&self, id: &ScopeId, knows: &Knows) -> bool {
        [&self.scopes, &self.before].iter().any(|all| all.get(id).is_some_and(|of| of.knows.contains_key(&knows.of)))
    }

    fn add(&mut self, id: &ScopeId, mut newer: Noted) {
        let knows = std::mem::take(&mut newer.knows);
        let noted = self.scopes.entry(id.clone()).or_insert_with(|| newer.clone());
        noted.record = newer.record;
        for (of, mut knows) in knows {
            match noted.knows.get(&of) {
                // That it went is not forgotten because it was looked at again, and is unknown still.
                Some(before) => knows.is_said |= before.is_said && knows.known.is_empty(),
                None => self.names += 1,
            }
            noted.knows.insert(of, knows);
        }
    }
}

#[cfg(test)]
mod tests {
    use xds_transport::Frame;
    use xdstp_cache::Known;

    use super::*;
    use crate::federation::Lack;

    const TYPE: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    /// What is known of a name: a body, or that there is nothing, which its origin may have said.
    fn knows(body: Option<&[u8]>, is_said: bool) -> Knows {
        let type_url = TypeUrl::from(TYPE);
        let known = body.map(|body| Known::Present {
            type_url: type_url.clone(),
            name: "a".parse().unwrap(),
            variant: None,
            aliases: Vec::new(),
            resource: Frame::of_message(&type_url, body).into_resource(Some("1".into())),
        });
        let of = (type_url, Interest::Name("a".parse().unwrap()));
        Knows { of, known: known.into_iter().collect(), lack: Lack::Gone, is_said, aliases: None }
    }

    fn note(notes: &PassedOn, knows: Knows, recalled: bool) {
        let record = ScopeRecord::default;
        let (key, id) = (ScopeKey::EveryNode, ScopeId::of(&[b"a scope"]));
        notes.note(
            &Place { key: &key, is_watched: false, id: &id, is_mixed: false, record: &record },
            &[knows],
            recalled,
        );
    }

    /// Of each name that is taken, whether anything is known of it.
    fn taken(notes: &PassedOn) -> Vec<bool> {
        let scopes = notes.take().scopes.into_values();
        scopes.flat_map(|noted| noted.knows.into_values().map(|knows| !knows.known.is_empty())).collect()
    }

    /// Others may have heard since that it is another one, or gone.
    #[test]
    fn what_was_known_before_a_restart_is_not_passed_on_before_it_is_confirmed() {
        let notes = PassedOn::default();
        notes.write();
        note(&notes, knows(Some(b"1"), false), true);
        note(&notes, knows(None, false), true);
        assert!(taken(&notes).is_empty(), "it was recalled");
        note(&notes, knows(Some(b"1"), false), false);
        assert_eq!(taken(&notes), [true], "it is confirmed");
        note(&notes, knows(None, true), true);
        assert_eq!(taken(&notes), [false], "its origin said that it is gone");
        // What was noted as gone is there again, whoever knows that.
        note(&notes, knows(None, true), false);
        note(&notes, knows(Some(b"1"), false), true);
        assert_eq!(taken(&notes), [true]);
    }
}
