//! Names that become another origin's while they are asked for.

use std::collections::HashMap;
use std::sync::Arc;

use crate::federation::core::Federation;
use crate::federation::origin::{Origin, Speaker};
use crate::federation::scope::Scope;

impl Federation {
    /// From now on there are these origins, too, at the next positions, and each authority is of the origin whose position this says,
    /// by its canonical spelling; those that are not in it are of the default origin.
    ///
    /// What is held of names that become another origin's is served as before, and that is asked for all that is wanted of them at
    /// once. It is believed as another server of the same origin would be: what it has alike is not sent again, and what it does not
    /// have goes when it says so. Of an authority that is in nobody's list any more the default origin's word counts as far as it
    /// *has* something of it: it never had what is held, and takes nothing away.
    ///
    /// Those that names go from and to must be asked, over delta, be asked alike for every node, and have one server each.
    pub fn lead(&self, new: Vec<Arc<dyn Origin>>, authorities: HashMap<String, usize>) {
        self.add_origins(new);
        self.authorities().replace(authorities);
        // Whoever makes a scope from now on finds these.
        self.scopes().iter().for_each(|scope| self.follow(scope));
    }

    /// Has the scope of an authority come from that authority's origin, if it does not.
    pub(super) fn follow(&self, scope: &Arc<Scope>) {
        let Some(authority) = scope.key.authority().filter(|_| scope.shared) else { return };
        let origin = self.authorities().origin_of(Some(authority));
        if scope.origin() != origin {
            self.lead_scope(scope, origin, &|| self.own_speaker(scope.key.selector()));
        }
    }

    fn lead_scope(&self, scope: &Arc<Scope>, origin: usize, speaker: &dyn Fn() -> Speaker) {
        let only_gives = scope.key.authority().is_some_and(|authority| !self.authorities().lists(authority));
        let before = scope.lead_to(origin, only_gives);
        let is_used = before.is_some() || scope.is_wanted();
        // Not under a lock: streams end by it.
        drop(before);
        if is_used {
            self.feed(scope, speaker);
        }
    }

    /// Has it fed by its origin, if it has no supply.
    pub(super) fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        loop {
            let position = scope.origin();
            let Some(origin) = self.origin(position) else { return };
            scope.feed(|| origin.feed(scope, speaker));
            if scope.origin() == position {
                return;
            }
            // It was led elsewhere meanwhile, and may have the supply of before.
            drop(scope.lead_to(scope.origin(), scope.only_gives()));
        }
    }
}
