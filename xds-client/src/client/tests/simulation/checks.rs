//! What a watch may be told, and must have been told, by the [books](super::books).

use std::collections::BTreeSet;

use super::super::CDS;
use super::books::{Books, Entry, Why};
use super::history::{Target, authority_of};
use super::said::Word;
use super::server::{Key, covers};
use super::watched::{At, Lost, Shown, Watched};

/// How many redirects are followed here: more than there are.
const HOPS: usize = 4;

impl Books {
    fn entry(&self, key: &Key) -> Entry {
        self.entries.get(key).cloned().unwrap_or_default()
    }

    /// What a name is in the end, wherever it leads.
    pub(super) fn text_of(&self, key: &Key) -> Option<String> {
        let mut key = key.clone();
        for _ in 0..HOPS {
            match self.entry(&key).held? {
                Word::Text(text) => return Some(text),
                Word::Redirect(to) => key.1 = to,
                _ => return None,
            }
        }
        None
    }

    /// What a list has.
    fn members(&self, list: &Key) -> Option<BTreeSet<String>> {
        match self.entry(list).held? {
            Word::List(members) => Some(members.into_iter().collect()),
            _ => None,
        }
    }
}

impl Watched {
    /// What comes is what a server that counts has said, and what is not refused.
    pub(super) fn may_be_put(&self, name: &str, text: &str, books: &mut Books) {
        let known = books.text_of(&(self.target.of(), name.to_owned()));
        let is_right = match &self.target {
            Target::List(list) => {
                known.as_deref() == Some(text) && books.members(list).is_some_and(|of| of.contains(name))
            }
            Target::Or(_, other) => {
                let other = books.text_of(&(CDS, other.clone()));
                [known, other].iter().flatten().any(|known| known == text)
            }
            _ => known.as_deref() == Some(text),
        };
        if !is_right {
            books.fault(format!("{name}: {text:?} is told, where it is {:?}", books.entries));
        }
    }

    /// A member goes when who counts says so, or, of what another said, when that is all there is.
    pub(super) fn may_be_removed(&self, name: &str, books: &mut Books) {
        let key = (self.target.of(), name.to_owned());
        let counts = books.authorities[authority_of(name)].counts;
        let is_right = match &self.target {
            Target::List(list) => books.members(list).is_some_and(|of| !of.contains(name)),
            _ => {
                let known = books.entry(&key);
                let of_another = known.held.is_some() && known.by != counts;
                if of_another {
                    books.entries.remove(&key);
                }
                of_another || known.held.is_none()
            }
        };
        if !is_right {
            books.fault(format!("{name}: that it is gone is told, where it is {:?}", books.entries.get(&key)));
        }
    }

    pub(super) fn is_as_it_is(&mut self, books: &mut Books, at: &At) {
        let key = self.target.key();
        let wrong = match &self.target {
            Target::One(_) if self.is_plain() => self.is_as_one_is(&key, books),
            Target::One(_) => self.is_where_it_leads(&key, books),
            Target::Or(_, other) => self.is_one_or_other(&key, other, books),
            Target::All(_) => self.is_all(&key, books),
            Target::List(_) => self.is_of_list(&key, books),
            Target::Stranger => (!self.refused).then(|| "nobody may be asked, and that is not told".to_owned()),
        };
        if let Some(wrong) = wrong {
            books.fault(format!("{}: {wrong}", key.1));
        } else if at.settled && self.target != Target::Stranger {
            self.is_lost_or_not(&key, books, at);
        }
    }

    fn is_as_one_is(&self, key: &Key, books: &Books) -> Option<String> {
        let shown = self.shown.get(&key.1).cloned().unwrap_or_default();
        let known = books.entry(key);
        let is_right = shown == Shown { held: books.text_of(key), error: known.error };
        (!is_right).then(|| format!("{shown:?}, where it is {known:?}"))
    }

    /// What a redirect leads to may have come before it changed.
    fn is_where_it_leads(&self, key: &Key, books: &Books) -> Option<String> {
        let shown = self.shown.get(&key.1).cloned().unwrap_or_default();
        let (known, text) = (books.entry(key), books.text_of(key));
        let is_right = match (&text, known.held) {
            (Some(_), _) => shown.held == text,
            // What was there is used on until a target says something, or why not.
            (None, Some(Word::Redirect(to))) => {
                let why = books.entry(&(key.0, to)).error;
                let is_over = matches!(why, Some(Why::Absent | Why::Invalid | Why::Refused(7)));
                books.keeps || shown.held.is_none() || !is_over
            }
            (None, Some(_)) => false,
            (None, None) => shown.held.is_none(),
        };
        (!is_right).then(|| format!("{shown:?}, where it is {text:?}"))
    }

    fn is_one_or_other(&self, key: &Key, other: &str, books: &Books) -> Option<String> {
        let other = (CDS, other.to_owned());
        let shown = self.shown.get(&key.1).and_then(|shown| shown.held.clone());
        let (first, other) = (books.text_of(key), books.text_of(&other));
        let is_right = shown == first || first.is_none() && (shown.is_none() || other.is_none() || shown == other);
        (!is_right).then(|| format!("{shown:?}, where it is {first:?} or {other:?}"))
    }

    fn is_all(&self, key: &Key, books: &Books) -> Option<String> {
        let known = |key: &Key| books.entry(key).held.and_then(|_| books.text_of(key));
        let within = books.entries.keys().filter(|(of, name)| *of == key.0 && *name != key.1 && covers(&key.1, name));
        let all: Vec<_> = within.filter_map(|member| Some((member.1.clone(), known(member)?))).collect();
        let shown: Vec<_> =
            self.shown.iter().filter_map(|(name, shown)| Some((name.clone(), shown.held.clone()?))).collect();
        (shown != all).then(|| format!("{shown:?}, where there is {all:?}"))
    }

    fn is_of_list(&self, key: &Key, books: &Books) -> Option<String> {
        let members = books.members(key);
        let held = |name: &String| self.shown.get(name).and_then(|shown| shown.held.clone());
        let Some(members) = members else {
            let shown = self.shown.keys().find(|name| held(name).is_some());
            return shown.map(|name| format!("{name} is in no list"));
        };
        let left = self.shown.keys().find(|name| held(name).is_some() && !members.contains(*name));
        let wrong = members.iter().find(|name| {
            let text = books.text_of(&(CDS, (*name).clone()));
            text.is_some() && held(name) != text
        });
        left.or(wrong).map(|name| format!("{name}: {:?}, of {members:?}", self.shown.get(name)))
    }

    fn is_lost_or_not(&self, key: &Key, books: &mut Books, at: &At) {
        let of = authority_of(&key.1);
        let answers = books.seats(of).any(|book| book.answers);
        let mut wrong = None;
        if self.lost == Lost::Yes && answers {
            wrong = Some("that no server can be reached is told still, and one answers");
        }
        if books.all_fail(of) {
            let others = books.authorities[of].asked < books.lists[of].len();
            let is_quiet = self.lost == Lost::No && !matches!(self.target, Target::Or(..));
            if is_quiet && !others {
                wrong = Some("that no server can be reached is not told");
            }
            if others && books.lacks(of, at.now, at.patience) {
                wrong = Some("the next server is not asked");
            }
        }
        if let Some(wrong) = wrong {
            books.fault(format!("{}: {wrong}", key.1));
        }
    }
}
