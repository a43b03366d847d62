//! Much that is written, in pieces that every engine takes.

use xdstp_client::state::{Commit, Compare, Op, Store};

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
}

impl<'a> Batch<'a> {
    pub(super) fn new(store: &'a dyn Store, fence: Compare) -> Self {
        Self { store, fence, ops: Vec::new(), bytes: 0 }
    }

    pub(super) fn add(&mut self, op: Op) -> Result<(), StoredError> {
        let size = op.key().len() + if let Op::Put(_, value) = &op { value.len() } else { 0 };
        if self.ops.len() >= MOST || (self.bytes + size > MOST_BYTES && !self.ops.is_empty()) {
            self.write()?;
        }
        self.bytes += size;
        self.ops.push(op);
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn write(&mut self) -> Result<(), StoredError> {
        self.bytes = 0;
        let ops = std::mem::take(&mut self.ops);
        if ops.is_empty() {
            return Ok(());
        }
        match self.store.commit(&ops, std::slice::from_ref(&self.fence))? {
            Commit::Done(_) => Ok(()),
            Commit::Conflict => Err(StoredError::Contended),
        }
    }
}
