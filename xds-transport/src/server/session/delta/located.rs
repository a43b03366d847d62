//! What of a delta session is asked for with dynamic parameters (TP2).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use xdstp_cache::{Interest, Pulled, Removals, TypeUrl, Version};
use xdstp_uri::ResourceName;

use super::{Delta, Named};
use crate::Dialect;
use crate::Protocol;
use crate::frame;
use crate::server::error::ProtocolError;
use crate::server::session::counts::Counts;
use crate::server::session::delta::puts::Puts;
use crate::server::session::located::{Located, Tell};
use crate::server::session::odd::{kept, name_of, no_locator};
use crate::server::session::outgoing::Outgoing;
use crate::server::session::reference::Reference;
use crate::server::session::room::Room;
use crate::server::session::spelling::Spelling;
use crate::server::source::Source;
use crate::server::transmit::{BUDGET, Transmit};
use crate::wire::DeltaDiscoveryRequest;
use crate::wire::parameters::{self, Locator};

/// Requests.
impl Delta {
    /// The first request of a type decides which fields count, where the dialect has it so; these are its names that do.
    pub(super) fn fields_that_count<'a>(
        &mut self,
        dialect: Dialect,
        request: &DeltaDiscoveryRequest,
        names: &'a [&'a str],
    ) -> &'a [&'a str] {
        self.dialect = dialect;
        self.counts = Counts::first(dialect, !request.resource_locators_subscribe.is_empty());
        if self.counts == Counts::Locators { &[] } else { names }
    }

    /// Subscribes first, then unsubscribes (rule 47).
    pub(super) fn change_locators(
        &mut self,
        type_url: &TypeUrl,
        request: &DeltaDiscoveryRequest,
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let mut again: HashSet<Interest> = HashSet::new();
        for encoded in &request.resource_locators_subscribe {
            let Some((locator, interest)) = self.locator(encoded, room, source)? else { continue };
            // Without parameters it is a name like others.
            if locator.selector.is_default() {
                self.subscribe(&locator.name, room, &mut again, source);
                room.check(self.names())?;
                continue;
            }
            let located =
                self.subscriber.located.get_or_insert_with(|| Box::new(Located::new(Protocol::Delta, self.dialect)));
            let (id, new) = located.subscribe(type_url, &locator.selector, &interest, room, source)?;
            if let Interest::Name(name) = &interest {
                self.spelling.note(name, &locator.name);
            }
            if new && interest.is_collection() {
                let crossing = self.unacked.crossing(&interest, |name| source.covers(id, name));
                if !crossing.is_empty() {
                    source.resume(id, crossing);
                }
            }
            room.check(self.names())?;
        }
        for encoded in &request.resource_locators_unsubscribe {
            let Some((locator, interest)) = self.locator(encoded, room, source)? else { continue };
            if locator.selector.is_default() {
                self.leave(&interest, source);
                continue;
            }
            let Some(located) = &mut self.subscriber.located else { continue };
            if located.unsubscribe(&locator.selector, &interest, source) {
                self.unacked.leave(&interest);
            }
        }
        Ok(())
    }

    /// What a locator asks for; none where there can be no such thing, which the client is told.
    fn locator(
        &mut self,
        encoded: &[u8],
        room: Room,
        source: &mut impl Source,
    ) -> Result<Option<(Locator, Interest)>, ProtocolError> {
        let locator = match Locator::decode(self.dialect, encoded) {
            Ok(locator) => locator,
            Err(error) => {
                let (name, refused) = no_locator(error)?;
                let none = || Box::new(Located::new(Protocol::Delta, self.dialect));
                let located = self.subscriber.located.get_or_insert_with(none);
                located.refuse(&kept(&name, room.name_bytes), refused);
                return Ok(None);
            }
        };
        match name_of(&locator.name, room.name_bytes) {
            Ok(name) => Ok(Some((locator, Interest::from(name)))),
            Err(reason) => {
                if self.malformed.insert(&kept(&locator.name, room.name_bytes)) && reason.is_too_long() {
                    source.too_long_name();
                }
                Ok(None)
            }
        }
    }

    /// Says to each new selection what the client holds of it. What is left is not asked for by any.
    ///
    /// The versions that a client brings along do not say which variants it has of a name: of one that it asks for with
    /// parameters it may hold any.
    ///
    /// # Errors
    /// When that is more than there is room for: the same name may count for many.
    pub(super) fn resume_located(
        &mut self,
        mut held: HashMap<ResourceName, Version>,
        room: Room,
        source: &mut impl Source,
    ) -> Result<HashMap<ResourceName, Version>, ProtocolError> {
        let Some(located) = &mut self.subscriber.located else { return Ok(held) };
        let mut by_glob: HashMap<ResourceName, Vec<&ResourceName>> = HashMap::new();
        for (name, glob) in held.keys().filter_map(|name| Some((name, name.glob_parent()?))) {
            by_glob.entry(glob).or_default().push(name);
        }
        let (mut taken, mut count) = (HashSet::new(), self.brought);
        for (id, interests) in located.take_new() {
            let mut own = BTreeSet::new();
            for interest in interests {
                match &interest {
                    Interest::Name(name) if !name.is_glob() => {
                        own.extend(held.get_key_value(name).map(|(name, _)| name));
                    }
                    Interest::Name(glob) => own.extend(by_glob.get(glob).into_iter().flatten()),
                    Interest::Wildcard => own.extend(held.keys().filter(|name| source.covers(id, name))),
                }
            }
            count += own.len();
            room.check_brought(count)?;
            taken.extend(own.iter().map(|name| (*name).clone()));
            source.resume(id, own.into_iter().map(|name| (name.clone(), Version::from(""))).collect());
        }
        held.retain(|name, _| !taken.contains(name));
        Ok(held)
    }
}

