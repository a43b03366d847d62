//! One type of one delta stream.

mod additions;
mod held;
mod located;
mod puts;
mod requests;
mod unacked;

use std::collections::HashSet;
use std::ops::ControlFlow;

use xdstp_cache::{Removals, Version};
use xdstp_uri::ResourceName;

use crate::server::session::counts::Counts;
use crate::server::session::delta::puts::Puts;
use crate::server::session::delta::unacked::Unacked;
use crate::server::session::odd::{Odd, name_of};
use crate::server::session::outgoing::{Outgoing, Tells};
use crate::server::session::spelling::Spelling;
use crate::server::session::subscriber::Subscriber;
use crate::server::source::Source;
use crate::server::transmit::{BUDGET, Transmit};
use crate::types::{self, TypeRule};
use crate::{Dialect, Protocol};

pub(crate) use held::versions;

/// How many responses of one type may wait for their ACK.
const UNACKED: usize = 8;

/// What is delta's own of a session.
pub(crate) struct Delta {
    pub(crate) subscriber: Subscriber,
    wildcard: bool,
    names: usize,
    /// How many it brought along, by their weight.
    brought: usize,
    spelling: Spelling,
    unacked: Unacked,
    responded: bool,
    owes_answer: bool,
    /// Names that are none: told as removed, because they cannot exist.
    malformed: Odd,
    /// For how many names the source counts what is kept beside these.
    beside: usize,
    /// A wildcard has no answer here, and whether the client is to be told that it asked for one.
    no_wildcard: bool,
    refuses: bool,
    /// What the client was sent, of a type whose absent names are aliases of nothing: only what it has is removed
    /// (rule 106).
    holds: HashSet<ResourceName>,
    absent_by_alias: bool,
    /// It has not been sent all of a collection that it asked for.
    comes_to_collection: bool,
    counts: Counts,
    dialect: Dialect,
}

/// The names in a response that is being written.
#[derive(Default)]
struct Named {
    puts: Puts,
    /// One of them lives for a time.
    lives: bool,
    /// How many bytes of the heads are of them, where something else comes behind.
    additions: Option<usize>,
    /// Kept only where somebody has to know what is gone.
    gone: Vec<ResourceName>,
}

impl Delta {
    fn new(subscriber: Subscriber, rule: &TypeRule, source: &impl Source) -> Self {
        Self {
            subscriber,
            wildcard: false,
            names: 0,
            brought: 0,
            spelling: Spelling::default(),
            unacked: Unacked::default(),
            responded: false,
            owes_answer: false,
            malformed: Odd::default(),
            beside: 0,
            no_wildcard: rule.delta_only && source.has_sotw_origin(),
            refuses: false,
            holds: HashSet::new(),
            absent_by_alias: rule.absent_by_alias,
            comes_to_collection: false,
            counts: Counts::Both,
            dialect: Dialect::Final,
        }
    }

    pub(crate) fn brought(&self) -> usize {
        self.brought
    }

    pub(crate) fn names(&self) -> usize {
        let located = self.subscriber.located.as_ref().map_or(0, |located| located.weight());
        self.names + self.malformed.weight() + self.spelling.weight() + located
    }

    /// Has the source count what is kept beside names.
    fn tell_kept(&mut self, source: &mut impl Source) {
        let refused = self.subscriber.located.as_ref().map_or(0, |located| located.refused_weight());
        let beside = self.malformed.weight() + self.spelling.weight() + refused;
        if std::mem::replace(&mut self.beside, beside) != beside {
            source.keeps(self.subscriber.id, beside);
        }
    }

