//! Which names are whose.

use std::collections::HashMap;
use std::sync::Arc;

use xdstp_uri::ResourceName;

/// The origin of each authority, by position, and the default one, of every other name.
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

/// Which names an origin may set: those of its authorities, and if it is the default one, those that no other origin is
/// configured for (rule 153).
#[derive(Clone, Debug)]
pub struct Realm {
    /// Its position.
    pub origin: usize,
    /// What all of them are configured for.
    pub authorities: Arc<Authorities>,
}

impl Realm {
    pub(crate) fn holds(&self, name: &ResourceName) -> bool {
        self.authorities.origin_of(name.authority()) == self.origin
    }
}
