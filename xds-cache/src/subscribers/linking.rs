//! Links come and go.

use std::collections::btree_map::Entry;

use crate::id::SubscriberId;
use crate::keys::{LinkKey, Target};
use crate::subscribers::all::Subscribers;
use crate::subscribers::link::{Chain, Link, Walk};
use crate::subscribers::subscriber::Subscriber;
use crate::watchers::Watchers;

impl Subscribers {
    /// A subscriber is interested in a target from now on, and is to look at it; `walk` is there if it is a list, and
    /// `sent` says that the subscriber holds what is there.
    pub(crate) fn link(
        &mut self,
        id: SubscriberId,
        target: Target,
        watchers: &mut Watchers,
        walk: Option<Walk>,
        sent: bool,
    ) -> LinkKey {
        let walk = walk.map(|walk| self.walks.add(walk));
        let subscriber = &mut self.all[id.key()];
        let link = Link::new(target, id.key(), subscriber.links.len() as u32, walk);
        let at = self.links.add(Link { sent, ..link });
        subscriber.links.push(at);
        subscriber.collections += u32::from(walk.is_some());
        if let Some(last) = &mut subscriber.full_state {
            last.came(at);
        }
        watchers.count += 1;
        if let Some(selector) = subscriber.selector {
            *self.selecting.entry((target, selector)).or_default() += 1;
        }
        self.push(&mut watchers.clean, at, Chain::Work);
        self.held.insert(&self.links, at);
        at
    }

    /// Frees a link, which stands no longer among those of its subscriber. Its walk is returned.
    pub(crate) fn unlink(&mut self, at: LinkKey, watchers: &mut Watchers) -> Option<Walk> {
        self.unchain(&mut watchers.clean, at);
        watchers.count -= 1;
        self.held.remove(&self.links, at);
        let Link { subscriber, walk, target, .. } = self.links.remove(at);
        let subscriber = &mut self.all[subscriber];
        subscriber.collections -= u32::from(walk.is_some());
        if let Some(selector) = subscriber.selector
            && let Entry::Occupied(mut others) = self.selecting.entry((target, selector))
        {
            *others.get_mut() -= 1;
            if *others.get() == 0 {
                others.remove();
            }
        }
        subscriber.parting.remove(&at);
        subscriber.aliased.remove(at);
        subscriber.owed.take_sweep(at);
        walk.map(|walk| self.walks.remove(walk))
    }

    /// Takes some of its links from a subscriber that is closed. Whether these are the last ones.
    pub(crate) fn close_part(&mut self, id: SubscriberId, most: usize) -> (Vec<LinkKey>, bool) {
        let Self { all, links, .. } = self;
        let Subscriber { links: held, closing, .. } = &mut all[id.key()];
        if !std::mem::replace(closing, true) {
            // Collections first: a name is left with all that it is in, or that would seem to have been left before it.
            held.sort_by_key(|at| matches!(links[*at].target, Target::Slot(_)));
        }
        (held.drain(..most.min(held.len())).collect(), held.is_empty())
    }

    /// A link stands no longer among those of its subscriber.
    pub(crate) fn take_link(&mut self, id: SubscriberId, position: usize) {
        let Subscriber { links: held, first_unanswered, .. } = &mut self.all[id.key()];
        // The last of the answered takes its place, so that the unanswered one behind them need not be looked for anew.
        let hole = if position < *first_unanswered { *first_unanswered - 1 } else { position };
        *first_unanswered = hole.min(*first_unanswered);
        held.swap(position, hole);
        held.swap_remove(hole);
        for at in [position, hole] {
            if let Some(moved) = held.get(at) {
                self.links[*moved].position = at as u32;
            }
        }
    }
}
