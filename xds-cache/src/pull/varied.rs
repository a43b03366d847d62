//! What a subscriber is sent of a name that has variants.

use std::ops::ControlFlow;
use std::sync::Arc;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::Pull;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey};
use crate::moments::Seq;
use crate::store::{Gone, List, View};
use crate::subscribers::{Debt, Subscriber, Walk};
use crate::variant::Variant;

impl<V> Cache<V> {
    /// Visits what a subscriber selects of a name, if that changed since it looked; `by_name`: its link to just this name,
    /// and where that was, otherwise it is a member of a collection.
    #[inline(never)]
    pub(super) fn pull_varied(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        by_name: Option<(LinkKey, Seq)>,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let name = self.store[at].name.clone();
        let looked_before = self.subscribers[id].looked.get(&name).is_some();
        let knew_absent = self.knows_absent(id, &name);
        let Some((view, held, seen)) = self.look_at(id, at) else { return ControlFlow::Continue(()) };
        if seen {
            return ControlFlow::Continue(());
        }
        let link = by_name.map(|(link, _)| link);
        let was_sent = link.is_some_and(|link| self.subscribers[link].sent());
        // It was told that there is none at all: that there is none for it is the same to it.
        let Subscriber { owed, .. } = &self.subscribers[id];
        let is_untold = was_sent || owed.owes(Debt::Removal, &name) || owed.owes(Debt::Comparison, &name);
        let passed = |absent| by_name.is_some_and(|(_, passed)| passed >= absent);
        let was_told = !looked_before && !is_untold && view.absent.is_some_and(passed);
        let held = match (looked_before, was_told) {
            (true, _) => held,
            (false, true) => Vec::new(),
            (false, false) => self.may_hold_variants(id, at, &name, was_sent, &view),
        };
        // Nobody remembers which of its variants it had when all of it went.
        let may_hold = !held.is_empty() || !looked_before && self.is_yet_to_hear_of(id, &name, |_| true);
        let View { chosen, seq, .. } = view;
        match chosen {
            Some(chosen) => {
                if let Some(link) = link {
                    self.subscribers[link].set_sent(true);
                }
                self.put_variant(id, at, &chosen, held, visitor)
            }
            None if knew_absent || was_told => ControlFlow::Continue(()),
            None => {
                self.lacks_variant(id, &name, link, (held, may_hold), seq);
                ControlFlow::Continue(())
            }
        }
    }

    /// Visits what is in a slot, where the subscriber may hold a variant of it.
    #[inline(never)]
    pub(super) fn put_over(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.store[at].state.varied().is_some() {
            return self.pull_varied(id, at, None, visitor);
        }
        let name = self.store[at].name.clone();
        let replaces = self.replace_held(id, &name);
        let Some(resource) = self.store[at].state.resource() else { return ControlFlow::Continue(()) };
        if self.owes_error(id, &name) {
            self.subscribers[id].owed.fail(name.clone());
        }
        self.visits += 1;
        visitor(Pull::Put { name: &name, variant: None, replaces: &replaces, resource })
    }

    fn put_variant(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        chosen: &Arc<Variant>,
        mut held: Vec<Arc<Variant>>,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let name = &self.store[at].name;
        if self.owes_error(id, name) {
            self.subscribers[id].owed.fail(name.clone());
        }
        let subscriber = &mut self.subscribers[id];
        // A version that was brought along may be that of another variant: it says nothing of this one.
        let compared = subscriber.owed.minds_additions() && subscriber.owed.came(name).is_some();
        subscriber.looked.entry(name).held = vec![chosen.clone()];
        if compared {
            self.subscribers.has_compared(id);
        }
        let slot = &self.store[at];
        let Some(resource) = slot.state.varied().and_then(|varied| varied.variant(chosen)) else {
            return ControlFlow::Continue(());
        };
        self.visits += 1;
        held.retain(|held| held != chosen);
        let variant = Some(chosen).filter(|variant| !variant.is_plain());
        visitor(Pull::Put { name: &slot.name, variant, replaces: &held, resource })
    }

