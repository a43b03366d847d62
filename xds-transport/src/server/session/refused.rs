//! What a client refused, for those who show it.

use std::collections::HashMap;

use xdstp_uri::ResourceName;

/// How many names are kept of one session: who refuses more is broken as a whole.
const MOST: usize = 1024;

/// The resources whose last response was refused, each with the nonce of that.
///
/// Nobody is sent anything by it: a source knows what was sent, and that does not change when it is refused (rule 23).
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Mostly nothing is refused, and then it takes next to no room.
    nonces: Option<Box<HashMap<ResourceName, u64>>>,
}

impl Refused {
    /// A response was refused that puts these.
    pub(crate) fn refuse(&mut self, nonce: u64, names: impl IntoIterator<Item = ResourceName>) {
        let nonces = self.nonces.get_or_insert_default();
        for name in names {
            if nonces.len() < MOST || nonces.contains_key(&name) {
                nonces.insert(name, nonce);
            }
        }
    }

    /// A response was accepted that puts these.
    #[inline]
    pub(crate) fn accept(&mut self, names: &[ResourceName]) {
        if let Some(nonces) = &mut self.nonces {
            names.iter().for_each(|name| _ = nonces.remove(name));
        }
    }

    /// It is gone.
    #[inline]
    pub(crate) fn forget(&mut self, name: &ResourceName) {
        if let Some(nonces) = &mut self.nonces {
            nonces.remove(name);
        }
    }

    /// The response that brought it, if that was refused.
    pub(crate) fn nonce_of(&self, name: &ResourceName) -> Option<u64> {
        self.nonces.as_ref()?.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_everything_is_not_kept_all_of() {
        let name = |n: usize| ResourceName::parse(&n.to_string()).unwrap();
        let mut refused = Refused::default();
        let kept = |refused: &Refused| refused.nonces.as_ref().map_or(0, |nonces| nonces.len());
        refused.refuse(1, (0..2 * MOST).map(name));
        assert_eq!((kept(&refused), refused.nonce_of(&name(0))), (MOST, Some(1)));
        refused.refuse(2, (0..2 * MOST).map(name));
        assert_eq!((kept(&refused), refused.nonce_of(&name(0))), (MOST, Some(2)));
        refused.accept(&[name(0)]);
        refused.refuse(3, [name(MOST)]);
        assert_eq!((refused.nonce_of(&name(0)), refused.nonce_of(&name(MOST))), (None, Some(3)));
    }
}
