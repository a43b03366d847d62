//! An engine that forgets all when the process ends: for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::federation::lock;
use crate::state::changes::{Changes, Watch};
use crate::state::store::{Commit, Compare, Entry, Listing, Op, Revision, Store, StoreError};

/// A store in memory. Clones are the same store, as after a restart.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    content: Mutex<Content>,
    changes: Arc<Changes>,
}

#[derive(Debug, Default)]
struct Content {
    revision: Revision,
    by_key: BTreeMap<String, (Revision, Bytes)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self(Arc::new(Inner { content: Mutex::default(), changes: Changes::since(0) }))
    }
}

impl Store for Memory {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let content = lock(&self.0.content);
        let found = content.by_key.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        let entry = |(key, (revision, value)): (&String, &(Revision, Bytes))| Entry {
            key: key.clone(),
            value: value.clone(),
            revision: *revision,
        };
        Ok(Listing { entries: found.map(entry).collect(), revision: content.revision, ..Listing::default() })
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.0.changes.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        let mut content = lock(&self.0.content);
        let holds = |compare: &Compare| {
            let (revision, _) = content.by_key.get(&compare.key).cloned().unwrap_or_default();
            revision == compare.revision
        };
        if !compares.iter().all(holds) {
            return Ok(Commit::Conflict);
        }
        content.revision += 1;
        let revision = content.revision;
        for op in ops {
            match op {
                Op::Put(key, value) => _ = content.by_key.insert(key.clone(), (revision, value.clone())),
                Op::Delete(key) => _ = content.by_key.remove(key),
            }
        }
        self.0.changes.record(revision, ops);
        Ok(Commit::Done(revision))
    }
}
