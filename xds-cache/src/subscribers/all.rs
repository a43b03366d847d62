//! All subscribers, and their links.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_uri::ResourceName;

use crate::arena::{Arena, indexed};
use crate::id::SubscriberId;
use crate::keys::{LinkKey, ListKey, SelectorKey, SubscriberKey, Target, TypeKey, WalkKey};
use crate::moments::Seq;
use crate::subscribers::link::{Link, To, Walk};
use crate::subscribers::owed::Debt;
use crate::subscribers::subscriber::Subscriber;
use crate::subscribers::targets::Targets;
use crate::text::Version;

/// All that are to be told of changes.
#[derive(Default)]
pub(crate) struct Subscribers {
    pub(crate) all: Arena<SubscriberKey, Subscriber>,
    pub(crate) links: Arena<LinkKey, Link>,
    pub(crate) walks: Arena<WalkKey, Walk>,
    /// What links are found by their targets with.
    pub(crate) seed: foldhash::fast::RandomState,
    /// Those that brought something along: all of which not everything was compared.
    pub(crate) bringing: BTreeSet<SubscriberKey>,
    /// How many select among what they want of a target by what, if not by default.
    pub(crate) selecting: BTreeMap<(Target, SelectorKey), u32>,
    /// How many there were.
    pub(crate) generation: u32,
}

impl Subscribers {
    /// Those remain who brought something along that was not compared.
    pub(crate) fn drop_compared(&mut self) {
        let Self { bringing, all, .. } = self;
        bringing.retain(|key| all[*key].owed.owes_any(Debt::Comparison));
    }

    /// The subscriber with an id, unless it is closed: then another one may have its place.
    #[inline]
    pub(crate) fn find(&self, id: SubscriberId) -> Option<&Subscriber> {
        self.all.peek(id.key()).filter(|subscriber| subscriber.generation == id.generation())
    }

    /// The subscriber with a key.
    pub(crate) fn id_of(&self, key: SubscriberKey) -> SubscriberId {
        SubscriberId::of(key, self.all[key].generation)
    }

    /// The subscriber's link to a target.
    #[inline]
    pub(crate) fn link_of(&self, id: SubscriberId, target: Target) -> Option<LinkKey> {
        let Self { all, links, walks, seed, .. } = self;
        all[id.key()].links.find(target, Targets { links, walks, seed })
    }

    /// What a link is to.
    #[inline]
    pub(crate) fn target(&self, link: LinkKey) -> Target {
        let Self { links, walks, seed, .. } = self;
        Targets { links, walks, seed }.of(link)
    }

    /// What a link to a collection is to, and its walk.
    #[inline]
    pub(crate) fn to_list(&self, link: LinkKey) -> Option<(ListKey, WalkKey)> {
        match self.links[link].to() {
            To::Walk(walk) => Some((self.walks[walk].list, walk)),
            To::Slot(_) => None,
        }
    }

    pub(crate) fn holds(&self, id: SubscriberId, target: Target) -> bool {
        self.link_of(id, target).is_some()
    }

    /// The walk of a link to a collection.
    #[inline]
    pub(crate) fn walk(&self, link: LinkKey) -> Option<&Walk> {
        self.links[link].walk().map(|walk| &self.walks[walk])
    }

    /// The errors of the link's target that are older were told, or are about to be.
    #[inline]
    pub(crate) fn told_up_to(&self, link: LinkKey) -> Seq {
        self.walk(link).map_or(self.links[link].cursor(), |walk| walk.gone_cursor)
    }

    /// What a subscriber may hold of a name is yet to be compared.
    pub(crate) fn bring(&mut self, id: SubscriberId, name: ResourceName, version: Option<Version>) {
        self.all[id.key()].owed.bring(name, version);
        self.bringing.insert(id.key());
    }

    /// Some of what a subscriber brought along was compared: it may have been the last.
    pub(crate) fn has_compared(&mut self, id: SubscriberId) {
        if !self.all[id.key()].owed.owes_any(Debt::Comparison) {
            self.bringing.remove(&id.key());
        }
    }

    pub(crate) fn who_brought(&self, type_key: TypeKey) -> impl Iterator<Item = (SubscriberId, &Subscriber)> {
        let all = self.bringing.iter().map(|index| (self.id_of(*index), &self.all[*index]));
        all.filter(move |(_, subscriber)| subscriber.type_key == type_key)
    }

    /// Who said that they hold a name, and have not been told what became of it.
    pub(crate) fn who_brought_it(&self, type_key: TypeKey, name: &ResourceName) -> impl Iterator<Item = SubscriberId> {
        let who_brought = self.who_brought(type_key).filter(|(_, of)| of.owed.owes(Debt::Comparison, name));
        who_brought.map(|(id, _)| id)
    }
}

indexed!([] Subscribers: SubscriberKey => all: Subscriber);
indexed!([] Subscribers: LinkKey => links: Link);
indexed!([] Subscribers: WalkKey => walks: Walk);

impl std::ops::Index<SubscriberId> for Subscribers {
    type Output = Subscriber;

    #[inline]
    fn index(&self, id: SubscriberId) -> &Subscriber {
        &self.all[id.key()]
    }
}

impl std::ops::IndexMut<SubscriberId> for Subscribers {
    #[inline]
    fn index_mut(&mut self, id: SubscriberId) -> &mut Subscriber {
        &mut self.all[id.key()]
    }
}
