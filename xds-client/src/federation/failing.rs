//! Errors of one type of one downstream stream, where several parts may have a name.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use xdstp_cache::{Failed, Removals};
use xdstp_uri::ResourceName;

use crate::federation::core::Federation;
use crate::federation::part::Part;
use crate::federation::scope::Standing;
use crate::federation::subscriber::{News, Subscriber};

impl Subscriber {
    /// Pulls the errors of the parts until the visitor has enough: true then. What this stream need not fetch for itself
    /// any more is noted in `gone`.
    pub(crate) fn pull_errors(
        &mut self,
        federation: &Federation,
        removals: Removals,
        gone: &mut HashSet<ResourceName>,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        let several = self.parts.len() > 1;
        let mut elsewhere = Vec::new();
        let more = self.all_parts().any(|part| {
            loop {
                // Whether another part has the name is asked of that part's scope: not under the lock of this one.
                let mut taken = None;
                let more = part.scope.pull_errors(part.id, removals, &mut |failed| {
                    // What this stream fetches for itself has errors of its own, unless the origin has it no more.
                    let own = part.scope.shared && self.private.contains_key(failed.name);
                    if own && !failed.removed || !part.scope.shared && gone.contains(failed.name) {
                        return ControlFlow::Continue(());
                    }
                    if own {
                        gone.insert(failed.name.clone());
                    }
                    if !several {
                        return visitor(failed);
                    }
                    taken = Some((failed.name.clone(), failed.error.clone(), failed.beside, failed.removed));
                    ControlFlow::Break(())
                });
                let Some((name, error, beside, removed)) = taken else { return more };
                let there = self.is_there_but_for(part, &name);
                // What the client may have from a part that has not answered is not gone (rule 150).
                let stays = there || self.will_be_told_but_for(part, &name);
                if removed && there {
                    let own = part.scope.is_at(federation.place(name.authority()));
                    elsewhere.push((name.clone(), if own { News::OwnGone } else { News::OtherGone }));
                }
                // To a client an error that is not transient is a removal.
                if stays && !error.is_transient() {
                    continue;
                }
                if visitor(Failed::new(&name, &error, beside || there, removed && !stays)).is_break() {
                    return true;
                }
            }
        });
        // Rule 152: the other's is told, if it was not.
        self.contested.extend(elsewhere);
        more
    }

    /// Whether another part has a name.
    fn is_there_but_for(&self, part: &Part, name: &ResourceName) -> bool {
        let has = |other: &Part| matches!(other.scope.standing(other.id, name), Standing::Present(_));
        self.others(part, name).any(has)
    }

    /// Whether another part is yet to say what became of a name that the client brought along.
    fn will_be_told_but_for(&self, part: &Part, name: &ResourceName) -> bool {
        self.others(part, name).any(|other| other.scope.will_tell(other.id, name))
    }

    /// The parts that may have the same name: globs are of one.
    fn others<'a>(&'a self, part: &'a Part, name: &ResourceName) -> impl Iterator<Item = &'a Part> {
        // No two parts are in one scope.
        let is_another = |other: &&Part| !Arc::ptr_eq(&other.scope, &part.scope);
        let parts = if name.is_glob() { &[] } else { &*self.parts };
        parts.iter().filter(is_another)
    }
}
