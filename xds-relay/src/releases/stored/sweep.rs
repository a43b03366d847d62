//! Removing what is kept for nobody any more.

use std::collections::HashSet;

use xdstp_client::state::{Commit, Compare, Op};

use crate::releases::control::Control;
use crate::releases::manifest::BodyHash;
use crate::releases::records::{ControlRecord, hash};
use crate::releases::release::Release;
use crate::releases::sealed::seal;
use crate::releases::stored::Stored;
use crate::releases::stored::batch::MOST;
use crate::releases::stored::error::StoredError;

/// How many releases are kept.
const KEPT: usize = 20;

impl Stored {
    /// Leaves the last releases, `newest` among them, and what they have. What is deleted last says what else is to be: a crash in
    /// between leaves nothing that is not found the next time.
    pub(super) fn sweep(&mut self, newest: Release) -> Result<(), StoredError> {
        let kept = self.to_be_kept(newest);
        let dropped: Vec<_> = self.releases.keys().filter(|release| !kept.contains(release)).copied().collect();
        let records = self.releases.iter().filter(|(release, _)| kept.contains(release));
        let parts: HashSet<_> =
            records.flat_map(|(_, record)| record.parts.iter().filter_map(|part| hash(part))).collect();
        let bodies: HashSet<_> = parts.iter().filter_map(|part| self.parts.get(part)).flatten().copied().collect();
        let old: Vec<_> = self.parts.keys().filter(|part| !parts.contains(part)).copied().collect();
        let gone: HashSet<BodyHash> = old.iter().filter_map(|part| self.parts.get(part)).flatten().copied().collect();

        let mut ops = Vec::new();
        for body in gone.difference(&bodies) {
            let pieces = self.store.list(&self.keys.body(body))?.entries;
            ops.extend(pieces.into_iter().map(|piece| Op::delete(piece.key)));
        }
        ops.extend(old.iter().map(|part| Op::delete(self.keys.part(part))));
        // What could not be read is there anew, or nobody's.
        let anew = self.keys_of(&kept, &parts);
        let damaged = self.damaged.iter().filter(|damage| !anew.contains(&damage.key));
        ops.extend(damaged.map(|damage| Op::delete(&*damage.key)));
        // What is done at once is one event for all that follow.
        let is_one = dropped.len() + ops.len() < MOST;
        let (at_once, later) = if is_one { (ops, Vec::new()) } else { (Vec::new(), ops) };
        self.drop_releases(&dropped, at_once)?;
        self.write(later)?;
        old.iter().for_each(|part| _ = self.parts.remove(part));
        self.bodies.retain(|body| bodies.contains(body));
        self.damaged.clear();
        Ok(())
    }

    /// They are kept no more, and nor is what else is deleted with them. The control value is put as it is, in the same transaction:
    /// who names one of them at that moment finds that it is another value by now, or this does.
    fn drop_releases(&mut self, dropped: &[Release], others: Vec<Op>) -> Result<(), StoredError> {
        if dropped.is_empty() {
            return self.write(others);
        }
        let key = self.keys.control();
        let control = Op::put(&*key, seal(&key, &ControlRecord::of(&self.scope, &self.base, self.count)));
        // Of more, the others go the next time.
        let dropped = dropped.iter().take(MOST - 1);
        let ops: Vec<_> = dropped
            .clone()
            .map(|release| Op::delete(self.keys.release(*release)))
            .chain(others)
            .chain([control])
            .collect();
        match self.writer.commit(&ops, &[Compare::unchanged(key, self.revision)])? {
            Commit::Conflict => return Err(StoredError::Contended),
            Commit::Done(revision) => (self.revision, self.floor) = (revision, revision.max(self.floor)),
        }
        dropped.for_each(|release| _ = self.releases.remove(release));
        Ok(())
    }

    fn to_be_kept(&self, newest: Release) -> HashSet<Release> {
        let named = [&self.base, &self.control].into_iter().flat_map(Control::named).chain([newest]);
        let mut kept: HashSet<_> = named.filter(|release| self.has(*release)).collect();
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
