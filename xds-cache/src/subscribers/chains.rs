//! The chains that links stand on.

use crate::arena::Arena;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SelectorKey, SubscriberKey, Target};
use crate::subscribers::all::Subscribers;
use crate::subscribers::link::{Chain, Link};
use crate::subscribers::subscriber::Subscriber;

/// Puts a link that stands on no chain in front of the chain `head`.
#[inline]
fn push(links: &mut Arena<LinkKey, Link>, head: &mut Option<LinkKey>, at: LinkKey, chain: Chain) {
    let next = head.replace(at);
    let last = match next {
        None => Some(at),
        Some(next) => links[next].prev.replace(at),
    };
    let link = &mut links[at];
    (link.next, link.prev) = (next, last);
    link.set_chain(chain);
}

/// Takes a link off its chain, which starts at `head`.
#[inline]
fn unlink(links: &mut Arena<LinkKey, Link>, head: &mut Option<LinkKey>, at: LinkKey) {
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

impl Subscribers {
    /// Puts a link that stands on no chain in front of one; `clean` is where the chain of its target begins.
    #[inline]
    pub(crate) fn push(&mut self, clean: &mut Option<LinkKey>, at: LinkKey, chain: Chain) {
        let Self { links, all, .. } = self;
        push(links, head(all, clean, &links[at], chain), at, chain);
    }

    /// Takes a link off its chain.
    #[inline]
    pub(crate) fn unchain(&mut self, clean: &mut Option<LinkKey>, at: LinkKey) {
        let Self { links, all, .. } = self;
        let chain = links[at].chain();
        unlink(links, head(all, clean, &links[at], chain), at);
    }

    /// Moves the up-to-date links of a target, whose chain begins at `clean`, to the chains of work of their subscribers.
    pub(crate) fn mark(&mut self, target: Target, clean: &mut Option<LinkKey>, woken: &mut Vec<SubscriberId>) {
        let mut next = clean.take();
        while let Some(at) = next {
            let Link { subscriber: key, next: after, .. } = self.links[at];
            next = after;
            let subscriber = &mut self.all[key];
            if !subscriber.has_changes() {
                woken.push(SubscriberId::of(key, subscriber.generation));
            }
            let head = match target {
                Target::Slot(_) => &mut subscriber.slots,
                Target::List(_) => &mut subscriber.lists,
            };
            push(&mut self.links, head, at, Chain::Work);
        }
    }

    /// The same, but only of subscribers who select by something that `is_affected`.
    pub(crate) fn mark_some(
        &mut self,
        target: Target,
        clean: &mut Option<LinkKey>,
        is_affected: impl Fn(Option<SelectorKey>) -> bool,
        woken: &mut Vec<SubscriberId>,
    ) {
        let mut next = *clean;
        while let Some(at) = next {
            let Link { subscriber: key, next: after, .. } = self.links[at];
            next = after;
            let subscriber = &mut self.all[key];
            if !is_affected(subscriber.selector) {
                continue;
            }
            if !subscriber.has_changes() {
                woken.push(SubscriberId::of(key, subscriber.generation));
            }
            unlink(&mut self.links, clean, at);
            let head = match target {
                Target::Slot(_) => &mut subscriber.slots,
                Target::List(_) => &mut subscriber.lists,
            };
            push(&mut self.links, head, at, Chain::Work);
        }
    }

    pub(crate) fn chain(&self, head: Option<LinkKey>) -> impl Iterator<Item = LinkKey> {
        std::iter::successors(head, |at| self.links[*at].next)
    }

    /// What has waited on a chain for longest: where the visitor takes a little at a time, what changes all the time does
    /// not hold back what changed once.
    pub(crate) fn oldest(&self, head: Option<LinkKey>) -> Option<LinkKey> {
        self.links[head?].prev
    }
}

/// Where a chain that a link may stand on begins.
#[inline]
fn head<'a>(
    all: &'a mut Arena<SubscriberKey, Subscriber>,
    clean: &'a mut Option<LinkKey>,
    link: &Link,
    chain: Chain,
) -> &'a mut Option<LinkKey> {
    match chain {
        Chain::Clean => clean,
        Chain::Work if link.is_to_list() => &mut all[link.subscriber].lists,
        Chain::Work => &mut all[link.subscriber].slots,
    }
}
