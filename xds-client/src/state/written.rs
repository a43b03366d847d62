//! What is written, in as many commits as a store needs: what something refers to is there before, and goes after it.

use std::collections::HashMap;

use crate::state::format::{BODIES, FORMAT_KEY, OWNERS, SCOPES};
use crate::state::prints::Prints;
use crate::state::store::{Commit, Limits, Op, Revision, Store, StoreError};

/// What is in a store, by the prints of keys and values, and how large that is.
#[derive(Debug, Default)]
pub(crate) struct Written {
    by_key: HashMap<[u64; 2], Of>,
    bytes: usize,
    prints: Prints,
    revision: Revision,
}

#[derive(Debug)]
struct Of {
    /// None of what is to be written anew, be it the same.
    print: Option<u64>,
    bytes: usize,
}

impl Written {
    /// This is there; it is to be written anew if it is `old`.
    pub(crate) fn set(&mut self, key: &str, value: &[u8], old: bool) {
        let print = (!old).then(|| self.prints.of_body(value));
        let of = Of { print, bytes: key.len() + value.len() };
        self.bytes += of.bytes;
        self.leave(key, Some(of));
    }

    /// Whether an op leaves all as it is.
    pub(crate) fn has(&self, op: &Op) -> bool {
        let there = self.by_key.get(&self.prints.of_key(op.key()));
        matches!((there, op), (Some(of), Op::Put(_, value)) if of.print == Some(self.prints.of_body(value)))
    }

    /// Whether there is anything under a key.
    pub(crate) fn has_any(&self, key: &str) -> bool {
        self.by_key.contains_key(&self.prints.of_key(key))
    }

    /// How large all keys and values are together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn leave(&mut self, key: &str, next: Option<Of>) {
        let key = self.prints.of_key(key);
        let before = match next {
            Some(next) => self.by_key.insert(key, next),
            None => self.by_key.remove(&key),
        };
        self.bytes -= before.map_or(0, |before| before.bytes);
    }

    /// This was done, and the store is at this revision since.
    ///
    /// # Errors
    /// The store was put back to what it was: what is there is not known.
    pub(crate) fn note(&mut self, ops: &[Op], revision: Revision) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.revision, revision) > revision {
            return Err(StoreError::Unsure("it was put back to what it was before".to_owned()));
        }
        for op in ops {
            match op {
                Op::Put(key, value) => self.set(key, value, false),
                Op::Delete(key) => self.leave(key, None),
            }
        }
        Ok(())
    }
}

/// Does all of this, in that order, and tells what was done; after an error, the rest is there still.
pub(crate) fn write(
    store: &dyn Store,
    ops: &mut Vec<Op>,
    mut done: impl FnMut(&[Op], Revision) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let limits = store.limits();
    while !ops.is_empty() {
        let count = fitting(ops, limits);
        let some = ops.get(..count).unwrap_or_default();
        if let Commit::Done(revision) = store.commit(some, &[])? {
            done(some, revision)?;
        }
        ops.drain(..count);
    }
    Ok(())
}

