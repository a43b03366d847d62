//! Errors of one type of one state-of-the-world stream.

use std::ops::ControlFlow;

use xdstp_cache::Removals;

use super::Sotw;
use crate::Protocol;
use crate::server::session::odd::name_of;
use crate::server::session::outgoing::Outgoing;
use crate::server::session::reference::Reference;
use crate::server::source::Source;
use crate::server::transmit::{BUDGET, Transmit};

impl Sotw {
    /// TP3: why something is not sent, when there is nothing else to say: in one response, no name may have both a
    /// resource and an error. Where a response is the full state, an error beside a resource cannot be told: the resource
    /// is in it.
    pub(super) fn errors(
        &mut self,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        // What changed and is withheld goes first.
        if self.changed || !self.subscriber.has_work(source) && self.wanted.untold.is_empty() {
            return None;
        }
        let rule = outgoing.rule;
        let (mut transmit, state) = if rule.full_state_in_sotw {
            let (transmit, version) = self.state(Removals::Include, outgoing, references, source)?;
            (transmit, Some(version))
        } else {
            (Transmit::new(outgoing.type_url.clone()), None)
        };
        self.push_errors(&mut transmit, Removals::Include, outgoing, source);
        // A text that is no name cannot be that of a resource: SotW has no other way to say so.
        let before = transmit.heads();
        while transmit.heads() - before < BUDGET
            && let Some(text) = self.wanted.untold.pop_first()
        {
            if let Err(reason) = name_of(&text, outgoing.name_bytes) {
                transmit.push_error(Protocol::Sotw, &text, &reason.to_error(source));
            }
        }
        self.push_located_errors(&mut transmit, Removals::Include, outgoing, source);
        if transmit.errors == 0 {
            return None;
        }
        let version = state.unwrap_or_else(|| self.version_of_changes(outgoing, source));
        Some((transmit, version))
    }

    /// To who asks for a collection, all that the next full state lacks of it would be gone: why it is not sent, is said with that
    /// state. To who has it, what is gone is told before, because what lacks in a state with the error is not gone.
    pub(super) fn push_errors(
        &mut self,
        transmit: &mut Transmit,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        source: &mut impl Source,
    ) {
        let full_state = self.full_state;
        source.pull_errors(self.subscriber.id, removals, &mut |failed| {
            // What is refreshed is not let go.
            if !full_state && !failed.error.is_transient() {
                self.subscriber.refreshes.forget(failed.name);
            }
            let is_collection = failed.name.is_glob() || failed.name.as_str() == "*";
            let is_in_state = full_state && failed.beside && !is_collection;
            let is_told = !is_in_state && outgoing.tells(failed.error, full_state);
            if is_told && self.subscriber.refusals.tell(failed.name) {
                transmit.push_error(Protocol::Sotw, self.wanted.spelling.of(failed.name), failed.error);
            }
            ControlFlow::Continue(())
        });
    }
}