    /// No variant is for the subscriber: to it, that is as if there were no such name.
    fn lacks_variant(
        &mut self,
        id: SubscriberId,
        name: &ResourceName,
        by_name: Option<LinkKey>,
        (held, may_hold): (Vec<Arc<Variant>>, bool),
        seq: Seq,
    ) {
        let look = self.subscribers[id].looked.entry(name);
        (look.held, look.seq) = (held, seq);
        if let Some(link) = by_name {
            let sent = self.subscribers[link].take_sent();
            self.subscribers[id].owed.absent(name.clone(), sent || may_hold);
        } else if may_hold {
            self.subscribers[id].owed.went(name);
        }
    }

    /// What a subscriber that did not look at the variants of a name may hold of it: what that was without any, and where it
    /// was away, or says that it holds something, those that were for it and went meanwhile, that another took the place of, or
    /// that is chosen.
    pub(crate) fn may_hold_variants(
        &self,
        id: SubscriberId,
        at: SlotKey,
        name: &ResourceName,
        was_sent: bool,
        view: &View,
    ) -> Vec<Arc<Variant>> {
        let Subscriber { type_key, selector, ref owed, .. } = self.subscribers[id];
        let brought = owed.owes(Debt::Comparison, name);
        let lists = self.covering(id, type_key, name).filter_map(|link| {
            let (list, walk) = self.subscribers.to_list(link)?;
            let Walk { opened, complete, .. } = self.subscribers[walk];
            // Once a glob was complete, it was told of all that had no variants then, and looked at the rest.
            let was_away = self.store[list].glob.is_some() && !complete;
            (brought || was_away).then_some(opened)
        });
        // It was away until then: what came later it does not hold.
        let came = lists.max();
        let was_there = |since: Seq| came.map_or(brought, |came| since <= came);
        let mut held = self.store.went(at, selector, |went| was_there(went.min(view.of)));
        if let Some(chosen) = &view.chosen {
            let superseded = self.store.superseded(at, selector, chosen, |came| was_there(came.unwrap_or(view.of)));
            let was_chosen = was_there(self.store.came(at, chosen).unwrap_or(view.of));
            for variant in superseded.into_iter().chain(Some(chosen.clone()).filter(|_| was_chosen)) {
                // It may have gone before, and be back.
                if !held.contains(&variant) {
                    held.push(variant);
                }
            }
        }
        if (was_sent || self.may_hold_plain(id, name, view)) && !held.iter().any(|held| held.is_plain()) {
            held.push(Arc::new(Variant::plain().clone()));
        }
        held
    }

    /// Whether a subscriber that did not look at the variants of a name may hold what it was without any, by a collection.
    fn may_hold_plain(&self, id: SubscriberId, name: &ResourceName, view: &View) -> bool {
        let type_key = self.subscribers[id].type_key;
        // It said that it holds something of the name, or is about to be told that this is gone.
        let owed = &self.subscribers[id].owed;
        if owed.is_leaving(name) || owed.owes(Debt::Comparison, name) {
            return true;
        }
        let was_before = |link| self.subscribers.walk(link).is_some_and(|walk| walk.opened < view.of);
        view.was_plain && self.covering(id, type_key, name).any(was_before)
            || self.is_yet_to_hear_of(id, name, |gone| gone.plain)
    }

    /// Whether a name went from a collection of a subscriber's, that has not told so.
    fn is_yet_to_hear_of(&self, id: SubscriberId, name: &ResourceName, counts: impl Fn(&Gone) -> bool) -> bool {
        self.covering(id, self.subscribers[id].type_key, name).any(|link| {
            let Some((list, walk)) = self.subscribers.to_list(link) else { return false };
            let Walk { gone_cursor, .. } = self.subscribers[walk];
            let List { gone, owed, .. } = &self.store[list];
            let untold = |gone: &&Gone| gone.seq > gone_cursor;
            let mut untold = gone.iter().rev().take_while(untold).chain(owed.iter().rev().take_while(untold));
            untold.any(|gone| gone.name == *name && counts(gone))
        })
    }
}
