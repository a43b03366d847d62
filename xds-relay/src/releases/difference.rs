//! What one manifest has otherwise than another.

use std::cmp::Ordering;

use crate::releases::manifest::{Item, Manifest};

/// More must be removed than this for it to be much, and more than one in [`MUCH`].
const FEW: usize = 10;
const MUCH: usize = 5;

/// What clients of one release would be sent if they had another; versions alone are no difference.
///
/// ```
/// use xds_relay::releases::{Difference, Manifest};
///
/// let (before, after) = (Manifest::new([]), Manifest::new([]));
/// assert!(Difference::between(&before, &after).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference<'a> {
    /// What is new.
    pub added: Vec<&'a Item>,
    /// As it was, and as it is.
    pub changed: Vec<(&'a Item, &'a Item)>,
    /// What is not there any more.
    pub removed: Vec<&'a Item>,
    /// How many there were.
    before: usize,
}

impl<'a> Difference<'a> {
    /// What `after` has otherwise than `before`.
    pub fn between(before: &'a Manifest, after: &'a Manifest) -> Self {
        let (mut old, mut new) = (before.items().iter().peekable(), after.items().iter().peekable());
        let count = before.items().len();
        let mut found = Self { added: Vec::new(), changed: Vec::new(), removed: Vec::new(), before: count };
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return found,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.key().cmp(&new.key()),
            };
            match order {
                Ordering::Less => found.removed.extend(old.next()),
                Ordering::Greater => found.added.extend(new.next()),
                Ordering::Equal => {
                    found.changed.extend(old.next().zip(new.next()).filter(|(old, new)| !old.is_as(new)));
                }
            }
        }
    }

    /// Whether clients would be sent nothing.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    /// Whether so much is removed that somebody is to look at it first: more than a fifth, and more than ten, or all of several, with
    /// nothing in their place. An origin that lost what it knew says the same as one that wants it gone.
    pub fn removes_much(&self) -> bool {
        let removed = self.removed.len();
        let is_all = removed > 1 && removed == self.before && self.added.is_empty();
        is_all || removed > FEW && removed.saturating_mul(MUCH) > self.before
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use xds_transport::Frame;

    use super::*;
    use crate::releases::types::Types;

    fn manifest(bodies: &BTreeMap<usize, u8>) -> Manifest {
        let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
        let item = |(name, body): (&usize, &u8)| {
            let resource =
                Frame::of_message(&type_url, &[*body]).into_resource(Some(format!("{name}").as_str().into()));
            Item::of(&type_url, &format!("{name:03}").parse().unwrap(), &resource, Types::Default)
        };
        Manifest::new(bodies.iter().filter_map(item))
    }

    /// Against all pairs of manifests of three names, each away or with one of two bodies.
    #[test]
    fn each_name_is_added_changed_removed_or_as_it_was() {
        let all: Vec<BTreeMap<usize, u8>> = (0..27_usize)
            .map(|number| {
                (0..3)
                    .filter_map(|name| Some((name, (number / 3_usize.pow(name as u32) % 3).checked_sub(1)? as u8)))
                    .collect()
            })
            .collect();
        for (old, new) in all.iter().flat_map(|old| all.iter().map(move |new| (old, new))) {
            let (before, after) = (manifest(old), manifest(new));
            let difference = Difference::between(&before, &after);
            let names = |items: &[&Item]| items.iter().map(|item| item.name.parse().unwrap()).collect::<Vec<usize>>();
            let changed: Vec<_> = difference.changed.iter().map(|(old, _)| *old).collect();
            let expected = |is: fn(Option<&u8>, Option<&u8>) -> bool| {
                (0..3).filter(|name| is(old.get(name), new.get(name))).collect::<Vec<usize>>()
            };
            assert_eq!(names(&difference.added), expected(|old, new| old.is_none() && new.is_some()));
            assert_eq!(names(&difference.removed), expected(|old, new| old.is_some() && new.is_none()));
            assert_eq!(names(&changed), expected(|old, new| old.is_some() && new.is_some() && old != new));
            assert_eq!(difference.is_empty(), old == new);
            assert_eq!(difference.is_empty(), before.release() == after.release());
        }
    }

    #[test]
    fn much_is_more_than_a_fifth_and_more_than_ten_or_all_of_several() {
        for (before, removed, is_much) in [
            (1, 1, false),
            (2, 2, true),
            (10, 9, false),
            (10, 10, true),
            (11, 10, false),
            (12, 11, true),
            (50, 10, false),
            (50, 11, true),
            (55, 11, false),
            (54, 11, true),
            (200, 40, false),
            (200, 41, true),
        ] {
            let old: BTreeMap<_, _> = (0..before).map(|name| (name, 0)).collect();
            let new: BTreeMap<_, _> = old.iter().skip(removed).map(|(name, body)| (*name, *body)).collect();
            let (old, new) = (manifest(&old), manifest(&new));
            assert_eq!(Difference::between(&old, &new).removes_much(), is_much, "{removed} of {before}");
            assert!(!Difference::between(&new, &old).removes_much());
        }
    }

    #[test]
    fn what_is_there_by_other_names_is_not_gone() {
        let (old, new) = (manifest(&BTreeMap::from([(0, 0), (1, 0)])), manifest(&BTreeMap::from([(2, 0)])));
        assert!(!Difference::between(&old, &new).removes_much());
    }
}
