//! What came of comparing what is served with what an origin has.

use std::collections::BTreeMap;

use super::heard::{Key, Side};
use crate::api::{Drift, PAGE, ScopeDrift};

/// Names with what is served and what the origin has, where that is not the same.
pub(super) type Differences = BTreeMap<Key, Sides>;

/// What is served, and what the origin has.
type Sides = (Option<Side>, Option<Side>);

/// Of one scope, at one moment.
#[derive(Default)]
pub(super) struct Compared {
    same: usize,
    pub(super) unanswered: usize,
    moving: usize,
    pub(super) found: Differences,
}

impl Compared {
    pub(super) fn add(&mut self, key: Key, served: Option<Side>, at_origin: Option<Side>) {
        let is_same = match (&served, &at_origin) {
            (Some(served), Some(at_origin)) => served.has_the_content_of(at_origin),
            (served, at_origin) => served.is_none() && at_origin.is_none(),
        };
        if is_same {
            self.same += 1;
        } else {
            self.found.insert(key, (served, at_origin));
        }
    }

    pub(super) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    pub(super) fn has_found_of(&self, key: &Key) -> bool {
        self.found.contains_key(key)
    }

    /// What there is of it, a while after what was found `before`. What was the same then is on its way now; what was not, and
    /// does not [stand](stands), is never the same, and cannot be told from what is on its way.
    pub(super) fn standing_since(mut self, before: &Self) -> Self {
        let (mut same, mut moving) = (0, 0);
        self.found.retain(|key, sides| match before.found.get(key) {
            Some(before) if stands(sides, before) => true,
            Some(_) => {
                moving += 1;
                false
            }
            None => {
                same += 1;
                false
            }
        });
        self.same += same;
        self.moving += moving;
        // What was answered for since was compared once only.
        self.unanswered = self.unanswered.max(before.unanswered);
        self
    }

    /// What does not count, because it was not so in another look: it may be on its way.
    pub(super) fn doubt_but_for(&mut self, standing: &Differences) {
        let before = self.found.len();
        self.found.retain(|key, _| standing.contains_key(key));
        self.moving += before - self.found.len();
    }

    pub(super) fn told(self, scope: String, trouble: Option<String>) -> ScopeDrift {
        let Self { same, unanswered, moving, found } = self;
        let more_drifts = found.len().saturating_sub(PAGE);
        let told = |((type_url, name), (served, at_origin)): (Key, Sides)| {
            let [served, at_origin] = [served, at_origin].map(|side| side.map(|side| side.version.to_string()));
            Drift { type_url: type_url.to_string(), name: name.to_string(), served, at_origin }
        };
        let drifts = found.into_iter().take(PAGE).map(told).collect();
        ScopeDrift { scope, same, unanswered, moving, trouble, drifts, more_drifts }
    }
}

/// Whether a difference was there a while `before`: as it is; or what is served is as it was, and the origin had another version both times,
/// as one has that goes on while the relay does not. An origin that says something else each time at one version does not.
pub(super) fn stands(sides: &Sides, before: &Sides) -> bool {
    let is_other_version = |(served, at_origin): &Sides| {
        let versions = served.as_ref().zip(at_origin.as_ref());
        versions.is_none_or(|(served, at_origin)| served.version != at_origin.version)
    };
    sides == before || sides.0 == before.0 && is_other_version(sides) && is_other_version(before)
}
