//! What selectors select of a slot.

use std::sync::Arc;
use std::time::Duration;

use crate::keys::{SelectorKey, SlotKey};
use crate::moments::Seq;
use crate::resource::Resource;
use crate::store::compiled::Compiled;
use crate::store::slot::State;
use crate::store::tables::Store;
use crate::store::varied::{Settled, Varied, Went};
use crate::variant::Variant;

/// What somebody sees who looks at a name that has variants.
pub(crate) struct View {
    /// Since when it has variants.
    pub(crate) of: Seq,
    pub(crate) was_plain: bool,
    /// When what is selected last changed.
    pub(crate) seq: Seq,
    pub(crate) chosen: Option<Arc<Variant>>,
    /// What is as good as that, where nobody has looked before.
    pub(crate) other: Option<Arc<Variant>>,
}

impl<V> Store<V> {
    /// What is in a slot for a selector, and which variant that is if there are any.
    #[inline]
    pub(crate) fn select(&self, at: SlotKey, key: Option<SelectorKey>) -> Option<(Option<&Variant>, &Resource<V>)> {
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
        let plain = match std::mem::replace(&mut slot.state, State::Absent) {
            State::Present(resource) => Some((resource, slot.seq)),
            _ => None,
        };
        slot.state = State::Varied(Box::new(Varied::new(since, plain)));
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
        let seq = slot.seq;
        let varied = slot.state.varied_mut()?;
        let (since, was_plain) = (varied.since, varied.was_plain);
        let (selected, other) = varied.look(key, of != Some(since), seq, selectors);
        Some(View { of: since, was_plain, seq: selected.seq, chosen: selected.chosen.clone(), other })
    }

    /// The variants for a selector that went of what is in a slot, not too long ago, and `may_be_held`.
    pub(crate) fn went(
        &self,
        at: SlotKey,
        key: Option<SelectorKey>,
        may_be_held: impl Fn(&Went) -> bool,
    ) -> Vec<Arc<Variant>> {
        let went = self[at].state.varied().map_or(&[][..], |varied| varied.went());
        let age = |went: &&Went| self.now.map_or(Duration::ZERO, |now| now.saturating_duration_since(went.at));
        let selector = self.selectors.of(key);
        went.iter()
            .filter(|went| may_be_held(went) && age(went) < self.options.tombstone_age)
            .filter(|went| Compiled::is_for(&went.variant, selector))
            .map(|went| went.variant.clone())
            .collect()
    }

    /// One looks no more at what had variants since a moment.
    pub(crate) fn look_away(&mut self, at: SlotKey, key: Option<SelectorKey>, of: Seq) {
        if let Some(varied) = self[at].state.varied_mut().filter(|varied| varied.since == of) {
            varied.look_away(key);
        }
    }
}