    pub(crate) fn expect_no_answer(&mut self) {
        self.unacked.clear();
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    pub(crate) fn has_work(&self, source: &impl Source) -> bool {
        self.owes_answer || self.refuses || !self.malformed.is_empty() || self.subscriber.has_work(source)
    }

    pub(crate) fn has_additions(&self, source: &impl Source) -> bool {
        self.subscriber.has_additions(source)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.unacked.len() < UNACKED
    }

    pub(crate) fn has_responded(&self) -> bool {
        self.responded
    }

    pub(crate) fn awaits_answer(&self) -> bool {
        self.unacked.len() > 0
    }

    pub(crate) fn awaits_answer_of(&self, name: &ResourceName) -> bool {
        self.unacked.puts(name)
    }
}

impl Delta {
    /// The next response, if one is due: newest state only, whatever happened in between (rules 38, 128). What was
    /// pulled is not pulled again until it changes or is asked for, ACK or NACK (rules 23, 37); what changed meanwhile
    /// is not held back by a NACK (rule 24).
    pub(crate) fn poll_transmit(
        &mut self,
        tells: Tells,
        outgoing: &mut Outgoing<'_>,
        source: &mut impl Source,
    ) -> Option<Transmit> {
        let removals = tells.removals();
        let mut transmit = Transmit::new(outgoing.type_url.clone());
        let mut named = Named::default();
        self.subscriber.begin(!self.responded, source);
        let mut pulled = self.pull(&mut transmit, &mut named, removals, outgoing, source);
        if self.subscriber.located.is_some() {
            pulled = pulled.and(self.pull_located(&mut transmit, &mut named, removals, outgoing, source));
        }
        self.owes_answer |= pulled.empty;
        if self.subscriber.was_pulled(pulled) {
            named.puts.iter().for_each(|name| self.subscriber.refusals.put(name));
        }
        if !pulled.more {
            self.push_malformed(&mut transmit, outgoing, source);
            // Apart from what changed: a client that refuses that says nothing of what lives on.
            if transmit.is_empty() {
                self.refresh(&mut transmit, &mut named.puts, outgoing, source);
                self.refresh_located(&mut transmit, &mut named.puts, outgoing, source);
            }
        }
        let mut empty = transmit.is_empty();
        if empty && !pulled.more && tells.errors() {
            if std::mem::take(&mut self.refuses) {
                transmit.push_error(Protocol::Delta, "*", &types::no_sotw(outgoing.type_url));
            }
            self.push_errors(&mut transmit, removals, outgoing, source);
            self.push_located_errors(&mut transmit, removals, outgoing, source);
            empty = transmit.is_empty();
        }
        // Rule 86: a wildcard or glob is answered even when there is nothing to say, once. Removals that wait are that
        // answer too.
        let is_complete = || !pulled.more && (removals == Removals::Include || !self.subscriber.has_work(source));
        if empty && !(self.owes_answer && is_complete()) {
            return None;
        }
        if transmit.errors + transmit.removed > 0 {
            self.tell_kept(source);
        }
        (self.owes_answer, self.responded) = (false, true);
        self.subscriber.push_refusals(false, Protocol::Delta, &self.spelling, &mut transmit, source);
        let nonce = outgoing.nonce();
        self.unacked.told_gone(named.gone);
        if self.unacked.len() == 0 {
            self.subscriber.turn_since = Some(outgoing.now);
        }
        self.unacked.push((nonce, outgoing.now), transmit.resources + transmit.refreshed, named.puts);
        // Rule 36: for people, and what the origin said.
        let version = source.system_version(self.subscriber.id);
        let version = version.as_ref().map(Version::as_str);
        self.subscriber.close(&mut transmit, Protocol::Delta, version, nonce, outgoing);
        Some(transmit)
    }

    /// Texts that are no names.
    fn push_malformed(&mut self, transmit: &mut Transmit, outgoing: &Outgoing<'_>, source: &impl Source) {
        while transmit.budget_used() < BUDGET
            && let Some(name) = self.malformed.pop_first()
        {
            transmit.push_removed(&name);
            // What fills a response alone is not in it twice.
            if name.len() < BUDGET
                && let Err(reason) = name_of(&name, outgoing.name_bytes)
                && reason.is_too_long()
            {
                transmit.push_error(Protocol::Delta, &name, &reason.to_error(source));
            }
        }
    }

    /// TP3: why something is not sent, and for clients that know no errors that it is removed (rule 117). In a response
    /// of their own, because no name may have both a resource and an error in one.
    fn push_errors(
        &mut self,
        transmit: &mut Transmit,
        removals: Removals,
        outgoing: &Outgoing<'_>,
        source: &mut impl Source,
    ) {
        let Self { subscriber, spelling, holds, .. } = self;
        let Subscriber { id, refreshes, refused, .. } = subscriber;
        source.pull_errors(*id, removals, &mut |failed| {
            let own = spelling.of(failed.name);
            let held = !outgoing.rule.absent_by_alias || holds.remove(failed.name) || failed.name.is_glob();
            match (failed.removed, held) {
                // An alias of nothing is a resource: the error could not stand beside it, and says no more.
                (true, false) => transmit.push_absent_alias(own),
                (false, _) if !outgoing.tells(failed.error, false) => {}
                (removed, _) => {
                    transmit.push_error(Protocol::Delta, own, failed.error);
                    if removed {
                        transmit.push_removed(own);
                        refused.forget(failed.name);
                    }
                    // What is refreshed is not let go.
                    if removed || !failed.error.is_transient() {
                        refreshes.forget(failed.name);
                    }
                }
            }
            if transmit.budget_used() < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }

    /// Rule 112: a heartbeat is the name and the version that the client has, with a TTL and without a body.
    fn refresh(&mut self, transmit: &mut Transmit, puts: &mut Puts, outgoing: &Outgoing<'_>, source: &impl Source) {
        let Self { subscriber, spelling, .. } = self;
        let Subscriber { id, refreshes, refusals, .. } = subscriber;
        let told = outgoing.told();
        while refusals.goes_on(transmit).is_continue()
            && refreshes.fits(transmit)
            && let Some(due) = refreshes.pop(told.now)
        {
            source.look_up(*id, &due.name, &mut |resource| {
                // What changed is sent by a pull.
                if resource.version != due.version {
                    return;
                }
                let mut put = |ttl| {
                    transmit.push_delta(spelling.of(&due.name), resource, ttl);
                    refusals.put(&due.name);
                    puts.push(due.name.clone());
                };
                match refreshes.extend(&due, &resource.value, told) {
                    Some(ttl) if due.has_it => transmit.push_heartbeat(spelling.of(&due.name), &due.version, ttl),
                    Some(ttl) => put(Some(ttl)),
                    // It lives for ever now: that takes the TTL back (rule 111).
                    None if resource.value.ttl().is_none() => put(None),
                    None => {}
                }
            });
            // What is over is no response, and the next of these need not wait for one.
            if due.alone && !transmit.is_empty() {
                return;
            }
        }
    }
}
