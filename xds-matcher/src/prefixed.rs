use alloc::boxed::Box;
use alloc::string::String;
use core::cmp::Ordering;
use core::ops::Deref;

/// A string with its first eight bytes at hand: keys and values are mostly told apart, and short ones recognised, by one comparison of
/// integers. Ordered like the string.
#[derive(Debug, Clone)]
pub(crate) struct Prefixed {
    /// Big-endian, so that its order is that of the bytes; padded with zeros.
    prefix: u64,
    text: Box<str>,
}

impl Prefixed {
    /// Whether it is `text`, whose prefix the caller has computed once.
    #[inline]
    pub(crate) fn is(&self, prefix: u64, text: &str) -> bool {
        self.prefix == prefix && self.text.len() == text.len() && (text.len() <= 8 || tail(&self.text) == tail(text))
    }

    pub(crate) fn prefix(&self) -> u64 {
        self.prefix
    }
}

/// The first eight bytes of a string as [`Prefixed`] keeps them.
pub(crate) fn prefix(text: &str) -> u64 {
    let bytes = text.as_bytes();
    if let Some(eight) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*eight);
    }
    let short = bytes.iter().fold(0, |prefix, byte| prefix << 8 | u64::from(*byte));
    // Eight bytes have returned already; no bytes are zero however far they are shifted.
    short << (8 * (8 - bytes.len().clamp(1, 8)))
}

/// What the prefix does not tell.
fn tail(text: &str) -> &[u8] {
    text.as_bytes().get(8..).unwrap_or_default()
}

impl Deref for Prefixed {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<Box<str>> for Prefixed {
    fn from(text: Box<str>) -> Self {
        Self { prefix: prefix(&text), text }
    }
}

impl From<&str> for Prefixed {
    fn from(text: &str) -> Self {
        Self::from(Box::from(text))
    }
}

impl From<Prefixed> for Box<str> {
    fn from(prefixed: Prefixed) -> Self {
        prefixed.text
    }
}

impl From<&Prefixed> for String {
    fn from(prefixed: &Prefixed) -> Self {
        Self::from(&*prefixed.text)
    }
}

impl PartialEq for Prefixed {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.is(other.prefix, &other.text)
    }
}

impl Eq for Prefixed {}

impl Ord for Prefixed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Prefixed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl core::hash::Hash for Prefixed {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn order_and_equality_are_those_of_the_strings() {
        let mut texts: Vec<&str> = std::vec![
            "",
            "\0",
            "a",
            "a\0",
            "ab",
            "abcdefg",
            "abcdefgh",
            "abcdefg\0",
            "abcdefghi",
            "abcdefghj",
            "b",
            "\u{e9}"
        ];
        texts.extend_from_within(..);
        for a in &texts {
            for b in &texts {
                let (x, y) = (Prefixed::from(*a), Prefixed::from(*b));
                assert_eq!(x.cmp(&y), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(x == y, a == b, "{a:?} {b:?}");
            }
        }
    }
}
