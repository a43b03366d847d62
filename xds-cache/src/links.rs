//! Slots, lists and links: who is told of what, in memory that an update never grows.
//!
//! A *link* is one interest of one subscriber in one target: the slot of a name, or the list of a
//! collection. It stands on exactly one chain: the chain of up-to-date links of its target, or a
//! chain of work of its subscriber. An update moves the first chain over to the second, so a
//! subscriber that is behind already costs nothing per further update.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Instant;

use slab::Slab;
use xdstp_uri::ResourceName;

use crate::index::Keyed;
use crate::moments::Moment;
use crate::resource::Resource;

/// No index.
pub(crate) const NONE: u32 = u32::MAX;

/// One counter per cache: the moment of a change. 0 is before the first.
pub(crate) type Seq = u64;

/// One name of one type.
pub(crate) struct Slot<V> {
    pub(crate) name: ResourceName,
    pub(crate) type_index: u32,
    pub(crate) state: State<V>,
    /// When it last changed; 0 while unknown.
    pub(crate) seq: Seq,
    /// When what is there came.
    pub(crate) born: Seq,
    /// When its content last changed, by the caller's clock.
    pub(crate) changed_at: Option<Moment>,
    /// Up-to-date links to this name.
    pub(crate) clean: u32,
    /// Links to this name.
    pub(crate) watchers: u32,
    /// Its place in the wildcard list and in its directory's list.
    pub(crate) places: [Place; 2],
}

impl<V> Keyed for Slot<V> {
    type Key<'a>
        = &'a ResourceName
    where
        V: 'a;

    fn key(&self) -> &ResourceName {
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
    pub(crate) list: u32,
    older: u32,
    newer: u32,
}

impl Place {
    pub(crate) const NOWHERE: Self = Self { list: NONE, older: NONE, newer: NONE };
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
    pub(crate) type_index: u32,
    /// Which of a slot's two places belongs to this list.
    side: usize,
    newest: u32,
    oldest: u32,
    pub(crate) live: u32,
    pub(crate) answer: Answer,
    pub(crate) clean: u32,
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
    pub(crate) fn new(glob: Option<ResourceName>, type_index: u32, answer: Answer) -> Self {
        let side = usize::from(glob.is_some());
        Self {
            glob,
            type_index,
            side,
            newest: NONE,
            oldest: NONE,
            live: 0,
            answer,
            clean: NONE,
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
    pub(crate) fn append<V>(&mut self, index: u32, slots: &mut Slab<Slot<V>>, at: u32) {
        let older = self.newest;
        slots[at as usize].places[self.side] = Place { list: index, older, newer: NONE };
        match older {
            NONE => self.oldest = at,
            older => slots[older as usize].places[self.side].newer = at,
        }
        self.newest = at;
        self.live += 1;
    }

    pub(crate) fn unlink<V>(&mut self, slots: &mut Slab<Slot<V>>, at: u32) {
        let Place { older, newer, .. } = slots[at as usize].places[self.side];
        match older {
            NONE => self.oldest = newer,
            older => slots[older as usize].places[self.side].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => slots[newer as usize].places[self.side].older = older,
        }
        slots[at as usize].places[self.side] = Place::NOWHERE;
        self.live -= 1;
    }

    /// The first slot that changed after `cursor`; O(1) when `hint` is where the last walk stopped.
    pub(crate) fn first_after<V>(&self, index: u32, slots: &Slab<Slot<V>>, cursor: Seq, hint: u32) -> u32 {
        if let Some(slot) = slots.get(hint as usize)
            && slot.seq == cursor
            && slot.places[self.side].list == index
        {
            return slot.places[self.side].newer;
        }
        if cursor == 0 {
            return self.oldest;
        }
        let (mut first, mut at) = (NONE, self.newest);
        while at != NONE && slots[at as usize].seq > cursor {
            first = at;
            at = slots[at as usize].places[self.side].older;
        }
        first
    }

    pub(crate) fn after<V>(&self, slots: &Slab<Slot<V>>, at: u32) -> u32 {
        slots[at as usize].places[self.side].newer
    }

    /// When a member last changed.
    pub(crate) fn newest_seq<V>(&self, slots: &Slab<Slot<V>>) -> Seq {
        slots.get(self.newest as usize).map_or(0, |slot| slot.seq)
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
    pub(crate) fn members<'a, V>(&'a self, slots: &'a Slab<Slot<V>>) -> impl Iterator<Item = u32> + 'a {
        let index_or_end = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(index_or_end(self.oldest), move |at| index_or_end(self.after(slots, *at)))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Target {
    Slot(u32),
    List(u32),
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
    pub(crate) subscriber: u32,
    /// The subscriber has been sent everything of the target up to here.
    pub(crate) cursor: Seq,
    /// Its place in its subscriber's links.
    pub(crate) position: u32,
    /// Its walk, if the target is a list.
    pub(crate) walk: u32,
    pub(crate) chain: Chain,
    /// The subscriber was sent the resource of a slot, or brought it along, and is not about to be told that it is gone.
    pub(crate) sent: bool,
    pub(crate) next: u32,
    /// Of the first on a chain: the last one.
    pub(crate) prev: u32,
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
    pub(crate) at: u32,
    /// Of what the subscriber said so often that it holds, it asked again: no version of that counts.
    pub(crate) lapsed: u32,
    /// Whether the subscriber was answered.
    pub(crate) answered: bool,
    /// Whether it was sent a member, which is an answer too.
    pub(crate) spoken: bool,
    /// Whether it was told what a complete answer says: that there is nothing, and what of its own is gone.
    pub(crate) complete: bool,
}

impl Link {
    pub(crate) fn new(target: Target, subscriber: u32, position: u32, walk: u32) -> Self {
        Self { target, subscriber, cursor: 0, position, walk, chain: Chain::Clean, sent: false, next: NONE, prev: NONE }
    }
}

/// What a link is found by: its subscriber and its target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends(pub(crate) u32, pub(crate) Target);

/// In one piece: a slot and a list of one index are two of one hash, and no more are.
impl Hash for Ends {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self(subscriber, Target::Slot(at) | Target::List(at)) = *self;
        state.write_u64(u64::from(subscriber) << 32 | u64::from(at));
    }
}

impl Keyed for Link {
    type Key<'a> = Ends;

    fn key(&self) -> Ends {
        Ends(self.subscriber, self.target)
    }
}

/// Puts a link that stands on no chain in front of the chain `head`.
pub(crate) fn push(links: &mut Slab<Link>, head: &mut u32, at: u32, chain: Chain) {
    let next = std::mem::replace(head, at);
    let last = if next == NONE { at } else { std::mem::replace(&mut links[next as usize].prev, at) };
    let link = &mut links[at as usize];
    (link.next, link.prev, link.chain) = (next, last, chain);
}

/// Takes a link off its chain, which starts at `head`.
pub(crate) fn unlink(links: &mut Slab<Link>, head: &mut u32, at: u32) {
    let Link { next, prev, .. } = links[at as usize];
    if prev == at {
        *head = NONE;
        return;
    }
    if *head == at {
        *head = next;
    } else {
        links[prev as usize].next = next;
    }
    let after = if next == NONE { *head } else { next };
    links[after as usize].prev = prev;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_of_what_is_held_by_a_pointer_is_128_bytes() {
        assert_eq!(size_of::<Slot<std::sync::Arc<()>>>(), 128);
    }
}
