//! Errors of one type of one state-of-the-world stream.

use std::ops::ControlFlow;

use xdstp_cache::Removals;

use super::Session;
use crate::server::odd::name_of;
use crate::server::outgoing::Outgoing;
use crate::server::source::Source;
use crate::server::stream::Reference;
use crate::server::transmit::Transmit;
use crate::type_rules::TypeRule;

impl Session {
    /// TP3: why something is not sent, when there is nothing else to say: in one response, no name may have both a
    /// resource and an error. Where a response is the full state, an error beside a resource cannot be told: the resource
    /// is in it.
    pub(super) fn errors(
        &mut self,
        rule: &TypeRule,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        // What changed and is withheld goes first.
        if self.changed || !source.has_work(self.id) && self.wanted.untold.is_empty() {
            return None;
        }
        let (mut transmit, state) = if rule.full_state_in_sotw {
            let (transmit, version) = self.state(Removals::Include, rule, outgoing, references, source)?;
            (transmit, Some(version))
        } else {
            (Transmit::new(outgoing.type_url.clone()), None)
        };
        source.pull_errors(self.id, Removals::Include, &mut |failed| {
            if failed.removed {
                self.running.remove(failed.name);
            }
            // What is refreshed is not let go.
            if !rule.full_state_in_sotw && !failed.error.is_transient() {
                self.refreshes.forget(failed.name);
            }
            if !(rule.full_state_in_sotw && failed.beside && !failed.name.is_glob()) {
                transmit.push_error(7, self.wanted.spelling.of(failed.name), failed.error);
            }
            ControlFlow::Continue(())
        });
        // A text that is no name cannot be that of a resource: SotW has no other way to say so.
        while let Some(text) = self.wanted.untold.pop_first() {
            if let Err(reason) = name_of(&text, outgoing.name_bytes) {
                transmit.push_error(7, &text, &reason.to_error(source));
            }
        }
        if transmit.errors == 0 {
            return None;
        }
        let version = state.unwrap_or_else(|| self.version_of_changes(source));
        Some((transmit, version))
    }
}
