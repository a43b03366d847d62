//! The keys that are kept, and their bodies: what several have, once, for as long as one of them has it.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::state::format::{Hash, body_key};
use crate::state::store::Op;

/// Which keys are kept and which body each has, and how many have each. A body that one has alone is written with what is known
/// of that, so that a change is one write; where others have it, too, they have it together. Keys are hashed: they are long, and
/// there are many.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// Some have no body that others could have, too.
    by_key: HashMap<[u8; 16], Option<Of>>,
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

/// What became of a key that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    /// It was not before.
    pub(crate) is_new: bool,
    /// Its body is to be written with what is known of it.
    pub(crate) is_alone: bool,
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

    /// A key is kept, with this body, if it has one: with it alone, or for all who have it.
    pub(crate) fn read(&mut self, key: &str, body: Option<(Hash, bool)>) {
        let of = body.map(|(hash, alone)| Of { hash, alone });
        self.by_key.insert(short(key), of);
        let Some(Of { hash, alone }) = of else { return };
        if !alone {
            self.gone.remove(&hash);
        }
        let users = self.users.entry(hash).or_default();
        *(if alone { &mut users.alone } else { &mut users.together }) += 1;
    }

    /// A key is kept, and has this body from now on, or none.
    pub(crate) fn set(&mut self, key: &str, body: Option<(Hash, Bytes)>) -> Set {
        let short = short(key);
        let kept = self.by_key.remove(&short);
        let before = kept.flatten();
        let of = body.map(|(hash, content)| self.join(before, hash, content));
        self.by_key.insert(short, of);
        if let Some(Of { hash, alone }) = before {
            self.leave(hash, alone);
        }
        Set { is_new: kept.is_none(), is_alone: of.is_some_and(|of| of.alone) }
    }

    /// A key is not kept any more. Whether it was.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let kept = self.by_key.remove(&short(key));
        if let Some(Some(Of { hash, alone })) = kept {
            self.leave(hash, alone);
        }
        kept.is_some()
    }

    fn join(&mut self, before: Option<Of>, hash: Hash, content: Bytes) -> Of {
        let users = self.users.entry(hash).or_default();
        let alone = match before {
            Some(before) if before.hash == hash => before.alone,
            _ => users.alone + users.together == 0,
        };
        *(if alone { &mut users.alone } else { &mut users.together }) += 1;
        if !alone && users.together == 1 && !self.gone.remove(&hash) {
            self.new.insert(hash, content);
        }
        Of { hash, alone }
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
        let alone = |bodies: &mut Bodies, key, text| bodies.set(key, body(text)).is_alone;
        assert!(alone(&mut bodies, "a", "1"), "alone");
        assert_eq!(ops(&mut bodies), (0, 0));
        for key in ["b", "c"] {
            assert!(!alone(&mut bodies, key, "1"));
        }
        assert_eq!(ops(&mut bodies), (1, 0));
        assert!(alone(&mut bodies, "a", "1"), "as it was");
        assert!(!alone(&mut bodies, "b", "1"));
        assert!(alone(&mut bodies, "a", "2"));
        bodies.remove("b");
        assert_eq!(ops(&mut bodies), (0, 0), "the third has it");
        bodies.set("c", None);
        assert_eq!(ops(&mut bodies), (0, 1));
        // What comes and goes between two looks leaves nothing to do.
        assert!(!alone(&mut bodies, "d", "2"));
        ["d", "a", "a", "c"].into_iter().for_each(|key| _ = bodies.remove(key));
        assert_eq!(ops(&mut bodies), (0, 0));
        assert!(bodies.by_key.is_empty() && bodies.users.is_empty());
    }

    #[test]
    fn what_was_read_is_not_written_and_an_orphan_goes() {
        let mut bodies = Bodies::default();
        for text in ["1", "2"] {
            bodies.orphan(hash_of(text.as_bytes()));
        }
        bodies.read("a", Some((hash_of(b"1"), false)));
        bodies.read("own", Some((hash_of(b"3"), true)));
        assert_eq!(ops(&mut bodies), (0, 1));
        assert!(!bodies.set("b", body("1")).is_alone);
        bodies.remove("a");
        assert!(bodies.set("own", body("3")).is_alone);
        assert_eq!(ops(&mut bodies), (0, 0));
    }

    #[test]
    fn a_key_is_new_that_was_not_kept_whether_it_has_a_body_or_not() {
        let mut bodies = Bodies::default();
        bodies.read("none", None);
        bodies.read("some", Some((hash_of(b"1"), true)));
        for key in ["none", "some"] {
            assert!(!bodies.set(key, body("2")).is_new);
            assert!(!bodies.set(key, None).is_new);
            assert_eq!([bodies.remove(key), bodies.remove(key)], [true, false]);
            assert_eq!(bodies.set(key, None), Set { is_new: true, is_alone: false });
        }
    }
}
