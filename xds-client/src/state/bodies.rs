//! The keys that are kept, and their bodies: what several have, once, for as long as one of them has it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::state::format::{Hash, body_key, hash_of};
use crate::state::prints::Prints;
use crate::state::store::Op;

/// Which keys are kept and which body each has, and how many have each. A body that one has alone is written with what is known
/// of that, so that a change is one write; where others have it, too, they have it together. Keys are known by their prints: they
/// are long, and there are many.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// Some have no body that others could have, too.
    by_key: HashMap<[u64; 2], Option<Of>>,
    users: Users,
    prints: Prints,
}

/// What a key has. A body is hashed only where another seems to be the same: what is written for several is told by that.
#[derive(Clone, Debug)]
enum Of {
    /// Of this print.
    Alone(u64),
    Together(Arc<Shared>),
}

/// A body that is written for all who have it.
#[derive(Debug)]
struct Shared {
    print: u64,
    hash: Hash,
}

/// What became of a key that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    /// It was not before.
    pub(crate) is_new: bool,
    /// What its body is told by that others have, too: any other is to be written with what is known of the key.
    pub(crate) together: Option<Hash>,
}

impl Bodies {
    /// A body is kept that nothing is known to have.
    pub(crate) fn orphan(&mut self, hash: Hash) {
        self.users.gone.insert(hash);
    }

    /// A key is kept, with this body, if it has one: with it alone, or for all who have that of this hash.
    pub(crate) fn read(&mut self, key: &str, body: Option<(&[u8], Option<Hash>)>) {
        let of = body.map(|(content, together)| {
            let print = self.prints.of_body(content);
            self.users.read(print, together)
        });
        self.by_key.insert(self.prints.of_key(key), of);
    }

    /// A key is kept, and has this body from now on, or none.
    pub(crate) fn set(&mut self, key: &str, body: Option<Bytes>) -> Set {
        let body = body.map(|content| (self.prints.of_body(&content), content));
        match self.by_key.entry(self.prints.of_key(key)) {
            Entry::Vacant(entry) => {
                let of = entry.insert(body.map(|body| self.users.join(None, body)));
                Set { is_new: true, together: of.as_ref().and_then(Of::together) }
            }
            Entry::Occupied(mut entry) => {
                let of = body.map(|body| self.users.join(entry.get().as_ref(), body));
                let together = of.as_ref().and_then(Of::together);
                if let Some(before) = entry.insert(of) {
                    self.users.leave(&before);
                }
                Set { is_new: false, together }
            }
        }
    }

    /// A key is not kept any more. Whether it was.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let kept = self.by_key.remove(&self.prints.of_key(key));
        if let Some(Some(before)) = &kept {
            self.users.leave(before);
        }
        kept.is_some()
    }

    /// What is to be done with bodies since the last call.
    pub(crate) fn take_ops(&mut self) -> Vec<Op> {
        let put = self.users.new.drain().map(|(hash, content)| Op::Put(body_key(&hash), content));
        put.chain(self.users.gone.drain().map(|hash| Op::Delete(body_key(&hash)))).collect()
    }
}

impl Of {
    fn together(&self) -> Option<Hash> {
        match self {
            Self::Alone(_) => None,
            Self::Together(shared) => Some(shared.hash),
        }
    }
}

/// Who has what.
#[derive(Debug, Default)]
struct Users {
    /// How many have a body of this print, alone or together.
    by_print: HashMap<u64, usize>,
    together: HashMap<Hash, (Arc<Shared>, usize)>,
    /// Those that are new, with their content.
    new: HashMap<Hash, Bytes>,
    /// Those that nothing has any more.
    gone: HashSet<Hash>,
}

impl Users {
    fn read(&mut self, print: u64, together: Option<Hash>) -> Of {
        *self.by_print.entry(print).or_default() += 1;
        let Some(hash) = together else { return Of::Alone(print) };
        self.gone.remove(&hash);
        self.share(print, hash)
    }

    fn join(&mut self, before: Option<&Of>, (print, content): (u64, Bytes)) -> Of {
        let users = self.by_print.entry(print).or_default();
        let is_alone = *users == 0 || matches!(before, Some(Of::Alone(before)) if *before == print);
        *users += 1;
        if is_alone {
            return Of::Alone(print);
        }
        let hash = hash_of(&content);
        if !self.together.contains_key(&hash) && !self.gone.remove(&hash) {
            self.new.insert(hash, content);
        }
        self.share(print, hash)
    }

    fn share(&mut self, print: u64, hash: Hash) -> Of {
        let (shared, users) = self.together.entry(hash).or_insert_with(|| (Arc::new(Shared { print, hash }), 0));
        *users += 1;
        Of::Together(shared.clone())
    }

