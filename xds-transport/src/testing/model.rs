//! What a subscriber has been told, and what it must be told next.

use std::collections::{BTreeMap, BTreeSet};

use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

/// What there is of one type.
pub(crate) type Content = BTreeMap<ResourceName, Version>;

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) wants: BTreeSet<Interest>,
    /// What it was told is there.
    told: BTreeMap<ResourceName, Version>,
    /// What it was told is not there.
    told_gone: BTreeSet<ResourceName>,
    /// What it must be told is there.
    due: BTreeSet<ResourceName>,
    /// What it may be told is there, though it knows.
    may_repeat: BTreeSet<ResourceName>,
    /// What it must be told is not there.
    gone: BTreeSet<ResourceName>,
    /// What it may be told is not there, though it never was to this subscriber.
    may_be_gone: BTreeSet<ResourceName>,
    /// What it said it has, and did not ask for.
    brought: BTreeSet<ResourceName>,
}

/// Whether an interest has a name in it.
pub(crate) fn has(interest: &Interest, name: &ResourceName) -> bool {
    match interest {
        Interest::Wildcard => name.is_opaque(),
        Interest::Name(wanted) => wanted == name || wanted.is_glob() && name.glob_parent().as_ref() == Some(wanted),
    }
}

impl Model {
    pub(crate) fn covers(&self, name: &ResourceName) -> bool {
        self.wants.iter().any(|interest| has(interest, name))
    }

    fn names(&self, name: &ResourceName) -> bool {
        self.wants.contains(&Interest::Name(name.clone()))
    }

    /// What it is interested in, of all there is.
    pub(crate) fn wanted(&self, content: &Content) -> Content {
        content
            .iter()
            .filter(|(name, _)| self.covers(name))
            .map(|(name, version)| (name.clone(), version.clone()))
            .collect()
    }

    /// It came, or is another one now.
    pub(crate) fn put(&mut self, name: &ResourceName) {
        if self.covers(name) {
            self.due.insert(name.clone());
            for name in [Some(name.clone()), name.glob_parent()].into_iter().flatten() {
                self.gone.remove(&name);
                self.may_be_gone.remove(&name);
                self.told_gone.remove(&name);
            }
        }
    }

    /// It went.
    pub(crate) fn remove(&mut self, name: &ResourceName, content: &Content) {
        if !self.covers(name) {
            return;
        }
        self.due.remove(name);
        self.may_repeat.remove(name);
        if self.told.contains_key(name) || self.names(name) && !self.told_gone.contains(name) {
            self.gone.insert(name.clone());
        } else {
            self.may_be_gone.insert(name.clone());
        }
        // That a glob has no members any more is told by its members, or by itself (rule 99).
        self.may_be_gone.extend(name.glob_parent().filter(|glob| is_empty(glob, content)));
    }

    /// It went, and never was there: who is told so is none the wiser (rule 72).
    pub(crate) fn remove_unknown(&mut self, name: &ResourceName) {
        if self.covers(name) {
            self.may_be_gone.insert(name.clone());
        }
    }

    /// It asked for this, for the first time or anew (rule 48).
    pub(crate) fn subscribe(&mut self, interest: &Interest, content: &Content) -> bool {
        let new = self.wants.insert(interest.clone());
        self.due.extend(content.keys().filter(|name| has(interest, name)).cloned());
        if let Interest::Name(name) = interest
            && !content.contains_key(name)
            && (!name.is_glob() || is_empty(name, content))
        {
            self.told_gone.remove(name);
            self.gone.insert(name.clone());
        }
        new
    }

