//! A link: one interest of one subscriber in one target, the slot of a name or the list of a collection.
//!
//! It stands on exactly one chain: the chain of up-to-date links of its target, or a chain of work of its subscriber. An update
//! moves the first chain over to the second, so that a subscriber which is behind already costs nothing per further update.

use std::num::NonZeroU32;

use crate::arena::Key;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, WalkKey};
use crate::moments::Seq;

/// One interest of one subscriber.
///
/// There are as many as clients ask for names: what most of them lack stands elsewhere, and the rest is kept in 24 bytes.
pub(crate) struct Link {
    /// The key of a slot, or of a walk.
    to: NonZeroU32,
    pub(crate) subscriber: SubscriberKey,
    /// The cursor in 61 bits, and above them the flags.
    marks: [u32; 2],
    pub(crate) next: Option<LinkKey>,
    /// Of the first on a chain: the last one.
    pub(crate) prev: Option<LinkKey>,
}

/// What a link is to: a name, or a collection, whose list its walk names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum To {
    Slot(SlotKey),
    Walk(WalkKey),
}

/// It is to a collection.
const TO_WALK: u32 = 1 << 31;
/// It stands on a chain of work.
const AT_WORK: u32 = 1 << 30;
const SENT: u32 = 1 << 29;
const FLAGS: u32 = TO_WALK | AT_WORK | SENT;

impl Link {
    pub(crate) fn new(to: To, subscriber: SubscriberKey, sent: bool) -> Self {
        let (to, kind) = match to {
            To::Slot(slot) => (slot.raw(), 0),
            To::Walk(walk) => (walk.raw(), TO_WALK),
        };
        let mut link = Self { to, subscriber, marks: [0, kind], next: None, prev: None };
        link.set_sent(sent);
        link
    }

    #[inline]
    pub(crate) fn to(&self) -> To {
        if self.is_to_list() { To::Walk(WalkKey::new(self.to)) } else { To::Slot(SlotKey::new(self.to)) }
    }

    #[inline]
    pub(crate) fn is_to_list(&self) -> bool {
        self.has(TO_WALK)
    }

    /// Its walk, if it is to a list.
    #[inline]
    pub(crate) fn walk(&self) -> Option<WalkKey> {
        match self.to() {
            To::Walk(walk) => Some(walk),
            To::Slot(_) => None,
        }
    }

    /// The subscriber has been sent everything of the target up to here.
    #[inline]
    pub(crate) fn cursor(&self) -> Seq {
        let [low, high] = self.marks;
        Seq::from(high & !FLAGS) << 32 | Seq::from(low)
    }

    #[inline]
    pub(crate) fn set_cursor(&mut self, cursor: Seq) {
        debug_assert!(cursor >> 61 == 0, "one is counted for each change");
        let [low, high] = &mut self.marks;
        *low = cursor as u32;
        *high = *high & FLAGS | (cursor >> 32) as u32 & !FLAGS;
    }

    #[inline]
    pub(crate) fn chain(&self) -> Chain {
        if self.has(AT_WORK) { Chain::Work } else { Chain::Clean }
    }

    #[inline]
    pub(crate) fn set_chain(&mut self, chain: Chain) {
        self.set(AT_WORK, chain == Chain::Work);
    }

    /// The subscriber was sent the resource of a slot, or brought it along, and is not about to be told that it is gone.
    #[inline]
    pub(crate) fn sent(&self) -> bool {
        self.has(SENT)
    }

    #[inline]
    pub(crate) fn set_sent(&mut self, sent: bool) {
        self.set(SENT, sent);
    }

    /// The same, and what it was before.
    pub(crate) fn take_sent(&mut self) -> bool {
        let sent = self.sent();
        self.set_sent(false);
        sent
    }

    #[inline]
    fn has(&self, flag: u32) -> bool {
        let [_, high] = self.marks;
        high & flag != 0
    }

    #[inline]
    fn set(&mut self, flag: u32, on: bool) {
        let [_, high] = &mut self.marks;
        *high = if on { *high | flag } else { *high & !flag };
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
    pub(crate) list: ListKey,
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
    pub(crate) fn new(list: ListKey, now: Seq, since: Seq, lapsed: u32) -> Self {
        Self {
            list,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_24_bytes_and_says_what_it_was_told() {
        assert_eq!(size_of::<Link>(), 24);
        assert_eq!(size_of::<Option<Link>>(), 24, "nothing is needed to say that there is none");
        for to in [To::Slot(SlotKey::FIRST), To::Walk(WalkKey::FIRST)] {
            let mut link = Link::new(to, SubscriberKey::FIRST, true);
            for cursor in [0, 1, u64::from(u32::MAX) + 7, (1 << 61) - 1] {
                for (chain, sent) in [(Chain::Work, true), (Chain::Clean, true), (Chain::Work, false)] {
                    link.set_chain(chain);
                    link.set_sent(sent);
                    link.set_cursor(cursor);
                    assert_eq!((link.to(), link.cursor(), link.chain(), link.sent()), (to, cursor, chain, sent));
                }
            }
            link.set_sent(true);
            assert_eq!([link.take_sent(), link.take_sent()], [true, false]);
        }
    }
}