/// Responses.
impl Delta {
    pub(super) fn pull_located(
        &mut self,
        transmit: &mut Transmit,
        named: &mut Named,
        removals: Removals,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Pulled {
        let Self { subscriber, spelling, unacked, .. } = self;
        let Some(located) = &mut subscriber.located else { return Pulled::default() };
        if transmit.budget_used() >= BUDGET {
            let mut pulled = Pulled::default();
            pulled.more = located.has_work(source);
            return pulled;
        }
        let (dialect, crossed) = (located.dialect(), unacked.is_crossed());
        let (with_ttl, told) = (outgoing.features.ttl, outgoing.told());
        let (rule, references) = (outgoing.rule, &mut *outgoing.references);
        let (refused, refusals) = (&mut subscriber.refused, &mut subscriber.refusals);
        let (pulled, _) = located.pull(removals, told, with_ttl, source, &mut |tell| {
            match &tell {
                Tell::Put { name, resource, .. } => {
                    named.puts.push((*name).clone());
                    refusals.put(name);
                    Reference::collect(rule, &resource.value, references);
                }
                Tell::Removed { name } => {
                    refused.forget(name);
                    if crossed {
                        named.gone.push((*name).clone());
                    }
                }
                Tell::Went { .. } | Tell::Lacks { .. } => {}
            }
            _ = push(transmit, dialect, spelling, &tell);
            refusals.goes_on(transmit)
        });
        pulled
    }

    pub(super) fn refresh_located(
        &mut self,
        transmit: &mut Transmit,
        puts: &mut Puts,
        outgoing: &Outgoing<'_>,
        source: &impl Source,
    ) {
        let Self { subscriber, spelling, .. } = self;
        let refusals = &mut subscriber.refusals;
        let Some(located) = subscriber.located.as_mut().filter(|_| transmit.is_empty()) else { return };
        let dialect = located.dialect();
        located.refresh(outgoing.told(), source, &mut |tell| {
            if let Tell::Put { name, .. } = &tell {
                puts.push((*name).clone());
                refusals.put(name);
            }
            _ = push(transmit, dialect, spelling, &tell);
            refusals.goes_on(transmit)
        });
    }

    /// What cannot be asked for, and why what can be is not sent.
    pub(super) fn push_located_errors(
        &mut self,
        transmit: &mut Transmit,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        source: &mut impl Source,
    ) {
        let Self { subscriber, spelling, .. } = self;
        let Some(located) = &mut subscriber.located else { return };
        let dialect = located.dialect();
        while transmit.budget_used() < BUDGET
            && let Some((name, error)) = located.pop_refused()
        {
            transmit.push_error(Protocol::Delta, &name, &error);
            transmit.push_removed(&name);
        }
        if !transmit.is_empty() {
            return;
        }
        let mut removed = Transmit::new(transmit.type_url.clone());
        located.pull_errors(
            removals,
            source,
            &mut |failed| {
                if failed.removed || outgoing.tells(failed.error, false) {
                    transmit.push_error(Protocol::Delta, spelling.of(failed.name), failed.error);
                }
                goes_on(transmit)
            },
            &mut |tell| push(&mut removed, dialect, spelling, &tell),
        );
        transmit.append(removed);
    }
}

fn push(transmit: &mut Transmit, dialect: Dialect, spelling: &Spelling, tell: &Tell<'_>) -> ControlFlow<()> {
    match tell {
        Tell::Put { name, variant: None, resource, ttl } => transmit.push_delta(spelling.of(name), resource, *ttl),
        Tell::Put { name, variant: Some((variant, selector)), resource, ttl } => {
            let named = parameters::named(dialect, spelling.of(name), variant, selector);
            transmit.push_delta(frame::Named::Encoded(&named), resource, *ttl);
        }
        Tell::Went { name, variant, selector } => {
            transmit.push_removed_name(&parameters::resource_name(spelling.of(name), variant, selector));
        }
        Tell::Lacks { name, selector } => {
            transmit.push_removed_name(&parameters::missing_name(spelling.of(name), selector));
        }
        Tell::Removed { name } => transmit.push_removed(spelling.of(name)),
    }
    goes_on(transmit)
}

fn goes_on(transmit: &Transmit) -> ControlFlow<()> {
    if transmit.budget_used() < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
