//! A name that has variants, and what of it each selector selects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::keys::SelectorKey;
use crate::moments::Seq;
use crate::outcome::Outcome;
use crate::resource::Resource;
use crate::store::compiled::{Choice, Compiled};
use crate::store::selectors::Selectors;
use crate::store::turns::{Turn, Turns};
use crate::variant::Variant;

/// The variants of a name.
///
/// Changes are collected until they are settled: then each selection that somebody has looked at is made anew, once,
/// however many of the variants changed.
pub(crate) struct Varied<V> {
    bodies: BTreeMap<Arc<Variant>, Body<V>>,
    /// Which variant has a content, by the digest of that: one of those that have it, and maybe not any more.
    by_digest: HashMap<u128, Arc<Variant>>,
    /// What was removed since the last time it was settled.
    removed: Vec<(Arc<Variant>, Body<V>)>,
    /// What was added since then.
    added: Vec<Arc<Variant>>,
    /// What was removed before that, and what was added to others, for those who were away.
    pub(crate) went: Turns,
    pub(crate) came: Turns,
    /// It had no others yet: what comes now takes the place of nothing.
    is_new: bool,
    compiled: OnceLock<Box<Compiled>>,
    /// By selector, the selections that somebody has looked at, and still may want.
    selections: HashMap<Option<SelectorKey>, Selected>,
    /// Since when the name has variants, so that it is told from what had them before.
    pub(crate) since: Seq,
    /// Whether the name was there, without variants, when it got them.
    pub(crate) was_plain: bool,
    /// When the name was known to be absent, if it was when it got them.
    pub(crate) absent: Option<Seq>,
    /// It waits to be settled.
    pub(crate) unsettled: bool,
    /// There are others than when it was settled.
    set_changed: bool,
    /// All of it is to be sent again.
    pub(crate) touched: bool,
    /// It failed before: who has none of it was told so, and is told that this is over.
    pub(crate) recovered: bool,
}

struct Body<V> {
    resource: Resource<V>,
    /// When it last changed.
    seq: Seq,
}

/// What one selector selects: one state for all who have it.
pub(crate) struct Selected {
    pub(crate) chosen: Option<Arc<Variant>>,
    /// When it last changed.
    pub(crate) seq: Seq,
    /// Since when there is one.
    born: Seq,
    /// How many subscribers have looked at it.
    lookers: u32,
    /// What it was last said to be as good as.
    other: Option<Arc<Variant>>,
}

/// What settling did.
pub(crate) struct Settled<V> {
    /// How many selections were made anew.
    pub(crate) selected: u64,
    /// For how many two variants are as good that were not before.
    pub(crate) overlaps: u64,
    /// What somebody had, and has nothing in its place.
    pub(crate) lost: Vec<Lost<V>>,
}

/// A variant that went, and who had it.
pub(crate) struct Lost<V> {
    pub(crate) variant: Arc<Variant>,
    pub(crate) by: Vec<(Option<SelectorKey>, Seq)>,
    pub(crate) resource: Option<Resource<V>>,
}

impl<V> Varied<V> {
    /// Of a name that may have been there without variants, or known to be absent, as it was since a moment.
    pub(crate) fn new(since: Seq, plain: Option<(Resource<V>, Seq)>, absent: Option<Seq>) -> Self {
        let was_plain = plain.is_some();
        let plain = plain.map(|(resource, seq)| (Arc::new(Variant::plain().clone()), Body { resource, seq }));
        Self {
            by_digest: plain.iter().map(|(variant, body)| (body.resource.digest(), variant.clone())).collect(),
            bodies: plain.into_iter().collect(),
            removed: Vec::new(),
            added: Vec::new(),
            went: Turns::default(),
            came: Turns::default(),
            is_new: !was_plain,
            compiled: OnceLock::new(),
            selections: HashMap::new(),
            since,
            was_plain,
            absent,
            unsettled: false,
            set_changed: true,
            touched: false,
            recovered: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bodies.len()
    }

    /// All variants, in the order of what they are for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<Variant>, &Resource<V>)> {
        self.bodies.iter().map(|(variant, body)| (variant, &body.resource))
    }

    pub(crate) fn variant(&self, variant: &Variant) -> Option<&Resource<V>> {
        self.bodies.get(variant).map(|body| &body.resource)
    }

