//! One subscriber: what it is interested in, and what it is yet to be told.

use std::collections::{BTreeSet, HashMap};

use xdstp_uri::ResourceName;

use crate::keys::{LinkKey, TypeKey};
use crate::subscribers::brought::Brought;
use crate::subscribers::full_state::FullState;
use crate::subscribers::name_set::NameSet;

pub(crate) struct Subscriber {
    pub(crate) generation: u32,
    pub(crate) type_key: TypeKey,
    /// The chain of links to names that changed.
    pub(crate) slots: Option<LinkKey>,
    /// The chain of links to collections that changed.
    pub(crate) lists: Option<LinkKey>,
    pub(crate) links: Vec<LinkKey>,
    /// Links to collections that have tombstones to tell.
    pub(crate) parting: BTreeSet<LinkKey>,
    /// Names to tell as removed, unless they are back by then.
    pub(crate) leaving: NameSet,
    /// Those of them that the subscriber cannot have: nobody waits for anything to tell of these (rule 158).
    pub(crate) missing: BTreeSet<ResourceName>,
    /// Names that must be answered once although they are not subscribed any more (rules 52, 53).
    pub(crate) forced: NameSet,
    /// Names and globs whose error is to be told, unless that is over by then.
    pub(crate) failing: BTreeSet<ResourceName>,
    /// What it brought along, and was not sent when it was compared, because it had it: nor was it told of its aliases.
    pub(crate) unsent: BTreeSet<ResourceName>,
    /// The names in `resumed` that it can only have by an alias.
    pub(crate) unclaimed: BTreeSet<ResourceName>,
    /// They are being looked at, and were up to this one.
    pub(crate) disclaimed: Option<ResourceName>,
    /// None of them counts with its version any more.
    pub(crate) unclaimed_lapsed: bool,
    /// No link before this one is to a name that was not answered.
    pub(crate) first_unanswered: usize,
    /// What was sent for an alias, by its link.
    pub(crate) aliased: HashMap<LinkKey, ResourceName>,
    /// What it said it holds when it connected.
    pub(crate) resumed: Brought,
    /// How often it said so.
    pub(crate) resumes: u32,
    /// What it brought along and a complete answer lacks: told as gone, before anybody said so of the name itself.
    pub(crate) concluded: BTreeSet<ResourceName>,
    /// The last full state it was sent, if it is sent any.
    pub(crate) full_state: Option<Box<FullState>>,
    /// A part of it is closed.
    pub(crate) closing: bool,
}

impl Subscriber {
    pub(crate) fn new(type_key: TypeKey, generation: u32) -> Self {
        Self {
            generation,
            type_key,
            slots: None,
            lists: None,
            links: Vec::new(),
            parting: BTreeSet::new(),
            leaving: NameSet::default(),
            missing: BTreeSet::new(),
            forced: NameSet::default(),
            failing: BTreeSet::new(),
            unsent: BTreeSet::new(),
            unclaimed: BTreeSet::new(),
            disclaimed: None,
            unclaimed_lapsed: false,
            first_unanswered: 0,
            aliased: HashMap::new(),
            resumed: Brought::default(),
            resumes: 0,
            concluded: BTreeSet::new(),
            full_state: None,
            closing: false,
        }
    }

    /// Whether something changed that it has not looked at. Removals and errors that it has looked at may wait for
    /// others, and what changes meanwhile has to wake.
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.is_some() || self.lists.is_some() || !self.forced.is_empty()
    }

    pub(crate) fn has_work(&self) -> bool {
        self.has_changes() || self.has_removals() || !self.failing.is_empty() || self.disclaimed.is_some()
    }

    pub(crate) fn has_removals(&self) -> bool {
        !self.parting.is_empty() || !self.leaving.is_empty()
    }
}
