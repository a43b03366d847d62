//! What a subscriber knows from where it was served before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use xds_transport::Frame;
use xdstp_cache::{Along, Interest, Pull, Removals, Resource};
use xdstp_uri::ResourceName;

use crate::federation::part::Part;
use crate::federation::scope::Standing;

/// Of the parts of a subscriber that were moved to other scopes of the same names, until it was told all that is otherwise there.
#[derive(Default)]
pub(crate) struct Moved {
    /// What it was told not to be there, and is not here either.
    absent: BTreeSet<ResourceName>,
    /// What it has and is not here: as it was, for full states that may not say so yet (rule 122).
    leaving: BTreeMap<ResourceName, Resource<Frame>>,
    /// The parts that have answered where they were before, by seat: that is no news.
    answered: BTreeSet<usize>,
    /// Nothing can be told before more is known here.
    waits: bool,
}

impl Moved {
    /// A part takes this along, and is told what there is by another one.
    pub(crate) fn goes_on(&mut self, before: &Part, along: &Along, now: &Part) {
        self.waits = false;
        self.absent.extend(along.absent.iter().cloned());
        before.scope.visit(before.id, &mut |name, resource| {
            if along.held.binary_search_by(|held| held.name.cmp(name)).is_ok() {
                self.leaving.insert(name.clone(), resource.clone());
            }
        });
        // What went there meanwhile is known once it is pulled. What else that finds is in what it takes along.
        while before.scope.pull(before.id, Removals::Defer, &mut |_| ControlFlow::Continue(())).0.paused {}
        before.scope.visit_leaving(before.id, Removals::Defer, &mut |name, resource| {
            self.leaving.insert(name.clone(), resource.clone());
            true
        });
        // What it left where it was before that, it has still.
        self.leaving.retain(|name, _| !now.scope.look_up(now.id, name, &mut |_| {}));
        self.answered.remove(&before.seat);
        if along.is_answered {
            self.answered.insert(now.seat);
        }
    }

    /// Whether the subscriber knows what a part says.
    pub(crate) fn knows(&mut self, pull: &Pull<'_, Frame>) -> bool {
        match pull {
            Pull::Put { name, .. } => {
                self.absent.remove(*name);
                self.leaving.remove(*name);
                false
            }
            Pull::Removed { name, .. } => {
                self.leaving.remove(*name);
                self.absent.remove(*name)
            }
            _ => false,
        }
    }

    /// Whether that a part has answered is no news.
    pub(crate) fn has_answered(&self, part: &Part) -> bool {
        self.answered.contains(&part.seat)
    }

    /// It asks again for what it may know: it is to be answered (rule 48).
    pub(crate) fn asks_anew(&mut self, interest: &Interest) {
        match interest {
            Interest::Name(name) if !name.is_glob() => _ = self.absent.remove(name),
            Interest::Name(glob) => {
                self.absent.remove(glob);
                self.answered.clear();
            }
            Interest::Wildcard => self.answered.clear(),
        }
    }

    /// One of the names that the subscriber has and that may be gone, once.
    pub(crate) fn next_leaving(&mut self) -> Option<(ResourceName, Resource<Frame>)> {
        self.leaving.pop_first()
    }

    /// Of these it is not known here whether they are gone. Nothing else `is_left` to be told.
    pub(crate) fn wait_for(&mut self, unknown: BTreeMap<ResourceName, Resource<Frame>>, is_left: bool) {
        self.waits = !unknown.is_empty() && !is_left;
        self.leaving.extend(unknown);
    }

    /// Whether nothing can be told before more is known where it is served now.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// What the subscriber has still of what is gone.
    pub(crate) fn leaving(&self) -> &BTreeMap<ResourceName, Resource<Frame>> {
        &self.leaving
    }
}

/// Whether one of these parts does not know yet what there is of a name: it is not filled, or its origin has not answered.
pub(crate) fn is_unknown<'a>(mut parts: impl Iterator<Item = &'a Part>, name: &ResourceName) -> bool {
    parts.any(|part| matches!(part.scope.standing(part.id, name), Standing::Unknown))
}
