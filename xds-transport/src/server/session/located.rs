//! What a client asks for with parameters or constraints (TP2): of each name it gets the variant that is for it.
//!
//! Each set of parameters is a subscriber of its own. What several of them select of one name is sent once in a response,
//! and a variant is told as gone once none of them has it.

mod held;
mod requests;

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::quality::RandomState;
use xdstp_cache::{
    Failed, Interest, Pull, Pulled, Removals, Resource, ResourceError, Selector, SubscriberId, Unanswered, Variant,
    Visited,
};
use xdstp_uri::ResourceName;

use crate::frame::Frame;
use crate::server::session::located::held::{Gone, Held, Went};
use crate::server::session::refreshes::{Refreshes, Told};
use crate::server::source::Source;
use crate::server::weight::weight;
use crate::{Dialect, Protocol};

/// The selections of one session.
#[derive(Default)]
pub(crate) struct Located {
    dialect: Dialect,
    /// What the client holds is what the last response says, and not what those before it said.
    is_sotw: bool,
    selections: Vec<Selection>,
    hasher: RandomState,
    held: Held,
    /// What went, and no response had room to tell.
    went: Went,
    /// What cannot be asked for, and why: the client is yet to be told.
    refused: BTreeMap<String, ResourceError>,
    /// How many names it counts for, with what is refused, and how many of these are for that.
    weight: usize,
    refused_weight: usize,
}

/// What is asked for with the same parameters.
struct Selection {
    id: SubscriberId,
    hash: u64,
    selector: Selector,
    /// How many names, globs and wildcards; with none it ends.
    interests: usize,
    weight: usize,
    refreshes: Refreshes,
    /// What it was opened with: it is yet to be said what the client holds of that.
    first: Option<Vec<Interest>>,
}

