//! What is put back into a store that had an earlier state, and was given orders since: these were told to be done, and are.

use crate::releases::act::{Act, By, Order, Said};
use crate::releases::candidate::Progress;
use crate::releases::control::Control;
use crate::releases::ordered::Ordered;
use crate::releases::release::Release;
use crate::releases::stage::Stages;
use crate::releases::stored::Stored;
use crate::releases::stored::error::StoredError;

impl Stored {
    /// What is known here, with what people ordered in the store since it was put back, as far as that holds there still: it is one change
    /// with what is put back, or others could do something in between that is not to be.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn merged(&self, stages: &Stages) -> Result<(Control, Ordered), StoredError> {
        let (mut control, mut ordered) = (self.base.clone(), self.ordered.clone());
        let Some((there, ordered_there)) = &self.there else { return Ok((control, ordered)) };
        let since = ordered_there.since(&self.ordered);
        for order in self.holding(there, &since)? {
            let (scope, act, by, why) = (&self.scope, &order.act, &order.by, &order.why);
            match control.apply(&order, stages, &|release| self.has(release)) {
                Ok(_) => {
                    tracing::warn!(scope, %by, ?act, why, "it was ordered in a store that was put back to an earlier state, and holds");
                }
                Err(error) => tracing::error!(scope, %by, ?act, why,
                    "it was ordered in a store that was put back to an earlier state, and is not done: {error}"),
            }
        }
        ordered.note_prints(since.prints());
        Ok((control, ordered))
    }

    /// What was ordered `since`, and holds there: what was taken back is not done again.
    fn holding(&self, there: &Control, since: &Ordered) -> Result<Vec<Order>, StoredError> {
        if since.prints().is_empty() {
            return Ok(Vec::new());
        }
        let mut orders: Vec<_> = self.rolled_back(there, since)?.into_iter().collect();
        if let Some(candidate) = there.candidate.as_ref().filter(|of| self.is_candidate(of.release))
            && let Progress::Held(said) = &candidate.progress
        {
            orders.push(ordered(Act::Hold, said));
        }
        orders.extend(there.frozen.as_ref().map(|said| ordered(Act::Freeze, said)));
        orders.retain(|order| since.has(order));
        Ok(orders)
    }

    /// The last time that people had something rolled back, if what is stable there is so by that.
    fn rolled_back(&self, there: &Control, since: &Ordered) -> Result<Option<Order>, StoredError> {
        let Some(stable) = there.stable else { return Ok(None) };
        let left = there.refused.last().copied().filter(|left| self.is_candidate(*left));
        let mut log = self.log()?;
        log.retain(|entry| entry.release == Some(stable));
        let orders = log.iter().rev().flat_map(|entry| {
            let to = ordered(Act::Rollback { to: Some(stable) }, &entry.said);
            let of_candidate = left.map(|_| ordered(Act::Rollback { to: None }, &entry.said));
            [Some(to), of_candidate].into_iter().flatten()
        });
        Ok(orders.into_iter().find(|order| since.has(order)))
    }

    fn is_candidate(&self, release: Release) -> bool {
        self.base.candidate.as_ref().is_some_and(|candidate| candidate.release == release)
    }
}

/// As it was given.
fn ordered(act: Act, said: &Said) -> Order {
    Order::new(act, By::Person(said.by.clone()), said.why.clone(), said.at)
}
