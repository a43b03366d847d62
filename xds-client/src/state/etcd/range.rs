//! A prefix of keys, as etcd has it: from a key on, up to another.

/// The keys that begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) key: Vec<u8>,
    pub(super) end: Vec<u8>,
}

impl KeyRange {
    /// Those that begin with a text, which is not empty. No byte of a text is the largest, so that the last can be one more.
    pub(super) fn of(prefix: &str) -> Self {
        let key = prefix.as_bytes().to_vec();
        let mut end = key.clone();
        if let Some(last) = end.last_mut() {
            *last = last.saturating_add(1);
        }
        Self { key, end }
    }

    /// Those of them that come after a key.
    pub(super) fn after(&self, key: &[u8]) -> Self {
        let mut next = key.to_vec();
        next.push(0);
        Self { key: next, end: self.end.clone() }
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        *self.key <= *key && *key < *self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_what_begins_with_its_prefix_and_nothing_else() {
        for prefix in ["a/", "a\u{7f}", "ü", "\u{10ffff}"] {
            let range = KeyRange::of(prefix);
            for (rest, text) in [("", true), ("\0", true), ("\u{10ffff}", true)] {
                assert_eq!(range.contains(format!("{prefix}{rest}").as_bytes()), text);
            }
            assert!(!range.contains(&prefix.as_bytes()[..prefix.len() - 1]) && !range.contains(&range.end));
        }
        let rest = KeyRange::of("a").after(b"ab");
        assert!(
            !rest.contains(b"ab") && rest.contains(b"ab\0") && rest.contains(b"b") == KeyRange::of("a").contains(b"b")
        );
    }
}
