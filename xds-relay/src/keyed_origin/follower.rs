//! What becomes of what is listed and told: without I/O, and by a clock that is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use xdstp_client::federation::{Held, Unreadable};
use xdstp_client::state::{KeptChange, KeptValues};

use super::contents::{Change, Contents, Done, Read, Remembered};
use super::refusal::Instead;
use super::removals::Removals;
use super::standing::Known;

/// An origin's content, and what is to be done next.
///
/// It is told in parts, each of which is all keys that begin alike, and is listed and watched by itself.
pub(crate) struct Follower<R> {
    contents: Contents<R>,
    /// What is held, and what went lately, by part.
    removals: BTreeMap<String, Removals>,
    /// Whether one thing is done after the other.
    one_by_one: bool,
    /// The parts of which nothing is known: what the origin lacks is not known before they are listed.
    unlisted: BTreeSet<String>,
    /// What is served was not told since it changed; at first nothing is known.
    news: bool,
    refused: u64,
    /// What survives a restart, by part.
    kept: BTreeMap<String, Arc<KeptValues>>,
    /// Some of what is known is from before a restart.
    remembers: bool,
    /// Nobody waits any more for who may say it anew.
    is_due: bool,
    /// It was told all that there is: it is known of everything else that it is not there.
    has_told_all: bool,
}

/// What is to be asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// What is done after that.
    Watch,
    /// All, not before this moment.
    List(Instant),
}

impl<R: Read> Follower<R> {
    /// Of an origin with these parts.
    pub(crate) fn new(contents: Contents<R>, parts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let unlisted = parts.into_iter().map(Into::into).collect();
        Self {
            contents,
            removals: BTreeMap::new(),
            one_by_one: false,
            unlisted,
            news: false,
            refused: 0,
            kept: BTreeMap::new(),
            remembers: false,
            is_due: false,
            has_told_all: false,
        }
    }

    /// What is good in a part is kept here from now on.
    pub(crate) fn keep(&mut self, part: &str, kept: Arc<KeptValues>) {
        self.kept.insert(part.to_owned(), kept);
    }

    /// A part had these values before a restart. They are there until a list of all of it lacks them, which is as if they had gone.
    pub(crate) fn remember(&mut self, part: &str, all: Vec<Remembered>) {
        let is_listed = !self.unlisted.contains(part);
        for remembered in all {
            if !self.contents.remember(&remembered, is_listed) {
                continue;
            }
            self.news = true;
            self.remembers |= !is_listed;
            if let Some(kept) = self.kept.get(part).filter(|_| is_listed) {
                kept.change([(remembered.key, KeptChange::Put(remembered.kept))]);
            }
        }
    }

    /// Whether all that was kept before a restart is known, if any of it is kept.
    pub(crate) fn was_read(&self) -> bool {
        self.kept.values().all(|kept| kept.was_read())
    }

    /// What is known from before a restart is served from now on, where it is not said anew.
    pub(crate) fn fall_back(&mut self) {
        self.is_due = true;
    }

