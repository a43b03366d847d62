//! What is wanted of one type, and how much of it the origin was told on this stream.

mod covering;

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use xdstp_cache::{Aliases, Interest};
use xdstp_uri::{NameKey, ResourceName};

use crate::client::room::{self, Room};

#[derive(Debug, Default)]
pub(crate) struct Wanted {
    wildcard: Option<Wish>,
    names: HashMap<ResourceName, Wish>,
    globs: usize,
    /// How many bytes all of it takes in a request, at most; and how many of these go beside each name.
    size: usize,
    beside: usize,
    /// The names among those wanted that stand for what is held.
    aliases: Aliases,
    /// Wanted, and the origin was not told on this stream.
    unsent: BTreeSet<Interest>,
    /// The origin was told on this stream, and no longer wanted; or wanted anew, when it is in `unsent` too.
    leaving: BTreeSet<Interest>,
    /// Counts the requests that ask for something: a clock for "was it asked for since?".
    asked: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish {
    /// The request that asked for it on this stream; 0 before.
    asked: u64,
    /// Since when its silence counts: see [`Absences`](crate::client::session::absence::Absences).
    pub(crate) waits_since: Option<Instant>,
    /// The wildcard, or a glob: this stream showed what it holds.
    answered: bool,
    /// Some stream did.
    pub(crate) known: bool,
}

impl Wish {
    /// The origin was asked on this stream, and did not answer.
    pub(crate) fn is_open(&self) -> bool {
        self.asked > 0 && !self.answered
    }
}

impl Wanted {
    /// So many bytes go beside each name in a request.
    pub(crate) fn beside(beside: usize) -> Self {
        Self { beside, ..Self::default() }
    }

    pub(crate) fn subscribe(&mut self, interest: Interest) {
        if self.wish(&interest).is_some() {
            return;
        }
        self.size += room::name_size(interest.as_str()) + self.beside;
        match &interest {
            Interest::Wildcard => self.wildcard = Some(Wish::default()),
            Interest::Name(name) => {
                self.globs += usize::from(name.is_glob());
                self.names.insert(name.clone(), Wish::default());
            }
        }
        self.unsent.insert(interest);
    }

    /// What is wanted, though the origin may not know that it left before: it leaves once more and is asked for anew.
    pub(crate) fn ask_again(&mut self, interest: Interest) {
        if self.wish(&interest).is_some() {
            self.leaving.insert(interest.clone());
            self.unsent.insert(interest);
        }
    }

    /// Names that were to leave and to be asked for anew do not leave. Whether nothing else is to be told.
    pub(crate) fn stay(&mut self) -> bool {
        let Self { leaving, unsent, .. } = self;
        let before = leaving.len();
        leaving.retain(|interest| interest.is_collection() || !unsent.contains(interest));
        leaving.is_empty() && unsent.len() == before
    }

