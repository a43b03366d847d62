//! In what order a client of a relay is told what belongs together: rules 122, 123 and 158, from the books of what was said
//! on its stream and of what the relay had [heard](heard) by then.
//!
//! What is promised is the order of one stream. The relay tells what it has in hand: additions by rank, so that nobody is
//! sent to a cluster before that cluster, and clusters and endpoints as gone when all else was said. Of a removal
//! that it hears of alone it keeps silent for a second, because an origin that says one change in several messages, over
//! several streams, or in the wrong order, may yet tell of the listener or route that stops using what goes. And
//! it takes the word of no other origin for it.
//!
//! What it cannot promise: that an origin, or two of them, say in time what belongs together; anything about
//! what a client has only asked for, and was not answered yet, or what waits for that in a full state (rule 151), or names only after it heard of it, as gRPC does; and
//! that who does not acknowledge, or always has news, is waited for longer than [`HOLD`]. Over SotW no route is ever gone.
//! What holds from end to end, where nothing is in the way, is asserted at the [clients](crate::consumer).

mod books;
pub(crate) mod heard;

use std::time::{Duration, Instant};

use xds_transport::Protocol;
use xds_transport::TypeRules;
use xdstp_uri::ResourceName;

pub(crate) use self::books::Books;
use self::books::{Said, Told};
use self::heard::Words;
use crate::messages::Response;
use crate::world::{Body, Of, REFERRED, REFERRERS, World};

/// Whoever does not get on is waited for so long, and so long a removal waits for what may yet be heard.
const HOLD: Duration = Duration::from_secs(1);
/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(15);
/// What is gone is in full states for no longer: a removal waits for those that join it, and for others then.
const REPEATED: Duration = Duration::from_secs(2 * PATIENCE.as_secs() + HOLD.as_secs());
/// So many responses may overtake what has waited for longer than that: every type may have waited as long.
const OVERTAKE: u64 = World::KINDS as u64;