/// What a response tells of a name.
pub(crate) enum Tell<'a> {
    /// The resource is this, and it lives for a time.
    Put {
        name: &'a ResourceName,
        /// Its variant, and who it is for; `None` for what has none.
        variant: Option<(&'a Variant, &'a Selector)>,
        resource: &'a Resource<Frame>,
        ttl: Option<Duration>,
    },
    /// This variant is gone, and others of the name may not be.
    Went { name: &'a ResourceName, variant: &'a Variant, selector: &'a Selector },
    /// There is none for who sends this.
    Lacks { name: &'a ResourceName, selector: &'a Selector },
    /// There is none at all.
    Removed { name: &'a ResourceName },
}

impl Located {
    pub(crate) fn new(protocol: Protocol, dialect: Dialect) -> Self {
        Self { dialect, is_sotw: protocol == Protocol::Sotw, ..Self::default() }
    }

    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        !self.refused.is_empty() || !self.went.is_empty() || self.ids().any(|id| source.has_work(id))
    }

    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        self.ids().any(|id| source.has_additions(id))
    }

    pub(crate) fn next_refresh(&self) -> Option<Instant> {
        self.selections.iter().filter_map(|selection| selection.refreshes.next()).min()
    }

    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// How many of these are for what was refused, which no source knows of.
    pub(crate) fn refused_weight(&self) -> usize {
        self.refused_weight
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SubscriberId> {
        self.selections.iter().map(|selection| selection.id)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// What it says.
impl Located {
    /// Tells what the client was not told, of all selections, until the visitor has enough. Whether there was any news, with
    /// which nothing need be told.
    pub(crate) fn pull(
        &mut self,
        removals: Removals,
        told: Told,
        with_ttl: bool,
        source: &mut impl Source,
        tell: &mut dyn FnMut(Tell<'_>) -> ControlFlow<()>,
    ) -> (Pulled, bool) {
        let (held, several) = (&mut self.held, self.selections.len() > 1);
        let mut went = std::mem::take(&mut self.went);
        let (mut all, mut news) = (Pulled::default(), false);
        for Selection { id, selector, refreshes, .. } in &mut self.selections {
            if all.more {
                break;
            }
            let pulled = source.pull(*id, removals, &mut |pull| match pull {
                Pull::Put { name, variant, replaces, resource, .. } => {
                    news = true;
                    // A relay has of each name what its origin selected.
                    let variant = variant.or_else(|| resource.value.variant());
                    let ttl = resource.value.remaining_ttl(told.now).filter(|_| with_ttl);
                    refreshes.put(told, name, &resource.version, ttl);
                    let is_first = held.put(*id, name, variant, replaces, &mut went);
                    if several && !is_first {
                        return ControlFlow::Continue(());
                    }
                    let variant = variant.map(|variant| (&**variant, &*selector));
                    tell(Tell::Put { name, variant, resource, ttl })
                }
                Pull::Removed { name, variants, .. } => {
                    news = true;
                    refreshes.forget(name);
                    held.remove(*id, name, variants, &mut went);
                    if went.is_long() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                _ => ControlFlow::Continue(()),
            });
            all = all.and(pulled);
        }
        self.tell_went(went, tell);
        all.more |= !self.went.is_empty();
        (all, news)
    }

    /// Tells why something is not sent.
    pub(crate) fn pull_errors(
        &mut self,
        removals: Removals,
        source: &mut impl Source,
        tell: &mut dyn FnMut(&Failed<'_>) -> ControlFlow<()>,
        went_too: &mut dyn FnMut(Tell<'_>) -> ControlFlow<()>,
    ) {
        let held = &mut self.held;
        let (mut went, mut told) = (std::mem::take(&mut self.went), HashSet::new());
        for Selection { id, refreshes, .. } in &mut self.selections {
            source.pull_errors(*id, removals, &mut |failed| {
                if failed.removed || !failed.error.is_transient() {
                    refreshes.forget(failed.name);
                }
                if failed.removed {
                    held.remove(*id, failed.name, &[], &mut went);
                }
                if told.insert(failed.name.clone()) { tell(&failed) } else { ControlFlow::Continue(()) }
            });
        }
        self.tell_went(went, went_too);
    }

    /// Takes what cannot be asked for.
    pub(crate) fn pop_refused(&mut self) -> Option<(String, ResourceError)> {
        let (name, error) = self.refused.pop_first()?;
        let weight = weight_of(&name, &error);
        self.weight -= weight.min(self.weight);
        self.refused_weight -= weight.min(self.refused_weight);
        Some((name, error))
    }

    /// What lives for a time lives on: it is sent again, whole.
    pub(crate) fn refresh(
        &mut self,
        told: Told,
        source: &impl Source,
        tell: &mut dyn FnMut(Tell<'_>) -> ControlFlow<()>,
    ) {
        for Selection { id, selector, refreshes, .. } in &mut self.selections {
            while let Some(due) = refreshes.pop(told.now) {
                let variant = self.held.variant(*id, &due.name);
                let mut full = false;
                source.look_up(*id, &due.name, &mut |resource| {
                    // What changed is sent by a pull.
                    if resource.version == due.version
                        && let Some(ttl) = refreshes.extend(&due, &resource.value, told)
                    {
                        let variant = variant.as_deref().map(|variant| (variant, &*selector));
                        full = tell(Tell::Put { name: &due.name, variant, resource, ttl: Some(ttl) }).is_break();
                    }
                });
                if full || due.alone {
                    return;
                }
            }
        }
    }

    /// Visits all that there is now, each variant once, and what is gone for as long as that may not be told: whether there is
    /// such.
    pub(crate) fn visit(
        &mut self,
        removals: Removals,
        told: Told,
        with_ttl: bool,
        source: &mut impl Source,
        tell: &mut dyn FnMut(Tell<'_>),
    ) -> (Unanswered, bool) {
        let (mut unanswered, mut leave) = (Unanswered::default(), false);
        let mut visited = HashSet::new();
        for Selection { id, selector, refreshes, .. } in &mut self.selections {
            let mut leaving = BTreeMap::new();
            source.visit_leaving(*id, removals, &mut |name, resource| {
                leaving.insert(name.clone(), resource.clone());
                true
            });
            refreshes.clear();
            let mut put = |name: &ResourceName, variant: Option<&Arc<Variant>>, resource: &Resource<Frame>| {
                let variant = variant.or_else(|| resource.value.variant());
                let ttl = resource.value.remaining_ttl(told.now).filter(|_| with_ttl);
                refreshes.put(told, name, &resource.version, ttl);
                if visited.insert((name.clone(), variant.cloned())) {
                    let variant = variant.map(|variant| (&**variant, &*selector));
                    tell(Tell::Put { name, variant, resource, ttl });
                }
            };
            let answered = source.visit_selected(*id, &mut |Visited { name, variant, resource, .. }| {
                leaving.remove(name);
                put(name, variant, resource);
            });
            unanswered = unanswered.and(answered);
            leave |= !leaving.is_empty();
            for (name, resource) in &leaving {
                put(name, self.held.variant(*id, name).as_ref(), resource);
            }
        }
        (unanswered, leave)
    }

    pub(crate) fn accepted(&mut self, nonce: u64) {
        self.selections.iter_mut().for_each(|selection| selection.refreshes.accepted(nonce));
    }

    pub(crate) fn was_refused(&mut self, now: Instant, nonce: u64, resources: u32) {
        self.selections.iter_mut().for_each(|selection| selection.refreshes.refused(now, nonce, resources));
    }

    /// Tells what went, as much as one response has room for.
    fn tell_went(&mut self, went: Went, tell: &mut dyn FnMut(Tell<'_>) -> ControlFlow<()>) {
        let mut names = went.into_names(&self.held);
        let mut goes_on = ControlFlow::Continue(());
        while goes_on.is_continue()
            && let Some((name, gone)) = names.pop_first()
        {
            goes_on = self.tell_gone(&name, &gone, tell);
        }
        self.went = Went::later(names);
    }

    fn tell_gone(
        &self,
        name: &ResourceName,
        gone: &Gone,
        tell: &mut dyn FnMut(Tell<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (alone, is_draft) = (self.selections.len() == 1, self.dialect == Dialect::Draft);
        let selector_of = |id| self.selections.iter().find(|one| one.id == id).map(|one| &one.selector);
        let is_held = self.held.has(name);
        // The draft has no word for one variant: what is in the place of it takes that.
        if is_draft || gone.variants.iter().any(|(variant, _)| variant.is_none()) && !is_held {
            return if is_held { ControlFlow::Continue(()) } else { tell(Tell::Removed { name }) };
        }
        let mut goes_on = ControlFlow::Continue(());
        for (variant, id) in &gone.variants {
            let variant: &Variant = variant.as_deref().unwrap_or(Variant::plain());
            if let Some(selector) = selector_of(*id) {
                goes_on = tell(Tell::Went { name, variant, selector });
            }
        }
        for selector in gone.lacking.iter().filter_map(|id| selector_of(*id)) {
            goes_on = tell(match alone {
                true => Tell::Removed { name },
                false => Tell::Lacks { name, selector },
            });
        }
        goes_on
    }
}

/// How many names a refusal counts for, until the client is told.
fn weight_of(name: &str, error: &ResourceError) -> usize {
    weight(name) + weight(&error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_counts_until_it_is_told() {
        let mut located = Located::new(Protocol::Delta, Dialect::Final);
        let empty = located.weight();
        let mut refuse = |name: &str| {
            located.refuse(name, ResourceError::new(3, "why"));
            located.weight()
        };
        let (one, same, two) = (refuse("a"), refuse("a"), refuse("b"));
        assert!(empty < one && one == same && one < two);
        assert!(located.pop_refused().is_some());
        assert_eq!(located.weight(), one);
        assert!(located.pop_refused().is_some());
        assert_eq!(located.weight(), empty);
    }
}
