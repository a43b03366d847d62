//! What one client is told, and whether it may be told so: nothing that was made for another tenant, nothing that it did
//! not ask for, and of nothing that it is gone unless somebody said so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;
use xds_transport::Protocol;
use xds_transport::{Response, TypeRules};
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::said::Said;
use super::world::{Who, origin_of};

/// A request, as far as it says what is wanted.
pub(crate) struct Request {
    pub(crate) type_url: String,
    /// Delta: subscribed; SotW: all that is wanted.
    pub(crate) names: Vec<String>,
    pub(crate) unsubscribed: Vec<String>,
    /// Delta: names that the client says it holds.
    pub(crate) brought: Vec<String>,
    /// SotW: the version that the client says it holds, and the response that it answers.
    pub(crate) version: String,
    pub(crate) nonce: String,
}

/// The memory of one client. What it holds outlives its streams, if it says so.
pub(crate) struct Told {
    protocol: Protocol,
    /// Who it is on this stream.
    pub(crate) who: Who,
    /// A number for each of its streams.
    stream: u64,
    of: BTreeMap<String, OfType>,
    clock: u64,
    /// It asked for what is no name, and is answered by that.
    malformed: bool,
}

/// The streams that bodies went to which are for one stream alone (rule 121).
#[derive(Default)]
pub(crate) struct Alone(BTreeMap<Bytes, u64>);

#[derive(Default)]
struct OfType {
    opened: bool,
    /// SotW: of the last response, and whether that may still be answered.
    last_nonce: Option<String>,
    awaits_ack: bool,
    ever_named: bool,
    /// What it asks for now, and what it asked for at any time on this stream.
    asks: BTreeSet<Interest>,
    asked: BTreeSet<Interest>,
    /// What it left, and when: of that it may be told anything until it is sent it again.
    left: BTreeMap<Interest, u64>,
    sent: BTreeMap<ResourceName, u64>,
    /// What it said that it holds.
    brought: BTreeSet<ResourceName>,
    held: BTreeMap<ResourceName, Held>,
}

struct Held {
    serial: u64,
    version: String,
    aliases: Vec<ResourceName>,
    /// It came on this stream.
    here: bool,
    /// A request of this stream did not ask for it.
    left: bool,
}

