//! Slots, lists and links: who is told of what, in memory that an update never grows.
//!
//! A *link* is one interest of one subscriber in one target: the slot of a name, or the list of a
//! collection. It stands on exactly one chain: the chain of up-to-date links of its target, or a
//! chain of work of its subscriber. An update moves the first chain over to the second, so a
//! subscriber that is behind already costs nothing per further update.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::arena::{Arena, Key};
use crate::index::Keyed;
use crate::keys::{LinkKey, ListKey, SlotKey, SubscriberKey, Target, TypeKey, WalkKey};
use crate::moments::Moment;
use crate::resource::Resource;

/// One counter per cache: the moment of a change. 0 is before the first.
pub(crate) type Seq = u64;

/// One name of one type.
pub(crate) struct Slot<V> {
    pub(crate) name: ResourceName,
    pub(crate) type_key: TypeKey,
    pub(crate) state: State<V>,
    /// When it last changed; 0 while unknown.
    pub(crate) seq: Seq,
    /// When what is there came.
    pub(crate) born: Seq,
    /// When its content last changed, by the caller's clock.
    pub(crate) changed_at: Option<Moment>,
    /// Up-to-date links to this name.
    pub(crate) clean: Option<LinkKey>,
    /// Links to this name.
    pub(crate) watchers: u32,
    /// Its place in the wildcard list and in its directory's list.
    pub(crate) places: [Place; 2],
}

impl<V> Keyed for Slot<V> {
    type By<'a>
        = &'a ResourceName
    where
        V: 'a;

    fn by(&self) -> &ResourceName {
        &self.name
    }
}

pub(crate) enum State<V> {
    /// Asked for, not answered yet.
    Unknown,
    /// Known not to exist.
    Absent,
    Present(Resource<V>),
}

impl<V> State<V> {
    pub(crate) fn resource(&self) -> Option<&Resource<V>> {
        match self {
            Self::Present(resource) => Some(resource),
            Self::Unknown | Self::Absent => None,
        }
    }

    pub(crate) fn resource_mut(&mut self) -> Option<&mut Resource<V>> {
        match self {
            Self::Present(resource) => Some(resource),
            Self::Unknown | Self::Absent => None,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) list: Option<ListKey>,
    older: Option<SlotKey>,
    newer: Option<SlotKey>,
}

impl Place {
    pub(crate) const NOWHERE: Self = Self { list: None, older: None, newer: None };
}

/// How far a collection is answered. What is in it is there; that something is not, only a complete answer says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Answer {
    /// Nothing is known of it.
    None,
    /// Some of it came; more may be on its way (rule 151).
    Begun,
    /// It was complete, and its origin has not said since that it still is (rule 150).
    Stale,
    /// What is in it is all there is.
    Complete,
}

/// The members of a collection, in order of last change.
pub(crate) struct List {
    /// The glob; `None` for the wildcard of the type.
    pub(crate) glob: Option<ResourceName>,
    pub(crate) type_key: TypeKey,
    /// Which of a slot's two places belongs to this list.
    side: usize,
    newest: Option<SlotKey>,
    oldest: Option<SlotKey>,
    pub(crate) live: u32,
    pub(crate) answer: Answer,
    pub(crate) clean: Option<LinkKey>,
    pub(crate) watchers: u32,
    /// Whether it ever had one.
    pub(crate) watched: bool,
    /// Tombstones for those who were away, oldest first.
    pub(crate) gone: VecDeque<Gone>,
    /// How many of them are of names that somebody asked for, and nobody here has seen.
    pub(crate) unseen: usize,
    /// Older ones that a link has not passed yet, oldest first.
    pub(crate) owed: VecDeque<Gone>,
    /// How many of `owed` a link needed when that was last looked at.
    pub(crate) needed: usize,
    /// The `gone_cursor`s of its links, and how many have each.
    pub(crate) passed: BTreeMap<Seq, u32>,
    /// The glob itself and names below it that have an error, by when they got it.
    pub(crate) failed: BTreeMap<Seq, ResourceName>,
}

/// A tombstone.
#[derive(Clone)]
pub(crate) struct Gone {
    pub(crate) name: ResourceName,
    pub(crate) seq: Seq,
    pub(crate) at: Instant,
    /// When what is gone came; [`NEVER`] if it was not here.
    pub(crate) born: Seq,
    /// Somebody asked for it, and nobody here has seen it.
    pub(crate) unseen: bool,
}

/// Later than every change.
pub(crate) const NEVER: Seq = Seq::MAX;

