//! Orders that wait for the store: done here already, and kept beside a copy, that a restart does not forget what a person was told.

use std::sync::Arc;

use prost::Message;
use xdstp_client::state::{Op, Store};

use crate::releases::act::{Act, By, Order};
use crate::releases::control::Control;
use crate::releases::keyspace::Keyspace;
use crate::releases::records::{FORMAT, SaidRecord, optional};
use crate::releases::release::Release;
use crate::releases::sealed::{seal, unseal};
use crate::releases::stored::error::{Damage, StoredError};

/// An order that is done here, and perhaps nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) order: Order,
    /// The candidate that it is about, if it is about whichever there was: another one is not meant.
    about: Option<Release>,
}

impl Waiting {
    pub(super) fn new(order: &Order, control: &Control) -> Self {
        let is_about_candidate = matches!(order.act, Act::Hold | Act::Rollback { to: None });
        let candidate = control.candidate.as_ref().map(|candidate| candidate.release);
        Self { order: order.clone(), about: candidate.filter(|_| is_about_candidate) }
    }

    /// Whether what it is about is there still.
    pub(super) fn is_due(&self, control: &Control) -> bool {
        let candidate = control.candidate.as_ref().map(|candidate| candidate.release);
        self.about.is_none() || self.about == candidate
    }
}

/// Those of people, in a store where nobody else writes: what a relay wanted it wants again by itself.
pub(crate) struct WaitingOrders {
    store: Arc<dyn Store>,
    key: String,
    kept: Vec<OrderRecord>,
    /// Of a later version, which is to find it as it left it.
    is_later: Option<u32>,
}

impl WaitingOrders {
    /// Those that are kept there for a scope. What is damaged is no order, and what a later version wrote is left as it is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn open(store: Arc<dyn Store>, scope: &str) -> Result<(Self, Vec<Waiting>), StoredError> {
        let key = Keyspace::of(scope).waiting();
        let kept = store.list(&key)?.entries.into_iter().find(|entry| entry.key == key);
        let kept = match kept.map(|entry| unseal::<WaitingRecord>(&key, &entry.value)) {
            None => WaitingRecord::default(),
            Some(Ok(record)) => record,
            Some(Err(problem)) => {
                tracing::error!(
                    "what was ordered and waits is lost: {}",
                    StoredError::from(Damage::new(&*key, problem))
                );
                WaitingRecord::default()
            }
        };
        let is_later = Some(kept.format).filter(|format| *format > FORMAT);
        if let Some(format) = is_later {
            let later = StoredError::Format { key: key.clone(), format, reads: FORMAT };
            tracing::error!("what was ordered and waits is not told to the store: {later}");
        }
        let kept = if is_later.is_some() { Vec::new() } else { kept.orders };
        let waiting = kept.iter().filter_map(OrderRecord::waiting).collect();
        Ok((Self { store, key, kept, is_later }, waiting))
    }

    /// These wait now. Whether all of them are kept: what a relay wanted is not.
    ///
    /// # Errors
    /// They cannot be written, or what a later version wrote is there.
    pub(crate) fn keep(&mut self, waiting: &[Waiting]) -> Result<bool, StoredError> {
        let orders: Vec<_> = waiting.iter().filter_map(OrderRecord::of).collect();
        let are_all = orders.len() == waiting.len();
        if orders == self.kept {
            return Ok(are_all);
        }
        if let Some(format) = self.is_later {
            return Err(StoredError::Format { key: self.key.clone(), format, reads: FORMAT });
        }
        let op = match orders.is_empty() {
            true => Op::delete(&*self.key),
            false => Op::put(&*self.key, seal(&self.key, &WaitingRecord { orders: orders.clone(), format: FORMAT })),
        };
        let _ = self.store.commit(&[op], &[])?;
        self.kept = orders;
        Ok(are_all)
    }
}

/// The first is the one that was given first.
#[derive(Clone, PartialEq, Message)]
struct WaitingRecord {
    #[prost(message, repeated, tag = "1")]
    orders: Vec<OrderRecord>,
    /// 0 is 1, from before it was said.
    #[prost(uint32, tag = "2")]
    format: u32,
}

#[derive(Clone, PartialEq, Message)]
struct OrderRecord {
    #[prost(message, optional, tag = "1")]
    said: Option<SaidRecord>,
    #[prost(enumeration = "Wanted", tag = "2")]
    wanted: i32,
    /// Which release is to be stable, where that is said.
    #[prost(bytes = "vec", optional, tag = "3")]
    to: Option<Vec<u8>>,
    /// The candidate that it is about.
    #[prost(bytes = "vec", optional, tag = "4")]
    about: Option<Vec<u8>>,
}

/// What a person may have done while the store is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum Wanted {
    Nothing = 0,
    Freeze = 1,
    Hold = 2,
    Rollback = 3,
}

