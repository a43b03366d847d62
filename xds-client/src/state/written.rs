//! What is written, in as many commits as a store needs: what something refers to is there before, and goes after it.

use std::collections::HashMap;

use crate::state::format::BODIES;
use crate::state::prints::Prints;
use crate::state::store::{Limits, Op, Store, StoreError};

/// What is in a store, by the prints of keys and values.
#[derive(Debug, Default)]
pub(crate) struct Written {
    by_key: HashMap<[u64; 2], u64>,
    prints: Prints,
}

impl Written {
    pub(crate) fn set(&mut self, key: &str, value: &[u8]) {
        self.by_key.insert(self.prints.of_key(key), self.prints.of_body(value));
    }

    /// Whether an op leaves all as it is.
    pub(crate) fn has(&self, op: &Op) -> bool {
        let there = self.by_key.get(&self.prints.of_key(op.key()));
        matches!((there, op), (Some(print), Op::Put(_, value)) if *print == self.prints.of_body(value))
    }

    /// This was done.
    pub(crate) fn note(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Put(key, value) => self.set(key, value),
                Op::Delete(key) => _ = self.by_key.remove(&self.prints.of_key(key)),
            }
        }
    }
}

/// Does all of this, and tells what was done; after an error, the rest is there still. Of one key, the last counts.
pub(crate) fn write(store: &dyn Store, ops: &mut Vec<Op>, mut done: impl FnMut(&[Op])) -> Result<(), StoreError> {
    let limits = store.limits();
    *ops = in_order(std::mem::take(ops), limits);
    while !ops.is_empty() {
        let count = fitting(ops, limits);
        let some = ops.get(..count).unwrap_or_default();
        let _ = store.commit(some, &[])?;
        done(some);
        ops.drain(..count);
    }
    Ok(())
}

/// Each key once. What others refer to is put before them, and deleted after them: a reader in between finds what is there whole.
fn in_order(mut ops: Vec<Op>, limits: Limits) -> Vec<Op> {
    // The last of each key comes first.
    ops.reverse();
    ops.sort_by(|one, other| one.key().cmp(other.key()));
    ops.dedup_by(|next, first| next.key() == first.key());
    for op in &mut ops {
        if op.size() > limits.bytes {
            let (key, bytes, most) = (op.key().to_owned(), op.size(), limits.bytes);
            tracing::warn!(
                key = key.escape_debug().to_string(),
                bytes,
                most,
                "it is larger than the store takes, and not kept there"
            );
            *op = Op::Delete(key);
        }
    }
    let is_body = |op: &Op| op.key().starts_with(BODIES);
    ops.sort_by_key(|op| match op {
        Op::Put(..) if is_body(op) => 0,
        Op::Put(..) => 1,
        Op::Delete(_) if is_body(op) => 3,
        Op::Delete(_) => 2,
    });
    ops
}

/// How many of them, from the first, are one commit: one at least.
fn fitting(ops: &[Op], limits: Limits) -> usize {
    let mut bytes = 0_usize;
    let fits = |op: &&Op| {
        bytes = bytes.saturating_add(op.size());
        bytes <= limits.bytes
    };
    ops.iter().take(limits.ops).take_while(fits).count().max(1).min(ops.len())
}