    /// It does not want this any more. What something else covers is said once more (rules 52, 53).
    pub(crate) fn unsubscribe(&mut self, interest: &Interest, content: &Content) -> bool {
        let held = self.wants.remove(interest);
        let wants = &self.wants;
        let covered = |name: &ResourceName| wants.iter().any(|interest| has(interest, name));
        self.told.retain(|name, _| covered(name));
        let Self { told_gone, due, may_repeat, gone, may_be_gone, .. } = self;
        for names in [told_gone, due, may_repeat, gone, may_be_gone] {
            names.retain(covered);
        }
        if held {
            let still: Vec<_> = content.keys().filter(|name| has(interest, name) && covered(name)).cloned().collect();
            match interest {
                Interest::Name(name) if !name.is_glob() => self.due.extend(still),
                _ => self.may_repeat.extend(still),
            }
            if let Interest::Name(name) = interest
                && covered(name)
                && !content.contains_key(name)
                && !self.told.contains_key(name)
            {
                self.gone.remove(name);
                self.may_be_gone.insert(name.clone());
            }
        }
        held
    }

    /// It says what it has from before.
    pub(crate) fn resume(&mut self, held: &[(ResourceName, Version)], content: &Content) {
        for (name, version) in held {
            if !self.covers(name) {
                self.brought.insert(name.clone());
                continue;
            }
            match content.get(name) {
                Some(is) if is == version => _ = self.due.remove(name),
                Some(_) => {}
                None => _ = self.gone.insert(name.clone()),
            }
            self.told.insert(name.clone(), version.clone());
        }
    }

    /// It is told that this is there.
    pub(crate) fn is_told(&mut self, name: &ResourceName, version: &Version, content: &Content) -> Result<(), String> {
        if !self.covers(name) {
            return Err(format!("{name} is told to who did not ask for it (rule 63)"));
        }
        match content.get(name) {
            Some(is) if is == version => {}
            Some(is) => return Err(format!("{name} is told as {version}, and is {is} by now (rule 38)")),
            None => return Err(format!("{name} is told, and is not there")),
        }
        let news = self.due.remove(name) | self.may_repeat.remove(name);
        if !news && self.told.get(name) == Some(version) {
            return Err(format!("{name} is told again as it was (rule 37)"));
        }
        self.told_gone.remove(name);
        self.told.insert(name.clone(), version.clone());
        Ok(())
    }

    /// It is told that this is not there.
    pub(crate) fn is_told_gone(&mut self, name: &ResourceName, content: &Content) -> Result<(), String> {
        if content.contains_key(name) || name.is_glob() && !is_empty(name, content) {
            return Err(format!("{name} is told as gone, and is there"));
        }
        if self.brought.remove(name) {
            return Ok(());
        }
        if !self.covers(name) {
            return Err(format!("{name} is told as gone to who did not ask for it (rule 63)"));
        }
        // A collection tells of what went before it was asked for, too: that takes nothing from anybody (rule 72).
        let went_before = !self.told_gone.contains(name) && !self.names(name);
        if !(self.gone.remove(name) | self.may_be_gone.remove(name) | went_before) {
            return Err(format!("{name} is told as gone once more (rules 70, 71)"));
        }
        self.told.remove(name);
        self.told_gone.insert(name.clone());
        Ok(())
    }

    /// Whether to say that it is gone takes it from who was told that it is there.
    pub(crate) fn has_been_told(&self, name: &ResourceName) -> bool {
        self.told.contains_key(name)
    }

    /// It was told all additions there are.
    pub(crate) fn check_additions(&self) -> Result<(), String> {
        self.due.first().map_or(Ok(()), |name| Err(format!("{name} is not told (rules 48, 52, 53, 65)")))
    }

    /// It was told all there is to tell.
    pub(crate) fn check_at_rest(&self, content: &Content) -> Result<(), String> {
        self.check_additions()?;
        if let Some(name) = self.gone.first() {
            return Err(format!("{name} is not told as gone (rules 70, 71, 84, 99)"));
        }
        match self.told == self.wanted(content) {
            true => Ok(()),
            false => Err(format!("{:?} is what it was told", self.told)),
        }
    }
}

/// Whether a glob has no members.
fn is_empty(glob: &ResourceName, content: &Content) -> bool {
    !content.keys().any(|name| name.glob_parent().as_ref() == Some(glob))
}
