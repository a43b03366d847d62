//! What a client refused, for those who show it.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_uri::ResourceName;

/// How many names are kept of one session: who refuses more is broken as a whole.
const MOST: usize = 1024;

/// The resources whose last response was refused, each with the nonce of that.
///
/// Nobody is sent anything by it: a source knows what was sent, and that does not change when it is refused (rule 23).
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Mostly there are none: an empty tree is half as large as an empty table.
    nonces: BTreeMap<ResourceName, u64>,
    /// Where more were refused than are kept.
    more: Option<Box<More>>,
}

/// Which were is not known. Of these it is that they are not, as they were accepted since.
#[derive(Debug, Default)]
struct More {
    accepted: BTreeSet<ResourceName>,
}

/// What became of the last response that had a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It was refused, and had this nonce.
    Refused(u64),
    /// It was accepted.
    Accepted,
    /// It may be one of those that are not kept.
    Unknown,
}

impl Refused {
    /// A response was refused that puts these.
    pub(crate) fn refuse(&mut self, nonce: u64, names: impl IntoIterator<Item = ResourceName>) {
        for name in names {
            if let Some(more) = &mut self.more {
                more.accepted.remove(&name);
            }
            if self.nonces.len() < MOST || self.nonces.contains_key(&name) {
                self.nonces.insert(name, nonce);
            } else {
                self.more.get_or_insert_default();
            }
        }
    }

    /// A response was accepted that puts these.
    #[inline]
    pub(crate) fn accept(&mut self, names: &[ResourceName]) {
        // Mostly nothing is refused.
        if !self.nonces.is_empty() {
            names.iter().for_each(|name| _ = self.nonces.remove(name));
        }
        if let Some(More { accepted }) = self.more.as_deref_mut() {
            let room = MOST.saturating_sub(accepted.len());
            let new: Vec<_> = names.iter().filter(|name| !accepted.contains(*name)).take(room).cloned().collect();
            accepted.extend(new);
        }
    }

    /// It is gone.
    #[inline]
    pub(crate) fn forget(&mut self, name: &ResourceName) {
        if !self.nonces.is_empty() {
            self.nonces.remove(name);
        }
        if let Some(more) = &mut self.more {
            more.accepted.remove(name);
        }
    }

    /// What became of the response that brought it, if that was answered.
    pub(crate) fn answered(&self, name: &ResourceName) -> Answered {
        match (self.nonces.get(name), &self.more) {
            (Some(nonce), _) => Answered::Refused(*nonce),
            (None, Some(more)) if !more.accepted.contains(name) => Answered::Unknown,
            (None, _) => Answered::Accepted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_everything_is_not_kept_all_of_and_of_what_is_not_kept_nothing_is_known_until_it_is_accepted() {
        use Answered::{Accepted, Refused as Was, Unknown};
        let name = |n: usize| ResourceName::parse(&n.to_string()).unwrap();
        let mut refused = Refused::default();
        let told = |refused: &Refused, numbers: [usize; 3]| numbers.map(|n| refused.answered(&name(n)));
        refused.refuse(1, (0..MOST).map(name));
        assert_eq!(told(&refused, [0, MOST - 1, MOST]), [Was(1), Was(1), Accepted]);
        refused.refuse(2, (0..2 * MOST).map(name));
        assert_eq!(refused.nonces.len(), MOST);
        assert_eq!(told(&refused, [0, MOST - 1, MOST]), [Was(2), Was(2), Unknown]);
        refused.accept(&[name(0), name(MOST)]);
        assert_eq!(told(&refused, [0, MOST, MOST + 1]), [Accepted, Accepted, Unknown]);
        refused.refuse(3, [name(MOST), name(MOST + 1)]);
        assert_eq!(told(&refused, [0, MOST, MOST + 1]), [Accepted, Was(3), Unknown]);
        // Under a name that is gone something else may come.
        refused.forget(&name(0));
        assert_eq!(told(&refused, [0, MOST, MOST + 1]), [Unknown, Was(3), Unknown]);
        (0..4).for_each(|n| refused.accept(&(n * MOST..(n + 1) * MOST).map(name).collect::<Vec<_>>()));
        assert!(refused.more.is_some_and(|more| more.accepted.len() == MOST), "it is bounded");
    }
}
