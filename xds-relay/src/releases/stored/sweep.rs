//! Removing what is kept for nobody any more.

use std::collections::HashSet;

use xdstp_client::state::{Commit, Compare, Op};

use crate::releases::control::Control;
use crate::releases::manifest::BodyHash;
use crate::releases::records::hash;
use crate::releases::release::Release;
use crate::releases::sealed::seal;
use crate::releases::stored::Stored;
use crate::releases::stored::batch::MOST;
use crate::releases::stored::error::StoredError;
use crate::releases::stored::save::New;

/// How many releases are kept.
const KEPT: usize = 20;

/// What is kept for nobody any more.
pub(super) struct Sweep {
    releases: Vec<Release>,
    /// Parts of no other release.
    parts: Vec<BodyHash>,
    /// The bodies that somebody has still.
    bodies: HashSet<BodyHash>,
    /// What could not be read, and is not to be there anew.
    damaged: HashSet<String>,
    /// How parts, bodies, and what could not be read are removed.
    ops: Vec<Op>,
}

impl Stored {
    /// Leaves the last releases, `newest` among them, and what they have. What is deleted last says what else is to be: a crash in
    /// between leaves nothing that is not found the next time.
    pub(super) fn sweep(&mut self, newest: Release) -> Result<(), StoredError> {
        let Some(mut sweep) = self.to_sweep(newest, None, usize::MAX)? else { return Ok(()) };
        let ops = std::mem::take(&mut sweep.ops);
        // What is done at once is one event for all that follow.
        let is_one = sweep.releases.len() + ops.len() < MOST;
        // Of more releases, the others go the next time.
        let (at_once, later) = if is_one { (ops, Vec::new()) } else { (Vec::new(), ops) };
        sweep.releases.truncate(MOST - 1);
        self.drop_releases(&sweep.releases, at_once)?;
        self.write(later)?;
        self.swept(sweep);
        Ok(())
    }

    /// What is to be removed once `newest` is kept, which is not yet if it is `new`. None, if that is more than so many keys.
    pub(super) fn to_sweep(
        &self,
        newest: Release,
        new: Option<&New>,
        most: usize,
    ) -> Result<Option<Sweep>, StoredError> {
        let kept = self.to_be_kept(newest, new);
        let dropped: Vec<_> = self.releases.keys().filter(|release| !kept.contains(release)).copied().collect();
        let records = self.releases.iter().filter(|(release, _)| kept.contains(release)).map(|(_, record)| record);
        let records = records.chain(new.map(|new| &new.record));
        let parts: HashSet<_> = records.flat_map(|record| record.parts.iter().filter_map(|part| hash(part))).collect();
        let in_part = |part| self.parts.get(part).or_else(|| new?.parts.get(part));
        let bodies: HashSet<_> = parts.iter().filter_map(in_part).flatten().copied().collect();
        let old: Vec<_> = self.parts.keys().filter(|part| !parts.contains(part)).copied().collect();
        let gone: HashSet<BodyHash> = old.iter().filter_map(|part| self.parts.get(part)).flatten().copied().collect();
        if dropped.len() + old.len() + gone.difference(&bodies).count() > most {
            return Ok(None);
        }

        let mut ops = Vec::new();
        for body in gone.difference(&bodies) {
            let pieces = self.store.list(&self.keys.body(body))?.entries;
            ops.extend(pieces.into_iter().map(|piece| Op::delete(piece.key)));
        }
        ops.extend(old.iter().map(|part| Op::delete(self.keys.part(part))));
        // What could not be read is there anew, or nobody's.
        let anew = self.keys_of(&kept, &parts);
        let damaged = self.damaged.iter().map(|damage| &damage.key).filter(|key| !anew.contains(*key));
        let damaged: HashSet<_> = damaged.cloned().collect();
        ops.extend(damaged.iter().map(|key| Op::delete(&**key)));
        Ok(Some(Sweep { releases: dropped, parts: old, bodies, damaged, ops }))
    }

    /// All that is to be removed, in the order in which it was in several commits.
    pub(super) fn sweep_ops(&self, sweep: &Sweep) -> Vec<Op> {
        self.deletes(&sweep.releases).chain(sweep.ops.iter().cloned()).collect()
    }

    /// It is removed.
    pub(super) fn swept(&mut self, sweep: Sweep) {
        sweep.releases.iter().for_each(|release| _ = self.releases.remove(release));
        sweep.parts.iter().for_each(|part| _ = self.parts.remove(part));
        self.bodies.retain(|body| sweep.bodies.contains(body));
        // The rest is written anew by who needs it.
        self.damaged.retain(|damage| !sweep.damaged.contains(&damage.key));
    }

    /// They are kept no more, and nor is what else is deleted with them. The control value is put as it is, in the same transaction:
    /// who names one of them at that moment finds that it is another value by now, or this does.
    fn drop_releases(&mut self, dropped: &[Release], others: Vec<Op>) -> Result<(), StoredError> {
        if dropped.is_empty() {
            return self.write(others);
        }
        let key = self.keys.control();
        let control = Op::put(&*key, seal(&key, &self.control_record(&self.base, self.count)));
        let ops: Vec<_> = self.deletes(dropped).chain(others).chain([control]).collect();
        match self.writer.commit(&ops, &[Compare::unchanged(key, self.revision)])? {
            Commit::Conflict => return Err(StoredError::Contended),
            Commit::Done(revision) => (self.revision, self.floor) = (revision, revision.max(self.floor)),
        }
        self.written_stages = self.own_stages;
        dropped.iter().for_each(|release| _ = self.releases.remove(release));
        Ok(())
    }

    fn deletes(&self, releases: &[Release]) -> impl Iterator<Item = Op> {
        releases.iter().map(|release| Op::delete(self.keys.release(*release)))
    }

    fn to_be_kept(&self, newest: Release, new: Option<&New>) -> HashSet<Release> {
        let named = [&self.base, &self.control].into_iter().flat_map(Control::named).chain([newest]);
        let mut kept: HashSet<_> = named.filter(|release| self.has(*release)).collect();
        kept.extend(new.map(|new| new.release));
        for release in self.releases() {
            if kept.len() >= KEPT {
                break;
            }
            kept.insert(release.release);
        }
        kept
    }

    fn keys_of(&self, releases: &HashSet<Release>, parts: &HashSet<BodyHash>) -> HashSet<String> {
        let releases = releases.iter().map(|release| self.keys.release(*release));
        releases.chain(parts.iter().map(|part| self.keys.part(part))).collect()
    }
}