impl Books {
    /// A response leaves the relay, and is not in the books yet.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        world: &World,
        words: &Words,
        of: Of,
        response: &Response,
    ) -> Result<(), String> {
        let rules = TypeRules::envoy();
        let Some(own) = self.types.get(&of) else { return Ok(()) };
        let said = Said::of(own, world, of, self.protocol, response);
        own.check_gone_for_good(now, world, of, &said)?;
        // Over a link that is full nobody can tell how long a type has waited. Endpoints go with their removals, and are told
        // again after their cluster.
        if !said.put.is_empty() && !REFERRED.contains(&of) && world.setup.narrow.is_none() {
            let rule = rules.of(&world.kinds[of].url);
            for (lower, told) in &self.types {
                let goes_first = rules.of(&world.kinds[*lower].url).rank < rule.rank;
                let waits = told.full.is_none() || rule.waits_for_lower_ranks;
                if goes_first && waits && told.waiting.is_some() && !told.released(own.waits_since(now), now) {
                    return Err(format!(
                        "rule 122: {} goes before the additions of {}",
                        kind(world, of),
                        kind(world, *lower)
                    ));
                }
            }
        }
        if REFERRED.contains(&of) && own.responded {
            for name in said.gone.iter().filter(|name| own.told.contains_key(*name) && own.covers(name)) {
                self.check_gone(now, world, words, of, name)?;
            }
        }
        self.check_starved(now, world, of)
    }

    /// A cluster, or endpoints, are told as gone to who held them.
    fn check_gone(
        &self,
        now: Instant,
        world: &World,
        words: &Words,
        of: Of,
        name: &ResourceName,
    ) -> Result<(), String> {
        let Some(due) = self.due(words, of, name) else { return Ok(()) };
        let what = kind(world, of);
        let left = self.types.get(&of).is_some_and(|own| own.left.contains(name));
        if self.protocol == Protocol::Sotw && (left || self.has_moved(of, name)) {
            return Ok(());
        }
        if due.body.is_some() {
            return Err(format!("rule 153: {what} {name} is told as gone, and its origin did not say so"));
        }
        for referrers in REFERRERS {
            let Some(told) = self.types.get(&referrers) else { continue };
            let uses = |(referrer, body): &(&ResourceName, &Body)| {
                told.covers(referrer) && body.references(world, of).any(|used| used == name)
            };
            for (referrer, body) in told.told.iter().filter(uses) {
                let Some(word) = self.due(words, referrers, referrer) else { continue };
                // What another place has instead is told as what is gone here.
                if word.body.as_ref().is_some_and(|there| there.group != body.group) {
                    continue;
                }
                let who = format!("{} {referrer}", kind(world, referrers));
                let still = word.body.as_ref().is_some_and(|body| body.references(world, of).any(|used| used == name));
                if still {
                    if now < due.at + HOLD {
                        return Err(format!("rule 122: {what} {name} goes at once, and {who} uses it"));
                    }
                    continue;
                }
                let full_state = self.protocol == Protocol::Sotw && world.kinds[referrers].full_state;
                if full_state && !told.is_answered(self.protocol)
                    || word.body.is_none() && !self.says_absence(world, referrers)
                {
                    continue;
                }
                let since = self.types.get(&of).and_then(|own| own.going.get(name)).copied().unwrap_or(now);
                // Over a link that is full nobody can tell when it had said all.
                let may_be_busy =
                    world.setup.narrow.is_some() || told.said_all.is_some_and(|said_all| said_all >= since);
                let busy = may_be_busy && now >= since + HOLD;
                let full = told.full.is_some_and(|full| now >= since.max(full) + HOLD);
                if !busy && !full && now < since + PATIENCE {
                    return Err(format!("rule 122: {what} {name} goes before {who} is told not to use it"));
                }
            }
        }
        Ok(())
    }

    /// Rule 158: whoever has waited longest is heard at last.
    fn check_starved(&mut self, now: Instant, world: &World, of: Of) -> Result<(), String> {
        for (other, told) in self.types.iter_mut().filter(|(other, _)| **other != of) {
            let waits = told.waiting.filter(|since| now > *since + PATIENCE + HOLD && told.full.is_none());
            if waits.is_none_or(|since| told.spoke.is_some_and(|spoke| spoke >= since)) {
                told.overtaken = 0;
                continue;
            }
            told.overtaken += 1;
            if told.overtaken > OVERTAKE {
                return Err(format!("rule 158: {} waits, and others are heard", kind(world, *other)));
            }
        }
        Ok(())
    }
}

impl Told {
    /// What is gone may be in a full state until that may be told (rule 122), and is not back once it was.
    fn check_gone_for_good(&self, now: Instant, world: &World, of: Of, said: &Said) -> Result<(), String> {
        let what = kind(world, of);
        let mut put = said.put.iter();
        if let Some((name, _)) = put.find(|(name, body)| self.parted.get(*name) == Some(&body.serial)) {
            return Err(format!("rule 122: {what} {name} is back as it was after it was told as gone"));
        }
        let waits = |name: &ResourceName| self.repeated.get(name).is_none_or(|since| now < *since + REPEATED);
        match said.repeated.iter().find(|name| self.going.contains_key(*name) && !waits(name)) {
            Some(name) => Err(format!("rule 158: {what} {name} is gone, and is in full states for ever")),
            None => Ok(()),
        }
    }

    /// Whether who has waited `since` a time need not wait for its additions any more.
    fn released(&self, since: Instant, now: Instant) -> bool {
        let full = self.full.is_some_and(|full| now >= since.max(full) + HOLD);
        let busy = self.said_all.is_some_and(|said_all| said_all >= since) && now >= since + HOLD;
        full || busy || now >= since + PATIENCE
    }
}

fn kind(world: &World, of: Of) -> &str {
    world.kinds[of].url.as_str().rsplit('.').next().unwrap_or_default()
}
