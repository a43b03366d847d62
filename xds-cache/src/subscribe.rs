//! What a subscriber becomes interested in, anew or again.

mod coverage;
mod open;
mod selecting;
mod unsubscribe;
mod wanted;

use xdstp_uri::{CanonicalText, ResourceName};

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::interest::Interest;
use crate::keys::{LinkKey, ListKey, Target};
use crate::subscribers::{Chain, Link, New, Walk};

/// What a [`subscribe`](Cache::subscribe) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscribed {
    /// Nobody was interested in this before: a relay asks upstream now.
    First,
    /// Somebody else was interested already.
    Joined,
    /// Others were interested already, but none [selects](Cache::selections) as this subscriber does: a relay asks upstream
    /// for what it selects, too.
    Selecting,
    /// The subscriber was interested already: it will be sent everything again (rule 48). Or it is closed, and nothing
    /// is to be done.
    Again,
}

impl<V> Cache<V> {
    /// Adds an interest; a repeated one is sent again in full (rule 48).
    pub fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> Subscribed {
        if !self.is_open(id) {
            return Subscribed::Again;
        }
        let target = self.store.target(self.subscribers[id].type_key, interest);
        self.subscribe_to(id, target)
    }

    /// The same, to the name that a text is the canonical form of, if that is known: the text need not be parsed then.
    /// The name comes with what was done.
    ///
    /// ```
    /// use xdstp_cache::{Cache, Interest, Options, Subscribed};
    /// use xdstp_uri::CanonicalText;
    ///
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let (one, other) = (cache.open(&clusters), cache.open(&clusters));
    /// let cart = CanonicalText::new("cart");
    /// assert!(cache.subscribe_known(one, &cart).is_none());
    /// cache.subscribe(one, &Interest::Name("cart".parse().unwrap()));
    /// let (subscribed, name) = cache.subscribe_known(other, &cart).unwrap();
    /// assert_eq!((subscribed, name.as_str()), (Subscribed::Joined, "cart"));
    /// ```
    pub fn subscribe_known(
        &mut self,
        id: SubscriberId,
        text: &CanonicalText<'_>,
    ) -> Option<(Subscribed, &ResourceName)> {
        let slot = self.known(id, text)?;
        let subscribed = self.subscribe_to(id, Target::Slot(slot));
        Some((subscribed, &self.store[slot].name))
    }

    fn subscribe_to(&mut self, id: SubscriberId, target: Target) -> Subscribed {
        if let Some(at) = self.subscribers.link_of(id, target) {
            self.rewind(at);
            return Subscribed::Again;
        }
        let holds = match target {
            // Only the first request of a type may both subscribe to a name and hold it (rule 49).
            Target::Slot(slot) => self.ask_by_name(id, slot),
            Target::List(list) => {
                self.wait_for(id, list);
                self.send_resumed_again(id, list);
                false
            }
        };
        let new = match target {
            Target::Slot(slot) => New::Slot(slot),
            Target::List(list) => New::List(self.new_walk(id, list)),
        };
        let watchers = self.store.watchers_mut(target);
        let at = self.subscribers.link(id, new, watchers, holds);
        let watchers = watchers.count;
        self.look_anew(at);
        match target {
            // Mostly nothing has another name.
            Target::Slot(slot) if self.has_aliases(at) => {
                let sends = self.store.resolve(slot);
                // It may have what that stands for, and know so.
                self.follow_alias(at, slot, sends);
                self.restart_other_names(at);
            }
            Target::Slot(_) => {}
            Target::List(list) => {
                self.restart_within(id, list);
                self.repeat_errors_within(at, list);
            }
        }
        match watchers {
            1 => Subscribed::First,
            _ if self.selects_alone(id, target) => Subscribed::Selecting,
            _ => Subscribed::Joined,
        }
    }

    /// What a new link to a list begins with.
    fn new_walk(&mut self, id: SubscriberId, at: ListKey) -> Walk {
        let seq = self.store.seq;
        let list = &mut self.store[at];
        list.watched = true;
        // Envoy lists no glob members when it reconnects (rule 100); what it holds of a wildcard it does list.
        let since = if list.glob.is_some() { seq } else { 0 };
        self.store.pass(at, None, Some(seq));
        Walk::new(at, seq, since, self.subscribers[id].resumes)
    }

    /// What a subscriber is interested in.
    pub fn interests(&self, id: SubscriberId) -> impl Iterator<Item = Interest> {
        self.interests_from(id, 0)
    }

