//! What was asked for and said on the stream of one client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use xds_transport::Protocol;
use xdstp_cache::Interest;
use xdstp_uri::ResourceName;

use super::heard::{Word, Words};
use crate::messages::{Request, Response};
use crate::world::{Body, Of, Place, REFERRED, World, covers, origin_of, place_of};

/// Unacknowledged responses of one type in delta, at most.
const PIPELINED: usize = 8;

pub(crate) struct Books {
    pub(super) protocol: Protocol,
    group: usize,
    pub(super) types: BTreeMap<Of, Told>,
}

/// One type.
#[derive(Default)]
pub(super) struct Told {
    interests: BTreeMap<Interest, Asked>,
    ever_named: bool,
    /// When something was last asked for that was not before.
    asked: Option<Instant>,
    last_nonce: Option<String>,
    unacked: VecDeque<String>,
    /// What the client was told, and not told as gone.
    pub(super) told: BTreeMap<ResourceName, Body>,
    /// The serial of what it was told as gone, and did not ask for anew.
    pub(super) parted: BTreeMap<ResourceName, u64>,
    /// Since when a full state has what is gone.
    pub(super) repeated: BTreeMap<ResourceName, Instant>,
    /// Over SotW: names it left since the last response. No full state has them for that alone that its wildcard may cover
    /// them in its eyes.
    pub(super) left: BTreeSet<ResourceName>,
    /// What it said it holds.
    resumed: BTreeSet<ResourceName>,
    /// Of that, what it was not told since.
    brought: BTreeSet<ResourceName>,
    pub(super) responded: bool,
    /// Since when no response has room before another is acknowledged.
    pub(super) full: Option<Instant>,
    /// Since when the relay has something in hand that is to be told at the type's place in the order.
    pub(super) waiting: Option<Instant>,
    /// Since when it may have, for all that is known.
    unsure: Option<Instant>,
    /// Since when the wildcard has news of a name that is told by itself: with its window full, or a response by one resource,
    /// a type is not asked whether it has to say something after all.
    stirred: Option<Instant>,
    /// What something refers to that came is sent again, whatever there is of it (rule 124).
    again: Option<Instant>,
    /// When it last had told all of it: to have had nothing before is not to have had a turn.
    pub(super) said_all: Option<Instant>,
    /// It was told something, and there may be more.
    telling: bool,
    /// Since when it has in hand that something is gone.
    pub(super) going: BTreeMap<ResourceName, Instant>,
    /// The last response.
    pub(super) spoke: Option<Instant>,
    /// How many responses went out before what waits for too long.
    pub(super) overtaken: u64,
}

/// Something that is asked for.
#[derive(Clone, Copy)]
struct Asked {
    at: Instant,
    /// Anything was said since.
    answered: bool,
}

/// What the relay has in hand of a type.
#[derive(Default)]
struct InHand {
    puts: bool,
    gone: Vec<ResourceName>,
    /// It may have more.
    unsure: bool,
    /// The wildcard has news since the last response, and another part counts.
    stirred: bool,
}

/// What a response says.
pub(super) struct Said {
    pub(super) put: BTreeMap<ResourceName, Body>,
    pub(super) gone: BTreeSet<ResourceName>,
    /// What a full state has that is no news.
    pub(super) repeated: BTreeSet<ResourceName>,
}

impl Books {
    pub(crate) fn new(protocol: Protocol, group: usize) -> Self {
        Self { protocol, group, types: BTreeMap::new() }
    }

