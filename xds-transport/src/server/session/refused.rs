//! What a client refused, for those who show it.

use std::collections::BTreeMap;

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
}

impl Refused {
    /// A response was refused that puts these.
    pub(crate) fn refuse(&mut self, nonce: u64, names: impl IntoIterator<Item = ResourceName>) {
        for name in names {
            if self.nonces.len() < MOST || self.nonces.contains_key(&name) {
                self.nonces.insert(name, nonce);
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
    }

    /// It is gone.
    #[inline]
    pub(crate) fn forget(&mut self, name: &ResourceName) {
        if !self.nonces.is_empty() {
            self.nonces.remove(name);
        }
    }

    /// The response that brought it, if that was refused.
    pub(crate) fn nonce_of(&self, name: &ResourceName) -> Option<u64> {
        self.nonces.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_everything_is_not_kept_all_of() {
        let name = |n: usize| ResourceName::parse(&n.to_string()).unwrap();
        let mut refused = Refused::default();
        refused.refuse(1, (0..2 * MOST).map(name));
        assert_eq!((refused.nonces.len(), refused.nonce_of(&name(0))), (MOST, Some(1)));
        refused.refuse(2, (0..2 * MOST).map(name));
        assert_eq!((refused.nonces.len(), refused.nonce_of(&name(0))), (MOST, Some(2)));
        refused.accept(&[name(0)]);
        refused.refuse(3, [name(MOST)]);
        assert_eq!((refused.nonce_of(&name(0)), refused.nonce_of(&name(MOST))), (None, Some(3)));
    }
}
