//! The bodies that are kept: each once, for as long as something has it.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::state::format::{Hash, body_key};
use crate::state::store::Op;

/// Which body each key has, and how many have each. Keys are hashed: they are long, and there are many.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    by_key: HashMap<[u8; 16], Hash>,
    counts: HashMap<Hash, usize>,
    /// Those that are new, with their content.
    new: HashMap<Hash, Bytes>,
    /// Those that nothing has any more.
    gone: HashSet<Hash>,
}

impl Bodies {
    /// A body is kept that nothing is known to have.
    pub(crate) fn orphan(&mut self, hash: Hash) {
        self.gone.insert(hash);
    }

    /// A key has this body, which is kept.
    pub(crate) fn read(&mut self, key: &str, hash: Hash) {
        self.gone.remove(&hash);
        self.by_key.insert(short(key), hash);
        *self.counts.entry(hash).or_default() += 1;
    }

    /// A key has this body from now on, or none.
    pub(crate) fn set(&mut self, key: &str, body: Option<(Hash, Bytes)>) {
        let short = short(key);
        let before = match &body {
            Some((hash, _)) => self.by_key.insert(short, *hash),
            None => self.by_key.remove(&short),
        };
        if let Some((hash, content)) = body {
            let count = self.counts.entry(hash).or_default();
            *count += 1;
            if *count == 1 && !self.gone.remove(&hash) {
                self.new.insert(hash, content);
            }
        }
        if let Some(before) = before {
            let count = self.counts.entry(before).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&before);
                if self.new.remove(&before).is_none() {
                    self.gone.insert(before);
                }
            }
        }
    }

    /// What is to be done with bodies since the last call.
    pub(crate) fn take_ops(&mut self) -> Vec<Op> {
        let put = self.new.drain().map(|(hash, content)| Op::Put(body_key(&hash), content));
        put.chain(self.gone.drain().map(|hash| Op::Delete(body_key(&hash)))).collect()
    }
}

fn short(key: &str) -> [u8; 16] {
    let mut short = [0; 16];
    short.iter_mut().zip(Sha256::digest(key)).for_each(|(to, from)| *to = from);
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::format::hash_of;

    fn body(text: &'static str) -> Option<(Hash, Bytes)> {
        Some((hash_of(text.as_bytes()), Bytes::from_static(text.as_bytes())))
    }

    fn ops(bodies: &mut Bodies) -> (usize, usize) {
        let ops = bodies.take_ops();
        let puts = ops.iter().filter(|op| matches!(op, Op::Put(..))).count();
        (puts, ops.len() - puts)
    }

    #[test]
    fn a_body_is_kept_once_and_as_long_as_something_has_it() {
        let mut bodies = Bodies::default();
        bodies.set("a", body("1"));
        bodies.set("b", body("1"));
        assert_eq!(ops(&mut bodies), (1, 0));
        bodies.set("a", body("1"));
        bodies.set("a", body("2"));
        assert_eq!(ops(&mut bodies), (1, 0));
        bodies.set("b", None);
        assert_eq!(ops(&mut bodies), (0, 1));
        // What comes and goes between two looks leaves nothing to do.
        bodies.set("c", body("3"));
        bodies.set("c", None);
        bodies.set("a", None);
        bodies.set("d", body("2"));
        assert_eq!(ops(&mut bodies), (0, 0));
        bodies.set("d", None);
        bodies.set("d", None);
        assert_eq!(ops(&mut bodies), (0, 1));
        assert!(bodies.by_key.is_empty() && bodies.counts.is_empty());
    }

    #[test]
    fn what_was_read_is_not_written_and_an_orphan_goes() {
        let mut bodies = Bodies::default();
        for text in ["1", "2"] {
            bodies.orphan(hash_of(text.as_bytes()));
        }
        bodies.read("a", hash_of(b"1"));
        assert_eq!(ops(&mut bodies), (0, 1));
        bodies.set("b", body("1"));
        bodies.set("a", None);
        assert_eq!(ops(&mut bodies), (0, 0));
    }
}