    /// A request arrives at the relay.
    pub(crate) fn request(&mut self, now: Instant, world: &World, request: &Request) {
        let Some(of) = world.of(&request.type_url) else { return };
        let told = self.types.entry(of).or_default();
        told.asked.get_or_insert(now);
        let before: BTreeSet<_> = told.interests.keys().cloned().collect();
        let named = request.names.iter().map(|name| Interest::from(name.parse::<ResourceName>().unwrap()));
        let named: BTreeSet<_> = named.collect();
        let new = Asked { at: now, answered: false };
        let legacy = world.kinds[of].full_state && !told.ever_named && named.is_empty();
        match self.protocol {
            Protocol::Delta => {
                if let Some(at) = told.unacked.iter().position(|nonce| *nonce == request.nonce) {
                    told.unacked.drain(..=at);
                }
                if legacy && told.interests.is_empty() && !told.responded {
                    told.interests.insert(Interest::Wildcard, new);
                }
                let brought = request.initial.iter().map(|(name, _)| name.parse::<ResourceName>().unwrap());
                let brought: BTreeSet<_> = brought.collect();
                told.resumed.extend(brought.iter().cloned());
                told.brought.extend(brought);
                told.interests.extend(named.iter().map(|interest| (interest.clone(), new)));
                for left in &request.unsubscribe {
                    told.interests.remove(&Interest::from(left.parse::<ResourceName>().unwrap()));
                }
            }
            Protocol::Sotw => {
                let stale = told.last_nonce.as_ref().is_some_and(|last| *last != request.nonce);
                // Rules 16, 17.
                if stale && told.unacked.is_empty() {
                    return;
                }
                if !stale {
                    told.unacked.clear();
                }
                let wildcard = legacy.then_some(Interest::Wildcard);
                let before = std::mem::take(&mut told.interests);
                let asked = |interest: &Interest| before.get(interest).copied().unwrap_or(new);
                told.interests = named.iter().cloned().chain(wildcard).map(|one| (one.clone(), asked(&one))).collect();
                let left = before.into_keys().filter(|one| !told.interests.contains_key(one));
                told.left.extend(left.filter_map(|one| match one {
                    Interest::Name(name) => Some(name).filter(|name| !name.is_opaque()),
                    Interest::Wildcard => None,
                }));
                told.left.retain(|name| !named.contains(&Interest::Name(name.clone())));
            }
        }
        if told.interests.values().all(|asked| asked.answered) && told.responded {
            told.asked = None;
        }
        told.note_full(now, self.protocol);
        told.ever_named |= !named.is_empty();
        let Told { interests, told, parted, .. } = told;
        told.retain(|name, _| interests.keys().any(|interest| covers(interest, name)));
        // Who asks anew is answered anew.
        let anew: Vec<_> = interests.keys().filter(|interest| !before.contains(*interest)).collect();
        parted.retain(|name, _| !anew.iter().any(|interest| covers(interest, name)));
    }

    /// To be called before the relay is asked what it has to say.
    pub(crate) fn tick(&mut self, now: Instant, world: &World, words: &Words) {
        let in_hand: Vec<_> = self.types.keys().map(|of| self.in_hand(world, words, *of)).collect();
        for (told, InHand { puts, gone, unsure, stirred }) in self.types.values_mut().zip(in_hand) {
            told.unsure = unsure.then(|| told.unsure.unwrap_or(now));
            let puts = puts && told.is_answered(self.protocol);
            if stirred && (told.full.is_some() || world.setup.large) {
                told.stirred.get_or_insert(now);
            } else if told.full.is_none() && !puts {
                told.stirred = None;
            }
            told.waiting = puts.then(|| told.waiting.unwrap_or(now));
            if !puts && std::mem::take(&mut told.telling) {
                told.said_all = Some(now);
            }
            told.going = gone.into_iter().map(|name| (name.clone(), *told.going.get(&name).unwrap_or(&now))).collect();
        }
    }

    /// A response leaves the relay.
    pub(crate) fn response(&mut self, now: Instant, world: &World, of: Of, response: &Response) {
        let Some(told) = self.types.get_mut(&of) else { return };
        let said = Said::of(told, world, of, self.protocol, response);
        told.brought.retain(|name| !said.put.contains_key(name) && !said.gone.contains(name));
        told.parted.retain(|name, _| !said.put.contains_key(name));
        told.told.extend(said.put);
        let parted = said.gone.iter().filter_map(|name| Some((name.clone(), told.told.remove(name)?.serial)));
        told.parted.extend(parted);
        told.repeated.retain(|name, _| told.going.contains_key(name));
        for name in said.repeated.iter().filter(|name| told.going.contains_key(*name)) {
            told.repeated.entry(name.clone()).or_insert(now);
        }
        told.unacked.push_back(response.nonce.clone());
        told.last_nonce = Some(response.nonce.clone());
        (told.responded, told.telling, told.spoke, told.overtaken) = (true, true, Some(now), 0);
        told.interests.values_mut().for_each(|asked| asked.answered = true);
        // What a response has no room for has waited for as long as the rest of it.
        told.waiting = Some(told.waits_since(now));
        (told.asked, told.again) = (None, None);
        // Where one resource fills a response, the rest was not looked at.
        told.stirred = told.stirred.filter(|_| world.setup.large);
        told.left.clear();
        told.note_full(now, self.protocol);
        if let [clusters, endpoints] = REFERRED
            && of == clusters
            && let Some(told) = self.types.get_mut(&endpoints)
        {
            told.again.get_or_insert(now);
        }
    }

