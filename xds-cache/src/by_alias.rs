//! Resources that are asked for by other names than theirs (rule 105).

use std::collections::BTreeSet;
use std::time::Instant;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::id::SubscriberId;
use crate::keys::{LinkKey, SlotKey, Target, TypeKey};
use crate::links::{Link, Slot};
use crate::outcome::Outcome;
use crate::resource::{Resource, TypeUrl};

impl<V> Cache<V> {
    /// An [`upsert_raw`](Self::upsert_raw) that says by what other names the resource may be asked for: who asks for one of
    /// them is sent the resource, under its own name, and once, whatever covers it. These replace the aliases that it
    /// had, which a plain upsert leaves alone; they go when it is removed; and a change of them is told as a change of
    /// the resource.
    ///
    /// An alias belongs to one resource, the last to claim it. The name of a resource that is there, a glob and `*` are
    /// none.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Instant;
    /// use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource};
    ///
    /// let hosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost".into();
    /// let [shop, alias] = ["routes/shop", "routes/shop.example"].map(|name| name.parse().unwrap());
    /// let mut cache = Cache::new(Options::default());
    /// let subscriber = cache.open(&hosts);
    /// cache.subscribe(subscriber, &Interest::Name(alias));
    ///
    /// let (resource, aliases) = (Resource::unversioned(7, "body"), ["routes/shop.example".parse().unwrap()]);
    /// cache.upsert_raw_with_aliases(&hosts, &shop, aliases, resource, Instant::now(), &mut Vec::new());
    ///
    /// let mut names = Vec::new();
    /// cache.pull(subscriber, Removals::Include, &mut |pull| {
    ///     if let Pull::Put { name, .. } = pull {
    ///         names.push(name.to_string());
    ///     }
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(names, ["routes/shop"]);
    /// ```
    pub fn upsert_raw_with_aliases(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        aliases: impl IntoIterator<Item = ResourceName>,
        resource: Resource<V>,
        now: Instant,
        woken: &mut Vec<SubscriberId>,
    ) -> Outcome {
        self.change_type(type_url, now, |cache, type_key| {
            let outcome = cache.store(type_key, name, resource, now, woken);
            let mut aliases = aliases.into_iter().peekable();
            // Mostly there are none, and were none.
            if (aliases.peek().is_some() || !cache.types[type_key].aliases.is_empty())
                && let Some(at) = cache.slot_of(type_key, name)
            {
                cache.set_aliases(at, aliases, woken);
            }
            outcome
        })
    }

    fn set_aliases(
        &mut self,
        at: SlotKey,
        aliases: impl IntoIterator<Item = ResourceName>,
        woken: &mut Vec<SubscriberId>,
    ) {
        let Slot { type_key, ref name, .. } = self.slots[at];
        let is_resource = |alias: &ResourceName| {
            let slot = self.slot_of(type_key, alias).map(|at| &self.slots[at]);
            slot.is_some_and(|slot| slot.state.resource().is_some())
        };
        let usable = |alias: &ResourceName| !alias.is_glob() && alias.as_str() != "*" && !is_resource(alias);
        let aliases: BTreeSet<_> = aliases.into_iter().filter(usable).collect();
        if *self.types[type_key].aliases.of(name) == aliases {
            return;
        }
        let name = name.clone();
        self.drop_aliases(at, woken);
        let mut spared = Vec::new();
        for alias in aliases {
            let failure = self.clear_error(type_key, &alias);
            spared.extend(failure.filter(|failure| failure.error.is_transient()).map(|_| alias.clone()));
            let of = &mut self.types[type_key];
            let before = of.aliases.insert(alias, &name);
            of.had_aliases = true;
            before.iter().for_each(|before| self.look_again(type_key, before));
        }
        self.changed(at, woken);
        spared.iter().for_each(|alias| self.end_sparing(type_key, alias, woken));
    }

    /// The slot that who asked for the name in `at` is sent: another one if the name is an alias.
    pub(crate) fn resolve(&self, at: SlotKey) -> SlotKey {
        let Slot { type_key, ref name, .. } = self.slots[at];
        let aliases = &self.types[type_key].aliases;
        if aliases.is_empty() {
            return at;
        }
        aliases.canonical(name).and_then(|canonical| self.slot_of(type_key, canonical)).unwrap_or(at)
    }

