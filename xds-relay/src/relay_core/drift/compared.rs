//! What came of comparing what is served with what an origin has.

use std::collections::BTreeMap;

use super::heard::{Key, Side};
use crate::api::{Drift, PAGE, ScopeDrift};

/// Names with what is served and what the origin has, where that is not the same.
pub(super) type Differences = BTreeMap<Key, (Option<Side>, Option<Side>)>;

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
    /// is otherwise than before, never stands still, and cannot be told from what is on its way.
    pub(super) fn standing_since(mut self, before: &Self) -> Self {
        let (mut same, mut moving) = (0, 0);
        self.found.retain(|key, sides| match before.found.get(key) {
            Some(before) if before == sides => true,
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
        let told = |((type_url, name), (served, at_origin)): (Key, (Option<Side>, Option<Side>))| {
            let [served, at_origin] = [served, at_origin].map(|side| side.map(|side| side.version.to_string()));
            Drift { type_url: type_url.to_string(), name: name.to_string(), served, at_origin }
        };
        let drifts = found.into_iter().take(PAGE).map(told).collect();
        ScopeDrift { scope, same, unanswered, moving, trouble, drifts, more_drifts }
    }
}