    /// Whether it was wanted.
    pub(crate) fn unsubscribe(&mut self, interest: &Interest) -> bool {
        let wish = match interest {
            Interest::Wildcard => self.wildcard.take(),
            Interest::Name(name) => self.names.remove(name),
        };
        let Some(wish) = wish else { return false };
        self.size -= room::name_size(interest.as_str()) + self.beside;
        if matches!(interest, Interest::Name(name) if name.is_glob()) {
            self.globs -= 1;
        }
        self.unsent.remove(interest);
        if wish.asked > 0 {
            self.leaving.insert(interest.clone());
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wildcard.is_none() && self.names.is_empty()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// What one more takes.
    pub(crate) fn size_of(&self, interest: &Interest) -> usize {
        room::name_size(interest.as_str()) + self.beside
    }

    pub(crate) fn only_wildcard(&self) -> bool {
        self.wildcard.is_some() && self.names.is_empty()
    }

    pub(crate) fn is_told(&self) -> bool {
        self.unsent.is_empty() && self.leaving.is_empty()
    }

    /// Everything wanted, in the order of requests.
    pub(crate) fn all(&self) -> Vec<Interest> {
        let mut all: Vec<_> = self.names.keys().cloned().map(Interest::Name).collect();
        all.extend(self.wildcard.map(|_| Interest::Wildcard));
        all.sort_unstable();
        all
    }

    pub(crate) fn unsent(&self) -> &BTreeSet<Interest> {
        &self.unsent
    }

    pub(crate) fn leaving(&self) -> &BTreeSet<Interest> {
        &self.leaving
    }

    pub(crate) fn wish(&self, interest: &Interest) -> Option<&Wish> {
        match interest {
            Interest::Wildcard => self.wildcard.as_ref(),
            Interest::Name(name) => self.names.get(name),
        }
    }

    /// Whether the origin was asked for it on this stream.
    pub(crate) fn is_asked(&self, interest: &Interest) -> bool {
        self.wish(interest).is_some_and(|wish| wish.asked > 0)
    }

    /// A new stream: the origin was told nothing.
    pub(crate) fn forget_stream(&mut self) {
        self.leaving.clear();
        self.unsent = self.all().into_iter().collect();
        for wish in self.names.values_mut().chain(&mut self.wildcard) {
            *wish = Wish { known: wish.known, ..Wish::default() };
        }
    }

    /// A request asks for all of `unsent` but what is in `again`, and gives up all of `leaving`.
    /// What it asks for is returned.
    pub(crate) fn sent(&mut self, again: &BTreeSet<Interest>) -> Vec<Interest> {
        self.leaving.clear();
        let (later, asked): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut self.unsent).into_iter().partition(|interest| again.contains(interest));
        for left in &later {
            // The origin is told that it left: who gives it up now has nothing more to tell.
            if let Some(wish) = self.wish_mut(left) {
                wish.asked = 0;
            }
        }
        self.unsent = later;
        if !asked.is_empty() {
            self.asked += 1;
        }
        let request = self.asked;
        for interest in &asked {
            if let Some(wish) = self.wish_mut(interest) {
                wish.asked = request;
                wish.waits_since = None;
            }
        }
        asked.into_iter().collect()
    }

    /// A request gives up what is not wanted any more, as far as there is room. Removed, then added is added: the
    /// subscribe alone makes the server send it (rules 48, 59).
    pub(crate) fn give_up(&mut self, room: &mut Room) -> Vec<Interest> {
        let leaving = self.leaving.iter().filter(|interest| self.wish(interest).is_none());
        let told: Vec<_> = leaving.take_while(|interest| room.take_name(interest.as_str())).cloned().collect();
        told.iter().for_each(|interest| _ = self.leaving.remove(interest));
        told
    }

    /// A request asks for everything only to be able to end that: the next one does.
    pub(crate) fn leave_wildcard(&mut self) {
        self.leaving.insert(Interest::Wildcard);
    }

    /// Gives up what was asked for beside what is wanted.
    pub(crate) fn leave(&mut self, names: impl IntoIterator<Item = ResourceName>) {
        self.leaving.extend(names.into_iter().map(Interest::Name));
    }

    /// A request asks for what `fits` of `unsent`: that is returned, in order.
    pub(crate) fn ask(&mut self, mut fits: impl FnMut(&Interest) -> bool) -> Vec<Interest> {
        let asked: Vec<_> = self.unsent.iter().take_while(|interest| fits(interest)).cloned().collect();
        self.asked(&asked);
        asked
    }

    /// The same of each that `fits`, whether those before it do or not.
    pub(crate) fn ask_each(&mut self, mut fits: impl FnMut(&Interest) -> bool) -> Vec<Interest> {
        let asked: Vec<_> = self.unsent.iter().filter(|interest| fits(interest)).cloned().collect();
        self.asked(&asked);
        asked
    }

    fn asked(&mut self, asked: &[Interest]) {
        self.asked += u64::from(!asked.is_empty());
        let request = self.asked;
        for interest in asked {
            self.unsent.remove(interest);
            self.leaving.remove(interest);
            if let Some(wish) = self.wish_mut(interest) {
                (wish.asked, wish.waits_since) = (request, None);
            }
        }
    }

    /// The count of requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.asked
    }

