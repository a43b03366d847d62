//! What a subscriber brought along and can only have by an alias: whether it claims that, its further requests say.

use std::collections::BTreeSet;
use std::ops::Bound;

use xdstp_uri::ResourceName;

/// Names that it did not ask for. It may have asked for an alias of each.
#[derive(Default)]
pub(crate) struct Claims {
    names: BTreeSet<ResourceName>,
    /// They are being looked at, and were up to this one.
    looked_at: Option<ResourceName>,
    /// None of them counts with its version any more.
    lapsed: bool,
}

impl Claims {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a pull goes on looking at them.
    pub(crate) fn are_looked_at(&self) -> bool {
        self.looked_at.is_some()
    }

    /// It said that it holds one more.
    pub(crate) fn insert(&mut self, name: ResourceName) {
        self.names.insert(name);
        self.lapsed = false;
    }

    /// It is known by now what became of one.
    pub(crate) fn remove(&mut self, name: &ResourceName) {
        self.names.remove(name);
    }

    /// Those that do not count with their versions from now on: all of them, unless they did not before.
    pub(crate) fn lapse(&mut self) -> impl Iterator<Item = &ResourceName> {
        let names = (!std::mem::replace(&mut self.lapsed, true)).then_some(&self.names);
        names.into_iter().flatten()
    }

    /// They are looked at from the first one on.
    pub(crate) fn look_anew(&mut self) {
        self.looked_at = None;
    }

    /// An alias of a name is over: who was past the name goes on before it.
    pub(crate) fn look_again(&mut self, name: &ResourceName) {
        if self.looked_at.as_ref().is_some_and(|up_to| up_to >= name) {
            let before = (Bound::Unbounded, Bound::Excluded(name));
            self.looked_at = self.names.range::<ResourceName, _>(before).next_back().cloned();
        }
    }

    /// The next ones to look at, of which there are not more than `most`.
    pub(crate) fn next_part(&mut self, most: usize) -> Vec<ResourceName> {
        let from = self.looked_at.take();
        let after = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        self.names.range::<ResourceName, _>((after, Bound::Unbounded)).take(most).cloned().collect()
    }

    /// A part was looked at. There may be more behind it if `last` is there: its last one.
    pub(crate) fn looked_at(&mut self, last: Option<ResourceName>) {
        self.looked_at = last.filter(|_| !self.names.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_that_was_looked_at_is_looked_at_again_when_an_alias_of_it_is_over() {
        let [a, b, c] = ["a", "b", "c"].map(|name| name.parse::<ResourceName>().unwrap());
        let mut claims = Claims::default();
        [&a, &b, &c].into_iter().for_each(|name| claims.insert(name.clone()));
        claims.looked_at(Some(b.clone()));
        claims.look_again(&c);
        assert_eq!(claims.next_part(8), std::slice::from_ref(&c), "it comes anyway");
        claims.looked_at(Some(b.clone()));
        claims.look_again(&b);
        assert_eq!(claims.next_part(8), [b, c]);
    }
}
