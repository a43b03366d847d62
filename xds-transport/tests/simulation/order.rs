//! What may go before what on one stream: rules 122 and 158, told from the books of what was asked for and sent.
//!
//! A type's additions go after those of lower ranks, a cluster's or an endpoint's removal after everything else, and what
//! does not exist is told before others speak, unless whoever goes first has waited a second. That is less than the server
//! promises: what is counted as waiting here may be more than it knows of.

use std::collections::BTreeMap;

use crate::ledger::{Ledger, Pending};
use crate::messages::Response;
use crate::origin::Origin;
use crate::world::{Of, World};

/// Who has waited this long, in ms, may go before others.
const HOLD: u64 = 1000;

#[derive(Default)]
pub(crate) struct Order {
    /// Since when a type has anything to say, and removals.
    waiting: BTreeMap<Of, u64>,
    removals: BTreeMap<Of, u64>,
}

impl Order {
    /// To be called before every response.
    pub(crate) fn tick(&mut self, now: u64, world: &World, origin: &Origin, ledger: &Ledger) {
        for (of, pending) in all(world, origin, ledger) {
            note(&mut self.waiting, of, pending.anything, now);
            note(&mut self.removals, of, pending.removals, now);
        }
    }

    /// A response leaves the server, and is not in the books yet.
    pub(crate) fn response(
        &self,
        now: u64,
        world: &World,
        origin: &Origin,
        ledger: &Ledger,
        response: &Response,
    ) -> Result<(), String> {
        let Some(of) = world.of(&response.type_url) else { return Ok(()) };
        let Some(own) = ledger.pending(world, origin, of) else { return Ok(()) };
        let rule = world.rule(of);
        let long = |since: Option<&u64>| since.is_some_and(|since| since + HOLD <= now);
        let others = || all(world, origin, ledger).filter(|(other, _)| *other != of);
        if !response.resources.is_empty() && !long(self.waiting.get(&of)) {
            for (lower, pending) in others().filter(|(other, _)| world.rule(*other).rank < rule.rank) {
                if pending.additions && (!pending.full || rule.waits_for_lower_ranks) {
                    return Err(format!("rule 122: {of} goes before the additions of {lower}"));
                }
                if pending.missing && !pending.full {
                    return Err(format!(
                        "rule 158: {lower} has something to tell that does not exist, and {of} goes first"
                    ));
                }
            }
        }
        if rule.removals_last && own.responded && own.takes(response) && !long(self.removals.get(&of)) {
            let breaks =
                |pending: &Pending, other| pending.additions || pending.removals && !world.rule(other).removals_last;
            if let Some((other, _)) = others().find(|(other, pending)| breaks(pending, *other)) {
                return Err(format!("rule 122: {of} takes something back before {other} has said all"));
            }
        }
        Ok(())
    }
}

fn all(world: &World, origin: &Origin, ledger: &Ledger) -> impl Iterator<Item = (Of, Pending)> {
    (0..World::KINDS).filter_map(|of| Some((of, ledger.pending(world, origin, of)?)))
}

fn note(since: &mut BTreeMap<Of, u64>, of: Of, waits: bool, now: u64) {
    if waits {
        since.entry(of).or_insert(now);
    } else {
        since.remove(&of);
    }
}
