//! A link: one interest of one subscriber in one target, the slot of a name or the list of a collection.
//!
//! It stands on exactly one chain: the chain of up-to-date links of its target, or a chain of work of its subscriber. An update
//! moves the first chain over to the second, so that a subscriber which is behind already costs nothing per further update.

use std::hash::{Hash, Hasher};

use crate::arena::Key;
use crate::index::Keyed;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, Target, WalkKey};
use crate::moments::Seq;

/// One interest of one subscriber.
pub(crate) struct Link {
    pub(crate) target: Target,
    pub(crate) subscriber: SubscriberKey,
    /// The subscriber has been sent everything of the target up to here.
    pub(crate) cursor: Seq,
    /// Its place in its subscriber's links.
    pub(crate) position: u32,
    /// Its walk, if the target is a list.
    pub(crate) walk: Option<WalkKey>,
    pub(crate) chain: Chain,
    /// The subscriber was sent the resource of a slot, or brought it along, and is not about to be told that it is gone.
    pub(crate) sent: bool,
    pub(crate) next: Option<LinkKey>,
    /// Of the first on a chain: the last one.
    pub(crate) prev: Option<LinkKey>,
}

impl Link {
    pub(crate) fn new(target: Target, subscriber: SubscriberKey, position: u32, walk: Option<WalkKey>) -> Self {
        Self { target, subscriber, cursor: 0, position, walk, chain: Chain::Clean, sent: false, next: None, prev: None }
    }

    /// What a link to a collection is to, and its walk.
    pub(crate) fn to_list(&self) -> Option<(ListKey, WalkKey)> {
        match (self.target, self.walk) {
            (Target::List(list), Some(walk)) => Some((list, walk)),
            _ => None,
        }
    }
}

/// The chain a link stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chain {
    /// Of its target: nothing to tell.
    Clean,
    /// Of its subscriber: a name to look at, or a collection to walk.
    Work,
}

/// What a link to a list has beyond one to a slot, of which there are many more.
pub(crate) struct Walk {
    /// The cursor for tombstones and errors: never reset, or a removal before a re-subscribe is lost.
    pub(crate) gone_cursor: Seq,
    /// When it began.
    pub(crate) opened: Seq,
    /// When it began, for a glob: what was there then, the subscriber may hold already.
    pub(crate) since: Seq,
    /// How far the cursor was before it was reset.
    pub(crate) sent: Seq,
    /// Where the last walk stopped.
    pub(crate) at: Option<SlotKey>,
    /// Of what the subscriber said so often that it holds, it asked again: no version of that counts.
    pub(crate) lapsed: u32,
    /// Whether the subscriber was answered.
    pub(crate) answered: bool,
    /// Whether it was sent a member, which is an answer too.
    pub(crate) spoken: bool,
    /// Whether it was told what a complete answer says: that there is nothing, and what of its own is gone.
    pub(crate) complete: bool,
}

impl Walk {
    /// Of a list that a subscriber is interested in from now on; `lapsed`: how often it has said what it holds.
    pub(crate) fn new(now: Seq, since: Seq, lapsed: u32) -> Self {
        Self {
            gone_cursor: now,
            opened: now,
            since,
            sent: 0,
            at: None,
            lapsed,
            answered: false,
            spoken: false,
            complete: false,
        }
    }

    /// What a complete answer says is told.
    pub(crate) fn conclude(&mut self) {
        self.complete = true;
        (self.since, self.sent) = (0, self.sent.max(self.since));
    }

    /// All of it is to be sent and answered again, and no version counts of what was said to be held, so often by now. How
    /// often it had been when that was so before, is returned.
    pub(crate) fn repeat(&mut self, resumes: u32) -> u32 {
        (self.answered, self.spoken, self.complete) = (false, false, false);
        std::mem::replace(&mut self.lapsed, resumes)
    }

    /// What came to a list later than this, a link to it at `cursor` has not sent, and its subscriber did not see it before.
    pub(crate) fn sent_up_to(&self, cursor: Seq) -> Seq {
        cursor.max(self.since).max(self.sent)
    }
}

/// What a link is found by: its subscriber and its target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends(pub(crate) SubscriberKey, pub(crate) Target);

/// In one piece: a slot and a list of one index are two of one hash, and no more are.
impl Hash for Ends {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self(subscriber, target) = *self;
        let target = match target {
            Target::Slot(slot) => slot.raw(),
            Target::List(list) => list.raw(),
        };
        state.write_u64(u64::from(subscriber.raw().get()) << 32 | u64::from(target.get()));
    }
}

impl Keyed for Link {
    type By<'a> = Ends;

    fn by(&self) -> Ends {
        Ends(self.subscriber, self.target)
    }
}
