//! All that is wrong with a document.

use crate::yaml::Error;

/// Errors of one document.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Error>);

impl Problems {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Error> {
        self.0.iter()
    }

    pub(super) fn push(&mut self, error: Error) {
        self.0.push(error);
    }

    pub(super) fn map(self, change: impl FnMut(Error) -> Error) -> Self {
        self.0.into_iter().map(change).collect()
    }

    /// They seen from the mapping that holds what they are in at `key`.
    pub(super) fn under_key(self, key: &str) -> Self {
        self.map(|error| error.under_key(key))
    }

    /// They seen from the sequence that holds what they are in at `index`.
    pub(super) fn under_index(self, index: usize) -> Self {
        self.map(|error| error.under_index(index))
    }

    /// In the order of the text.
    pub(super) fn in_order(mut self) -> Self {
        self.0.sort_by_key(|error| error.position.map(|position| (position.line, position.column)));
        self
    }
}

impl From<Error> for Problems {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl FromIterator<Error> for Problems {
    fn from_iter<I: IntoIterator<Item = Error>>(errors: I) -> Self {
        Self(errors.into_iter().collect())
    }
}

impl IntoIterator for Problems {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
