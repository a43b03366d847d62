//! How many clients of a candidate are how: of one relay, and of all that share its releases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use prost::Message;

use crate::releases::{Halt, Instance, Release, Threshold};

/// How often a relay says how its clients are where nothing changes, and how long what it said counts.
pub(super) const AGAIN: Duration = Duration::from_secs(10);
const COUNTS: Duration = Duration::from_secs(35);
/// Of how many relays is remembered what they said.
const MOST: usize = 1000;

/// The clients of one candidate, counted.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Tally {
    /// Whose clients they are.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) release: Vec<u8>,
    /// Who is served it or was.
    #[prost(uint64, tag = "2")]
    pub(super) all: u64,
    /// Who is served it now.
    #[prost(uint64, tag = "3")]
    pub(super) served: u64,
    /// What they refused, each once for each client.
    #[prost(message, optional, tag = "4")]
    pub(super) refused: Option<Part>,
    /// Who refused anything.
    #[prost(uint64, tag = "5")]
    pub(super) refusing: u64,
    #[prost(message, optional, tag = "6")]
    pub(super) silent: Option<Part>,
    /// Who has gone for good, as far as one relay knows.
    #[prost(message, optional, tag = "7")]
    pub(super) lost: Option<Part>,
    /// The prints of those of them that say who they are: they may be elsewhere.
    #[prost(fixed64, repeated, tag = "8")]
    pub(super) lost_prints: Vec<u64>,
    /// The prints of those who have gone a while ago, and not for good yet.
    #[prost(fixed64, repeated, tag = "9")]
    pub(super) gone: Vec<u64>,
    /// The prints of those whom others miss, and who are here.
    #[prost(fixed64, repeated, tag = "10")]
    pub(super) here: Vec<u64>,
}

/// Some of them, and one that people are told of.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Part {
    #[prost(uint64, tag = "1")]
    pub(super) count: u64,
    #[prost(string, tag = "2")]
    pub(super) such_as: String,
}

impl Part {
    pub(super) fn of(count: usize, such_as: impl FnOnce() -> String) -> Option<Self> {
        (count > 0).then(|| Self { count: count as u64, such_as: such_as() })
    }
}

impl Tally {
    pub(super) fn of(release: Release) -> Self {
        Self { release: release.as_bytes().to_vec(), ..Self::default() }
    }

    pub(super) fn is_of(&self, release: Release) -> bool {
        self.release == release.as_bytes()
    }

    /// Whether it says nothing but how many there are.
    pub(super) fn is_well(&self) -> bool {
        let Self { release, all, served, .. } = self;
        *self == Self { release: release.clone(), all: *all, served: *served, ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        self.all = self.all.saturating_add(other.all);
        self.served = self.served.saturating_add(other.served);
        self.refusing = self.refusing.saturating_add(other.refusing);
        let pairs =
            [(&mut self.refused, &other.refused), (&mut self.silent, &other.silent), (&mut self.lost, &other.lost)];
        for (own, other) in pairs {
            match (own.as_mut(), other) {
                (None, other) => own.clone_from(other),
                (Some(own), Some(other)) => own.count = own.count.saturating_add(other.count),
                (Some(_), None) => {}
            }
        }
        self.lost_prints.extend(&other.lost_prints);
        self.gone.extend(&other.gone);
        self.here.extend(&other.here);
    }

    /// Who is missed by one relay and is at another is not lost.
    fn find(&mut self) {
        let here: BTreeSet<_> = self.here.iter().collect();
        let found = |prints: &[u64]| prints.iter().filter(|print| here.contains(print)).count() as u64;
        let (lost, gone) = (found(&self.lost_prints), found(&self.gone));
        self.lost = self.lost.take().filter(|all| all.count > lost);
        if let Some(all) = &mut self.lost {
            all.count -= lost;
        }
        // They are counted where they are.
        self.all = self.all.saturating_sub(lost + gone);
    }

    /// Why the candidate halts, if it must.
    fn halts(&self, halt: &Halt) -> Option<String> {
        let lost = || too_many(halt.lost, self.lost.as_ref(), self.all, "gone");
        let silent = || too_many(halt.silent, self.silent.as_ref(), self.served, "silent");
        self.rejected(halt.rejected).or_else(silent).or_else(lost)
    }

    fn rejected(&self, threshold: Threshold) -> Option<String> {
        let Part { count, such_as } = self.refused.as_ref()?;
        let (all, refusing) = (self.all, self.refusing);
        let what = match threshold {
            Threshold::Part(_) => threshold
                .is_reached(number(refusing), number(all))
                .then(|| format!("{refusing} of {all} clients refused something")),
            _ => threshold.is_reached(number(*count), number(all)).then(|| format!("clients refused {count}")),
        };
        Some(format!("{}, such as {such_as}", what?))
    }
}

/// What other relays said of their clients.
#[derive(Default)]
pub(super) struct Tallies {
    by_relay: BTreeMap<u64, Heard>,
}

struct Heard {
    at: Instant,
    tally: Tally,
    /// It is not there any more.
    is_old: bool,
}

impl Tallies {
    /// A relay said that, or says nothing any more.
    pub(super) fn hear(&mut self, of: Instance, said: Option<&[u8]>, now: Instant) {
        match said.and_then(|said| Tally::decode(said).ok()) {
            Some(tally) => {
                if self.by_relay.len() >= MOST {
                    self.by_relay.retain(|_, heard| !heard.is_old);
                }
                if self.by_relay.len() < MOST || self.by_relay.contains_key(&of.0) {
                    self.by_relay.insert(of.0, Heard { at: now, tally, is_old: false });
                }
            }
            // Who is not there any more did not say that.
            None if self.by_relay.get(&of.0).is_some_and(|heard| heard.is_old) => {}
            None => _ = self.by_relay.remove(&of.0),
        }
    }

