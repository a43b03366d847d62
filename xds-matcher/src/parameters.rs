//! What a subscriber says about itself.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::{fmt, mem, slice};

use crate::prefixed::{Prefixed, prefix};
use crate::text::Word;

/// Dynamic parameters: what a subscriber says about itself (final form), or what a variant is for (draft form).
///
/// Keys are unique; keys and values are compared byte by byte. Iteration is in the order of the keys.
///
/// ```
/// use xds_matcher::DynamicParameters;
///
/// let parameters: DynamicParameters = [("version", "v1"), ("env", "prod")].into_iter().collect();
/// assert_eq!(parameters.get("env"), Some("prod"));
/// assert_eq!(parameters.get("shard"), None);
/// assert_eq!(parameters.to_string(), "{env=prod, version=v1}");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DynamicParameters {
    /// Sorted by key, keys unique.
    entries: Vec<(Prefixed, Prefixed)>,
}

impl DynamicParameters {
    /// No parameters.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The value of `key`, if the parameters have it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.find(prefix(key), key).map(|value| &**value)
    }

    /// The value of a key whose prefix is known.
    #[inline]
    pub(crate) fn lookup(&self, key: &Prefixed) -> Option<&Prefixed> {
        self.find(key.prefix(), key)
    }

    #[inline]
    fn find(&self, prefix: u64, key: &str) -> Option<&Prefixed> {
        // A handful of keys is found faster one by one than by halving.
        if self.entries.len() <= 8 {
            return self.entries.iter().find(|(k, _)| k.is(prefix, key)).map(|(_, value)| value);
        }
        self.find_among_many(key)
    }

    #[inline(never)]
    fn find_among_many(&self, key: &str) -> Option<&Prefixed> {
        let at = self.entries.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// Sets `key` to `value`.
    pub fn insert(&mut self, key: impl Into<Box<str>>, value: impl Into<Box<str>>) {
        let (key, value) = (Prefixed::from(key.into()), Prefixed::from(value.into()));
        match self.entries.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> DynamicParametersIter<'_> {
        DynamicParametersIter(self.entries.iter())
    }

    #[cfg(feature = "draft")]
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Prefixed, &Prefixed)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }
}

/// The last value of a repeated key wins, as in a protobuf map.
impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for DynamicParameters {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(Prefixed, Prefixed)> =
            entries.into_iter().map(|(k, v)| (k.into().into(), v.into().into())).collect();
        // Reversed before the stable sort, so that the last of equal keys comes first and is the one `dedup` keeps.
        entries.reverse();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|later, kept| later.0 == kept.0);
        Self { entries }
    }
}

/// The last value of a repeated key wins.
impl<K: Into<Box<str>>, V: Into<Box<str>>> Extend<(K, V)> for DynamicParameters {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let present = mem::take(&mut self.entries).into_iter().map(|(key, value)| (key.into(), value.into()));
        let more = entries.into_iter().map(|(key, value)| (key.into(), value.into()));
        *self = present.chain(more).collect::<Vec<(Box<str>, Box<str>)>>().into_iter().collect();
    }
}

impl<'a> IntoIterator for &'a DynamicParameters {
    type Item = (&'a str, &'a str);
    type IntoIter = DynamicParametersIter<'a>;

    fn into_iter(self) -> DynamicParametersIter<'a> {
        self.iter()
    }
}

/// Keys and values in the order of the keys: see [`DynamicParameters::iter`].
#[derive(Debug, Clone)]
pub struct DynamicParametersIter<'a>(slice::Iter<'a, (Prefixed, Prefixed)>);

impl<'a> Iterator for DynamicParametersIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (&**key, &**value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for DynamicParametersIter<'_> {}

impl fmt::Display for DynamicParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (key, value)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}={}", Word(key), Word(value))?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_last_value_of_a_repeated_key_wins() {
        let parameters: DynamicParameters = [("a", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
        assert_eq!(parameters.get("a"), Some("3"));
        assert_eq!(parameters.len(), 2);
    }

    #[test]
    fn many_keys_are_found_too() {
        let parameters: DynamicParameters = (0..50).map(|i| (i.to_string(), (i * i).to_string())).collect();
        assert_eq!(parameters.get("7"), Some("49"));
        assert_eq!(parameters.get("77"), None);
        let mut inserted = DynamicParameters::new();
        (0..50).rev().for_each(|i| inserted.insert(i.to_string(), (i * i).to_string()));
        assert_eq!(inserted, parameters);
        let mut extended: DynamicParameters = (0..9).map(|i| (i.to_string(), "old".to_string())).collect();
        extended.extend(&parameters);
        assert_eq!(extended, parameters);
    }
}
