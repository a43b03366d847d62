//! The bodies that are kept: what several have, once, for as long as one of them has it.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::state::format::{Hash, body_key};
use crate::state::store::Op;

/// Which body each key has, and how many have each. A body that one has alone is written with what is known of that, so that a
/// change is one write; where others have it, too, they have it together. Keys are hashed: they are long, and there are many.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    by_key: HashMap<[u8; 16], Of>,
    users: HashMap<Hash, Users>,
    /// Those that are new, with their content.
    new: HashMap<Hash, Bytes>,
    /// Those that nothing has any more.
    gone: HashSet<Hash>,
}

/// What a key has.
#[derive(Clone, Copy, Debug)]
struct Of {
    hash: Hash,
    alone: bool,
}

/// Who has a body.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    alone: usize,
    together: usize,
}

impl Bodies {
    /// A body is kept that nothing is known to have.
    pub(crate) fn orphan(&mut self, hash: Hash) {
        self.gone.insert(hash);
    }

    /// A key has this body, which is kept: with it alone, or for all who have it.
    pub(crate) fn read(&mut self, key: &str, hash: Hash, alone: bool) {
        if !alone {
            self.gone.remove(&hash);
        }
        self.by_key.insert(short(key), Of { hash, alone });
        let users = self.users.entry(hash).or_default();
        *(if alone { &mut users.alone } else { &mut users.together }) += 1;
    }

    /// A key has this body from now on, or none. Whether it is to be written with what is known of the key.
    pub(crate) fn set(&mut self, key: &str, body: Option<(Hash, Bytes)>) -> bool {
        let short = short(key);
        let before = self.by_key.remove(&short);
        let mut is_alone = false;
        if let Some((hash, content)) = body {
            let users = self.users.entry(hash).or_default();
            is_alone = match before {
                Some(before) if before.hash == hash => before.alone,
                _ => users.alone + users.together == 0,
            };
            self.by_key.insert(short, Of { hash, alone: is_alone });
            *(if is_alone { &mut users.alone } else { &mut users.together }) += 1;
            if !is_alone && users.together == 1 && !self.gone.remove(&hash) {
                self.new.insert(hash, content);
            }
        }
        if let Some(Of { hash, alone }) = before {
            self.leave(hash, alone);
        }
        is_alone
    }

    fn leave(&mut self, hash: Hash, alone: bool) {
        let users = self.users.entry(hash).or_default();
        let count = if alone { &mut users.alone } else { &mut users.together };
        *count = count.saturating_sub(1);
        let is_kept_for_nobody = !alone && users.together == 0;
        if users.alone + users.together == 0 {
            self.users.remove(&hash);
        }
        if is_kept_for_nobody && self.new.remove(&hash).is_none() {
            self.gone.insert(hash);
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
    fn a_body_that_several_have_is_kept_once_and_as_long_as_one_of_them_has_it() {
        let mut bodies = Bodies::default();
        assert!(bodies.set("a", body("1")), "alone");
        assert_eq!(ops(&mut bodies), (0, 0));
        for key in ["b", "c"] {
            assert!(!bodies.set(key, body("1")));
        }
        assert_eq!(ops(&mut bodies), (1, 0));
        assert!(bodies.set("a", body("1")), "as it was");
        assert!(!bodies.set("b", body("1")));
        assert!(bodies.set("a", body("2")));
        bodies.set("b", None);
        assert_eq!(ops(&mut bodies), (0, 0), "the third has it");
        bodies.set("c", None);
        assert_eq!(ops(&mut bodies), (0, 1));
        // What comes and goes between two looks leaves nothing to do.
        assert!(!bodies.set("d", body("2")));
        bodies.set("d", None);
        bodies.set("a", None);
        bodies.set("a", None);
        assert_eq!(ops(&mut bodies), (0, 0));
        assert!(bodies.by_key.is_empty() && bodies.users.is_empty());
    }

    #[test]
    fn what_was_read_is_not_written_and_an_orphan_goes() {
        let mut bodies = Bodies::default();
        for text in ["1", "2"] {
            bodies.orphan(hash_of(text.as_bytes()));
        }
        bodies.read("a", hash_of(b"1"), false);
        bodies.read("own", hash_of(b"3"), true);
        assert_eq!(ops(&mut bodies), (0, 1));
        assert!(!bodies.set("b", body("1")));
        bodies.set("a", None);
        assert!(bodies.set("own", body("3")));
        assert_eq!(ops(&mut bodies), (0, 0));
    }
}
