//! What of a SotW session is asked for with dynamic parameters (TP2): its resources come in a wrapper.

use std::collections::HashSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use xdstp_cache::{Interest, Pulled, Removals, TypeUrl, Unanswered, Version};

use super::Sotw;
use super::version::TypeHash;
use crate::frame;
use crate::server::error::ProtocolError;
use crate::server::session::counts::Counts;
use crate::server::session::located::{Located, Tell};
use crate::server::session::odd::{kept, name_of, no_locator};
use crate::server::session::outgoing::Outgoing;
use crate::server::session::reference::Reference;
use crate::server::session::room::Room;
use crate::server::session::spelling::Spelling;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::transmit::{BUDGET, Transmit};
use crate::wire::parameters::{self, Locator};
use crate::{Dialect, Protocol};

impl Sotw {
    /// Rule 43: the list is what is wanted from now on. Whether anything is wanted no more, and the names that are listed
    /// without parameters.
    pub(super) fn change_locators(
        &mut self,
        type_url: &TypeUrl,
        requested: &[Bytes],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(bool, Vec<String>), ProtocolError> {
        let mut plain = Vec::new();
        if self.locators.counts == Counts::Names || requested.is_empty() && self.locators.is_empty() {
            return Ok((false, plain));
        }
        self.locators.ever |= !requested.is_empty();
        let dialect = self.locators.dialect;
        let located = self.subscriber.located.get_or_insert_with(|| Box::new(Located::new(Protocol::Sotw, dialect)));
        let mut wanted = HashSet::new();
        for encoded in requested {
            let locator = match Locator::decode(dialect, encoded) {
                Ok(locator) => locator,
                Err(error) => {
                    let (name, refused) = no_locator(error)?;
                    located.refuse(&kept(&name, room.name_bytes), refused);
                    continue;
                }
            };
            if locator.selector.is_default() {
                plain.push(locator.name);
                continue;
            }
            let name = match name_of(&locator.name, room.name_bytes) {
                Ok(name) => name,
                Err(reason) => {
                    let error = reason.to_error(source);
                    located.refuse(&kept(&locator.name, room.name_bytes), error);
                    continue;
                }
            };
            self.wanted.spelling.note(&name, &locator.name);
            let one = (locator.selector, Interest::from(name));
            if !self.locators.wanted.contains(&one) && !wanted.contains(&one) {
                located.subscribe(type_url, &one.0, &one.1, room, source)?;
                room.check(located.weight() + self.wanted.len())?;
            }
            wanted.insert(one);
        }
        let before = std::mem::replace(&mut self.locators.wanted, wanted);
        let mut less = false;
        for (selector, interest) in before.difference(&self.locators.wanted) {
            less |= located.unsubscribe(selector, interest, source);
        }
        located.take_new().into_iter().for_each(|(id, _)| source.resume(id, Vec::new()));
        Ok((less, plain))
    }

    /// Takes what changed; what there is then is written from a visit.
    pub(super) fn pull_located(
        &mut self,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        references: &mut Vec<Reference>,
        changed: &mut bool,
        source: &mut impl Source,
    ) -> Pulled {
        let Some(located) = &mut self.subscriber.located else { return Pulled::default() };
        let (told, with_ttl) = (outgoing.told(), outgoing.features.ttl);
        located.refresh(told, source, &mut |_| {
            *changed = true;
            ControlFlow::Continue(())
        });
        let (pulled, news) = located.pull(removals, told, with_ttl, source, &mut |tell| {
            if let Tell::Put { resource, .. } = tell {
                Reference::collect(outgoing.rule, &resource.value, references);
            }
            ControlFlow::Continue(())
        });
        *changed |= news;
        pulled
    }

    /// Writes all that there is of it. Whether some of that is gone, and may not be told so yet.
    pub(super) fn visit_located(
        &mut self,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        transmit: &mut Transmit,
        mut hash: Option<&mut TypeHash>,
        source: &mut impl Source,
    ) -> (Unanswered, bool) {
        let (dialect, spelling) = (self.locators.dialect, &self.wanted.spelling);
        let Subscriber { located, refusals, .. } = &mut self.subscriber;
        let Some(located) = located else { return Default::default() };
        located.visit(removals, outgoing.told(), outgoing.features.ttl, source, &mut |tell| {
            if let Some(hash) = &mut hash {
                add(hash, &tell);
            }
            if let Tell::Put { name, .. } = &tell {
                refusals.put(name);
            }
            push(transmit, dialect, spelling, &tell);
        })
    }

    /// The version that the origin gave to all that is asked for, by whatever it selects.
    pub(super) fn given_version(&self, source: &impl Source) -> Option<Version> {
        let Subscriber { id, located, .. } = &self.subscriber;
        let plain = (!self.wanted.is_empty() || located.is_none()).then_some(*id);
        let mut ids = plain.into_iter().chain(located.iter().flat_map(|located| located.ids()));
        let given = source.type_version(ids.next()?)?;
        ids.all(|id| source.type_version(id).as_ref() == Some(&given)).then_some(given)
    }

    /// What is new of it, of a type that is told by changes.
    pub(super) fn changes_located(
        &mut self,
        outgoing: &Outgoing<'_>,
        transmit: &mut Transmit,
        references: &mut Vec<Reference>,
        source: &mut impl Source,
    ) -> Pulled {
        let (dialect, spelling, offered) = (self.locators.dialect, &self.wanted.spelling, &mut self.offered);
        let Subscriber { located, refusals, .. } = &mut self.subscriber;
        let Some(located) = located else { return Pulled::default() };
        let (told, with_ttl) = (outgoing.told(), outgoing.features.ttl);
        let (pulled, _) = located.pull(Removals::Include, told, with_ttl, source, &mut |tell| {
            if let Tell::Put { name, resource, .. } = &tell {
                Reference::collect(outgoing.rule, &resource.value, references);
                offered.put(name);
                refusals.put(name);
            }
            push(transmit, dialect, spelling, &tell);
            refusals.goes_on(transmit)
        });
        // It may be the first to say so, and what stands here for the rest of the response is noted with it.
        if refusals.learn(pulled.refused) {
            offered.names().for_each(|name| refusals.put(name));
        }
        if !pulled.more {
            located.refresh(told, source, &mut |tell| {
                if let Tell::Put { name, .. } = &tell {
                    refusals.put(name);
                }
                push(transmit, dialect, spelling, &tell);
                refusals.goes_on(transmit)
            });
        }
        pulled
    }

    /// The version of all that is asked for with parameters.
    pub(super) fn add_located(&mut self, hash: &mut TypeHash, outgoing: &Outgoing<'_>, source: &mut impl Source) {
        if let Some(located) = &mut self.subscriber.located {
            let (told, with_ttl) = (outgoing.told(), outgoing.features.ttl);
            located.visit(Removals::Include, told, with_ttl, source, &mut |tell| add(hash, &tell));
        }
    }

    /// What cannot be asked for, and why what can be is not sent.
    pub(super) fn push_located_errors(
        &mut self,
        transmit: &mut Transmit,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        source: &mut impl Source,
    ) {
        let (spelling, full_state) = (&self.wanted.spelling, self.full_state);
        let Subscriber { located, refusals, .. } = &mut self.subscriber;
        let Some(located) = located else { return };
        let before = transmit.heads();
        while transmit.heads() - before < BUDGET
            && let Some((name, error)) = located.pop_refused()
        {
            transmit.push_error(Protocol::Sotw, &name, &error);
        }
        located.pull_errors(
            removals,
            source,
            &mut |failed| {
                // Beside a full state that has it, an error cannot be told.
                let is_in_state = full_state && failed.beside && !failed.name.is_glob();
                let is_told = !is_in_state && outgoing.tells(failed.error, full_state);
                if is_told && refusals.tell(failed.name) {
                    transmit.push_error(Protocol::Sotw, spelling.of(failed.name), failed.error);
                }
                ControlFlow::Continue(())
            },
            &mut |_| ControlFlow::Continue(()),
        );
    }
}

fn add(hash: &mut TypeHash, tell: &Tell<'_>) {
    match tell {
        Tell::Put { name, variant: None, resource, .. } => hash.add(name, &resource.version),
        Tell::Put { name, variant: Some((variant, _)), resource, .. } => {
            hash.add_variant(name, variant, &resource.version);
        }
        Tell::Went { .. } | Tell::Lacks { .. } | Tell::Removed { .. } => {}
    }
}

/// That something is gone cannot be said over SotW, but by leaving it out of a full state.
fn push(transmit: &mut Transmit, dialect: Dialect, spelling: &Spelling, tell: &Tell<'_>) {
    match tell {
        Tell::Put { name, variant: None, resource, ttl } => transmit.push_wrapped(spelling.of(name), resource, *ttl),
        Tell::Put { name, variant: Some((variant, selector)), resource, ttl } => {
            let named = parameters::named(dialect, spelling.of(name), variant, selector);
            transmit.push_wrapped(frame::Named::Encoded(&named), resource, *ttl);
        }
        Tell::Went { .. } | Tell::Lacks { .. } | Tell::Removed { .. } => {}
    }
}