    /// A resource came, with all its aliases: what any of them, or its name, was an alias of before is returned.
    pub(crate) fn claim(
        &mut self,
        name: &ResourceName,
        aliases: impl Iterator<Item = ResourceName>,
    ) -> Vec<ResourceName> {
        let mut robbed: Vec<_> = self.aliases.remove(name).into_iter().collect();
        self.aliases.clear(name);
        for alias in aliases {
            if alias == *name || !self.names.contains_key(&alias) {
                continue;
            }
            robbed.extend(self.aliases.insert(alias, name));
        }
        robbed
    }

    /// Whether a name stands for what is held.
    pub(crate) fn is_alias(&self, alias: &ResourceName) -> bool {
        self.aliases.canonical(alias).is_some()
    }

    /// A name is not wanted any more: what it was an alias of.
    pub(crate) fn forget_alias(&mut self, alias: &ResourceName) -> Option<ResourceName> {
        self.aliases.remove(alias)
    }

    /// A name is not there: what it was an alias of.
    pub(crate) fn gone(&mut self, name: &ResourceName) -> Option<ResourceName> {
        self.aliases.clear(name);
        self.aliases.remove(name)
    }

    /// The names among those wanted that are aliases of a resource.
    pub(crate) fn aliases(&self, name: &ResourceName) -> impl Iterator<Item = &ResourceName> {
        self.aliases.of(name).iter()
    }

    /// Whether this is news on this stream.
    pub(crate) fn answer(&mut self, interest: &Interest) -> bool {
        let Some(wish) = self.wish_mut(interest).filter(|wish| wish.asked > 0) else { return false };
        wish.known = true;
        !std::mem::replace(&mut wish.answered, true)
    }

    /// It is not answered on this stream, whatever was said before.
    pub(crate) fn take_back_answer(&mut self, interest: &Interest) {
        if let Some(wish) = self.wish_mut(interest) {
            (wish.answered, wish.waits_since) = (false, None);
        }
    }

    /// Some stream answered it: one of before.
    pub(crate) fn was_answered(&mut self, interest: &Interest) {
        if let Some(wish) = self.wish_mut(interest) {
            wish.known = true;
        }
    }

    /// The same of a name, and of the aliases by which it is wanted.
    pub(crate) fn name_was_answered(&mut self, name: &ResourceName) {
        for name in self.aliases.of(name).iter().chain([name]) {
            if let Some(wish) = self.names.get_mut(name) {
                wish.known = true;
            }
        }
    }

    /// From now on its silence counts.
    pub(crate) fn waits_since(&mut self, interest: &Interest, now: Instant) {
        if let Some(wish) = self.wish_mut(interest) {
            wish.waits_since = Some(now);
        }
    }

    /// Why it is not answered was said: silence means nothing any more.
    pub(crate) fn stop_timer(&mut self, interest: &Interest) {
        if let Some(wish) = self.wish_mut(interest) {
            wish.waits_since = None;
        }
    }

    /// A name, and the aliases by which it is wanted, have their answer.
    pub(crate) fn answer_name(&mut self, name: &ResourceName) {
        let own = self.may_be_named(name).then_some(name);
        for name in self.aliases.of(name).iter().chain(own) {
            if let Some(wish) = self.names.get_mut(name).filter(|wish| wish.asked > 0) {
                (wish.known, wish.answered) = (true, true);
            }
        }
    }

    /// The glob that `name` is a member of, if that is news on this stream.
    pub(crate) fn answer_parent(&mut self, name: &ResourceName) -> Option<Interest> {
        if self.globs == 0 {
            return None;
        }
        let parent = name.glob_parent_key()?;
        let wish = self.names.get_mut(&parent as &dyn NameKey).filter(|wish| !wish.answered)?;
        (wish.known, wish.answered) = (true, true);
        name.glob_parent().map(Interest::Name)
    }

    fn wish_mut(&mut self, interest: &Interest) -> Option<&mut Wish> {
        match interest {
            Interest::Wildcard => self.wildcard.as_mut(),
            Interest::Name(name) => self.names.get_mut(name),
        }
    }
}
