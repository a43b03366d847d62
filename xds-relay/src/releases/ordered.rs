//! What people ordered last of a scope. Of a store that was put back to an earlier state it tells what was ordered there since.

use sha2::{Digest as _, Sha256};

use crate::releases::act::{Act, By, Order, millis_of};

/// So many orders are remembered.
const REMEMBERED: usize = 64;

/// The prints of what was ordered, the latest last. The first one says where that begins, until so many came after it; where that is not said,
/// a version of the program wrote the control value that knows none of this, and what was ordered is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ordered(Vec<u64>);

impl Ordered {
    pub(crate) fn of_prints(prints: &[u64]) -> Self {
        Self(prints.to_vec())
    }

    pub(crate) fn prints(&self) -> &[u64] {
        &self.0
    }

    /// The same, of a control value with so many changes before: what was ordered is remembered from here on, if it is not known.
    pub(crate) fn begun(mut self, changes: u64) -> Self {
        if self.0.is_empty() {
            self.0.push(beginning(changes));
        }
        self
    }

    /// This was done, if a person wanted it.
    pub(crate) fn note(&mut self, order: &Order) {
        self.note_prints(print(order).as_slice());
    }

    /// These were.
    pub(crate) fn note_prints(&mut self, prints: &[u64]) {
        self.0.extend_from_slice(prints);
        let excess = self.0.len().saturating_sub(REMEMBERED);
        self.0.drain(..excess);
    }

    /// What was ordered there since both were one: none if that cannot be told, for neither remembers when they were.
    pub(crate) fn since(&self, other: &Self) -> Option<Self> {
        let common = match self.0.iter().rposition(|print| other.0.contains(print)) {
            Some(at) => at + 1,
            // Who knows all that was ever ordered knows that this is none of it.
            None if !self.0.is_empty() && other.0.first() == Some(&beginning(0)) => 0,
            None => return None,
        };
        Some(Self(self.0.get(common..).unwrap_or_default().to_vec()))
    }

    pub(crate) fn has(&self, order: &Order) -> bool {
        print(order).is_some_and(|print| self.0.contains(&print))
    }

    /// The same; and where nothing is remembered, what lasts.
    pub(crate) fn may_have(&self, order: &Order) -> bool {
        self.has(order) || self.0.is_empty() && matches!(order.act, Act::Freeze | Act::Hold)
    }

