//! What people order of releases.

use std::time::{Instant, SystemTime};

use crate::api::{OrderDone, Ordered, ReleaseOrder};
use crate::relay_core::core::RelayCore;
use crate::relay_core::rollout_error::RolloutError;
use crate::releases::{Act, By, ControlError, Order, Stages};

impl RelayCore {
    /// Does what somebody orders: if somebody wants it still when it is its turn, and if
    /// all is as a mark says, where there is one. It may take as long as a store takes.
    ///
    /// # Errors
    /// Why it is not done.
    pub fn order_releases(
        &self,
        order: &ReleaseOrder,
        by: &str,
        mark: Option<&str>,
        is_wanted: &dyn Fn() -> bool,
        now: (Instant, SystemTime),
    ) -> Result<OrderDone, RolloutError> {
        let is = self.instance();
        if let Some(meant) = order.instance.as_ref().filter(|meant| **meant != is) {
            return Err(RolloutError::OtherRelay { is, meant: meant.clone() });
        }
        let act = act(order)?;
        let made = |stages: &Stages| Ok(Order::new(act(stages)?, By::Person(by.to_owned()), order.why.as_str(), now.1));
        let (scope, applied, mark) = self.order_of_scope(order.scope.as_deref(), made, mark, is_wanted, now.0)?;
        let keeps_unsaved = self.releases_in(Some(&scope))?.keep_unsaved();
        Ok(OrderDone { scope, done: applied.transition.to_string(), is_kept: applied.is_kept, keeps_unsaved, mark })
    }
}

/// What is to be done, by how many stages there are.
fn act(order: &ReleaseOrder) -> Result<impl Fn(&Stages) -> Result<Act, ControlError> + use<>, RolloutError> {
    let bad = |problem: &'static str| Err(RolloutError::Order(problem));
    if order.to.is_some() && order.order != Ordered::Rollback {
        return bad("to: only a rollback has one");
    }
    let stage = match (order.order, order.stage) {
        (Ordered::Stage, Some(stage)) => stage.checked_sub(1),
        (Ordered::Stage, None) => None,
        (_, None) => Some(0),
        (_, Some(_)) => return bad("stage: only a stage has one"),
    };
    let Some(stage) = stage else { return bad("stage: expected which, from 1") };
    let parsed = |text: &String| text.parse().map_err(|error| RolloutError::NoRelease { text: text.clone(), error });
    let to = order.to.as_ref().map(parsed).transpose()?;
    let order = order.order;
    Ok(move |stages: &Stages| {
        Ok(match order {
            Ordered::Freeze => Act::Freeze,
            Ordered::Unfreeze => Act::Unfreeze,
            Ordered::Rollback => Act::Rollback { to },
            Ordered::Hold => Act::Hold,
            // Behind the last stage is everybody, which is another order.
            Ordered::Stage if stage >= stages.len() => {
                return Err(ControlError::NoStage { stage, stages: stages.len() });
            }
            Ordered::Stage => Act::Stage { at: stage },
            Ordered::Promote => Act::Stage { at: stages.len() },
        })
    })
}
