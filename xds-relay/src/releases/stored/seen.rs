//! What is told by its hash, as it was heard or read: it never changes, so that nobody needs to read it twice.

use std::collections::HashMap;

use bytes::Bytes;

use crate::releases::manifest::BodyHash;

/// How much of it is kept: all is read once more after that.
const MOST_BYTES: usize = 64 << 20;

/// Parts of manifests, and bodies that are new.
#[derive(Default)]
pub(super) struct Seen {
    by_hash: HashMap<BodyHash, Bytes>,
    bytes: usize,
}

impl Seen {
    /// What has another hash than its key says is damaged, and nothing to be remembered.
    pub(super) fn insert(&mut self, hash: BodyHash, content: Bytes) {
        if self.bytes.saturating_add(content.len()) > MOST_BYTES {
            self.by_hash.clear();
            self.bytes = 0;
        }
        let (size, before) = (content.len(), self.by_hash.insert(hash, content));
        self.bytes = (self.bytes + size).saturating_sub(before.map_or(0, |before| before.len()));
    }

    pub(super) fn of(&self, hash: BodyHash) -> Option<&Bytes> {
        self.by_hash.get(&hash)
    }

    /// The rest is served, or was for nobody.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&BodyHash) -> bool) {
        self.by_hash.retain(|hash, _| is_kept(hash));
        self.by_hash.shrink_to_fit();
        self.bytes = self.by_hash.values().map(Bytes::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_that_is_kept() {
        let mut seen = Seen::default();
        let content = |byte| Bytes::from(vec![byte; MOST_BYTES / 3 + 1]);
        let hash = |byte| BodyHash([byte; 32]);
        for byte in [1, 1, 2] {
            seen.insert(hash(byte), content(byte));
        }
        assert_eq!(seen.bytes, 2 * (MOST_BYTES / 3 + 1), "the same once more is no more");
        seen.insert(hash(3), content(3));
        let is_there = |seen: &Seen| [1, 2, 3].map(|byte| seen.of(hash(byte)).is_some());
        assert_eq!((is_there(&seen), seen.bytes), ([false, false, true], MOST_BYTES / 3 + 1));
        seen.insert(hash(1), Bytes::from_static(b"1"));
        seen.retain(|kept| *kept == hash(1));
        assert_eq!((is_there(&seen), seen.bytes), ([true, false, false], 1));
    }
}