    /// The same behind the first `skipped` of them, which costs nothing: for who must not keep others from the cache for as long
    /// as all of it takes, and takes a part at a time. What it leaves between two parts may have another be in neither.
    ///
    /// ```
    /// use xdstp_cache::{Cache, Interest, Options};
    ///
    /// let mut cache = Cache::<()>::new(Options::default());
    /// let subscriber = cache.open(&"type.googleapis.com/envoy.config.cluster.v3.Cluster".into());
    /// for name in ["a", "b", "c"] {
    ///     cache.subscribe(subscriber, &Interest::Name(name.parse().unwrap()));
    /// }
    /// let part: Vec<_> = cache.interests_from(subscriber, 1).take(1).map(|interest| interest.to_string()).collect();
    /// assert_eq!(part, ["b"]);
    /// assert_eq!(cache.interests_from(subscriber, 3).count(), 0);
    /// ```
    pub fn interests_from(&self, id: SubscriberId, skipped: usize) -> impl Iterator<Item = Interest> {
        let subscriber = self.subscribers.find(id);
        subscriber
            .into_iter()
            .flat_map(move |subscriber| subscriber.links.as_slice().get(skipped..).unwrap_or_default())
            .map(|at| self.store.interest_of(self.subscribers.target(*at)))
    }

    /// Whether a subscriber asked for this name or collection itself.
    pub fn is_subscribed(&self, id: SubscriberId, interest: &Interest) -> bool {
        self.is_open(id)
            && self
                .store
                .existing_target(self.subscribers[id].type_key, interest)
                .is_some_and(|target| self.subscribers.holds(id, target))
    }

    /// Sends a name again to a subscriber that asked for it, although it did not change (rule 124).
    /// False when the subscriber did not ask for the name itself.
    pub fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        let interest = Interest::Name(name.clone());
        let subscribed = self.is_subscribed(id, &interest);
        if subscribed {
            self.subscribe(id, &interest);
        }
        subscribed
    }

    /// Everything of the link's target is to be sent again.
    fn rewind(&mut self, at: LinkKey) {
        let Link { subscriber, .. } = self.subscribers[at];
        self.restart(at);
        match self.subscribers.target(at) {
            Target::Slot(slot) => {
                if self.ask_by_name(self.subscribers.id_of(subscriber), slot) {
                    self.subscribers[at].set_sent(true);
                }
                self.restart_other_names(at);
            }
            Target::List(list) => {
                let resumes = self.subscribers[subscriber].resumes;
                let walk = self.subscribers[at].walk().map(|walk| &mut self.subscribers[walk]);
                let lapsed = walk.is_some_and(|walk| walk.repeat(resumes) == resumes);
                self.subscribers[subscriber].owed.take_sweep(at);
                self.restart_within(self.subscribers.id_of(subscriber), list);
                if !lapsed {
                    self.send_resumed_again(self.subscribers.id_of(subscriber), list);
                }
                self.repeat_errors_within(at, list);
            }
        }
    }

    pub(crate) fn restart(&mut self, at: LinkKey) {
        let link = &mut self.subscribers[at];
        let (cursor, walk) = (link.cursor(), link.walk());
        link.set_cursor(0);
        self.look_anew(at);
        if let Some(walk) = walk {
            let walk = &mut self.subscribers[walk];
            (walk.at, walk.sent) = (None, walk.sent.max(cursor));
        }
        // Who waits already keeps the place in the line.
        if self.subscribers[at].chain() != Chain::Work {
            let target = self.subscribers.target(at);
            self.rechain(at, target, Chain::Work);
        }
    }

    /// What narrower links of the subscriber have sent counts as sent when the list is walked: who asks for the
    /// list is sent it again (rule 48).
    fn restart_within(&mut self, id: SubscriberId, list: ListKey) {
        for at in self.links_within(id, list) {
            // Of variants for others there is nothing to send.
            let target = self.subscribers.target(at);
            if self.subscribers[at].cursor() > 0
                && !matches!(target, Target::Slot(at) if self.lacks_all_variants(id, at))
            {
                self.restart(at);
            }
        }
    }

    /// All that asks for a name, by whatever it is called, is to be sent it again.
    pub(crate) fn restart_links_to(&mut self, id: SubscriberId, name: &ResourceName) {
        let type_key = self.subscribers[id].type_key;
        let Some(slot) = self.store.slot_of(type_key, name) else { return };
        let links: Vec<_> = self.links_to(id, slot).collect();
        links.into_iter().for_each(|link| self.restart(link));
    }

    /// Who asks for a resource by one of its names is sent it, though another one brought it (rule 48).
    pub(crate) fn restart_other_names(&mut self, link: LinkKey) {
        let Link { subscriber, .. } = self.subscribers[link];
        let Target::Slot(at) = self.subscribers.target(link) else { return };
        if self.store[self.store[at].type_key].aliases.is_empty() {
            return;
        }
        let others: Vec<_> = self.links_to(self.subscribers.id_of(subscriber), self.store.resolve(at)).collect();
        for other in others.into_iter().filter(|other| *other != link) {
            self.restart(other);
        }
    }
}
