//! What origins said: every body, for whom it was made, and every reason for which somebody may be told that a name is
//! gone. Where it is not certain whether something is a reason, it is taken for one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds_transport::Protocol;
use xds_transport::{Response, TypeRules};
use xdstp_cache::ResourceError;
use xdstp_uri::ResourceName;

use super::world::Who;

/// How much silence says something (rules 74, 151).
pub(crate) const SILENCE: Duration = Duration::from_secs(15);

/// Who said it to whom: an origin on streams for one tenant, or for all.
pub(crate) type Voice = (usize, Who);

/// What origins said so far. Each response has a serial.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) serial: u64,
    /// Some of it was not quite what an origin says. A payload is never decoded on its way: what is in it, clients find.
    pub(crate) damaged: bool,
    /// Some origin speaks SotW, which does not have every type.
    sotw: bool,
    bodies: HashMap<Bytes, Vec<Body>>,
    of: BTreeMap<(Voice, String), OfType>,
    /// The serial at the end of the last long silence.
    quiet: BTreeMap<Voice, u64>,
    /// By when, and a number that no two have.
    expiries: BTreeMap<(Instant, u64), (Voice, u64, String, ResourceName)>,
    ttls: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) who: Who,
    pub(crate) name: ResourceName,
    pub(crate) aliases: Vec<ResourceName>,
    pub(crate) serial: u64,
    pub(crate) do_not_cache: bool,
}

#[derive(Default)]
struct OfType {
    gone: BTreeMap<ResourceName, u64>,
    /// The streams whose last word of a name is that it is gone. What one stream says that a client is told by, counts
    /// whenever another, that is for that client alone, has it still (rule 121).
    gone_on: BTreeMap<ResourceName, BTreeSet<u64>>,
    /// Every name that a body was sent of, with its aliases.
    aliases: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
    /// The same, with all the aliases it ever had.
    ever: BTreeMap<ResourceName, BTreeSet<ResourceName>>,
    /// What had an error, whatever it was: who does not hold it may be told that it is gone (rule 117).
    failed: BTreeSet<ResourceName>,
    /// The last response that said that there is nothing else.
    nothing_else: Option<u64>,
    /// SotW: when anything was said that lacks a name that is waited for.
    lacking: Option<Instant>,
}

impl Said {
    /// Nothing, by origins that speak these.
    pub(crate) fn of(origins: &[Protocol]) -> Self {
        Self { sotw: origins.contains(&Protocol::Sotw), ..Self::default() }
    }

    /// An origin says something on one of its streams: noted as the relay reads it.
    pub(crate) fn note(&mut self, now: Instant, voice: Voice, stream: u64, protocol: Protocol, message: &Bytes) {
        let rules = TypeRules::envoy();
        let walked = match protocol {
            Protocol::Delta => Response::from_delta(message.clone()),
            Protocol::Sotw => Response::from_sotw(message.clone(), &rules),
        };
        let Ok(response) = walked else { return };
        self.serial += 1;
        let Self { serial, bodies, of, expiries, ttls, .. } = self;
        let type_url = response.type_url.as_str();
        let kind = of.entry((voice, type_url.to_owned())).or_default();
        if protocol == Protocol::Sotw {
            kind.lacking.get_or_insert(now);
        }
        let (mut present, mut beating) = (BTreeSet::new(), BTreeSet::new());
        for received in &response.resources {
            let name = &received.name;
            if let Some(ttl) = received.ttl
                && let Some(due) = now.checked_add(ttl)
            {
                *ttls += 1;
                expiries.insert((due, *ttls), (voice, stream, type_url.to_owned(), name.clone()));
            }
            let Some(frame) = &received.frame else {
                // A heartbeat, or an alias of nothing.
                if received.ttl.is_none() {
                    kind.lose(name, stream, *serial);
                }
                beating.insert(name.clone());
                continue;
            };
            present.insert(name.clone());
            if let Some(streams) = kind.gone_on.get_mut(name) {
                streams.remove(&stream);
            }
            kind.claim(name, frame.aliases().collect(), *serial);
            let do_not_cache = frame.do_not_cache();
            let aliases = frame.aliases().collect();
            let body = Body { who: voice.1, name: name.clone(), aliases, serial: *serial, do_not_cache };
            bodies.entry(frame.any().clone()).or_default().push(body);
        }
        let full_state = protocol == Protocol::Sotw && rules.of(&type_url.into()).full_state_in_sotw;
        let data_error = |code| matches!(code, ResourceError::NOT_FOUND | ResourceError::PERMISSION_DENIED);
        let failed = response.errors.iter().filter_map(|error| {
            let code = error.error_detail.as_ref().map_or(0, |status| status.code);
            Some((error.resource_name.as_ref()?.name.parse::<ResourceName>().ok()?, code))
        });
        let failed: Vec<_> = failed.collect();
        kind.failed.extend(failed.iter().map(|(name, _)| name.clone()));
        let failed = failed.into_iter().filter(|(_, code)| data_error(*code)).map(|(name, _)| name);
        for name in response.removed.iter().cloned().chain(failed) {
            if name.is_glob() {
                kind.lose_all(stream, *serial, |member| member.answers(&name) && !present.contains(member));
                kind.nothing_else = Some(*serial);
            } else {
                kind.lose(&name, stream, *serial);
            }
        }
        let says_nothing = response.resources.is_empty() && response.removed.is_empty() && response.errors.is_empty();
        if full_state && response.rejected.is_empty() {
            kind.lose_all(stream, *serial, |name| !present.contains(name) && !beating.contains(name));
        }
        if full_state || says_nothing {
            kind.nothing_else = Some(*serial);
        }
    }