    /// Who has said nothing for so long that it is not there any more: what it said is not to be kept for others. What it said that
    /// was refused is remembered here, for as long as there is room.
    pub(super) fn take_old(&mut self, now: Instant) -> Vec<Instance> {
        let is_old = |heard: &Heard| !heard.is_old && now.saturating_duration_since(heard.at) > 2 * COUNTS;
        let old = self.by_relay.iter_mut().filter(|(_, heard)| is_old(heard));
        old.map(|(of, heard)| {
            heard.is_old = true;
            Instance(*of)
        })
        .collect()
    }

    /// Whom others miss.
    pub(super) fn missed(&self, release: Release) -> BTreeSet<u64> {
        let of = self.by_relay.values().filter(|heard| heard.tally.is_of(release));
        of.flat_map(|heard| heard.tally.gone.iter().chain(&heard.tally.lost_prints)).copied().collect()
    }

    /// Who is at another relay, of those whom any misses.
    pub(super) fn here(&self, release: Release) -> BTreeSet<u64> {
        let of = self.by_relay.values().filter(|heard| heard.tally.is_of(release) && !heard.is_old);
        of.flat_map(|heard| &heard.tally.here).copied().collect()
    }

    /// Why a candidate halts, by what all say. Who has said nothing for long may be gone, and its clients elsewhere; but what it
    /// said that was refused was.
    pub(super) fn halts(&self, own: &Tally, release: Release, halt: &Halt, now: Instant) -> Option<String> {
        let mut all = own.clone();
        for Heard { at, tally, .. } in self.by_relay.values().filter(|heard| heard.tally.is_of(release)) {
            if now.saturating_duration_since(*at) <= COUNTS {
                all.add(tally);
            } else {
                let Tally { refused, refusing, .. } = tally.clone();
                all.add(&Tally { all: refusing, refused, refusing, ..Tally::default() });
            }
        }
        all.find();
        all.halts(halt)
    }
}

fn too_many(threshold: Threshold, some: Option<&Part>, all: u64, how: &str) -> Option<String> {
    let Part { count, such_as } = some?;
    let are = if *count == 1 { "is" } else { "are" };
    let clients = if all == 1 { "client" } else { "clients" };
    let is_reached = threshold.is_reached(number(*count), number(all));
    is_reached.then(|| format!("{count} of {all} {clients} {are} {how}, such as {such_as}"))
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    /// Relays of two versions tell each other.
    #[test]
    fn what_is_told_is_what_was_told_before() {
        let part = |count, such_as: &str| Part::of(count, || such_as.to_owned());
        let tally = Tally {
            all: 9,
            served: 8,
            refused: part(1, "a"),
            refusing: 1,
            silent: part(2, "b"),
            lost: part(3, "c"),
            lost_prints: vec![1],
            gone: vec![2],
            here: vec![3],
            ..Tally::of(Release::of_bytes([7; 16]))
        };
        assert_eq!(
            hex(&tally.encode_to_vec()),
            "0a100707070707070707070707070707070710091808220508011201612801320508021201623a050803120163420801000000000000004a08020000000000000052080300000000000000"
        );
    }
}
