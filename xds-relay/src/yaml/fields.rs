//! Reading a tree by hand, where the meaning of a value is more than its type: every error gets its place and path on
//! the way out.

use super::error::{Error, Position};
use super::scalar::is_null;
use super::tree::{Content, Key, Node};

impl Node {
    /// The value at `key`, where this is a mapping that has it.
    pub(crate) fn entry(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(candidate, _)| candidate.text == key).map(|(_, node)| node)
    }

    /// Where the value of a field such as `origins[1].tls.ca` is: what is around it, where there is none.
    pub(crate) fn place_of(&self, field: &str) -> Position {
        let mut node = self;
        for step in field.split(['.', '[']).filter(|step| !step.is_empty()) {
            let inner = match (&node.content, step.strip_suffix(']')) {
                (Content::Sequence(items), Some(index)) => index.parse().ok().and_then(|index: usize| items.get(index)),
                _ => node.entry(step),
            };
            let Some(inner) = inner else { break };
            node = inner;
        }
        node.position
    }

    /// The first key that is none of `known`.
    pub(crate) fn unknown_key(&self, known: &[&str]) -> Option<&Key> {
        self.entries().iter().map(|(key, _)| key).find(|key| !known.contains(&key.text.as_str()))
    }

    /// Refuses what is no mapping, and a mapping with other keys than `known`.
    pub(crate) fn expect_fields(&self, known: &[&str]) -> Result<(), Error> {
        if !matches!(self.content, Content::Mapping(_)) {
            return self.refuse("expected fields");
        }
        match self.unknown_key(known) {
            None => Ok(()),
            Some(key) => {
                let reason = format!("unknown field `{}`, expected one of {}", key.text, known.join(", "));
                Err(Error::new(key.position, reason).under_key(&key.text))
            }
        }
    }

    /// What `read` makes of the value at `key`, if there is one.
    pub(crate) fn field<T>(&self, key: &str, read: impl FnOnce(&Self) -> Result<T, Error>) -> Result<Option<T>, Error> {
        self.entry(key).map(|node| read(node).map_err(|error| error.under_key(key))).transpose()
    }

    /// What `read` makes of the value at `key`, which must be there.
    pub(crate) fn required_field<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.field(key, read)? {
            Some(value) => Ok(value),
            None => Err(Error::new(self.position, format!("missing; {expected}")).under_key(key)),
        }
    }

    /// What `read` makes of each item of a sequence.
    pub(crate) fn items<'a, T>(&'a self, mut read: impl FnMut(&'a Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let Content::Sequence(items) = &self.content else { return self.refuse("expected a list") };
        items.iter().enumerate().map(|(index, item)| read(item).map_err(|error| error.under_index(index))).collect()
    }

    /// Whether this is no value: `null`, or nothing at all.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Plain(text) if is_null(text))
    }

    /// The text of a scalar as it was written, whatever else it could mean.
    pub(crate) fn text(&self) -> Result<&str, Error> {
        match &self.content {
            _ if self.is_null() => self.refuse("empty; expected a value, or no such field"),
            Content::Plain(text) | Content::Text(text) => Ok(text),
            Content::Sequence(_) | Content::Mapping(_) => self.refuse("expected a single value"),
        }
    }

    /// This value is wrong.
    pub(crate) fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, Error> {
        Err(Error::new(self.position, reason))
    }
}