    /// What the client is to be told of a name, as far as the relay knows, and since when it does (rule 152).
    pub(super) fn due<'a>(&self, words: &'a Words, of: Of, name: &ResourceName) -> Option<&'a Word> {
        let told = self.types.get(&of)?;
        let asked = |one: &Interest| told.interests.get(one).filter(|asked| asked.answered);
        let wildcard = asked(&Interest::Wildcard).is_some() && origin_of(name) == 0;
        let of_wildcard = || words.word(Place::wildcard(self.group), of, name).filter(|_| wildcard);
        let names = || [Some(name.clone()), name.glob_parent()].into_iter().flatten().map(Interest::Name);
        // Until that is answered nothing else counts.
        if !name.is_opaque() && names().any(|one| told.interests.get(&one).is_some_and(|asked| !asked.answered)) {
            return None;
        }
        let by_name = names().filter_map(|one| asked(&one)).map(|asked| asked.at).min();
        if name.is_opaque() {
            return words.word(place_of(name, self.group), of, name).filter(|_| wildcard || by_name.is_some());
        }
        let Some(since) = by_name else { return of_wildcard() };
        // That there is no such name may be forgotten until somebody asks for it.
        let own =
            words.word(place_of(name, self.group), of, name).filter(|own| own.body.is_some() || own.at >= since)?;
        match (&own.body, of_wildcard()) {
            (None, Some(other)) if other.body.is_some() => Some(other),
            // It may hold what the wildcard had.
            (None, None) if wildcard && told.resumed.contains(name) => None,
            _ => Some(own),
        }
    }

    /// Whether it was told of a name by a wildcard that it does not ask for any more: what another scope had is in no full
    /// state.
    pub(super) fn has_moved(&self, of: Of, name: &ResourceName) -> bool {
        let Some(told) = self.types.get(&of).filter(|told| !told.interests.contains_key(&Interest::Wildcard)) else {
            return false;
        };
        !name.is_opaque() && told.told.get(name).is_some_and(|body| body.group > 0)
    }

    pub(super) fn says_absence(&self, world: &World, of: Of) -> bool {
        world.kinds[of].full_state || self.protocol == Protocol::Delta
    }

    fn in_hand(&self, world: &World, words: &Words, of: Of) -> InHand {
        let mut in_hand = InHand::default();
        let Some(told) = self.types.get(&of).filter(|told| told.responded) else { return in_hand };
        let wildcard = told.interests.contains_key(&Interest::Wildcard);
        let InHand { puts, gone, unsure, stirred } = &mut in_hand;
        for name in world.kinds[of].names.iter().filter(|name| told.covers(name)) {
            *unsure |= told.brought.contains(name);
            if wildcard && (!name.is_opaque() || told.interests.contains_key(&Interest::Name(name.clone()))) {
                let news = words.word(Place::wildcard(self.group), of, name);
                *stirred |= news.is_some_and(|news| told.spoke.is_none_or(|spoke| news.at > spoke));
            }
            let Some(due) = self.due(words, of, name) else {
                *unsure |= told.told.contains_key(name) || told.interests.contains_key(&Interest::Name(name.clone()));
                continue;
            };
            match (&due.body, told.told.get(name)) {
                // What another place has instead is told as what is gone there.
                (Some(body), Some(held)) => *puts |= held.group == body.group && held.serial < body.serial,
                (Some(_), None) => *puts |= !told.brought.contains(name),
                (None, Some(_)) => gone.push(name.clone()),
                (None, None) => {}
            }
        }
        // Others take back in place.
        *puts |= !gone.is_empty() && !REFERRED.contains(&of) && self.says_absence(world, of);
        in_hand
    }
}

impl Told {
    /// Since when it has something to say, or may have.
    pub(super) fn waits_since(&self, now: Instant) -> Instant {
        [self.waiting, self.asked, self.unsure, self.stirred, self.again].into_iter().flatten().min().unwrap_or(now)
    }

    fn note_full(&mut self, now: Instant, protocol: Protocol) {
        let limit = if protocol == Protocol::Delta { PIPELINED } else { 1 };
        self.full = (self.unacked.len() >= limit).then(|| self.full.unwrap_or(now));
    }

    /// Over SotW a full state waits until all that is asked for was answered (rule 151).
    pub(super) fn is_answered(&self, protocol: Protocol) -> bool {
        protocol == Protocol::Delta || self.interests.values().all(|asked| asked.answered)
    }

    /// Whether a name is asked for.
    pub(super) fn covers(&self, name: &ResourceName) -> bool {
        self.interests.keys().any(|interest| covers(interest, name))
    }
}

impl Said {
    pub(super) fn of(told: &Told, world: &World, of: Of, protocol: Protocol, response: &Response) -> Self {
        let put = response.resources.iter().map(|sent| {
            let body: Body = prost::Message::decode(sent.any.value.clone()).unwrap();
            (sent.name.parse().unwrap(), body)
        });
        let put: BTreeMap<ResourceName, Body> = put.collect();
        let gone = match protocol {
            Protocol::Delta => response.removed.iter().map(|name| name.parse().unwrap()).collect(),
            Protocol::Sotw if world.kinds[of].full_state => {
                told.told.keys().filter(|name| !put.contains_key(*name)).cloned().collect()
            }
            Protocol::Sotw => BTreeSet::new(),
        };
        let news = |name: &ResourceName, body: &Body| told.told.get(name).is_none_or(|held| held.serial != body.serial);
        let (put, repeated) = match protocol {
            Protocol::Sotw => put.into_iter().partition(|(name, body)| news(name, body)),
            Protocol::Delta => (put, BTreeMap::new()),
        };
        Self { put, gone, repeated: repeated.into_keys().collect() }
    }
}