    fn leave(&mut self, before: &Of) {
        let print = match before {
            Of::Alone(print) => *print,
            Of::Together(shared) => shared.print,
        };
        if let Entry::Occupied(mut users) = self.by_print.entry(print) {
            *users.get_mut() -= 1;
            if *users.get() == 0 {
                users.remove();
            }
        }
        let Of::Together(shared) = before else { return };
        if let Entry::Occupied(mut users) = self.together.entry(shared.hash) {
            users.get_mut().1 -= 1;
            if users.get().1 > 0 {
                return;
            }
            users.remove();
        }
        if self.new.remove(&shared.hash).is_none() {
            self.gone.insert(shared.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    fn ops(bodies: &mut Bodies) -> (usize, usize) {
        let ops = bodies.take_ops();
        let puts = ops.iter().filter(|op| matches!(op, Op::Put(..))).count();
        (puts, ops.len() - puts)
    }

    #[test]
    fn a_body_that_several_have_is_kept_once_and_as_long_as_one_of_them_has_it() {
        let mut bodies = Bodies::default();
        let alone = |bodies: &mut Bodies, key, text| bodies.set(key, body(text)).together.is_none();
        assert!(alone(&mut bodies, "a", "1"), "alone");
        assert_eq!(ops(&mut bodies), (0, 0));
        for key in ["b", "c"] {
            assert_eq!(bodies.set(key, body("1")).together, Some(hash_of(b"1")));
        }
        assert_eq!(ops(&mut bodies), (1, 0));
        assert!(alone(&mut bodies, "a", "1"), "as it was");
        assert!(!alone(&mut bodies, "b", "1"));
        assert!(alone(&mut bodies, "a", "2"));
        bodies.remove("b");
        assert_eq!(ops(&mut bodies), (0, 0), "the third has it");
        assert!(!alone(&mut bodies, "c", "1"), "as it was");
        assert_eq!(ops(&mut bodies), (0, 0));
        bodies.set("c", None);
        assert_eq!(ops(&mut bodies), (0, 1));
        // What comes and goes between two looks leaves nothing to do.
        assert!(!alone(&mut bodies, "d", "2"));
        ["d", "a", "a", "c"].into_iter().for_each(|key| _ = bodies.remove(key));
        assert_eq!(ops(&mut bodies), (0, 0));
        assert!(bodies.by_key.is_empty() && bodies.users.by_print.is_empty() && bodies.users.together.is_empty());
    }

    #[test]
    fn what_was_read_is_not_written_and_an_orphan_goes() {
        let mut bodies = Bodies::default();
        for text in ["1", "2"] {
            bodies.orphan(hash_of(text.as_bytes()));
        }
        bodies.read("a", Some((b"1", Some(hash_of(b"1")))));
        bodies.read("own", Some((b"3", None)));
        assert_eq!(ops(&mut bodies), (0, 1));
        assert!(bodies.set("b", body("1")).together.is_some());
        bodies.remove("a");
        assert!(bodies.set("own", body("3")).together.is_none());
        assert_eq!(ops(&mut bodies), (0, 0));
    }

    #[test]
    fn a_key_is_new_that_was_not_kept_whether_it_has_a_body_or_not() {
        let mut bodies = Bodies::default();
        bodies.read("none", None);
        bodies.read("some", Some((b"1", None)));
        for key in ["none", "some"] {
            assert!(!bodies.set(key, body("2")).is_new);
            assert!(!bodies.set(key, None).is_new);
            assert_eq!([bodies.remove(key), bodies.remove(key)], [true, false]);
            assert_eq!(bodies.set(key, None), Set { is_new: true, together: None });
        }
    }

    /// Who has one of them keeps it, whatever becomes of the other.
    #[test]
    fn bodies_that_seem_to_be_the_same_and_are_not_are_kept_each_by_itself() {
        let mut users = Users::default();
        let content = |text: &'static str| (7, Bytes::from_static(text.as_bytes()));
        let first = users.join(None, content("1"));
        let [second, third, fourth] = ["2", "2", "3"].map(|text| users.join(None, content(text)));
        let together = [&first, &second, &third, &fourth].map(Of::together);
        let [two, three] = ["2", "3"].map(|text| hash_of(text.as_bytes()));
        assert_eq!(together, [None, Some(two), Some(two), Some(three)]);
        assert_eq!(users.new.keys().collect::<HashSet<_>>(), HashSet::from([&two, &three]));
        assert!(users.join(Some(&first), content("4")).together().is_none());
        users.leave(&first);
        users.new.clear();
        [&second, &fourth].into_iter().for_each(|of| users.leave(of));
        assert_eq!(users.gone, HashSet::from([three]));
        assert_eq!((users.by_print.get(&7), users.together.len()), (Some(&2), 1));
    }
}
