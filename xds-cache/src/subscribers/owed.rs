//! What a subscriber is yet to be told, by name.

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::keys::LinkKey;
use crate::subscribers::brought::Brought;
use crate::subscribers::name_set::NameSet;
use crate::text::Version;

/// How many names a subscriber is known to have been told of as gone before anybody said so. Of more it may be told again.
const MAX_CONCLUDED: usize = 1000;

/// Why a subscriber is owed something of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Debt {
    /// It is to be told as gone, unless it is back by then.
    Removal,
    /// The subscriber cannot have it: nobody waits for anything to be told of that (rule 158).
    Missing,
    /// It is to be answered once although it was left, for a collection covers it (rules 52, 53).
    Answer,
    /// Its error is to be told, unless that is over by then.
    Error,
    /// The subscriber said that it holds it, or may hold it: what is there is to be compared with that.
    Comparison,
    /// It was compared, and not sent because the subscriber had it: nor was it told of its aliases.
    Unsent,
    /// An answer that is complete lacked it, and it was told as gone for that: it is not told so again.
    Concluded,
}

/// The names that a subscriber is owed something of, by why.
///
/// A name may be owed for several reasons at once. What happens to it sets some and clears others, and leaves the rest as they
/// are. The first row counts that fits: with the debts that it names before the event, without those that it has a `no` for, and
/// with what the event says of the name. The tests read this table.
///
/// | what happens | if | Removal | Missing | Answer | Error | Comparison | Unsent | Concluded |
/// |---|---|---|---|---|---|---|---|---|
/// | `gone` | | set | | | | | | |
/// | `went` | Concluded | | | | | | | clear |
/// | `went` | | set | clear | | | | | |
/// | `missed` | | set | clear | | | | | |
/// | `absent` | unsent, no Removal, no Comparison | set | set | | | | | |
/// | `absent` | | set | | | | | | |
/// | `empty` | | set | set | | | | | |
/// | `conclude` | lacking, Comparison | set | | | | clear | | set |
/// | `conclude` | | | | | | clear | | |
/// | `answer` | | | | set | | | | |
/// | `fail` | | | | | set | | | |
/// | `bring` | | | | | | set | | |
/// | `spare` | | | | | | | set | |
/// | `came` | | | clear | | | clear | | clear |
/// | `stays` | | clear | clear | | | | | |
/// | `told_gone` | | | clear | | | clear | | |
/// | `told_error` | removed | clear | clear | | | clear | | clear |
/// | `told_error` | | | | | | | | clear |
/// | `asked` | | | | | | clear | | |
/// | `unwanted` | kept | set | | clear | | | | |
/// | `unwanted` | | clear | | clear | | | | |
/// | `lapse` | | | | | | | | |
/// | `defer_removals` | | set | | | | | | |
/// | `defer_missing` | | | set | | | | | |
/// | `defer_errors` | | | | | set | | | |
///
/// `clear` ends one debt of a name, and `next_…` that of the first name that has it. Of more than a thousand names it is not kept
/// that they are concluded. No two debts exclude each other: what a name is asked for by, and by which aliases, decides about
/// each on its own.
#[derive(Default)]
pub(crate) struct Owed {
    removals: NameSet,
    missing: BTreeSet<ResourceName>,
    answers: NameSet,
    errors: BTreeSet<ResourceName>,
    brought: Brought,
    unsent: BTreeSet<ResourceName>,
    concluded: BTreeSet<ResourceName>,
}

/// A name becomes owed, for one reason or another.
impl Owed {
    /// It is gone, or nothing wants it any more. Whether that is news.
    pub(crate) fn gone(&mut self, name: ResourceName) -> bool {
        self.removals.insert(name)
    }

    /// A collection that had it has it no longer. The subscriber was sent it as a member of that, and can have it, whatever it
    /// asked for since.
    pub(crate) fn went(&mut self, name: &ResourceName) {
        if self.concluded.is_empty() || !self.concluded.remove(name) {
            self.missed(name.clone());
        }
    }

    /// It went before the subscriber came, who may hold it all the same.
    pub(crate) fn missed(&mut self, name: ResourceName) {
        self.missing.remove(&name);
        self.removals.insert(name);
    }

    /// It was asked for, and is not there. If it was not `sent` before, it is one that the subscriber cannot have.
    pub(crate) fn absent(&mut self, name: ResourceName, sent: bool) {
        let new = self.removals.insert(name.clone());
        if !sent && new && !self.brought.contains(&name) {
            self.missing.insert(name);
        }
    }

