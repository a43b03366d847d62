//! Which names are whose.

use std::collections::HashMap;

/// The origin of each authority, by position, and the default one, of every other name. A server may set names of the origins that
/// it is one of the servers of, and what is of one origin holds names of that only (rule 153): whoever feeds it.
#[derive(Debug)]
pub struct Authorities {
    /// The position of each authority's origin, by its canonical spelling.
    pub origins: HashMap<String, usize>,
    /// The position of that of everything else.
    pub default_origin: usize,
}

impl Authorities {
    /// The origin of the names of an authority in canonical spelling, or without one of old-style names.
    pub(crate) fn origin_of(&self, authority: Option<&str>) -> usize {
        let of = authority.and_then(|authority| self.origins.get(authority));
        of.copied().unwrap_or(self.default_origin)
    }
}
