//! Texts that are no names.

use std::collections::BTreeSet;

use crate::server::weight::weight;

/// Texts that are no names, of which the client is yet to be told.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    texts: BTreeSet<String>,
    weight: usize,
}

impl Odd {
    pub(crate) fn insert(&mut self, text: &str) {
        if !self.texts.contains(text) {
            self.texts.insert(text.to_owned());
            self.weight += weight(text);
        }
    }

    pub(crate) fn remove(&mut self, text: &str) {
        if self.texts.remove(text) {
            self.weight -= weight(text);
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<String> {
        let first = self.texts.pop_first()?;
        self.weight -= weight(&first);
        Some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// How many names they count for.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}
