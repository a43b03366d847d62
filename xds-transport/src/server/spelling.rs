//! How a client writes names: what it asked for comes back in its own spelling (rule 95).

use std::collections::HashMap;

use xdstp_uri::ResourceName;

/// The names that a client did not write canonically.
#[derive(Debug, Default)]
pub(crate) struct Spelling(HashMap<ResourceName, Box<str>>);

impl Spelling {
    /// The client wrote a name as `text`.
    pub(crate) fn note(&mut self, name: &ResourceName, text: &str) {
        if name.as_str() == text {
            self.0.remove(name);
        } else {
            self.0.insert(name.clone(), text.into());
        }
    }

    pub(crate) fn forget(&mut self, name: &ResourceName) {
        self.0.remove(name);
    }

    /// The name as the client writes it.
    pub(crate) fn of<'a>(&'a self, name: &'a ResourceName) -> &'a str {
        self.0.get(name).map_or(name.as_str(), |text| text)
    }
}
