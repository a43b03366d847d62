//! Links come and go.

use std::collections::btree_map::Entry;

use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey, Target};
use crate::subscribers::all::Subscribers;
use crate::subscribers::link::{Chain, Link, To, Walk};
use crate::subscribers::subscriber::Subscriber;
use crate::subscribers::targets::Targets;
use crate::watchers::Watchers;

/// What a subscriber becomes interested in.
pub(crate) enum New {
    Slot(SlotKey),
    /// A list, with the walk that begins.
    List(Walk),
}

impl Subscribers {
    /// A subscriber is interested in a target from now on, and is to look at it; `sent` says that it holds what is there.
    pub(crate) fn link(&mut self, id: SubscriberId, interest: New, watchers: &mut Watchers, sent: bool) -> LinkKey {
        let (target, to) = match interest {
            New::Slot(slot) => (Target::Slot(slot), To::Slot(slot)),
            New::List(walk) => (Target::List(walk.list), To::Walk(self.walks.add(walk))),
        };
        let at = self.links.add(Link::new(to, id.key(), sent));
        let Self { all, links, walks, seed, .. } = self;
        let subscriber = &mut all[id.key()];
        subscriber.links.push(at, Targets { links, walks, seed });
        subscriber.collections += u32::from(matches!(to, To::Walk(_)));
        if let Some(last) = &mut subscriber.full_state {
            last.came(at);
        }
        watchers.count += 1;
        if let Some(selector) = subscriber.selector {
            *self.selecting.entry((target, selector)).or_default() += 1;
        }
        self.push(&mut watchers.clean, at, Chain::Work);
        at
    }

    /// Frees a link, which stands no longer among those of its subscriber: it was taken from them, or is the next of one that is
    /// closed. Its walk is returned.
    pub(crate) fn unlink(&mut self, at: LinkKey, watchers: &mut Watchers) -> Option<Walk> {
        self.unchain(&mut watchers.clean, at);
        watchers.count -= 1;
        let target = self.target(at);
        let link = self.links.remove(at);
        let walk = link.walk();
        let Self { all, links, walks, seed, .. } = self;
        let subscriber = &mut all[link.subscriber];
        subscriber.links.drop_left(Targets { links, walks, seed });
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
        let Self { all, links, walks, seed, .. } = self;
        let Subscriber { links: of, collections, .. } = &mut all[id.key()];
        of.close(most, *collections > 0, Targets { links, walks, seed })
    }

    /// A link stands no longer among those of its subscriber.
    pub(crate) fn take_link(&mut self, id: SubscriberId, at: LinkKey) {
        let Self { all, links, walks, seed, .. } = self;
        all[id.key()].links.leave(at, Targets { links, walks, seed });
    }
}
