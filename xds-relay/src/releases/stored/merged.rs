//! What is put back into a store that had an earlier state, and was given orders since: these were told to be done, and are.

use crate::releases::act::{Act, By, Order, Said, Transition};
use crate::releases::candidate::Progress;
use crate::releases::control::Control;
use crate::releases::control::error::ControlError;
use crate::releases::ordered::Ordered;
use crate::releases::release::Release;
use crate::releases::stage::Stages;
use crate::releases::stored::error::StoredError;
use crate::releases::stored::{Logged, Stored};

/// What is put back, and what becomes by that of what people ordered in the store.
pub(super) struct Merged {
    pub(super) control: Control,
    pub(super) ordered: Ordered,
    pub(super) orders: Vec<(Order, Became)>,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    Holds,
    Refused(ControlError),
    /// What was known here holds, or what was ordered there later.
    Nothing,
    /// Nobody remembers whether it was ordered since the store was put back: nothing is done for it.
    Doubtful,
}

impl Became {
    /// Once it is so in the store.
    pub(crate) fn tell(&self, scope: &str, Order { act, by, why, .. }: &Order) {
        match self {
            Self::Holds => {
                tracing::warn!(scope, %by, ?act, why, "it was ordered in a store that was put back to an earlier state, and holds");
            }
            Self::Refused(error) => tracing::error!(scope, %by, ?act, why,
                "it was ordered in a store that was put back to an earlier state, and is not done: {error}"),
            Self::Nothing => tracing::error!(scope, %by, ?act, why,
                "it was ordered in a store that was put back to an earlier state, and nothing is done for it: what relays knew holds"),
            Self::Doubtful => tracing::error!(scope, %by, ?act, why,
                "it held in a store that was put back to an earlier state, and does not any more: nobody remembers whether it was ordered since"),
        }
    }
}

impl Stored {
    /// What is known here, with what people ordered in the store since it was put back, as far as that holds there still: it is one change
    /// with what is put back, or others could do something in between that is not to be.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn merged(&self, stages: &Stages) -> Result<Merged, StoredError> {
        let mut merged = Merged { control: self.base.clone(), ordered: self.ordered.clone(), orders: Vec::new() };
        let Some((there, ordered_there)) = &self.there else { return Ok(merged) };
        let since = ordered_there.since(&self.ordered);
        if since.as_ref().is_some_and(Ordered::is_empty) {
            return Ok(merged);
        }
        let (log, is_kept) = (self.log()?, |release| self.has(release));
        let Some(since) = since else {
            let may_be_since = |order: &Order| ordered_there.may_have(order) && !self.ordered.has(order);
            let mut doubtful = holding(&self.base, there, &log, &may_be_since);
            doubtful.retain(|(order, act)| {
                let order = Order { act: act.clone(), ..order.clone() };
                self.base.clone().apply(&order, stages, &is_kept) != Ok(Transition::Unchanged)
            });
            merged.orders = doubtful.into_iter().map(|(order, _)| (order, Became::Doubtful)).collect();
            return Ok(merged);
        };
        for (order, act) in holding(&self.base, there, &log, &|order| since.has(order)) {
            let became = match merged.control.apply(&Order { act, ..order.clone() }, stages, &is_kept) {
                Ok(_) => Became::Holds,
                Err(error) => Became::Refused(error),
            };
            merged.orders.push((order, became));
        }
        for order in log.iter().flat_map(|entry| ordered_as(entry, stages)).filter(|order| since.has(order)) {
            let is_so = match order.act {
                Act::Freeze => there.frozen.is_none(),
                Act::Unfreeze => merged.control.frozen.is_none(),
                _ => false,
            };
            if !is_so && !merged.orders.iter().any(|(other, _)| *other == order) {
                merged.orders.push((order, Became::Nothing));
            }
        }
        merged.ordered.note_prints(since.prints());
        Ok(merged)
    }
}

/// What was ordered that `counts`, and holds there, with what is to be done for it here: what was taken back is not done again.
fn holding(base: &Control, there: &Control, log: &[Logged], counts: &dyn Fn(&Order) -> bool) -> Vec<(Order, Act)> {
    let mut orders: Vec<_> = rolled_back(base, there, log, counts).into_iter().collect();
    if let Some(candidate) = there.candidate.as_ref().filter(|of| is_candidate(base, of.release))
        && let Progress::Held(said) = &candidate.progress
    {
        orders.push((ordered(Act::Hold, said), Act::Hold));
    }
    orders.extend(there.frozen.as_ref().map(|said| (ordered(Act::Freeze, said), Act::Freeze)));
    orders.retain(|(order, _)| counts(order));
    orders
}

/// The last time that people had something rolled back, if what is stable there is so by that.
fn rolled_back(
    base: &Control,
    there: &Control,
    log: &[Logged],
    counts: &dyn Fn(&Order) -> bool,
) -> Option<(Order, Act)> {
    let stable = there.stable?;
    let to_stable = Act::Rollback { to: Some(stable) };
    // What was the candidate there, and was left, is here as well, or is stable meanwhile.
    let of_candidate = there.refused.last().and_then(|left| match base.stable {
        _ if is_candidate(base, *left) => Some(Act::Rollback { to: None }),
        Some(is_stable) if is_stable == *left => Some(to_stable.clone()),
        _ => None,
    });
    let entries = log.iter().rev().filter(|entry| entry.release == Some(stable));
    let orders = entries.flat_map(|entry| {
        let to = (ordered(to_stable.clone(), &entry.said), to_stable.clone());
        let left = of_candidate.clone().map(|act| (ordered(Act::Rollback { to: None }, &entry.said), act));
        [Some(to), left].into_iter().flatten()
    });
    orders.into_iter().find(|(order, _)| counts(order))
}

fn is_candidate(base: &Control, release: Release) -> bool {
    base.candidate.as_ref().is_some_and(|candidate| candidate.release == release)
}

/// What a person may have ordered, of which there is this entry in the log.
fn ordered_as(entry: &Logged, stages: &Stages) -> impl Iterator<Item = Order> + use<> {
    let said = entry.said.clone();
    let acts = [Act::Freeze, Act::Unfreeze, Act::Hold, Act::Rollback { to: None }];
    let to_stages = (0..=stages.len()).map(|at| Act::Stage { at });
    let to_release = entry.release.map(|release| Act::Rollback { to: Some(release) });
    acts.into_iter().chain(to_release).chain(to_stages).map(move |act| ordered(act, &said))
}

/// As it was given.
fn ordered(act: Act, said: &Said) -> Order {
    Order::new(act, By::Person(said.by.clone()), said.why.clone(), said.at)
}
