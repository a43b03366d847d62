//! What a subscriber is sent of a name that has variants.

use std::ops::ControlFlow;
use std::sync::Arc;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::change_set::Pull;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey};
use crate::moments::Seq;
use crate::store::{Gone, List, View, Went};
use crate::subscribers::Subscriber;
use crate::variant::Variant;

impl<V> Cache<V> {
    /// Visits what a subscriber selects of a name, if that changed since it looked; `by_name`: its link to just this name,
    /// otherwise it is a member of a collection.
    #[inline(never)]
    pub(super) fn pull_varied(
        &mut self,
        id: SubscriberId,
        at: SlotKey,
        by_name: Option<LinkKey>,
        visitor: &mut dyn FnMut(Pull<'_, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let name = self.store[at].name.clone();
        let looked_before = self.subscribers[id].looked.get(&name).is_some();
        let Some((view, held, seen)) = self.look_at(id, at) else { return ControlFlow::Continue(()) };
        if seen {
            return ControlFlow::Continue(());
        }
        let was_sent = by_name.is_some_and(|link| self.subscribers[link].sent);
        let held = if looked_before { held } else { self.may_hold_variants(id, at, &name, was_sent, &view) };
        let View { chosen, seq, .. } = view;
        match chosen {
            Some(chosen) => {
                if let Some(link) = by_name {
                    self.subscribers[link].sent = true;
                }
                self.put_variant(id, at, &chosen, held, visitor)
            }
            None => {
                self.lacks_variant(id, &name, by_name, held, seq);
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
        let variant = Some(&**chosen).filter(|variant| !variant.is_plain());
        visitor(Pull::Put { name: &slot.name, variant, replaces: &held, resource })
    }

    /// No variant is for the subscriber: to it, that is as if there were no such name.
    fn lacks_variant(
        &mut self,
        id: SubscriberId,
        name: &ResourceName,
        by_name: Option<LinkKey>,
        held: Vec<Arc<Variant>>,
        seq: Seq,
    ) {
        let holds = !held.is_empty();
        let look = self.subscribers[id].looked.entry(name);
        (look.held, look.seq) = (held, seq);
        if let Some(link) = by_name {
            let sent = std::mem::take(&mut self.subscribers[link].sent);
            self.subscribers[id].owed.absent(name.clone(), sent || holds);
        } else if holds {
            self.subscribers[id].owed.went(name);
        }
    }

    /// What a subscriber that did not look at the variants of a name may hold of it: what that was without any, and where it
    /// was away, or says that it holds something, those that went meanwhile and were for it.
    fn may_hold_variants(
        &self,
        id: SubscriberId,
        at: SlotKey,
        name: &ResourceName,
        was_sent: bool,
        view: &View,
    ) -> Vec<Arc<Variant>> {
        let Subscriber { type_key, selector, ref owed, .. } = self.subscribers[id];
        let brought = owed.brought().contains(name);
        let away = |went: &Went| {
            self.covering(id, type_key, name).any(|link| {
                let to_glob = self.subscribers[link].to_list().filter(|(list, _)| self.store[*list].glob.is_some());
                to_glob.is_some_and(|(_, walk)| went.seq <= self.subscribers[walk].opened)
            })
        };
        let mut held = self.store.went(at, selector, |went| brought || away(went));
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
        if owed.is_leaving(name) || owed.brought().contains(name) {
            return true;
        }
        self.covering(id, type_key, name).any(|link| {
            let Some((list, walk)) = self.subscribers[link].to_list() else { return false };
            let walk = &self.subscribers[walk];
            let List { gone, owed, .. } = &self.store[list];
            let untold = |gone: &&Gone| gone.seq > walk.gone_cursor;
            let mut untold = gone.iter().rev().take_while(untold).chain(owed.iter().rev().take_while(untold));
            view.was_plain && walk.opened < view.of || untold.any(|gone| gone.plain && gone.name == *name)
        })
    }
}