impl Told {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self { protocol, who: Who::Nobody, stream: 0, of: BTreeMap::new(), clock: 0, malformed: false }
    }

    /// A stream begins, the number of which no other has.
    pub(crate) fn begin(&mut self, stream: u64) {
        self.stream = stream;
        for of in self.of.values_mut() {
            *of = OfType { held: std::mem::take(&mut of.held), ..OfType::default() };
            for held in of.held.values_mut() {
                (held.here, held.left) = (false, false);
            }
        }
    }

    pub(crate) fn id(&self) -> (Who, u64) {
        (self.who, self.stream)
    }

    /// What it holds of a type, and at which versions, to say so.
    pub(crate) fn held(&self, type_url: &str) -> Vec<(String, String)> {
        let held = self.of.get(type_url).into_iter().flat_map(|of| &of.held);
        held.map(|(name, held)| (name.as_str().to_owned(), held.version.clone())).collect()
    }

    /// The client sends a request, that the relay takes.
    pub(crate) fn request(&mut self, request: &Request) {
        self.clock += 1;
        let Self { protocol, clock, of, malformed, .. } = self;
        let mut texts = request.names.iter().chain(&request.brought).chain(&request.unsubscribed);
        *malformed |= texts.any(|text| text.parse::<ResourceName>().is_err());
        let of = of.entry(request.type_url.clone()).or_default();
        let rule = TypeRules::envoy().of(&request.type_url.as_str().into()).clone();
        let names =
            |texts: &[String]| -> BTreeSet<ResourceName> { texts.iter().flat_map(|text| text.parse()).collect() };
        let interests = |texts: &[String]| names(texts).into_iter().map(Interest::from).collect::<BTreeSet<_>>();
        let first = !std::mem::replace(&mut of.opened, true);
        of.ever_named |= !request.names.is_empty();
        let asks = interests(&request.names);
        if first {
            of.brought = names(&request.brought);
            match protocol {
                Protocol::Delta => of.held.retain(|name, _| of.brought.contains(name)),
                Protocol::Sotw if request.version.is_empty() => of.held.clear(),
                Protocol::Sotw => {}
            }
        }
        if *protocol == Protocol::Delta && !first {
            // What it said that it holds does not count once it asks for it anew (rule 48). With what it said it in one
            // request, it goes on to hold it, though some types are sent again then (rules 49, 150).
            let again = |name: &ResourceName| asks.contains(&Interest::Name(name.clone()));
            of.brought.retain(|name| !again(name));
            of.held.retain(|name, held| held.here || !again(name));
        }
        match protocol {
            Protocol::Delta => {
                if first && request.names.is_empty() && rule.legacy_wildcard {
                    of.asks.insert(Interest::Wildcard);
                }
                of.asks.extend(asks);
                for left in interests(&request.unsubscribed) {
                    of.asks.remove(&left);
                    of.left.insert(left, *clock);
                }
            }
            Protocol::Sotw => {
                // Rules 16, 17: who answers another response than the last is heard while that may be on its way.
                let stale = of.last_nonce.as_ref().is_some_and(|last| *last != request.nonce);
                if stale && !of.awaits_ack {
                    return;
                }
                of.awaits_ack &= stale;
                let before = std::mem::replace(&mut of.asks, asks);
                of.left.extend(before.difference(&of.asks).map(|left| (left.clone(), *clock)));
                if rule.legacy_wildcard && !of.ever_named {
                    of.asks.insert(Interest::Wildcard);
                }
                let asks = &of.asks;
                for (name, held) in &mut of.held {
                    // A wildcard is of one scope: it need not hold what a name of another brought.
                    // Nor is a name of another origin's one to ask for it by (rule 153).
                    let aliases = held.aliases.iter().filter(|alias| origin_of(alias) == origin_of(name));
                    let names = std::iter::once(name).chain(aliases);
                    held.left |= !asks.iter().any(|interest| match interest {
                        Interest::Wildcard => name.is_opaque() && held.aliases.is_empty(),
                        Interest::Name(asked) => names.clone().any(|name| name.answers(asked)),
                    });
                }
            }
        }
        if first {
            // What it does not ask for then, it may be told is gone, even if it asks for it a moment later (rule 84).
            // The wildcard is the first origin's, and does not ask for names of the other (rule 153).
            let asks_for = |interest: &Interest, name| match interest {
                Interest::Wildcard => origin_of(name) == 0,
                named => covers(named, name),
            };
            let asks = &of.asks;
            let unasked = of.brought.iter().filter(|name| !asks.iter().any(|interest| asks_for(interest, name)));
            of.left.extend(unasked.map(|name| (Interest::Name(name.clone()), *clock)));
        }
        of.asked.extend(of.asks.iter().cloned());
    }

    /// The relay sends a response.
    pub(crate) fn response(
        &mut self,
        now: Instant,
        message: &Bytes,
        said: &Said,
        alone: &mut Alone,
    ) -> Result<Response, String> {
        if let Some(other) = self.who.must_not_see(message) {
            return Err(format!("rule 147: {:?} is told what was made for {other:?}", self.who));
        }
        let rules = TypeRules::envoy();
        let walked = match self.protocol {
            Protocol::Delta => Response::from_delta(message.clone()),
            Protocol::Sotw => Response::from_sotw(message.clone(), &rules),
        };
        let response = walked.map_err(|error| format!("a response that cannot be read: {error}"))?;
        let unreadable = !response.rejected.is_empty();
        if unreadable && !said.damaged && !self.malformed {
            return Err(format!("a response that a client refuses: {:?}", response.rejected));
        }
        self.clock += 1;
        let Self { protocol, who, stream, of, clock, .. } = self;
        let type_url = response.type_url.as_str();
        let of = of.get_mut(type_url).filter(|of| of.opened).ok_or("rule 10: a type that was not asked for")?;
        (of.last_nonce, of.awaits_ack) = (Some(response.nonce.clone()), true);
        let gone = |of: &OfType, name: &ResourceName| {
            if of.may_be_gone(now, *who, type_url, name, said) {
                return Ok(());
            }
            let held = of.held.get(name).map(|held| (held.serial, held.here));
            Err(format!("rules 143, 150: {who:?} is told that {name} of {type_url} is gone; it holds {held:?}"))
        };
        let mut present = BTreeSet::new();
        for received in &response.resources {
            let name = &received.name;
            let Some(frame) = &received.frame else {
                present.insert(name.clone());
                if received.ttl.is_none() {
                    gone(of, name)?;
                    of.forget(name);
                }
                continue;
            };
            let bodies = said.bodies(frame.any());
            let body = bodies.iter().rfind(|body| body.who == *who || body.who == Who::Shared);
            let body = body.ok_or_else(|| format!("rule 147: {who:?} is sent {name} that it was never meant for"))?;
            if body.name != *name && !said.damaged {
                return Err(format!("the body of {} is sent as {name}", body.name));
            }
            // Over SotW a name is in the payload.
            let name = if *protocol == Protocol::Sotw { &body.name } else { name };
            present.insert(name.clone());
            let aliases = body.aliases.clone();
            let called = said.ever_called(*who, type_url, name);
            let asked = of.asked.iter().any(|interest| called.iter().any(|name| covers(interest, name)));
            if !asked {
                return Err(format!("rule 63: {name} is sent unasked"));
            }
            if body.do_not_cache && bodies.len() == 1 {
                let before = *alone.0.entry(frame.any().clone()).or_insert(*stream);
                if before != *stream {
                    return Err(format!("rule 121: {name} was fetched for stream {before}, and is sent to {stream}"));
                }
            }
            let version = received.version.as_ref().map_or_else(String::new, ToString::to_string);
            of.held.insert(name.clone(), Held { serial: body.serial, version, aliases, here: true, left: false });
            of.sent.insert(name.clone(), *clock);
        }
        for name in response.removed.iter().filter(|name| !name.is_glob()) {
            gone(of, name)?;
            of.forget(name);
        }
        if !unreadable && *protocol == Protocol::Sotw && rules.of(&type_url.into()).full_state_in_sotw {
            let missing: Vec<_> = of.held.keys().filter(|name| !present.contains(*name)).cloned().collect();
            for name in missing {
                gone(of, &name)?;
                of.forget(&name);
            }
        }
        Ok(response)
    }
}