/// Each key once, with what was to be done last. What is deleted makes room; what others refer to is put before them, and deleted after them: whoever
/// reads in between finds nothing that is not whole.
pub(crate) fn in_order(mut ops: Vec<Op>, limits: Limits) -> Vec<Op> {
    // The last of each key comes first.
    ops.reverse();
    ops.sort_by(|one, other| one.key().cmp(other.key()));
    ops.dedup_by(|next, first| next.key() == first.key());
    for op in &mut ops {
        if op.size() > limits.bytes {
            let (key, bytes, most) = (op.key().to_owned(), op.size(), limits.bytes);
            let said = key.escape_debug().to_string();
            tracing::warn!(key = said, bytes, most, "it is larger than the store takes, and not kept there");
            *op = Op::Delete(key);
        }
    }
    let is_body = |key: &str| key.starts_with(BODIES);
    let is_collection = |key: &str| key.ends_with('*');
    ops.sort_by_key(|op| match op {
        Op::Put(key, _) if key == FORMAT_KEY => 0,
        Op::Delete(key) if !is_body(key) => 1,
        Op::Put(key, _) if is_body(key) => 2,
        Op::Put(key, _) if key.starts_with(SCOPES) => 3,
        // What is said of all of them counts when they are there.
        Op::Put(key, _) if is_collection(key) || key.starts_with(OWNERS) => 5,
        Op::Put(..) => 4,
        Op::Delete(_) => 6,
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::federation::lock;
    use crate::state::changes::Watch;
    use crate::state::memory::Memory;
    use crate::state::store::{Compare, Listing};

    /// A store that takes no more than so much at once, and fails at a commit.
    struct Small {
        memory: Memory,
        limits: Limits,
        commits: Mutex<Vec<Vec<Op>>>,
        fails_at: usize,
    }

    impl Small {
        fn new(ops: usize, bytes: usize, fails_at: usize) -> Self {
            let limits = Limits { ops, bytes, ..Limits::default() };
            Self { memory: Memory::default(), limits, commits: Mutex::default(), fails_at }
        }
    }

    impl Store for Small {
        fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
            self.memory.list(prefix)
        }

        fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
            self.memory.watch(prefix, after)
        }

        fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
            assert!(ops.len() <= self.limits.ops && ops.iter().map(Op::size).sum::<usize>() <= self.limits.bytes);
            let commits = &mut *lock(&self.commits);
            if commits.len() == self.fails_at {
                return Err(StoreError::Away("it is".to_owned()));
            }
            commits.push(ops.to_vec());
            self.memory.commit(ops, compares)
        }

        fn limits(&self) -> Limits {
            self.limits
        }
    }

    fn body(name: &str) -> String {
        format!("{BODIES}{name}")
    }

    fn all(store: &Small, ops: &mut Vec<Op>) -> Result<(), StoreError> {
        *ops = in_order(std::mem::take(ops), store.limits());
        write(store, ops, |_, _| Ok(()))
    }

    #[test]
    fn what_others_refer_to_comes_before_them_and_goes_after_them_and_of_one_key_the_last_counts() {
        let store = Small::new(1, 100, usize::MAX);
        let scope = format!("{SCOPES}1");
        let mut ops = vec![
            Op::delete("z"),
            Op::delete(body("old")),
            Op::put("T*", "all"),
            Op::put("Ta", "1"),
            Op::put(body("new"), "x"),
            Op::put("Ta", "2"),
            Op::put("b", "1"),
            Op::delete("b"),
            Op::delete("Tc"),
            Op::put("Tc", "1"),
            Op::put(&*scope, "s"),
            Op::put(FORMAT_KEY, "1"),
        ];
        all(&store, &mut ops).unwrap();
        assert!(ops.is_empty());
        let done = lock(&store.commits).concat();
        let expected = [
            Op::put(FORMAT_KEY, "1"),
            Op::delete("b"),
            Op::delete("z"),
            Op::put(body("new"), "x"),
            Op::put(&*scope, "s"),
            Op::put("Ta", "2"),
            Op::put("Tc", "1"),
            Op::put("T*", "all"),
            Op::delete(body("old")),
        ];
        assert_eq!(done, expected);
    }

    #[test]
    fn what_was_not_done_is_there_still() {
        let store = Small::new(2, 100, 1);
        let mut ops: Vec<_> = ["a", "b", "c", "d", "e"].map(|key| Op::put(key, "1")).into();
        let mut done = Vec::new();
        let written = write(&store, &mut ops, |some, _| {
            done.extend_from_slice(some);
            Ok(())
        });
        assert!(written.is_err());
        assert_eq!(done, ["a", "b"].map(|key| Op::put(key, "1")));
        assert_eq!(ops, ["c", "d", "e"].map(|key| Op::put(key, "1")));
    }

    #[test]
    fn a_commit_is_as_large_as_it_may_be_and_what_is_larger_is_not_kept() {
        let store = Small::new(10, 8, usize::MAX);
        let mut ops = vec![Op::put("a", "1234567"), Op::put("b", "12345678"), Op::put("c", "123"), Op::put("d", "123")];
        all(&store, &mut ops).unwrap();
        let commits = lock(&store.commits);
        let keys = |ops: &Vec<Op>| ops.iter().map(|op| op.key().to_owned()).collect::<String>();
        assert_eq!(commits.iter().map(keys).collect::<Vec<_>>(), ["b", "a", "cd"]);
        let there = store.list("").unwrap().entries;
        assert_eq!(there.iter().map(|entry| &*entry.key).collect::<String>(), "acd");
    }

    #[test]
    fn what_is_there_is_known_as_long_as_it_is_so() {
        let mut written = Written::default();
        written.set("old", b"1", true);
        assert!(!written.has(&Op::put("old", "1")));
        written.set("a", b"1", false);
        assert!(
            written.has(&Op::put("a", "1")) && !written.has(&Op::put("a", "2")) && !written.has(&Op::put("b", "1"))
        );
        assert!(!written.has(&Op::delete("a")));
        written.note(&[Op::put("a", "2"), Op::delete("b")], 7).unwrap();
        assert!(written.has(&Op::put("a", "2")) && !written.has(&Op::put("a", "1")));
        written.note(&[Op::delete("a")], 7).unwrap();
        assert!(!written.has(&Op::put("a", "2")));
        assert_eq!(written.bytes(), "old1".len());
        written.note(&[Op::put("old", "123"), Op::put("b", "1"), Op::delete("none")], 7).unwrap();
        assert_eq!(written.bytes(), "old123b1".len());
        assert!(written.note(&[], 6).is_err(), "it was put back");
    }
}