    /// Whether nothing was ordered, or nothing is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What says that orders are remembered since there were so many changes.
fn beginning(changes: u64) -> u64 {
    let hash = Sha256::new().chain_update("beginning").chain_update(changes.to_be_bytes()).finalize();
    hash.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// What tells an order of a person from all others, in all versions of the program.
fn print(Order { act, by, why, at }: &Order) -> Option<u64> {
    let By::Person(name) = by else { return None };
    let (what, about) = match act {
        Act::Freeze => ("freeze", Vec::new()),
        Act::Unfreeze => ("unfreeze", Vec::new()),
        Act::Hold => ("hold", Vec::new()),
        Act::Stage { at } => ("stage", (*at as u64).to_be_bytes().to_vec()),
        Act::Rollback { to } => ("rollback", to.map(|to| to.as_bytes().to_vec()).unwrap_or_default()),
        Act::Publish { .. } | Act::Advance { .. } | Act::Halt { .. } | Act::TakeOver => return None,
    };
    let mut hash = Sha256::new();
    for part in [what.as_bytes(), &about, name.as_bytes(), why.as_bytes(), &millis_of(*at).to_be_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().first_chunk().copied().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::releases::act::Instance;
    use crate::releases::release::Release;

    fn order(act: Act, second: u64) -> Order {
        Order::new(act, By::Person("ann".to_owned()), "x", SystemTime::UNIX_EPOCH + Duration::from_secs(second))
    }

    fn of(orders: &[Order]) -> Ordered {
        let mut ordered = Ordered::default();
        orders.iter().for_each(|order| ordered.note(order));
        ordered
    }

    /// From where on, and what.
    fn from(changes: u64, orders: &[Order]) -> Ordered {
        let mut ordered = Ordered::default().begun(changes);
        orders.iter().for_each(|order| ordered.note(order));
        ordered
    }

    #[test]
    fn what_was_ordered_since_is_what_comes_behind_the_last_that_both_have() {
        let [a, b, c, d] = [1, 2, 3, 4].map(|second| order(Act::Freeze, second));
        for begins in [0, 7] {
            let known = from(begins, &[a.clone(), b.clone(), c.clone()]);
            for (there, since) in [
                (vec![], vec![]),
                (vec![a.clone()], vec![]),
                (vec![a.clone(), d.clone()], vec![d.clone()]),
                (vec![a.clone(), b.clone(), d.clone()], vec![d.clone()]),
                (vec![d.clone()], vec![d.clone()]),
            ] {
                assert_eq!(from(begins, &there).since(&known), Some(of(&since)), "{there:?}");
            }
        }
    }

    /// It may be of long before.
    #[test]
    fn what_neither_remembers_a_common_order_of_is_not_told_to_be_ordered_since() {
        let [old, new] = [1, 1000].map(|second| order(Act::Freeze, second));
        let later: Vec<_> = (2..100).map(|second| order(Act::Freeze, second)).collect();
        let full = from(0, &[std::slice::from_ref(&old), &later].concat());
        assert_eq!(full.prints().len(), REMEMBERED);
        let there = from(0, &[old.clone(), new.clone()]);
        assert_eq!(there.since(&full), None, "the store is older than all that is remembered");
        assert_eq!(there.since(&Ordered::default()), None, "an older version forgot it");
        assert_eq!(there.since(&from(9, &later[..1])), None, "it is remembered again since");
        assert_eq!(from(9, std::slice::from_ref(&new)).since(&full), None, "it was forgotten there");
        // Where all that ever was is known, the others are others.
        let all = from(0, std::slice::from_ref(&old));
        assert!(from(9, std::slice::from_ref(&new)).since(&all).is_some_and(|since| since.has(&new)));
        let unknown = Ordered::default();
        assert_eq!((unknown.since(&full), unknown.since(&unknown)), (None, None), "nothing is remembered there");
        assert!(unknown.may_have(&old) && !all.may_have(&new));
    }

    #[test]
    fn orders_are_told_apart_by_all_that_they_say_and_those_of_relays_are_none() {
        let to = |byte| Act::Rollback { to: Some(Release::of_bytes([byte; 16])) };
        let acts = [
            Act::Freeze,
            Act::Unfreeze,
            Act::Hold,
            Act::Stage { at: 0 },
            Act::Stage { at: 1 },
            to(1),
            to(2),
            Act::Rollback { to: None },
        ];
        let mut orders: Vec<_> = acts.into_iter().map(|act| order(act, 1)).collect();
        orders.push(order(Act::Freeze, 2));
        orders.push(Order { why: "y".to_owned(), ..orders[0].clone() });
        orders.push(Order { by: By::Person("bob".to_owned()), ..orders[0].clone() });
        for (at, one) in orders.iter().enumerate() {
            let others: Vec<_> = orders.iter().filter(|other| of(std::slice::from_ref(one)).has(other)).collect();
            assert_eq!(others, [&orders[at]]);
        }
        let of_relay = Order { by: By::Instance(Instance(1)), ..order(Act::TakeOver, 1) };
        assert_eq!(of(&[of_relay]), Ordered::default());
        let many: Vec<_> = (0..100).map(|second| order(Act::Freeze, second)).collect();
        assert_eq!(of(&many).prints().len(), REMEMBERED);
        assert!(of(&many).has(&many[99]) && !of(&many).has(&many[0]));
        // Other versions compare it.
        assert_eq!(print(&orders[0]), print(&order(Act::Freeze, 1)));
    }
}