    /// A glob was asked for, and has no member.
    pub(crate) fn empty(&mut self, glob: ResourceName) {
        self.missing.insert(glob.clone());
        self.removals.insert(glob);
    }

    /// It was brought along, and an answer that is complete is not about to send it: if it is not `there`, it is gone, before
    /// anybody said so of the name itself.
    pub(crate) fn conclude(&mut self, name: ResourceName, there: bool) {
        let brought = self.brought.remove(&name).is_some();
        if brought && !there {
            if self.concluded.len() < MAX_CONCLUDED {
                self.concluded.insert(name.clone());
            }
            self.removals.insert(name);
        }
    }

    /// It was left, and a collection covers it: it is to be answered once more (rules 52, 53).
    pub(crate) fn answer(&mut self, name: ResourceName) {
        self.answers.insert(name);
    }

    /// It has an error.
    pub(crate) fn fail(&mut self, name: ResourceName) {
        self.errors.insert(name);
    }

    /// The subscriber may hold it: that is to be compared.
    pub(crate) fn bring(&mut self, name: ResourceName, version: Option<Version>) {
        self.brought.insert(name, version);
    }

    /// It was compared, and not sent because the subscriber had it.
    pub(crate) fn spare(&mut self, name: ResourceName) {
        self.unsent.insert(name);
    }
}

/// A name is owed no more.
impl Owed {
    /// It is there, and about to be sent unless the subscriber has it: with what was brought along of it.
    pub(crate) fn came(&mut self, name: &ResourceName) -> Option<Option<Version>> {
        self.missing.remove(name);
        self.concluded.remove(name);
        self.brought.remove(name)
    }

    /// It is not to be told as gone any more.
    pub(crate) fn stays(&mut self, name: &ResourceName) {
        self.removals.remove(name);
        self.missing.remove(name);
    }

    /// It is not owed any more, for one reason: and stays so for the others. Whether it was.
    pub(crate) fn clear(&mut self, debt: Debt, name: &ResourceName) -> bool {
        match debt {
            Debt::Removal => self.removals.remove(name),
            Debt::Missing => self.missing.remove(name),
            Debt::Answer => self.answers.remove(name),
            Debt::Error => self.errors.remove(name),
            Debt::Comparison => self.brought.remove(name).is_some(),
            Debt::Unsent => self.unsent.remove(name),
            Debt::Concluded => self.concluded.remove(name),
        }
    }

    /// It was told as gone.
    pub(crate) fn told_gone(&mut self, name: &ResourceName) {
        self.missing.remove(name);
        self.brought.remove(name);
    }

    /// Its error was told, and with that that it is `removed`. That the error is over is told by a removal; and only the
    /// resource says so otherwise, which is sent at whatever version it comes back.
    pub(crate) fn told_error(&mut self, name: &ResourceName, removed: bool) {
        if removed {
            self.removals.remove(name);
            self.told_gone(name);
        } else {
            self.lapse(name);
        }
        self.concluded.remove(name);
    }

    /// It is asked for by name: what was brought along does not count, neither of it nor of what it `stands_for`. Whether the
    /// subscriber may hold it.
    pub(crate) fn asked(&mut self, name: &ResourceName, stands_for: &ResourceName) -> bool {
        if !self.minds_asking() {
            return false;
        }
        // What was to be told as gone, because nothing asked for it, is not gone any more. And what it left a moment
        // before, it may have by what else covers it.
        let may_be_gone = self.is_leaving(name);
        let held_itself = self.brought.remove(name).is_some() || may_be_gone || self.answers.contains(name);
        self.lapse(stands_for);
        held_itself
    }

    /// Whether it matters to any name that it is [asked for](Self::asked): mostly the subscriber said nothing. A map hashes what is
    /// to be removed though it is empty.
    pub(crate) fn minds_asking(&self) -> bool {
        !(self.brought.is_empty() && self.removals.is_empty() && self.answers.is_empty())
    }

    /// Nothing wants it any more, and no answer of it is due: it is gone only if the client `keeps` it otherwise.
    pub(crate) fn unwanted(&mut self, name: &ResourceName, keeps: bool) {
        self.answers.remove(name);
        if keeps {
            self.removals.insert(name.clone());
        } else {
            self.removals.remove(name);
        }
    }