    pub(crate) fn variant_mut(&mut self, variant: &Variant) -> Option<&mut Resource<V>> {
        self.bodies.get_mut(variant).map(|body| &mut body.resource)
    }

    /// What a selector selects now, whether anybody has looked or not.
    pub(crate) fn select(
        &self,
        key: Option<SelectorKey>,
        selectors: &Selectors,
    ) -> Option<(&Arc<Variant>, &Resource<V>)> {
        let chosen = match self.selections.get(&key).filter(|_| !self.unsettled) {
            Some(selected) => selected.chosen.clone(),
            None => self.choose(key, selectors).chosen,
        };
        let (variant, body) = self.bodies.get_key_value(&chosen?)?;
        Some((variant, &body.resource))
    }

    fn choose(&self, key: Option<SelectorKey>, selectors: &Selectors) -> Choice {
        self.compiled().choose(selectors.of(key))
    }

    /// The variant is this one from now on.
    pub(crate) fn put(&mut self, variant: &Variant, resource: Resource<V>, seq: Seq) -> Outcome {
        let variant = if variant.is_plain() { Variant::plain() } else { variant };
        // It went, and comes back, in one change.
        if let Some(at) = self.removed.iter().position(|(removed, _)| **removed == *variant) {
            let (variant, body) = self.removed.swap_remove(at);
            self.bodies.insert(variant, body);
        }
        let digest = resource.digest();
        let Some((variant, _)) = self.bodies.get_key_value(variant) else {
            self.change_set();
            let variant = Arc::new(variant.clone());
            self.added.push(variant.clone());
            self.by_digest.insert(digest, variant.clone());
            self.bodies.insert(variant, Body { resource, seq });
            return Outcome::Added;
        };
        let variant = variant.clone();
        let Some(body) = self.bodies.get_mut(&variant) else { return Outcome::Unchanged };
        let outcome = Outcome::of(&body.resource, &resource);
        if outcome != Outcome::Unchanged {
            let before = std::mem::replace(body, Body { resource, seq }).resource.digest();
            self.forget_digest(before, &variant);
            self.by_digest.insert(digest, variant);
        }
        outcome
    }

    /// A resource of this content, if one is known.
    pub(crate) fn with_content(&self, digest: u128) -> Option<&Resource<V>> {
        let resource = &self.bodies.get(self.by_digest.get(&digest)?)?.resource;
        (resource.digest() == digest).then_some(resource)
    }

    fn forget_digest(&mut self, digest: u128, variant: &Variant) {
        if self.by_digest.get(&digest).is_some_and(|of| **of == *variant) {
            self.by_digest.remove(&digest);
        }
    }

    /// The variant is no more. Whether it was.
    pub(crate) fn remove(&mut self, variant: &Variant) -> bool {
        let variant = if variant.is_plain() { Variant::plain() } else { variant };
        let removed = self.bodies.remove_entry(variant);
        let was_there = removed.is_some();
        if let Some((variant, body)) = &removed {
            self.change_set();
            self.forget_digest(body.resource.digest(), variant);
        }
        self.removed.extend(removed);
        was_there
    }

