//! The parts of one type of a stream: a subscriber in each scope that it wants something of, found by place.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use xdstp_uri::CanonicalText;

use crate::federation::core::Federation;
use crate::federation::part::Part;
use crate::federation::place::Place;
use crate::federation::scope::Scope;

/// A client names as many authorities as it likes: none of them costs what the others are.
#[derive(Default)]
pub(crate) struct Parts {
    all: Vec<Part>,
    by_authority: HashMap<String, usize>,
    /// Those of node groups: one for each origin at most.
    of_groups: Vec<usize>,
}

impl Parts {
    /// The part that serves the names of an authority, or old-style names, if it is open.
    pub(crate) fn of(&self, federation: &Federation, authority: Option<&str>) -> Option<&Part> {
        self.only(federation, |of| authority == Some(of)).or_else(|| self.at(federation.place(authority)))
    }

    /// The same of a name by its text.
    pub(crate) fn of_text(&self, federation: &Federation, text: &CanonicalText<'_>) -> Option<&Part> {
        self.only(federation, |of| text.is_of(of)).or_else(|| self.at(federation.place(text.authority())))
    }

    /// Most ask for names of one authority: where those are, need not be looked up for each of them.
    #[inline]
    fn only(&self, federation: &Federation, is_it: impl Fn(&str) -> bool) -> Option<&Part> {
        let [only] = &self.all[..] else { return None };
        let is_of_it = only.scope.key.authority().is_some_and(is_it) && !federation.is_by_node(only.scope.origin());
        is_of_it.then_some(only)
    }

    /// The part whose scope a place is.
    pub(crate) fn at(&self, place: Place<'_>) -> Option<&Part> {
        self.all.get(self.position(place)?)
    }

    /// The parts whose scopes may have names of a place: those that it is, and the others. Of authorities these are the
    /// `mixed` alone.
    pub(crate) fn of_names_at(&self, place: Place<'_>, mixed: &[Arc<Scope>]) -> (Vec<&Part>, Vec<&Part>) {
        let own = match place {
            Place::Authority { .. } => self.at(place),
            Place::Group { .. } => None,
        };
        let of_mixed = |scope: &Arc<Scope>| {
            let at = self.by_authority.get(scope.key.authority()?).copied()?;
            self.all.get(at).filter(|part| Arc::ptr_eq(&part.scope, scope) && !part.scope.is_at(place))
        };
        let of_groups = self.of_groups.iter().filter_map(|at| self.all.get(*at));
        let all = own.into_iter().chain(mixed.iter().filter_map(of_mixed)).chain(of_groups);
        all.partition(|part| part.scope.is_at(place))
    }

    fn position(&self, place: Place<'_>) -> Option<usize> {
        let is_there = |at: &usize| self.all.get(*at).is_some_and(|part| part.scope.is_at(place));
        match place {
            Place::Authority { authority, .. } => self.by_authority.get(authority).copied(),
            Place::Group { .. } => self.of_groups.iter().copied().find(is_there),
        }
    }

    pub(crate) fn push(&mut self, part: Part) {
        self.index(&part, self.all.len());
        self.all.push(part);
    }

    /// Takes out the part whose scope a place is.
    pub(crate) fn remove(&mut self, place: Place<'_>) -> Option<Part> {
        let at = self.position(place)?;
        self.remove_at(at)
    }

    /// Takes out the parts that are `over`.
    pub(crate) fn remove_all(&mut self, mut over: impl FnMut(&Part) -> bool) -> Vec<Part> {
        let mut removed = Vec::new();
        let mut at = 0;
        while let Some(part) = self.all.get(at) {
            if over(part) {
                removed.extend(self.remove_at(at));
            } else {
                at += 1;
            }
        }
        removed
    }

    /// The last one takes its place.
    fn remove_at(&mut self, at: usize) -> Option<Part> {
        let last = self.all.len().checked_sub(1)?;
        let part = (at <= last).then(|| self.all.swap_remove(at))?;
        if let Some(authority) = part.scope.key.authority() {
            self.by_authority.remove(authority);
        }
        self.of_groups.retain(|other| *other != at && *other != last);
        if let Some(moved) = self.all.get(at).cloned() {
            self.index(&moved, at);
        }
        Some(part)
    }

    fn index(&mut self, part: &Part, at: usize) {
        match part.scope.key.authority() {
            Some(authority) => _ = self.by_authority.insert(authority.to_owned(), at),
            None => self.of_groups.push(at),
        }
    }
}

impl Deref for Parts {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        &self.all
    }
}

impl DerefMut for Parts {
    fn deref_mut(&mut self) -> &mut [Part] {
        &mut self.all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::task::Waker;

    use proptest::prelude::*;

    use super::*;
    use crate::federation::node_group::NodeGroup;
    use crate::federation::scope::Scope;
    use crate::federation::scope_key::ScopeKey;

    const AUTHORITIES: [&str; 4] = ["a", "b", "c", "d"];
    const PLACES: usize = AUTHORITIES.len() + 3;

    fn place(number: usize) -> Place<'static> {
        match AUTHORITIES.get(number) {
            Some(authority) => Place::Authority { authority, origin: 0 },
            None => Place::Group { origin: number },
        }
    }

    fn part(number: usize) -> Part {
        let key = match AUTHORITIES.get(number) {
            Some(authority) => ScopeKey::Authority((*authority).to_owned()),
            None => ScopeKey::Group(number, NodeGroup::new(Vec::new(), String::new())),
        };
        let scope = Arc::new(Scope::authoritative(key, number, 1));
        let id = scope.open(&"type".into(), Waker::noop().clone());
        Part { scope, id, seat: number, sets_aside: false }
    }

    proptest! {
        #[test]
        fn each_part_is_found_by_its_place_whatever_came_and_went(
            steps in proptest::collection::vec((0..3_u8, 0..PLACES, any::<u8>()), 0..60),
        ) {
            let (mut parts, mut model) = (Parts::default(), BTreeSet::new());
            for (step, number, over) in steps {
                let of = |parts: Vec<Part>| parts.into_iter().map(|part| part.seat).collect::<BTreeSet<_>>();
                match step {
                    0 if model.insert(number) => parts.push(part(number)),
                    0 | 1 => {
                        let removed = parts.remove(place(number)).map(|part| part.seat);
                        assert_eq!(removed, model.take(&number));
                    }
                    _ => {
                        let removed = of(parts.remove_all(|part| over & 1 << part.seat != 0));
                        let (gone, left) = model.into_iter().partition(|number| over & 1 << number != 0);
                        model = left;
                        assert_eq!(removed, gone);
                    }
                }
                for number in 0..PLACES {
                    let found = parts.at(place(number)).map(|part| part.seat);
                    assert_eq!(found, model.get(&number).copied());
                }
                // Nothing is kept of what went.
                let indexed = parts.by_authority.len() + parts.of_groups.len();
                assert_eq!((parts.len(), indexed), (model.len(), model.len()));
            }
        }
    }
}