impl OrderRecord {
    fn of(Waiting { order, about }: &Waiting) -> Option<Self> {
        let (wanted, to) = match order.act {
            Act::Freeze => (Wanted::Freeze, None),
            Act::Hold => (Wanted::Hold, None),
            Act::Rollback { to } => (Wanted::Rollback, to),
            _ => return None,
        };
        let id = |release: Release| release.as_bytes().to_vec();
        let (said, wanted) = (Some(SaidRecord::of(&order.said())), wanted.into());
        matches!(order.by, By::Person(_)).then(|| Self { said, wanted, to: to.map(id), about: about.map(id) })
    }

    /// None of a later version.
    fn waiting(&self) -> Option<Waiting> {
        let to = optional(self.to.as_deref())?;
        let act = match self.wanted() {
            Wanted::Nothing => return None,
            Wanted::Freeze => Act::Freeze,
            Wanted::Hold => Act::Hold,
            Wanted::Rollback => Act::Rollback { to },
        };
        let said = self.said.as_ref()?.said();
        let order = Order::new(act, By::Person(said.by), said.why, said.at);
        Some(Waiting { order, about: optional(self.about.as_deref())? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use xdstp_client::state::Memory;

    use super::*;
    use crate::releases::act::Instance;

    #[test]
    fn what_people_ordered_is_read_as_it_was_given() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_234_567);
        let release = Release::of_bytes([7; 16]);
        let acts = [Act::Hold, Act::Rollback { to: None }, Act::Rollback { to: Some(release) }, Act::Freeze];
        let of_person = |act| Order::new(act, By::Person("ann".to_owned()), "it is late", at);
        let orders = acts.map(|act| Waiting { order: of_person(act), about: None });
        let about = Waiting { about: Some(release), ..orders[0].clone() };
        let of_relay =
            Waiting { order: Order::new(Act::TakeOver, By::Instance(Instance(1)), "", at), ..orders[0].clone() };

        let store = Arc::new(Memory::default());
        let open = || WaitingOrders::open(store.clone(), "a scope").unwrap();
        let (mut kept, none) = open();
        assert_eq!(none, []);
        assert!(!kept.keep(&[&orders[..], &[of_relay, about.clone()]].concat()).unwrap(), "one of them is not");
        for _ in 0..2 {
            assert!(kept.keep(&[&orders[..], std::slice::from_ref(&about)].concat()).unwrap());
        }
        let (mut kept, read) = open();
        assert_eq!(read, [&orders[..], &[about]].concat());
        // Another version may know more.
        let unknown = OrderRecord { wanted: 9, ..kept.kept[0].clone() };
        assert_eq!(unknown.waiting(), None);
        kept.keep(&[]).unwrap();
        assert!(open().1.is_empty() && store.list("").unwrap().entries.is_empty());
    }

    #[test]
    fn what_a_later_version_wrote_is_left_as_it_is_and_what_was_written_before_is_read() {
        let order = Order::new(Act::Freeze, By::Person("ann".to_owned()), "it is late", SystemTime::UNIX_EPOCH);
        let waits = Waiting { order, about: None };
        let orders = vec![OrderRecord::of(&waits).unwrap()];
        let key = Keyspace::of("a scope").waiting();
        for (format, is_read) in [(0, true), (1, true), (2, false)] {
            let store = Arc::new(Memory::default());
            let written = seal(&key, &WaitingRecord { orders: orders.clone(), format });
            let _ = store.commit(&[Op::put(&*key, written.clone())], &[]).unwrap();
            let (mut kept, read) = WaitingOrders::open(store.clone(), "a scope").unwrap();
            assert_eq!(read.len(), usize::from(is_read), "{format}");
            let done = kept.keep(&[]).and_then(|_| kept.keep(std::slice::from_ref(&waits)));
            assert_eq!(done.is_ok(), is_read, "{format}: {done:?}");
            let there = store.list("").unwrap().entries.remove(0).value;
            assert_eq!(
                (there == written, unseal::<WaitingRecord>(&key, &there).unwrap().format),
                (format > 0, format.max(1))
            );
        }
    }

    #[test]
    fn what_waits_is_written_as_it_was_written_before() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1000);
        let rollback = Act::Rollback { to: Some(Release::of_bytes([7; 16])) };
        let order = Order::new(rollback, By::Person("ann".to_owned()), "x", at);
        let store = Arc::new(Memory::default());
        let (mut kept, _) = WaitingOrders::open(store.clone(), "a").unwrap();
        kept.keep(&[Waiting { order, about: Some(Release::of_bytes([8; 16])) }]).unwrap();
        let written = store.list("").unwrap().entries.remove(0);
        assert_eq!(written.key, "xds-relay/releases/v1/ca978112ca1bbdcafac231b39a23dc4d/waiting");
        assert_eq!(
            crate::hex::hex(&written.value),
            "0a330a0b0a03616e6e12017818e80710031a1007070707070707070707070707070707221008080808080808080808080808080808100148107dd3c380691e"
        );
    }
}
