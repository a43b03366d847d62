//! Whole revisions out of what a watch is told, which may come in pieces.

use super::failure::Failure;
use super::listing::{entry, is_text};
use super::messages::{KeyEvent, WatchResponse};
use crate::state::store::{Op, Revision};

/// What a revision may have: more than etcd commits at once.
const MOST: usize = 16_384;
const MOST_BYTES: usize = 8 << 20;

/// What was told so far.
#[derive(Debug)]
pub(super) struct Revisions {
    /// It was told from that on.
    start: Revision,
    /// All until then was passed on.
    done: Revision,
    /// What may have more to come.
    pending: Revision,
    ops: Vec<Op>,
    bytes: usize,
    last: Option<Put>,
}

/// A key that was put, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) key: Vec<u8>,
    pub(super) revision: i64,
}

impl Revisions {
    /// Of a watch that begins with the revision after which something is to be told, and what was told last by one before.
    pub(super) fn after(revision: Revision, last: Option<Put>) -> Self {
        Self { start: revision, done: revision, pending: revision, ops: Vec::new(), bytes: 0, last }
    }

    /// What was put last of all that was told.
    pub(super) fn into_last(self) -> Option<Put> {
        self.last
    }

    pub(super) fn done(&self) -> Revision {
        self.done
    }

    /// Takes what was told, of keys whose first `cut` bytes are nobody's business. Whole revisions are passed on, in their order.
    pub(super) fn take(
        &mut self,
        told: WatchResponse,
        cut: usize,
        mut pass_on: impl FnMut(Revision, &[Op]),
    ) -> Result<(), Failure> {
        if told.compact_revision > 0 {
            return Err(Failure::Compacted);
        }
        if told.canceled {
            return Err(Failure::Elsewhere(told.cancel_reason));
        }
        let is_progress = told.events.is_empty() && !told.created && !told.fragment;
        for event in told.events {
            self.add(event, cut, &mut pass_on)?;
        }
        if !told.fragment {
            self.finish(&mut pass_on);
        }
        // So far all is told: after a while nothing before it is kept.
        let now = told.header.and_then(|header| Revision::try_from(header.revision).ok());
        if is_progress && let Some(now) = now {
            self.done = self.done.max(now);
            self.pending = self.done;
        }
        Ok(())
    }

    fn add(&mut self, event: KeyEvent, cut: usize, pass_on: &mut impl FnMut(Revision, &[Op])) -> Result<(), Failure> {
        let kv = event.kv.ok_or(Failure::Nonsense("nobody's change"))?;
        let revision = Revision::try_from(kv.mod_revision).map_err(|_| Failure::Nonsense("a revision is none"))?;
        if revision <= self.start && self.done == self.start {
            return Ok(());
        }
        if revision <= self.done || revision < self.pending {
            return Err(Failure::Nonsense("changes out of order"));
        }
        if revision != self.pending {
            self.finish(pass_on);
            self.pending = revision;
        }
        if event.kind == 0 {
            self.last = Some(Put { key: kv.key.clone(), revision: kv.mod_revision });
        }
        if !is_text(&kv, cut) {
            // No op has such a key: what there is of it only a listing says.
            return Err(Failure::Compacted);
        }
        let entry = entry(kv, cut)?;
        let op = match event.kind {
            0 => Op::Put(entry.key, entry.value),
            1 => Op::Delete(entry.key),
            _ => return Err(Failure::Nonsense("a change of another kind")),
        };
        self.bytes += op.size();
        self.ops.push(op);
        if self.ops.len() > MOST || self.bytes > MOST_BYTES {
            return Err(Failure::Compacted);
        }
        Ok(())
    }

    fn finish(&mut self, pass_on: &mut impl FnMut(Revision, &[Op])) {
        if !self.ops.is_empty() {
            pass_on(self.pending, &self.ops);
        }
        (self.ops, self.bytes) = (Vec::new(), 0);
        self.done = self.done.max(self.pending);
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::{Header, KeyValue};
    use super::*;

    fn put(key: &str, mod_revision: i64) -> KeyEvent {
        let kv = KeyValue { key: format!("p/{key}").into_bytes(), mod_revision, value: b"v".to_vec() };
        KeyEvent { kind: 0, kv: Some(kv) }
    }

    fn told(events: &[KeyEvent]) -> WatchResponse {
        let header = Some(Header { revision: 20, ..Header::default() });
        WatchResponse { header, events: events.to_vec(), ..WatchResponse::default() }
    }

    /// What is passed on of what is told, and what is wrong with it.
    fn passed_on(revisions: &mut Revisions, told: WatchResponse) -> (Vec<(Revision, usize)>, Result<(), Failure>) {
        let mut passed = Vec::new();
        let taken = revisions.take(told, 2, |revision, ops| passed.push((revision, ops.len())));
        (passed, taken)
    }

    #[test]
    fn of_a_revision_all_is_passed_on_when_it_is_there() {
        let mut revisions = Revisions::after(4, None);
        // What is known is told once more.
        let first = WatchResponse { fragment: true, ..told(&[put("a", 4), put("a", 5), put("b", 6)]) };
        assert_eq!(passed_on(&mut revisions, first), (vec![(5, 1)], Ok(())));
        assert_eq!(revisions.done(), 5);
        assert_eq!(passed_on(&mut revisions, told(&[put("c", 6), put("a", 7)])), (vec![(6, 2), (7, 1)], Ok(())));
        assert_eq!(revisions.done(), 7);
    }

    #[test]
    fn progress_is_how_far_all_is_told_and_what_has_changes_is_not() {
        let mut revisions = Revisions::after(4, None);
        assert_eq!(passed_on(&mut revisions, told(&[put("a", 5)])).1, Ok(()));
        assert_eq!(revisions.done(), 5);
        assert_eq!(passed_on(&mut revisions, told(&[])).1, Ok(()));
        assert_eq!(revisions.done(), 20);
        assert_eq!(passed_on(&mut revisions, told(&[put("a", 21)])), (vec![(21, 1)], Ok(())));
    }

    #[test]
    fn what_is_out_of_order_is_not_trusted() {
        let mut foreign = put("a", 8);
        foreign.kind = 7;
        for wrong in [put("a", 5), put("a", 6), put("a", -1), KeyEvent { kind: 0, kv: None }, foreign] {
            let mut revisions = Revisions::after(4, None);
            passed_on(&mut revisions, told(&[put("a", 6)])).1.unwrap();
            let (passed, taken) = passed_on(&mut revisions, told(std::slice::from_ref(&wrong)));
            assert!(passed.is_empty() && matches!(taken, Err(Failure::Nonsense(_))), "{wrong:?}");
        }
    }

    #[test]
    fn who_is_told_that_it_is_compacted_lists_again_and_who_is_only_cut_off_asks_again() {
        let compacted = WatchResponse { canceled: true, compact_revision: 9, ..told(&[]) };
        assert_eq!(passed_on(&mut Revisions::after(4, None), compacted).1, Err(Failure::Compacted));
        let cut_off = WatchResponse { canceled: true, ..told(&[]) };
        assert!(matches!(passed_on(&mut Revisions::after(4, None), cut_off).1, Err(Failure::Elsewhere(_))));
    }

    #[test]
    fn a_revision_without_end_is_not_kept() {
        let mut revisions = Revisions::after(4, None);
        let endless = WatchResponse { fragment: true, ..told(&vec![put("a", 5); 1000]) };
        let taken = (0..=MOST / 1000).map(|_| passed_on(&mut revisions, endless.clone()).1);
        assert_eq!(taken.last().unwrap(), Err(Failure::Compacted));
    }
}
