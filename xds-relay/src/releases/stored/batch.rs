//! Much that is written, in pieces that every engine takes.

use xdstp_client::state::{Commit, Compare, Op, Revision, Store};

use crate::releases::stored::error::StoredError;

/// How much is written at once: etcd takes 128 operations and 1.5 MiB.
pub(crate) const MOST: usize = 100;
const MOST_BYTES: usize = 1 << 20;

/// Writes what is added to it, in that order, as long as something is as it was.
pub(super) struct Batch<'a> {
    store: &'a dyn Store,
    fence: Compare,
    ops: Vec<Op>,
    bytes: usize,
    written: Option<Revision>,
}

/// Whether all of this is written at once.
pub(super) fn is_one<'a>(ops: impl Iterator<Item = &'a Op>) -> bool {
    let (count, bytes) = ops.fold((0, 0), |(count, bytes), op| (count + 1, bytes + size(op)));
    count <= MOST && bytes <= MOST_BYTES
}

fn size(op: &Op) -> usize {
    op.key().len() + if let Op::Put(_, value) = op { value.len() } else { 0 }
}

impl<'a> Batch<'a> {
    pub(super) fn new(store: &'a dyn Store, fence: Compare) -> Self {
        Self { store, fence, ops: Vec::new(), bytes: 0, written: None }
    }

    pub(super) fn add(&mut self, op: Op) -> Result<(), StoredError> {
        let size = size(&op);
        if self.ops.len() >= MOST || (self.bytes + size > MOST_BYTES && !self.ops.is_empty()) {
            let _ = self.write()?;
        }
        self.bytes += size;
        self.ops.push(op);
        Ok(())
    }

    /// Writes what is left. When the last of all was written, if anything was.
    pub(super) fn write(&mut self) -> Result<Option<Revision>, StoredError> {
        self.bytes = 0;
        let ops = std::mem::take(&mut self.ops);
        if ops.is_empty() {
            return Ok(self.written);
        }
        match self.store.commit(&ops, std::slice::from_ref(&self.fence))? {
            Commit::Done(revision) => {
                self.written = Some(revision);
                Ok(self.written)
            }
            Commit::Conflict => Err(StoredError::Contended),
        }
    }
}
