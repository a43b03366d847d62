//! Types that are told by changes: a response holds what is new, and absence from it says nothing (rule 67).

use xdstp_cache::{Pull, Removals};

use super::{Sotw, push};
use crate::server::session::outgoing::Outgoing;
use crate::server::session::reference::Reference;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::transmit::Transmit;

impl Sotw {
    /// Rule 67: only what changed; a removal cannot be said. Names that are not there leave the answer for the others
    /// as it is (rule 126). In parts, as over delta (rule 133): each resource may come alone.
    pub(super) fn changes(
        &mut self,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Option<(Transmit, String)> {
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let Self { subscriber, wanted, running, offered, .. } = self;
        let Subscriber { id, refreshes, refused, refusals, .. } = subscriber;
        offered.begin();
        let pulled = source.pull(*id, Removals::Include, &mut |pull| {
            match pull {
                Pull::Put { name, resource, .. } => {
                    push(&mut transmit, &wanted.spelling, refreshes, outgoing, name, resource);
                    Reference::collect(outgoing.rule, &resource.value, references);
                    running.put(name, &resource.version, &wanted.names);
                    offered.put(name);
                    refusals.put(name);
                }
                Pull::Removed { name, .. } => {
                    running.remove(name, &wanted.names);
                    refused.forget(name);
                }
                _ => {}
            }
            refusals.goes_on(&transmit)
        });
        let mut pulled = pulled;
        if self.subscriber.was_pulled(pulled) {
            self.offered.names().for_each(|name| self.subscriber.refusals.put(name));
        }
        if !pulled.more {
            self.refresh(outgoing, &mut transmit, source);
        }
        if !pulled.more && self.subscriber.located.is_some() {
            pulled = pulled.and(self.changes_located(outgoing, &mut transmit, references, source));
            self.subscriber.paused = pulled.paused;
        }
        let Self { subscriber, running, .. } = self;
        // The version is of all that is to be told: each of several parts sums up the others too.
        // So is what is gone, and is told so by an error later.
        let all = !pulled.more && !source.has_work(subscriber.id);
        running.told(all, source.changes(subscriber.id));
        if transmit.resources == 0 {
            return None;
        }
        let version = self.version_of_changes(outgoing, source);
        Some((transmit, version))
    }

    /// Rule 114: heartbeats over SotW do not arm the timer of every client anew, so a refresh is the whole resource.
    fn refresh(&mut self, outgoing: &Outgoing<'_>, transmit: &mut Transmit, source: &impl Source) {
        let Self { subscriber, wanted, .. } = self;
        let Subscriber { id, refreshes, refusals, .. } = subscriber;
        while refusals.goes_on(transmit).is_continue()
            && refreshes.fits(transmit)
            && let Some(due) = refreshes.pop(outgoing.now)
        {
            source.look_up(*id, &due.name, &mut |resource| {
                if resource.version == due.version && refreshes.extend(&due, &resource.value, outgoing.told()).is_some()
                {
                    push(transmit, &wanted.spelling, refreshes, outgoing, &due.name, resource);
                    refusals.put(&due.name);
                }
            });
            if due.alone && !transmit.is_empty() {
                break;
            }
        }
    }

    pub(super) fn version_of_changes(&mut self, outgoing: &Outgoing<'_>, source: &mut impl Source) -> String {
        if let Some(given) = self.given_version(source) {
            self.running.rest();
            return given.to_string();
        }
        let mut hash = self.running.of(self.subscriber.id, &self.wanted.names, source);
        self.add_located(&mut hash, outgoing, source);
        hash.to_string()
    }
}
