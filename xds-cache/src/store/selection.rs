//! What selectors select of a slot.

use std::sync::Arc;
use std::time::Duration;

use crate::keys::{ListKey, SelectorKey, SlotKey};
use crate::moments::Seq;
use crate::resource::Resource;
use crate::store::slot::State;
use crate::store::tables::Store;
use crate::store::turns::{MOST, Turn};
use crate::store::varied::{Settled, Varied};
use crate::variant::Variant;

/// What somebody sees who looks at a name that has variants.
pub(crate) struct View {
    /// Since when it has variants.
    pub(crate) of: Seq,
    pub(crate) was_plain: bool,
    /// When it was known to be absent, if it was before.
    pub(crate) absent: Option<Seq>,
    /// When what is selected last changed.
    pub(crate) seq: Seq,
    pub(crate) chosen: Option<Arc<Variant>>,
    /// Another one is as good as that, and nobody has looked before.
    pub(crate) overlaps: bool,
}

impl<V> Store<V> {
    /// What is in a slot for a selector, and which variant that is if there are any.
    #[inline]
    pub(crate) fn select(
        &self,
        at: SlotKey,
        key: Option<SelectorKey>,
    ) -> Option<(Option<&Arc<Variant>>, &Resource<V>)> {
        match &self[at].state {
            State::Present(resource) => Some((None, resource)),
            State::Varied(varied) => {
                let (variant, resource) = varied.select(key, &self.selectors)?;
                Some((Some(variant), resource))
            }
            State::Unknown | State::Absent => None,
        }
    }

    /// Whether it is known that a selector has nothing of a slot.
    pub(crate) fn is_absent_for(&self, at: SlotKey, key: Option<SelectorKey>) -> bool {
        match &self[at].state {
            State::Absent => true,
            State::Varied(varied) => varied.select(key, &self.selectors).is_none(),
            State::Present(_) | State::Unknown => false,
        }
    }

    /// The slot has variants from now on: first the one that it had without.
    pub(crate) fn vary(&mut self, at: SlotKey) {
        if self[at].state.varied().is_some() {
            return;
        }
        let since = self.next_seq();
        let slot = &mut self[at];
        let (plain, absent) = match std::mem::replace(&mut slot.state, State::Absent) {
            State::Present(resource) => (Some((resource, slot.seq)), None),
            State::Absent => (None, Some(slot.seq)),
            State::Unknown | State::Varied(_) => (None, None),
        };
        slot.state = State::Varied(Box::new(Varied::new(since, plain, absent)));
    }

    /// The variants of a slot are as they are to be.
    pub(crate) fn settle(&mut self, at: SlotKey) -> Option<Settled<V>> {
        let seq = self.next_seq();
        let Self { slots, selectors, selected, now, .. } = self;
        let slot = &mut slots[at];
        let settled = slot.state.varied_mut()?.settle(seq, *now, selectors);
        slot.seq = seq;
        *selected += settled.selected;
        Some(settled)
    }

    /// One looks at a name that has variants, who has not before if that `is_new`.
    pub(crate) fn look(&mut self, at: SlotKey, key: Option<SelectorKey>, of: Option<Seq>) -> Option<View> {
        let Self { slots, selectors, .. } = self;
        let slot = &mut slots[at];
        let lived = (slot.born, slot.seq);
        let varied = slot.state.varied_mut()?;
        let (since, was_plain, absent) = (varied.since, varied.was_plain, varied.absent);
        let (selected, overlaps) = varied.look(key, of != Some(since), lived, selectors);
        Some(View { of: since, was_plain, absent, seq: selected.seq, chosen: selected.chosen.clone(), overlaps })
    }

    /// The variants for a selector that went of what is in a slot, not too long ago, and `may_be_held`.
    pub(crate) fn went(
        &self,
        at: SlotKey,
        key: Option<SelectorKey>,
        may_be_held: impl Fn(Seq) -> bool,
    ) -> Vec<Arc<Variant>> {
        let went = self[at].state.varied().into_iter().flat_map(|varied| varied.went.iter());
        let selector = self.selectors.of(key);
        went.filter(|went| may_be_held(went.seq) && self.is_remembered(went))
            .filter(|went| went.variant.is_for(selector))
            .map(|went| went.variant.clone())
            .collect()
    }

    /// The variants for a selector that are still in a slot, and that the chosen one may have taken the place of, not too
    /// long ago: it came after they did. `may_be_held` is told when that was, where it is known.
    pub(crate) fn superseded(
        &self,
        at: SlotKey,
        key: Option<SelectorKey>,
        chosen: &Variant,
        may_be_held: impl Fn(Option<Seq>) -> bool,
    ) -> Vec<Arc<Variant>> {
        let Some(varied) = self[at].state.varied() else { return Vec::new() };
        if !varied.came.of(chosen).is_some_and(|turn| self.is_remembered(turn)) {
            return Vec::new();
        }
        let others = varied.matching(key, &self.selectors).into_iter();
        let older = others.filter(|other| ***other != *chosen && !varied.came.is_after(other, chosen));
        older.filter(|other| may_be_held(self.came(at, other))).take(MOST).cloned().collect()
    }

    /// When a variant came to others, where that is known.
    pub(crate) fn came(&self, at: SlotKey, variant: &Variant) -> Option<Seq> {
        self[at].state.varied().and_then(|varied| varied.came.of(variant)).map(|turn| turn.seq)
    }

    /// Whether a collection has nothing for somebody.
    pub(crate) fn may_be_empty(&self, list: ListKey) -> bool {
        self.members(list).all(|at| self[at].state.varied().is_some())
    }

    fn is_remembered(&self, turn: &Turn) -> bool {
        let age = self.now.map_or(Duration::ZERO, |now| now.saturating_duration_since(turn.at));
        age < self.options.tombstone_age
    }

    /// One looks no more at what had variants since a moment.
    pub(crate) fn look_away(&mut self, at: SlotKey, key: Option<SelectorKey>, of: Seq) {
        if let Some(varied) = self[at].state.varied_mut().filter(|varied| varied.since == of) {
            varied.look_away(key);
        }
    }
}
