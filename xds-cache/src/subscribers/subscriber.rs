//! One subscriber: what it is interested in, and what it is yet to be told.

use std::collections::BTreeSet;

use crate::keys::{LinkKey, SelectorKey, TypeKey};
use crate::subscribers::aliased::Aliased;
use crate::subscribers::claims::Claims;
use crate::subscribers::full_state::FullState;
use crate::subscribers::links::Links;
use crate::subscribers::looked::Looked;
use crate::subscribers::owed::{Debt, Owed};

pub(crate) struct Subscriber {
    pub(crate) generation: u32,
    pub(crate) type_key: TypeKey,
    /// By what it selects among variants.
    pub(crate) selector: Option<SelectorKey>,
    /// The chain of links to names that changed.
    pub(crate) slots: Option<LinkKey>,
    /// The chain of links to collections that changed.
    pub(crate) lists: Option<LinkKey>,
    pub(crate) links: Links,
    /// How many of these are to collections.
    pub(crate) collections: u32,
    /// Links to collections that have tombstones to tell.
    pub(crate) parting: BTreeSet<LinkKey>,
    /// What it is yet to be told.
    pub(crate) owed: Owed,
    /// What it brought along and can only have by an alias.
    pub(crate) claims: Claims,
    /// What was sent for an alias, by its link.
    pub(crate) aliased: Aliased,
    /// How often it said what it holds.
    pub(crate) resumes: u32,
    /// The last full state it was sent, if it is sent any.
    pub(crate) full_state: Option<Box<FullState>>,
    /// What it has looked at of names that have variants.
    pub(crate) looked: Looked,
}

impl Subscriber {
    pub(crate) fn new(type_key: TypeKey, selector: Option<SelectorKey>, generation: u32) -> Self {
        Self {
            generation,
            type_key,
            selector,
            slots: None,
            lists: None,
            links: Links::default(),
            collections: 0,
            parting: BTreeSet::new(),
            owed: Owed::default(),
            claims: Claims::default(),
            aliased: Aliased::default(),
            resumes: 0,
            full_state: None,
            looked: Looked::default(),
        }
    }

    /// Whether something changed that it has not looked at. Removals and errors that it has looked at may wait for
    /// others, and what changes meanwhile has to wake.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        self.slots.is_some() || self.lists.is_some() || self.owed.owes_any(Debt::Answer)
    }

    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.has_changes() || self.has_removals() || self.owed.owes_any(Debt::Error) || self.claims.are_looked_at()
    }

    #[inline]
    pub(crate) fn has_removals(&self) -> bool {
        !self.parting.is_empty() || self.owed.owes_any(Debt::Removal)
    }
}