impl OfType {
    fn forget(&mut self, name: &ResourceName) {
        self.held.remove(name);
        self.brought.remove(name);
    }

    fn may_be_gone(&self, now: Instant, who: Who, type_url: &str, name: &ResourceName, said: &Said) -> bool {
        let sent = self.sent.get(name).copied().unwrap_or_default();
        let covers = |interest: &Interest| covers(interest, name);
        let left = self.left.iter().any(|(interest, at)| *at > sent && covers(interest));
        if left || said.took(who, type_url, name, self.held.get(name).map_or(0, |held| held.serial)) {
            return true;
        }
        match self.held.get(name) {
            Some(held) if held.here => held.left,
            // It came with it: it need not want it.
            Some(held) => {
                held.left
                    // Over SotW a client does not say what it holds.
                    || said.left_out(now, who, type_url, name) && self.brought.is_empty()
                    || said.lacks(who, type_url, name, held.serial)
                    || !self.asks.iter().any(covers)
            }
            None if self.brought.contains(name) => said.lacks(who, type_url, name, 0) || !self.asks.iter().any(covers),
            None => said.left_out(now, who, type_url, name),
        }
    }
}

/// A wildcard is everything to a client.
fn covers(interest: &Interest, name: &ResourceName) -> bool {
    match interest {
        Interest::Wildcard => true,
        Interest::Name(asked) => name.answers(asked),
    }
}
