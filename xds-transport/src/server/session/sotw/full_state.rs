//! Full states: every response holds all that is subscribed (rule 66).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use xdstp_cache::{Pull, Removals, Resource, Unanswered};
use xdstp_uri::ResourceName;

use super::{Found, Sotw, push};
use crate::frame::Frame;
use crate::server::session::outgoing::Outgoing;
use crate::server::session::reference::Reference;
use crate::server::session::sotw::version::TypeHash;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::transmit::Transmit;

impl Sotw {
    /// Rule 66: everything subscribed, whatever changed of it, and what is gone for as long as that may not be told.
    pub(super) fn full_state(
        &mut self,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        let found = self.found.take();
        let goes_on = found.is_some();
        let Found { removals: before, mut left, references: mut earlier } = found.unwrap_or_default();
        references.append(&mut earlier);
        let mut changed = self.changed;
        // Rule 113: a refresh is the full state again. To a client whose absences are deletions a heartbeat says that
        // everything else is gone.
        while let Some(due) = self.subscriber.refreshes.pop(outgoing.now) {
            source.look_up(self.subscriber.id, &due.name, &mut |resource| {
                changed |= self.subscriber.refreshes.extend(&due, &resource.value, outgoing.told()).is_some();
            });
        }
        // What is gone counts as told once it is pulled, and would go with the first addition that can be said (rule 122).
        let may_be_early = !goes_on && (self.withheld || self.subscriber.newest_removal(source) > 0);
        let is_early = may_be_early && self.is_unknown(source.visit(self.subscriber.id, &mut |_, _| {}), outgoing);
        let removals = if is_early || before == Removals::Defer { Removals::Defer } else { removals };
        changed |= is_early;
        let mut visitor = |pull: Pull<'_, Frame>| {
            match pull {
                Pull::Put { resource, .. } => {
                    changed = true;
                    Reference::collect(outgoing.rule, &resource.value, references);
                }
                Pull::Removed { name, .. } if self.wanted.lists(name) => changed = true,
                _ => left = true,
            }
            ControlFlow::Continue(())
        };
        let mut pulled = source.pull(self.subscriber.id, removals, &mut visitor);
        if !pulled.paused && self.subscriber.located.is_some() {
            pulled = pulled.and(self.pull_located(removals, outgoing, references, &mut changed, source));
        }
        // Rule 37: that it was all may be said of what was told already, to who asked for nothing since.
        changed |= pulled.answered && (self.asks || self.sent.is_none());
        self.subscriber.was_pulled(pulled);
        if pulled.paused {
            self.changed = changed;
            self.found = Some(Found { removals, left, references: std::mem::take(references) });
            return None;
        }
        if !changed && !left {
            return None;
        }
        let state = self.state(removals, outgoing, references, source);
        (self.changed, self.withheld) = (state.is_none(), state.is_none());
        let (transmit, version) = state?;
        self.asks = false;
        // Rule 37: what left a collection may never have been in it. Nothing came: as many are the same.
        if self.sent.replace(transmit.resources) == Some(transmit.resources) && !changed {
            return None;
        }
        Some((transmit, version))
    }

    /// Everything subscribed; none while that cannot be said.
    pub(super) fn state(
        &mut self,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let mut leaving = BTreeMap::new();
        source.visit_leaving(self.subscriber.id, removals, &mut |name, resource| {
            // Who was told for how long it lives has it no more after that (rule 111).
            let lives = !outgoing.features.wrapped
                || !outgoing.features.ttl
                || resource.value.expires().is_none_or(|at| at > outgoing.now);
            if lives {
                leaving.insert(name.clone(), resource.clone());
            }
            lives
        });
        // Rule 33: what the origin gave the version to has none of these.
        let given = self.given_version(source).filter(|_| leaving.is_empty());
        let mut hash = (given.is_none() || self.subscriber.located.is_some()).then(TypeHash::default);
        let Self { subscriber, wanted, withheld, .. } = self;
        let Subscriber { id, refreshes, refusals, .. } = subscriber;
        refreshes.clear();
        let mut tell = |name: &ResourceName, resource: &Resource<Frame>| {
            if let Some(hash) = &mut hash {
                hash.add(name, &resource.version);
            }
            push(&mut transmit, &wanted.spelling, refreshes, outgoing, name, resource);
            refusals.put(name);
        };
        let visited = source.visit(*id, &mut |name, resource| {
            leaving.remove(name);
            tell(name, resource);
            if *withheld {
                Reference::collect(outgoing.rule, &resource.value, references);
            }
        });
        leaving.iter().for_each(|(name, resource)| tell(name, resource));
        let (of_located, leave) = self.visit_located(removals, outgoing, &mut transmit, hash.as_mut(), source);
        let (visited, given) = (visited.and(of_located), given.filter(|_| !leave));
        // It may have come since the pull.
        self.subscriber.refusals.learn(visited.refused > 0);
        let version = given.map_or_else(|| hash.unwrap_or_default().to_string(), |given| given.to_string());
        (!self.is_unknown(visited, outgoing)).then_some((transmit, version))
    }

    /// Absence is deletion: what a reconnected client may hold is not left out before it is answered (rule 151). To one
    /// that holds nothing, what there is of an answer does not lie. A relay knows that what is refused is not gone.
    fn is_unknown(&self, visited: Unanswered, outgoing: &Outgoing<'_>) -> bool {
        let mut unsaid = visited;
        if outgoing.features.for_others {
            unsaid.refused = 0;
        }
        let holds = self.resumed.is_some() && unsaid.any() || self.sent.is_some() && visited.held > 0;
        visited.collections > 0 && self.wanted.wildcard || holds
    }
}
