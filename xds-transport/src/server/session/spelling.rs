//! How a client writes names: what it asked for comes back in its own spelling (rule 95).

use std::collections::HashMap;

use xdstp_uri::{NameKey, ResourceName};

use crate::server::weight::weight;

/// The names that a client did not write canonically.
#[derive(Debug, Default)]
pub(crate) struct Spelling {
    texts: HashMap<ResourceName, Box<str>>,
    weight: usize,
}

impl Spelling {
    /// The client wrote a name as `text`.
    pub(crate) fn note(&mut self, name: &ResourceName, text: &str) {
        self.forget(name);
        if name.as_str() != text {
            self.weight += Self::beyond(text);
            self.texts.insert(name.clone(), text.into());
        }
    }

    pub(crate) fn forget(&mut self, name: &dyn NameKey) {
        // A map hashes what is to be removed though it is empty, and mostly it is.
        if self.texts.is_empty() {
            return;
        }
        if let Some(text) = self.texts.remove(name) {
            self.weight -= Self::beyond(&text);
        }
    }

    /// How many names more they count for than as they are canonically, which may be far shorter.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn beyond(text: &str) -> usize {
        weight(text) - 1
    }

    /// Whether the client writes all names canonically.
    pub(crate) fn is_canonical(&self) -> bool {
        self.texts.is_empty()
    }

    /// The name as the client writes it.
    pub(crate) fn of<'a>(&'a self, name: &'a ResourceName) -> &'a str {
        self.texts.get(name).map_or(name.as_str(), |text| text)
    }
}