    /// Time passed: what lived until now is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(first) = self.expiries.first_entry().filter(|first| first.key().0 <= now) {
            let (voice, stream, type_url, name) = first.remove();
            self.serial += 1;
            self.of.entry((voice, type_url)).or_default().lose(&name, stream, self.serial);
        }
    }

    /// The relay gave a stream up.
    pub(crate) fn forget(&mut self, stream: u64) {
        for streams in self.of.values_mut().flat_map(|of| of.gone_on.values_mut()) {
            streams.remove(&stream);
        }
    }

    /// An origin that had spoken on a stream was silent for long.
    pub(crate) fn note_quiet(&mut self, voice: Voice) {
        self.quiet.insert(voice, self.serial);
    }

    /// The bodies that these bytes were, the newest last.
    pub(crate) fn bodies(&self, any: &Bytes) -> &[Body] {
        self.bodies.get(any).map_or(&[], Vec::as_slice)
    }

    /// Whether a client may be told that a name is gone which it was sent at `serial`.
    pub(crate) fn took(&self, who: Who, type_url: &str, name: &ResourceName, serial: u64) -> bool {
        let is_gone = |of: &OfType| {
            of.gone.get(name).is_some_and(|gone| *gone >= serial)
                || of.gone_on.get(name).is_some_and(|streams| !streams.is_empty())
        };
        self.heard_by(who, type_url).any(|(_, of)| is_gone(of))
    }

    /// Whether it may be told that it is gone what it came with, and was sent at `serial` before: or else never.
    pub(crate) fn lacks(&self, who: Who, type_url: &str, name: &ResourceName, serial: u64) -> bool {
        let since = |said: Option<&u64>| said.is_some_and(|said| *said >= serial);
        self.took(who, type_url, name, serial)
            || self
                .heard_by(who, type_url)
                .any(|(voice, of)| since(of.nothing_else.as_ref()) || since(self.quiet.get(&voice)))
    }

    /// Whether an origin spoke, and a name that was asked for was not in it for long (rule 150).
    pub(crate) fn left_out(&self, now: Instant, who: Who, type_url: &str, name: &ResourceName) -> bool {
        if self.sotw && TypeRules::envoy().of(&type_url.into()).delta_only {
            return true;
        }
        let long_ago = |at: Instant| now.saturating_duration_since(at) >= SILENCE;
        self.heard_by(who, type_url).any(|(_, of)| of.lacking.is_some_and(long_ago) || of.failed.contains(name))
    }

    /// By what a resource may have been asked for: an alias that one stream says need not be said on another.
    pub(crate) fn ever_called(&self, who: Who, type_url: &str, name: &ResourceName) -> Vec<ResourceName> {
        let aliases = self.heard_by(who, type_url).filter_map(|(_, of)| of.ever.get(name));
        aliases.flatten().chain([name]).cloned().collect()
    }

    fn heard_by(&self, who: Who, type_url: &str) -> impl Iterator<Item = (Voice, &OfType)> {
        let heard = move |((voice, of), _): &(&(Voice, String), &OfType)| {
            of == type_url && (voice.1 == who || voice.1 == Who::Shared)
        };
        self.of.iter().filter(heard).map(|((voice, _), of)| (*voice, of))
    }
}

impl OfType {
    /// Rule 105: an alias is no resource, and stands for one only.
    fn claim(&mut self, name: &ResourceName, aliases: BTreeSet<ResourceName>, serial: u64) {
        let robbed = |(other, theirs): (&ResourceName, &BTreeSet<ResourceName>)| {
            (other != name && (aliases.contains(other) || theirs.contains(name) || !theirs.is_disjoint(&aliases)))
                .then(|| other.clone())
        };
        let mut lost: Vec<_> = self.aliases.iter().filter_map(robbed).collect();
        lost.extend(aliases.iter().cloned());
        self.ever.entry(name.clone()).or_default().extend(aliases.iter().cloned());
        let before = self.aliases.insert(name.clone(), aliases.clone());
        if let Some(before) = before.filter(|before| *before != aliases) {
            lost.push(name.clone());
            lost.extend(before);
        }
        for name in lost {
            self.gone.insert(name, serial);
        }
    }

    /// A name is gone, and what it stands for, or what stands for it, with it.
    fn lose(&mut self, name: &ResourceName, stream: u64, serial: u64) {
        self.gone_on.entry(name.clone()).or_default().insert(stream);
        let mut lost = vec![name.clone()];
        lost.extend(self.aliases.get(name).into_iter().flatten().cloned());
        lost.extend(self.aliases.iter().filter(|(_, aliases)| aliases.contains(name)).map(|(other, _)| other.clone()));
        for name in lost {
            self.gone.insert(name, serial);
        }
    }

    fn lose_all(&mut self, stream: u64, serial: u64, lost: impl Fn(&ResourceName) -> bool) {
        let lost: Vec<_> = self.aliases.keys().filter(|name| lost(name)).cloned().collect();
        lost.iter().for_each(|name| self.lose(name, stream, serial));
    }
}
