//! Who did what, when, and why.

use prost::Message;
use xdstp_client::state::Op;

use crate::releases::act::{Act, Order, Said, Transition, millis_of};
use crate::releases::control::Control;
use crate::releases::records::{SaidRecord, release};
use crate::releases::release::Release;
use crate::releases::sealed::{seal, unseal};
use crate::releases::stored::Stored;
use crate::releases::stored::error::StoredError;

/// How many entries are kept, and after how many changes the others are removed.
const KEPT: usize = 1000;
const TRIMMED: u64 = 32;
/// How many are removed at once, which is more than come in between.
const MOST_REMOVED: usize = 48;

/// What was done, for people.
#[derive(Clone, PartialEq, Message)]
struct EntryRecord {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(message, optional, tag = "2")]
    said: Option<SaidRecord>,
    /// In words.
    #[prost(string, tag = "3")]
    what: String,
    /// The release that it is about.
    #[prost(bytes = "vec", optional, tag = "4")]
    release: Option<Vec<u8>>,
    /// The release that was taken back for that one; earlier versions did not say it.
    #[prost(bytes = "vec", optional, tag = "5")]
    taken_back: Option<Vec<u8>>,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logged {
    /// Which of all changes of the scope it was, from 0.
    pub number: u64,
    /// Who, when, and why.
    pub said: Said,
    /// What came of it: a [`Transition`] in words.
    pub what: String,
    /// The release that it is about.
    pub release: Option<Release>,
    /// The release that people had taken back for that one, which is served since.
    pub taken_back: Option<Release>,
}

impl Logged {
    /// Whether that order was done.
    pub(super) fn is_of(&self, order: &Order) -> bool {
        let done = match order.act {
            Act::Freeze => Transition::Frozen,
            Act::Hold => Transition::Held,
            Act::Rollback { .. } => Transition::RolledBack,
            _ => return false,
        };
        self.said == order.said() && self.what == done.to_string()
    }
}

impl Stored {
    /// What was done: see [`Reader::log`](super::Reader::log).
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn log(&self) -> Result<Vec<Logged>, StoredError> {
        self.reader().log()
    }

    /// What is written of an order that was done.
    pub(super) fn entry(&self, order: &Order, transition: Transition, control: &Control, number: u64) -> Op {
        let about = match &order.act {
            Act::Publish { release, .. } | Act::Advance { release } | Act::Halt { release, .. } => Some(*release),
            Act::Rollback { .. } => control.stable,
            _ => control.candidate.as_ref().map(|candidate| candidate.release).or(control.stable),
        };
        let is_rollback = matches!(order.act, Act::Rollback { .. });
        let taken_back = control.refused.last().filter(|_| is_rollback && transition == Transition::RolledBack);
        let record = EntryRecord {
            number,
            said: Some(SaidRecord::of(&order.said())),
            what: transition.to_string(),
            release: about.map(|release| release.as_bytes().to_vec()),
            taken_back: taken_back.map(|release| release.as_bytes().to_vec()),
        };
        let key = self.keys.entry(millis_of(order.at), number);
        let value = seal(&key, &record);
        Op::Put(key, value)
    }

    /// What is to be removed from the log, from time to time.
    pub(super) fn trim(&self, changes: u64) -> Result<Vec<Op>, StoredError> {
        if changes / TRIMMED == self.count.changes / TRIMMED {
            return Ok(Vec::new());
        }
        let mut keys: Vec<_> = self.store.list(&self.keys.log())?.entries.into_iter().map(|entry| entry.key).collect();
        keys.sort_by_key(|key| key.rsplit('-').next().and_then(|number| number.parse::<u64>().ok()));
        // An engine may take no more than some at once; the others go the next time.
        let excess = keys.len().saturating_sub(KEPT);
        keys.truncate(excess.min(MOST_REMOVED));
        Ok(keys.into_iter().map(Op::delete).collect())
    }
}

/// None of what is damaged.
pub(super) fn logged(key: &str, value: &[u8]) -> Option<Logged> {
    let record: EntryRecord = unseal(key, value).ok()?;
    let [about, taken_back] = [record.release, record.taken_back].map(|named| named.as_deref().and_then(release));
    let (number, what) = (record.number, record.what);
    Some(Logged { number, said: record.said?.said(), what, release: about, taken_back })
}