impl List {
    pub(crate) fn new(glob: Option<ResourceName>, type_key: TypeKey, answer: Answer) -> Self {
        let side = usize::from(glob.is_some());
        Self {
            glob,
            type_key,
            side,
            newest: None,
            oldest: None,
            live: 0,
            answer,
            clean: None,
            watchers: 0,
            watched: false,
            gone: VecDeque::new(),
            unseen: 0,
            owed: VecDeque::new(),
            needed: 0,
            passed: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Appends a slot as the one that changed last.
    pub(crate) fn append<V>(&mut self, itself: ListKey, slots: &mut Arena<SlotKey, Slot<V>>, at: SlotKey) {
        let older = self.newest;
        slots[at].places[self.side] = Place { list: Some(itself), older, newer: None };
        match older {
            None => self.oldest = Some(at),
            Some(older) => slots[older].places[self.side].newer = Some(at),
        }
        self.newest = Some(at);
        self.live += 1;
    }

    pub(crate) fn unlink<V>(&mut self, slots: &mut Arena<SlotKey, Slot<V>>, at: SlotKey) {
        let Place { older, newer, .. } = slots[at].places[self.side];
        match older {
            None => self.oldest = newer,
            Some(older) => slots[older].places[self.side].newer = newer,
        }
        match newer {
            None => self.newest = older,
            Some(newer) => slots[newer].places[self.side].older = older,
        }
        slots[at].places[self.side] = Place::NOWHERE;
        self.live -= 1;
    }

    /// The first slot that changed after `cursor`; O(1) when `hint` is where the last walk stopped.
    pub(crate) fn first_after<V>(
        &self,
        itself: ListKey,
        slots: &Arena<SlotKey, Slot<V>>,
        cursor: Seq,
        hint: Option<SlotKey>,
    ) -> Option<SlotKey> {
        if let Some(slot) = hint.and_then(|hint| slots.get(hint))
            && slot.seq == cursor
            && slot.places[self.side].list == Some(itself)
        {
            return slot.places[self.side].newer;
        }
        if cursor == 0 {
            return self.oldest;
        }
        let (mut first, mut next) = (None, self.newest);
        while let Some(at) = next.filter(|at| slots[*at].seq > cursor) {
            first = next;
            next = slots[at].places[self.side].older;
        }
        first
    }

    pub(crate) fn after<V>(&self, slots: &Arena<SlotKey, Slot<V>>, at: SlotKey) -> Option<SlotKey> {
        slots[at].places[self.side].newer
    }

    /// When a member last changed.
    pub(crate) fn newest_seq<V>(&self, slots: &Arena<SlotKey, Slot<V>>) -> Seq {
        self.newest.map_or(0, |at| slots[at].seq)
    }

    pub(crate) fn newest_gone(&self) -> Seq {
        self.gone.back().or(self.owed.back()).map_or(0, |gone| gone.seq)
    }

    /// The names that went after a moment, oldest first.
    pub(crate) fn gone_after(&self, cursor: Seq) -> impl Iterator<Item = &ResourceName> {
        let after = |gone: &VecDeque<Gone>| gone.partition_point(|gone| gone.seq <= cursor);
        let (owed, gone) = (after(&self.owed), after(&self.gone));
        self.owed.iter().skip(owed).chain(self.gone.iter().skip(gone)).map(|gone| &gone.name)
    }

    /// The names that went up to a moment, each with when, and are not said to be gone after it too.
    pub(crate) fn gone_before(&self, moment: Seq) -> BTreeMap<&ResourceName, Seq> {
        let mut before: BTreeMap<_, _> =
            self.gone.iter().take_while(|gone| gone.seq <= moment).map(|gone| (&gone.name, gone.seq)).collect();
        if !before.is_empty() {
            self.gone_after(moment).for_each(|name| _ = before.remove(name));
        }
        before
    }

    /// The last tombstone or error.
    pub(crate) fn newest_gone_or_failed(&self) -> Seq {
        self.newest_gone().max(self.failed.last_key_value().map_or(0, |(seq, _)| *seq))
    }

    /// Every member, in order of last change.
    pub(crate) fn members<'a, V>(&'a self, slots: &'a Arena<SlotKey, Slot<V>>) -> impl Iterator<Item = SlotKey> + 'a {
        std::iter::successors(self.oldest, move |at| self.after(slots, *at))
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

/// What a link is found by: its subscriber and its target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends(pub(crate) SubscriberKey, pub(crate) Target);

/// In one piece: a slot and a list of one index are two of one hash, and no more are.
impl Hash for Ends {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self(subscriber, target) = *self;
        let target = match target {
            Target::Slot(at) => at.get(),
            Target::List(at) => at.get(),
        };
        state.write_u64(u64::from(subscriber.get().get()) << 32 | u64::from(target.get()));
    }
}

impl Keyed for Link {
    type By<'a> = Ends;

    fn by(&self) -> Ends {
        Ends(self.subscriber, self.target)
    }
}

/// Puts a link that stands on no chain in front of the chain `head`.
pub(crate) fn push(links: &mut Arena<LinkKey, Link>, head: &mut Option<LinkKey>, at: LinkKey, chain: Chain) {
    let next = head.replace(at);
    let last = match next {
        None => Some(at),
        Some(next) => links[next].prev.replace(at),
    };
    let link = &mut links[at];
    (link.next, link.prev, link.chain) = (next, last, chain);
}

/// Takes a link off its chain, which starts at `head`.
pub(crate) fn unlink(links: &mut Arena<LinkKey, Link>, head: &mut Option<LinkKey>, at: LinkKey) {
    let Link { next, prev, .. } = links[at];
    if prev == Some(at) {
        *head = None;
        return;
    }
    if *head == Some(at) {
        *head = next;
    } else if let Some(prev) = prev {
        links[prev].next = next;
    }
    if let Some(after) = next.or(*head) {
        links[after].prev = prev;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_of_what_is_held_by_a_pointer_is_128_bytes() {
        assert_eq!(size_of::<Slot<std::sync::Arc<()>>>(), 128);
    }
}
