//! Which names are whose.

use std::collections::{HashMap, HashSet};

use parking_lot::RwLock;

/// The origin of each authority, by position, and the default one, of every other name. A server may set names of the origins that
/// it is one of the servers of, and what is of one origin holds names of that only (rule 153): whoever feeds it.
#[derive(Debug)]
pub struct Authorities {
    of: RwLock<Of>,
    default_origin: usize,
}

#[derive(Debug)]
struct Of {
    /// By canonical spelling.
    origins: HashMap<String, usize>,
    /// Those that were another origin's before: versions of the two say nothing of each other.
    moved: HashSet<String>,
}

impl Authorities {
    /// The position of each authority's origin, by its canonical spelling, and that of everything else.
    pub fn new(origins: HashMap<String, usize>, default_origin: usize) -> Self {
        Self { of: RwLock::new(Of { origins, moved: HashSet::new() }), default_origin }
    }

    /// The origin of the names of an authority in canonical spelling, or without one of old-style names.
    pub(crate) fn origin_of(&self, authority: Option<&str>) -> usize {
        let of = authority.and_then(|authority| self.of.read().origins.get(authority).copied());
        of.unwrap_or(self.default_origin)
    }

    /// Whether an authority is said to be that of an origin, and not of the default one because nobody else has it.
    pub(crate) fn lists(&self, authority: &str) -> bool {
        self.of.read().origins.contains_key(authority)
    }

    /// Whether an authority was another origin's before.
    pub(crate) fn has_moved(&self, authority: Option<&str>) -> bool {
        let of = self.of.read();
        !of.moved.is_empty() && authority.is_some_and(|authority| of.moved.contains(authority))
    }

    /// These count from now on.
    pub(crate) fn replace(&self, origins: HashMap<String, usize>) {
        let of = &mut *self.of.write();
        let at = |origins: &HashMap<String, usize>, authority: &str| origins.get(authority).copied();
        let position = |found: Option<usize>| found.unwrap_or(self.default_origin);
        let all = of.origins.keys().chain(origins.keys());
        let moves = all.filter(|name| position(at(&of.origins, name)) != position(at(&origins, name)));
        let moved: Vec<_> = moves.cloned().collect();
        of.moved.extend(moved);
        of.origins = origins;
    }
}
