//! What a response says that is new to its client, as much as one response takes.

use std::sync::Arc;

use xdstp_cache::{Place, Pull, Pulled, Removals};

use super::{Delta, Named};
use crate::server::image::Image;
use crate::server::session::outgoing::Outgoing;
use crate::server::session::reference::Reference;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::transmit::Transmit;

/// Fewer resources are written for each client.
const FEW: usize = 4;

impl Delta {
    /// What the client has not been sent. Of a collection that it comes to, others may have been sent the same just now.
    pub(super) fn pull(
        &mut self,
        transmit: &mut Transmit,
        named: &mut Named,
        removals: Removals,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Pulled {
        let at = if self.is_told_alike() { source.image(self.subscriber.id) } else { None };
        let pulled = match at {
            Some((_, Some(image))) => self.pass(image, transmit, named, removals, outgoing, source),
            Some((place, None)) => self.visit_for_others(place, transmit, named, removals, outgoing, source),
            None => self.visit(transmit, named, removals, outgoing, source),
        };
        self.comes_to_collection &= pulled.more || !pulled.answered;
        pulled
    }

    /// Whether there is nothing of its own in how it is told of a collection.
    fn is_told_alike(&self) -> bool {
        let Subscriber { located, refreshes, .. } = &self.subscriber;
        let is_plain = || self.spelling.is_canonical() && refreshes.is_empty() && located.is_none();
        self.comes_to_collection && !self.absent_by_alias && is_plain()
    }

    /// What others were sent, and what there is behind it.
    fn pass(
        &mut self,
        image: Arc<Image>,
        transmit: &mut Transmit,
        named: &mut Named,
        removals: Removals,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Pulled {
        let passed = source.pass(self.subscriber.id, &image);
        if passed.is_some() {
            outgoing.references.extend_from_slice(image.references());
            named.puts = image.clone().into();
            transmit.show(&image);
        }
        match passed {
            // It ends there because no more is in one response.
            Some(true) => {
                let mut pulled = Pulled::default();
                pulled.more = true;
                pulled
            }
            _ => self.visit(transmit, named, removals, outgoing, source),
        }
    }

    /// What this one is sent, others may be, too.
    fn visit_for_others(
        &mut self,
        from: Place,
        transmit: &mut Transmit,
        named: &mut Named,
        removals: Removals,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Pulled {
        let pulled = self.visit(transmit, named, removals, outgoing, source);
        if named.puts.len() < FEW || named.lives || pulled.paused {
            return pulled;
        }
        if let Some((to, _)) = source.image(self.subscriber.id)
            && let Some(bytes) = transmit.additions(named.additions)
            && let Some(image) = Image::new((from, to), bytes, named.puts.to_vec(), outgoing.references.clone())
        {
            source.keep(self.subscriber.id, &image);
            transmit.show_additions(named.additions, &image);
            named.puts = image.into();
        }
        pulled
    }

    /// What the source visits.
    fn visit(
        &mut self,
        transmit: &mut Transmit,
        named: &mut Named,
        removals: Removals,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Pulled {
        let crossed = self.unacked.is_crossed();
        let Self { subscriber, spelling, holds, .. } = self;
        let Subscriber { id, refreshes, refused, refusals, .. } = subscriber;
        let (now, with_ttl, told) = (outgoing.now, outgoing.features.ttl, outgoing.told());
        let (rule, references) = (outgoing.rule, &mut *outgoing.references);
        source.pull(*id, removals, &mut |pull| {
            match pull {
                Pull::Put { name, resource, .. } => {
                    let ttl = resource.value.remaining_ttl(now).filter(|_| with_ttl);
                    transmit.push_delta(spelling.of(name), resource, ttl);
                    refreshes.put(told, name, &resource.version, ttl);
                    named.puts.push_of(transmit.expected(), name.clone());
                    refusals.put(name);
                    named.lives |= resource.value.ttl().is_some();
                    if rule.absent_by_alias {
                        holds.insert(name.clone());
                    }
                    Reference::collect(rule, &resource.value, references);
                }
                Pull::Removed { name, .. } => {
                    named.additions.get_or_insert(transmit.heads());
                    let own = spelling.of(name);
                    if rule.absent_by_alias && !holds.remove(name) && !name.is_glob() {
                        transmit.push_absent_alias(own);
                    } else {
                        transmit.push_removed(own);
                    }
                    refreshes.forget(name);
                    refused.forget(name);
                    if crossed {
                        named.gone.push(name.clone());
                    }
                }
                _ => {}
            }
            refusals.goes_on(transmit)
        })
    }
}