    /// The slots of the aliases of a resource that somebody asked for.
    pub(crate) fn alias_slots(&self, at: SlotKey) -> impl Iterator<Item = SlotKey> {
        let Slot { type_key, ref name, .. } = self.slots[at];
        let aliases = self.types[type_key].aliases.of(name);
        aliases.iter().filter_map(move |alias| self.slot_of(type_key, alias))
    }

    /// The links by which a subscriber asked for what is in a slot: by its name, and by its aliases.
    pub(crate) fn links_to(&self, id: SubscriberId, at: SlotKey) -> impl Iterator<Item = LinkKey> {
        std::iter::once(at).chain(self.alias_slots(at)).filter_map(move |at| self.link_of(id, Target::Slot(at)))
    }

    /// Whether a subscriber asked for a resource that is there, by its name or by an alias.
    pub(crate) fn is_asked_for(&self, id: SubscriberId, type_key: TypeKey, name: &ResourceName) -> bool {
        self.slot_of(type_key, name).is_some_and(|at| self.links_to(id, at).next().is_some())
    }

    /// Whether somebody did.
    pub(crate) fn is_watched(&self, at: SlotKey) -> bool {
        let watched = |at: SlotKey| self.slots[at].watchers > 0;
        watched(at) || self.alias_slots(at).any(watched)
    }

    /// Whether there is anything to follow when a link to a name is pulled.
    pub(crate) fn has_aliases(&self, link: LinkKey) -> bool {
        let subscriber = &self.subscribers[self.links[link].subscriber];
        !(subscriber.aliased.is_empty() && self.types[subscriber.type_key].aliases.is_empty())
    }

    /// The slot that a link to the name in `at` is sent; that counts as sent by all links of the subscriber that ask
    /// for it.
    pub(crate) fn send_by_alias(&mut self, link: LinkKey, at: SlotKey) -> SlotKey {
        let Link { subscriber, .. } = self.links[link];
        let sends = self.resolve(at);
        let there = self.slots[sends].state.resource().is_some();
        for other in self.links_to(self.id_of(subscriber), sends).collect::<Vec<_>>() {
            let Target::Slot(at) = self.links[other].target else { continue };
            let link = &mut self.links[other];
            link.cursor = self.slots[at].seq.max(link.cursor);
            link.sent |= there;
            self.follow_alias(other, at, sends);
        }
        sends
    }

    /// What a link to an alias was sent, and is not sent any more, is gone unless something else covers it.
    pub(crate) fn follow_alias(&mut self, link: LinkKey, at: SlotKey, sends: SlotKey) {
        let Link { subscriber, .. } = self.links[link];
        let subscriber = &mut self.subscribers[subscriber];
        let name = (sends != at).then(|| self.slots[sends].name.clone());
        let before = match &name {
            Some(name) => subscriber.aliased.insert(link, name.clone()),
            None if subscriber.aliased.is_empty() => None,
            None => subscriber.aliased.remove(&link),
        };
        subscriber.leaving.extend(before.filter(|before| name.as_ref() != Some(before)));
    }

    /// Who asks for a resource by one of its names is sent it, though another one brought it (rule 48).
    pub(crate) fn restart_other_names(&mut self, link: LinkKey) {
        let Link { target, subscriber, .. } = self.links[link];
        let Target::Slot(at) = target else { return };
        if self.types[self.slots[at].type_key].aliases.is_empty() {
            return;
        }
        let others: Vec<_> = self.links_to(self.id_of(subscriber), self.resolve(at)).collect();
        for other in others.into_iter().filter(|other| *other != link) {
            self.restart(other);
        }
    }

    /// A name stands for nothing but itself from now on. Whether it did.
    pub(crate) fn end_alias(&mut self, type_key: TypeKey, alias: &ResourceName) -> bool {
        let before = self.types[type_key].aliases.remove(alias);
        before.iter().for_each(|before| self.look_again(type_key, before));
        before.is_some()
    }

    /// The aliases of a resource stand for nothing from now on: who asked for one of them is told so.
    pub(crate) fn drop_aliases(&mut self, at: SlotKey, woken: &mut Vec<SubscriberId>) {
        let Slot { type_key, ref name, .. } = self.slots[at];
        if self.types[type_key].aliases.of(name).is_empty() {
            return;
        }
        let name = name.clone();
        self.look_again(type_key, &name);
        for alias in self.types[type_key].aliases.clear(&name) {
            if let Some(at) = self.slot_of(type_key, &alias) {
                self.slots[at].seq = self.next_seq();
                self.mark(Target::Slot(at), woken);
            }
        }
    }
}
