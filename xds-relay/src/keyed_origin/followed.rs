//! An origin that is followed, and who is told of it: whatever hears of its keys, shares it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use xdstp_client::state::{KeptValue, State};

use super::contents::{Read, Remembered, SAID};
use super::follower::Follower;
use super::outline::{has_secret, named};
use super::relayed::{Teller, Told};
use super::shown::shown;
use crate::lock::lock;

/// How long who has the keys may say nothing before what was known before a restart is served.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// How long what was known before a restart may take to be read before the keys are listed: a list that lacks much of it is held,
/// which nobody can tell without.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether it was.
pub(crate) const READ_LOOKED: Duration = Duration::from_millis(50);

/// What is followed.
pub(crate) struct Followed<R, T> {
    pub(crate) follower: Follower<R>,
    teller: Teller<T>,
    /// Why a part is not answered.
    pub(crate) away: BTreeMap<String, String>,
}

impl<R: Read, T: Told> Followed<R, T> {
    pub(crate) fn new(follower: Follower<R>, teller: Teller<T>) -> Self {
        Self { follower, teller, away: BTreeMap::new() }
    }

    /// Something is followed no more.
    pub(crate) fn lost(&mut self, why: String) {
        // What is known stays, and never changes again.
        self.away.insert(String::new(), why);
        self.tell();
    }

    /// Who has the keys had the time to answer: what was known before a restart is served, if he did not.
    pub(crate) fn fall_back(&mut self) {
        for part in self.follower.unanswered() {
            self.away.entry(part.to_owned()).or_insert_with(|| "it has not answered yet".to_owned());
        }
        self.follower.fall_back();
        self.tell();
    }

    /// A part had these values before a restart. Before anybody is served them there is nothing to be told.
    fn remember(&mut self, part: &str, all: Vec<Remembered>) {
        self.follower.remember(part, all);
        if self.follower.is_due() {
            self.tell();
        }
    }

    pub(crate) fn tell(&mut self) {
        let words = |(part, why): (&String, &String)| match part.trim_end_matches('/') {
            "" => why.clone(),
            part => format!("{part}: {why}"),
        };
        let away = self.away.iter().next().map(words);
        self.teller.tell(&mut self.follower, away);
    }
}

/// Where the values of an origin are kept, to survive a restart.
#[derive(Clone)]
pub(crate) struct Keeper {
    state: Arc<State>,
    /// Of the origin, in the configuration.
    position: usize,
    /// What tells its keys from those of other origins.
    of: Vec<String>,
    label: String,
}

impl Keeper {
    pub(crate) fn new(state: Arc<State>, position: usize, label: &str, of: impl IntoIterator<Item = String>) -> Self {
        Self { state, position, of: of.into_iter().collect(), label: label.to_owned() }
    }

    /// Keeps the values of a part from now on, which `of` tells from others beside its name. What was kept of it before is known
    /// when this returns, or once it can be read: it is read here, or there, and nobody is held up by it.
    pub(crate) fn keep<R: Read + Clone + Sync, T: Told>(
        &self,
        followed: &Arc<Mutex<Followed<R, T>>>,
        reader: &R,
        (part, of): (&str, &str),
    ) {
        // What is kept has this as long as there is a state.
        let (weak, reader, name) = (Arc::downgrade(followed), reader.clone(), part.to_owned());
        let remember = move |kept: Vec<(String, KeptValue)>| {
            let all = read(&reader, kept);
            if let Some(followed) = weak.upgrade() {
                lock(&followed).remember(&name, all);
            }
        };
        let parts: Vec<_> = self.of.iter().map(String::as_str).chain([part, of]).collect();
        let label = format!("{} {part}", self.label);
        let kept = self.state.keep_values(self.position, &parts, label.trim_end(), remember);
        lock(followed).follower.keep(part, kept);
    }
}

/// What is good of it still: what is refused is not served, and comes again if it is there. Where its key says which resource it was, that is
/// known to be missed.
fn read<R: Read>(reader: &R, kept: Vec<(String, KeptValue)>) -> Vec<Remembered> {
    let mut all = Vec::with_capacity(kept.len());
    let mut refused = Refused::default();
    for (key, kept) in kept {
        if kept.is_outline {
            let names = named(&kept.outline);
            all.push(Remembered { key, kept, held: Err(names), is_refused: false });
            continue;
        }
        let read = reader.read(&key, &kept.value);
        let is_refused = read.is_err();
        match read.or_else(|_| reader.read_kept(&key, &kept.value)) {
            // What is to be encrypted was not, or was.
            Ok(held) if has_secret(&held) != kept.is_secret => {}
            Ok(held) => all.push(Remembered { key, kept, held: Ok(held), is_refused }),
            Err(why) => {
                refused.add(&reader.shown_key(&key), &why);
                let named = reader.named(&key);
                all.extend(named.map(|name| Remembered { key, kept, held: Err(vec![name]), is_refused }));
            }
        }
    }
    refused.lines().iter().for_each(|line| tracing::warn!(origin = reader.origin(), "{line}"));
    all
}

/// What was kept and is refused now: all of it may be, where the configuration is another.
#[derive(Default)]
struct Refused {
    first: Vec<String>,
    more: usize,
}

impl Refused {
    fn add(&mut self, key: &str, why: &str) {
        if self.first.len() < SAID {
            self.first.push(format!("{key}: what was kept of it is left out: {}", shown(why)));
        } else {
            self.more += 1;
        }
    }

    fn lines(self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("what was kept of {} more is left out", self.more));
        self.first.into_iter().chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use xdstp_cache::TypeUrl;
    use xdstp_client::federation::Held;
    use xdstp_uri::ResourceName;

    use super::*;

    /// Who reads nothing, and knows what has a name in its key.
    struct Strict;

    impl Read for Strict {
        fn origin(&self) -> &str {
            "kv"
        }

        fn read(&self, _: &str, _: &Bytes) -> Result<Vec<Held>, String> {
            Err("no".to_owned())
        }

        fn named(&self, key: &str) -> Option<(TypeUrl, ResourceName)> {
            Some((TypeUrl::from("x"), ResourceName::parse(key.strip_prefix("named/")?).unwrap()))
        }
    }

    #[test]
    fn what_was_kept_and_is_refused_is_missed_where_its_key_names_it() {
        let kept = ["named/a", "b"].map(|key| (key.to_owned(), KeptValue::new("v", "")));
        let all = read(&Strict, kept.to_vec());
        assert_eq!(all.len(), 1);
        assert!(matches!(&all[0].held, Err(names) if names[0].1.as_str() == "a"), "{all:?}");
    }

    #[test]
    fn of_much_that_was_kept_and_is_refused_the_first_are_named_and_the_rest_counted() {
        let lines = |refused: usize| {
            let mut all = Refused::default();
            (0..refused).for_each(|key| all.add(&format!("k{key}"), "no"));
            all.lines()
        };
        assert_eq!(lines(0), [""; 0]);
        assert_eq!(lines(1), ["k0: what was kept of it is left out: no"]);
        assert_eq!(lines(SAID).len(), SAID);
        assert_eq!(lines(10_000).len(), SAID + 1);
        assert_eq!(lines(10_000)[SAID], "what was kept of 9980 more is left out");
    }
}