    /// Whether it is.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// The parts of which nobody has said anything yet: a list that is held was said.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &str> {
        let is_held = |part: &&str| self.removals.get(*part).is_some_and(|removals| removals.held_back() > 0);
        self.unlisted.iter().map(String::as_str).filter(move |part| !is_held(part))
    }

    /// What goes one after the other within a minute is one removal: of who keeps the keys, and does not do several things at once.
    pub(crate) fn one_by_one(self) -> Self {
        Self { one_by_one: true, ..self }
    }

    /// All that there is in a part, at one moment.
    pub(crate) fn listed(&mut self, part: &str, values: Vec<Change>, now: Instant) -> Next {
        let changes = self.contents.replacing(part, values);
        if let next @ Next::List(_) = self.done(part, &changes, true, now) {
            return next;
        }
        self.unlisted.remove(part);
        if let Some(kept) = self.kept.get(part) {
            kept.complete(|key| self.contents.has_key(key));
        }
        // That there is nothing is news, too, for who knew nothing.
        self.news = true;
        Next::Watch
    }

    /// All keys of a part with a prefix have these values from now on, and no others.
    pub(crate) fn replaced(&mut self, part: &str, prefix: &str, values: Vec<Change>, now: Instant) -> Next {
        let changes = self.contents.replacing(prefix, values);
        self.told(part, &changes, now)
    }

    /// All keys of a part with these prefixes are gone, as one change.
    pub(crate) fn removed(&mut self, part: &str, prefixes: &BTreeSet<String>, now: Instant) -> Next {
        let changes: Vec<_> = prefixes.iter().flat_map(|prefix| self.contents.replacing(prefix, Vec::new())).collect();
        self.told(part, &changes, now)
    }

    /// What was done in a part since, as one change.
    pub(crate) fn told(&mut self, part: &str, changes: &[Change], now: Instant) -> Next {
        self.done(part, changes, false, now)
    }

    fn done(&mut self, part: &str, changes: &[Change], is_listed: bool, now: Instant) -> Next {
        let mut staged = self.contents.stage(changes, is_listed, now);
        let one_by_one = || Removals::one_by_one(self.one_by_one);
        let (removals, contents) = (self.removals.entry(part.to_owned()).or_insert_with(one_by_one), &self.contents);
        removals.retain(now, |name| contents.has(name));
        if let Some(until) = removals.hold(&staged.gone, || contents.good(part), now) {
            return Next::List(until);
        }
        removals.went(std::mem::take(&mut staged.gone), now);
        if let Some(kept) = self.kept.get(part) {
            staged.keep(kept);
        }
        let Done { changed, refused, .. } = self.contents.commit(staged);
        self.news |= changed;
        self.refused += refused;
        Next::Watch
    }

    /// All that is served, if it is otherwise than at the last call, and all parts were listed.
    pub(crate) fn news(&mut self) -> Option<Vec<Held>> {
        let is_all = self.known() == Known::All;
        self.has_told_all |= is_all;
        (is_all && std::mem::take(&mut self.news)).then(|| self.contents.held())
    }

    /// Of what beside that it is not known whether it is there.
    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        self.contents.unreadable()
    }

    /// What is known to be there before it is known what there is, if that is to be served and is otherwise than at the last call: some
    /// of it is from before a restart, or beside what cannot be read.
    pub(crate) fn remembered(&mut self) -> Option<Vec<Held>> {
        let is_some = matches!(self.known(), Known::Before | Known::Readable);
        (is_some && std::mem::take(&mut self.news)).then(|| self.contents.held())
    }

    /// What is known of what there is.
    pub(crate) fn known(&self) -> Known {
        // Of a part that was never listed whole nothing is known, and what the others have is not what there is.
        let was_listed = |part: &String| self.kept.get(part).is_some_and(|kept| kept.was_complete());
        match self.unlisted.is_empty() {
            true if !self.has_told_all && self.contents.hides_any() => Known::Readable,
            true => Known::All,
            false if self.is_due && self.remembers && self.unlisted.iter().all(was_listed) => Known::Before,
            false => Known::Nothing,
        }
    }

    /// How many values were refused since the last call.
    pub(crate) fn newly_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// How many values are refused, or have what another one has, and the first of them.
    pub(crate) fn refused(&self) -> (u64, Option<String>) {
        self.contents.refused()
    }

    /// What there is instead of that.
    pub(crate) fn instead(&self) -> Option<Instead> {
        self.contents.instead()
    }

    /// How many resources are gone and served all the same.
    pub(crate) fn held_back(&self) -> usize {
        self.removals.values().map(Removals::held_back).sum()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use xdstp_cache::TypeUrl;
    use xdstp_client::state::KeptValue;
    use xdstp_uri::ResourceName;

    use super::*;
    use crate::keyed_origin::{HELD, Name};

    /// Who reads nothing any more, such as by a version of other types.
    struct Later;

    impl Read for Later {
        fn origin(&self) -> &str {
            "kv"
        }

        fn read(&self, _: &str, _: &Bytes) -> Result<Vec<Held>, String> {
            Err("no such type".to_owned())
        }
    }

    fn name(key: &str) -> Name {
        (TypeUrl::from("type.googleapis.com/x.Y"), ResourceName::parse(key).unwrap())
    }

    fn keys(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("k{number}")).collect()
    }

    fn values(keys: &[String]) -> Vec<Change> {
        let put = |key: &String| Change::Put { key: key.clone(), rank: String::new(), value: "v".into() };
        keys.iter().map(put).collect()
    }

    /// One that had these before a restart, and cannot read them any more.
    fn after_restart(keys: &[String]) -> Follower<Later> {
        let mut follower = Follower::new(Contents::new(Later), [""]);
        let kept = KeptValue::new("v", "");
        let lost = |key: &String| Remembered {
            key: key.clone(),
            kept: kept.clone(),
            held: Err(vec![name(key)]),
            is_refused: false,
        };
        follower.remember("", keys.iter().map(lost).collect());
        follower
    }

    #[test]
    fn what_was_there_before_a_restart_and_cannot_be_read_any_more_is_unknown_and_gone_with_its_keys_held_if_it_is_much()
     {
        let (keys, now) = (keys(3), Instant::now());
        let mut follower = after_restart(&keys);
        follower.fall_back();
        assert_eq!((follower.known(), follower.remembered().is_some()), (Known::Nothing, false));
        assert_eq!(follower.listed("", values(&keys), now), Next::Watch);
        assert_eq!((follower.newly_refused(), follower.news().map(|held| held.len())), (3, Some(0)));
        let names = follower.unreadable().into_iter().map(|of| of.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names, keys);
        let until = now + HELD;
        assert_eq!(follower.listed("", Vec::new(), now), Next::List(until));
        assert_eq!((follower.held_back(), follower.news().is_some()), (3, false));
        assert_eq!(follower.listed("", Vec::new(), until), Next::Watch);
        assert_eq!((follower.news().map(|held| held.len()), follower.unreadable().len()), (Some(0), 0));
    }

    #[test]
    fn of_little_that_cannot_be_read_any_more_nothing_is_held_as_it_goes() {
        let mut follower = after_restart(&keys(1));
        assert_eq!(follower.listed("", values(&keys(1)), Instant::now()), Next::Watch);
        assert_eq!((follower.held_back(), follower.newly_refused()), (0, 1));
        assert_eq!(follower.listed("", Vec::new(), Instant::now()), Next::Watch);
        assert_eq!((follower.held_back(), follower.unreadable().len()), (0, 0));
    }

    /// Who reads all but one, and of no key what is in it.
    struct Objects;

    impl Read for Objects {
        fn origin(&self) -> &str {
            "kube"
        }

        fn read(&self, key: &str, value: &Bytes) -> Result<Vec<Held>, String> {
            let resource = xds_transport::Frame::new(value.clone()).into_resource(None);
            let (type_url, name) = name(key);
            if value == "bad" { Err("no".to_owned()) } else { Ok(vec![(type_url, name, resource)]) }
        }

        fn may_hide(&self, _: &str) -> bool {
            true
        }
    }

    #[test]
    fn where_it_is_not_known_what_is_in_a_value_nothing_is_known_to_be_gone_until_it_is_read_or_goes() {
        let put = |key: &str, value: &'static str| Change::Put {
            key: key.to_owned(),
            rank: String::new(),
            value: value.into(),
        };
        for mended in [put("b", "good"), Change::Delete("b".to_owned())] {
            let (mut follower, now) = (Follower::new(Contents::new(Objects), [""]), Instant::now());
            follower.listed("", vec![put("a", "1"), put("b", "bad")], now);
            assert_eq!((follower.known(), follower.news().is_some()), (Known::Readable, false));
            assert_eq!(follower.remembered().map(|held| held.len()), Some(1));
            follower.listed("", vec![put("a", "1"), put("b", "bad")], now);
            assert_eq!((follower.known(), follower.newly_refused()), (Known::Readable, 1));
            follower.told("", &[mended], now);
            assert_eq!((follower.known(), follower.news().is_some()), (Known::All, true));
            // What is new and bad since, nobody was served.
            follower.told("", &[put("c", "bad")], now);
            follower.listed("", vec![put("a", "1"), put("d", "bad")], now);
            assert_eq!(follower.known(), Known::All);
        }
    }
}