    /// The version does not count any more at which it was brought along. Whether it was.
    pub(crate) fn lapse(&mut self, name: &ResourceName) -> bool {
        self.brought.version_mut(name).map(|version| *version = None).is_some()
    }
}

/// What is owed first.
impl Owed {
    pub(crate) fn next_removal(&mut self) -> Option<ResourceName> {
        self.removals.pop_first()
    }

    pub(crate) fn next_missing(&mut self) -> Option<ResourceName> {
        self.missing.pop_first()
    }

    pub(crate) fn next_answer(&mut self) -> Option<ResourceName> {
        self.answers.pop_first()
    }

    pub(crate) fn next_error(&mut self) -> Option<ResourceName> {
        self.errors.pop_first()
    }

    /// Removals that were next, and wait.
    pub(crate) fn defer_removals(&mut self, names: Vec<ResourceName>) {
        self.removals.extend(names);
    }

    /// What cannot be had, was next, and waits.
    pub(crate) fn defer_missing(&mut self, names: Vec<ResourceName>) {
        self.missing.extend(names);
    }

    /// Errors that were next, and wait.
    pub(crate) fn defer_errors(&mut self, mut names: BTreeSet<ResourceName>) {
        self.errors.append(&mut names);
    }
}

/// What is owed.
impl Owed {
    /// Whether it is owed something of a name, for one reason.
    #[inline]
    pub(crate) fn owes(&self, debt: Debt, name: &ResourceName) -> bool {
        match debt {
            Debt::Removal => self.removals.contains(name),
            Debt::Missing => self.missing.contains(name),
            Debt::Answer => self.answers.contains(name),
            Debt::Error => self.errors.contains(name),
            Debt::Comparison => self.brought.contains(name),
            Debt::Unsent => self.unsent.contains(name),
            Debt::Concluded => self.concluded.contains(name),
        }
    }

    /// The same, of any name.
    #[inline]
    pub(crate) fn owes_any(&self, debt: Debt) -> bool {
        match debt {
            Debt::Removal => !self.removals.is_empty(),
            Debt::Missing => !self.missing.is_empty(),
            Debt::Answer => !self.answers.is_empty(),
            Debt::Error => !self.errors.is_empty(),
            Debt::Comparison => !self.brought.is_empty(),
            Debt::Unsent => !self.unsent.is_empty(),
            Debt::Concluded => !self.concluded.is_empty(),
        }
    }

    /// Whether [`came`](Self::came) might do anything, of any name.
    #[inline]
    pub(crate) fn minds_additions(&self) -> bool {
        !self.brought.is_empty() || self.missing.len() + self.concluded.len() > 0
    }

    /// Names to tell as removed, unless they are back by then.
    #[inline]
    pub(crate) fn removals(&self) -> &NameSet {
        &self.removals
    }

    /// Names that must be answered once although they are not subscribed any more (rules 52, 53).
    pub(crate) fn answers(&self) -> &NameSet {
        &self.answers
    }

    /// Names and globs whose error is to be told, unless that is over by then.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &ResourceName> {
        self.errors.iter()
    }

    /// What it said it holds when it connected.
    #[inline]
    pub(crate) fn brought(&self) -> &Brought {
        &self.brought
    }

    /// What a walk has not looked at of it: see [`Brought::take_sweep`].
    pub(crate) fn take_sweep(&mut self, link: LinkKey) -> Option<Vec<ResourceName>> {
        self.brought.take_sweep(link)
    }

    pub(crate) fn leave_sweep(&mut self, link: LinkKey, names: Vec<ResourceName>) {
        self.brought.leave_sweep(link, names);
    }

    /// Whether any is to be told as gone that the subscriber cannot have.
    pub(crate) fn tells_missing(&self) -> bool {
        self.missing.iter().any(|name| self.removals.contains(name))
    }

    /// Whether it is to be told as gone, and the subscriber can have it.
    pub(crate) fn is_leaving(&self, name: &ResourceName) -> bool {
        self.removals.contains(name) && !self.missing.contains(name)
    }

    /// What was compared, and not sent because the subscriber had it: nor was it told of its aliases.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = &ResourceName> {
        self.unsent.iter()
    }

    /// From now on the members of a glob are found without the others.
    pub(crate) fn expect_globs(&mut self) {
        self.removals.expect_globs();
        self.answers.expect_globs();
    }
}

#[cfg(test)]
mod tests;