    /// All variants that are for who has a selector.
    pub(crate) fn matching(&self, key: Option<SelectorKey>, selectors: &Selectors) -> Vec<&Arc<Variant>> {
        self.compiled().matching(selectors.of(key))
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Box::new(Compiled::new(self.bodies.keys())))
    }

    fn change_set(&mut self) {
        self.set_changed = true;
        self.compiled = OnceLock::new();
    }

    /// Makes the selections anew that somebody has looked at; those that change do so now.
    pub(crate) fn settle(&mut self, now: Seq, at: Option<Instant>, selectors: &Selectors) -> Settled<V> {
        self.note_turns(now, at);
        let mut selections = std::mem::take(&mut self.selections);
        let mut settled = Settled { selected: 0, overlaps: 0, lost: Vec::new() };
        for (key, selected) in &mut selections {
            settled.selected += 1;
            let before = selected.chosen.clone();
            if self.set_changed {
                self.select_anew(*key, selected, selectors, &mut settled);
            }
            let body = selected.chosen.as_ref().and_then(|chosen| self.bodies.get(chosen));
            let news = body.map_or(self.recovered, |body| self.touched || body.seq > selected.seq);
            if news || before != selected.chosen {
                selected.seq = now;
            }
            match (before, &selected.chosen) {
                (Some(before), None) => self.lose(before, (*key, selected.born), &mut settled),
                (None, Some(_)) => selected.born = now,
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        self.selections = selections;
        self.removed = Vec::new();
        (self.unsettled, self.set_changed, self.touched, self.recovered) = (false, false, false, false);
        settled
    }

    /// Remembers for those who are away what came and went.
    fn note_turns(&mut self, seq: Seq, at: Option<Instant>) {
        let added = std::mem::take(&mut self.added);
        let is_new = std::mem::replace(&mut self.is_new, false);
        let Some(at) = at else { return };
        for (variant, _) in &self.removed {
            self.came.forget(variant);
            self.went.note(Turn { variant: variant.clone(), seq, at });
        }
        for variant in added.into_iter().filter(|added| !is_new && self.bodies.contains_key(added)) {
            self.came.note(Turn { variant, seq, at });
        }
    }

    fn select_anew(
        &self,
        key: Option<SelectorKey>,
        selected: &mut Selected,
        selectors: &Selectors,
        settled: &mut Settled<V>,
    ) {
        let Choice { chosen, other } = self.choose(key, selectors);
        if let (Some(chosen), Some(other)) = (&chosen, &other)
            && (selected.chosen.as_ref(), selected.other.as_ref()) != (Some(chosen), Some(other))
        {
            settled.overlaps += 1;
        }
        (selected.chosen, selected.other) = (chosen, other);
    }

    fn lose(&mut self, variant: Arc<Variant>, by: (Option<SelectorKey>, Seq), settled: &mut Settled<V>) {
        if let Some(lost) = settled.lost.iter_mut().find(|lost| lost.variant == variant) {
            lost.by.push(by);
            return;
        }
        let removed = self.removed.iter().position(|(removed, _)| *removed == variant);
        let resource = removed.map(|at| self.removed.swap_remove(at).1.resource);
        settled.lost.push(Lost { variant, by: vec![by], resource });
    }

    /// All of it goes: what somebody had of it.
    pub(crate) fn into_lost(mut self) -> Vec<Lost<V>> {
        let mut settled = Settled { selected: 0, overlaps: 0, lost: Vec::new() };
        self.removed.extend(std::mem::take(&mut self.bodies));
        for (key, selected) in std::mem::take(&mut self.selections) {
            if let Some(chosen) = selected.chosen {
                self.lose(chosen, (key, selected.born), &mut settled);
            }
        }
        settled.lost
    }

    /// One more looks at what a selector selects, if it has not before. Whether another one is as good is returned, where it is
    /// the first to look.
    pub(crate) fn look(
        &mut self,
        key: Option<SelectorKey>,
        is_new: bool,
        (born, seq): (Seq, Seq),
        selectors: &Selectors,
    ) -> (&Selected, bool) {
        let mut overlaps = false;
        if !self.selections.contains_key(&key) {
            let Choice { chosen, other } = self.choose(key, selectors);
            overlaps = other.is_some();
            self.selections.insert(key, Selected { chosen, seq, born, lookers: 0, other });
        }
        let none = Selected { chosen: None, seq, born, lookers: 0, other: None };
        let selected = self.selections.entry(key).or_insert(none);
        selected.lookers += u32::from(is_new);
        (selected, overlaps)
    }

    /// One who has looked at what a selector selects does not want it any more.
    pub(crate) fn look_away(&mut self, key: Option<SelectorKey>) {
        if let Some(selected) = self.selections.get_mut(&key) {
            selected.lookers -= 1;
            if selected.lookers == 0 {
                self.selections.remove(&key);
            }
        }
    }

    /// Whether what a selector selects changed at a moment, or may have: who has not looked at it may see any of it.
    pub(crate) fn changed_for(&self, key: Option<SelectorKey>, at: Seq) -> bool {
        self.selections.get(&key).is_none_or(|selected| selected.seq == at)
    }

    /// The selections that are kept, and for how many.
    #[cfg(test)]
    pub(crate) fn lookers(&self) -> impl Iterator<Item = (Option<SelectorKey>, u32)> {
        self.selections.iter().map(|(key, selected)| (*key, selected.lookers))
    }
}
