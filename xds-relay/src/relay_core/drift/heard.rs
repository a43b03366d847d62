//! What an origin has said so far on streams that know of nothing before: so much of it, and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use xds_transport::{Frame, Rejected};
use xdstp_cache::{Interest, Resource, TypeUrl, Version};
use xdstp_uri::ResourceName;

/// What is kept of an origin's words, beside twice what the relay has of it: who says far more than the relay knows of is not
/// to be compared, but makes names up.
const SPARE: usize = 32 << 20;

/// What is kept of a name takes so much beside its texts, about.
const ENTRY: usize = 160;

/// How much of an origin's words about itself is told, in characters.
const WORDS: usize = 200;

/// How many names are taken out at a time, so that who hears more does not wait.
const BATCH: usize = 1024;

/// A name, and of which type.
pub(super) type Key = (TypeUrl, ResourceName);

/// What is asked for.
pub(super) type Ask = (TypeUrl, Interest);

/// How many bytes of what is said may still be kept, by all streams of one check together.
#[derive(Debug)]
pub(super) struct Room(AtomicUsize);

impl Default for Room {
    fn default() -> Self {
        Self(AtomicUsize::new(SPARE))
    }
}

impl Room {
    /// The relay knows of this, so that its origin may say it.
    pub(super) fn grow_by(&self, name: &ResourceName, version: Option<&Version>) {
        self.give(2 * size(name, version));
    }

    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn size(name: &ResourceName, version: Option<&Version>) -> usize {
    ENTRY + name.as_str().len() + version.map_or(0, |version| version.as_str().len())
}

/// What somebody has of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) version: Version,
    /// What tells contents apart in this process.
    digest: u128,
}

impl Side {
    pub(super) fn of(resource: &Resource<Frame>) -> Self {
        Self { version: resource.version.clone(), digest: resource.digest() }
    }

    /// Whatever it is called.
    pub(super) fn has_the_content_of(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// What an origin says of a name.
pub(super) enum Said {
    There(Side),
    Gone,
    /// What is wrong with it, or nothing for so long that it may not be used any more: that does not say what there is.
    Unclear,
}

/// What was said so far on one stream.
#[derive(Default)]
pub(super) struct Heard {
    names: BTreeMap<Key, Said>,
    /// What names that are asked for, and are aliases, stand for.
    aliases: BTreeMap<Key, ResourceName>,
    /// Collections of which something was said.
    known: BTreeSet<Ask>,
    /// Those of which all there is was said.
    complete: BTreeSet<Ask>,
    /// When something was said last.
    pub(super) at: Option<Instant>,
    /// Why there is no stream, if the last try came to nothing.
    lost: Option<String>,
    /// What was said first that cannot be used.
    unreadable: Option<String>,
    /// There was no room for all that was said.
    is_full: bool,
    room: Arc<Room>,
}

impl Heard {
    pub(super) fn new(room: Arc<Room>) -> Self {
        Self { room, ..Self::default() }
    }

    /// The last word of a name counts. Without room for it nothing is known of the name, nor what a collection lacks.
    pub(super) fn hear(&mut self, key: Key, said: Said) {
        let size_of = |said: &Said| match said {
            Said::There(side) => size(&key.1, Some(&side.version)),
            Said::Gone | Said::Unclear => size(&key.1, None),
        };
        if let Some(before) = self.names.get(&key) {
            self.room.give(size_of(before));
        }
        if self.room.take(size_of(&said)) {
            self.names.insert(key, said);
        } else {
            self.names.remove(&key);
            self.is_full = true;
            self.complete.clear();
        }
    }

    /// A name that is asked for stands for another one.
    pub(super) fn hear_alias(&mut self, alias: Key, of: &ResourceName) {
        self.aliases.insert(alias, of.clone());
    }

    /// Something was said of these, and all there is of some.
    pub(super) fn hear_collections(&mut self, known: impl Iterator<Item = Ask>, complete: impl Iterator<Item = Ask>) {
        self.known.extend(known);
        let complete: Vec<_> = complete.collect();
        self.known.extend(complete.iter().cloned());
        if !self.is_full {
            self.complete.extend(complete);
        }
    }

    pub(super) fn hear_unreadable(&mut self, rejected: &[Rejected]) {
        if let (None, Some(Rejected { name, reason, .. })) = (&self.unreadable, rejected.first()) {
            self.unreadable = Some(cut(&format!("it says what cannot be used: {}: {reason}", cut(name))));
        }
    }

    /// There is no stream any more, or there is one that was answered.
    pub(super) fn is_lost(&mut self, why: Option<&str>) {
        self.lost = why.map(cut);
    }

    pub(super) fn said(&self, key: &Key) -> Option<&Said> {
        self.names.get(key)
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether all there is of a collection was said.
    pub(super) fn is_complete(&self, ask: &Ask) -> bool {
        self.complete.contains(ask)
    }

    /// Whether something was said of what is asked for: of a name, as whatever it is called.
    pub(super) fn is_known(&self, ask: &Ask) -> bool {
        match name_of(ask) {
            Some(key) => self.names.contains_key(&key) || self.aliases.contains_key(&key),
            None => self.known.contains(ask),
        }
    }

    /// Whether nothing more is to be waited for that an origin says of it.
    pub(super) fn is_settled(&self, ask: &Ask) -> bool {
        if name_of(ask).is_some() { self.is_known(ask) } else { self.is_complete(ask) }
    }

    /// What is asked for by another name.
    pub(super) fn asked_for_by_alias(&self) -> BTreeSet<Key> {
        self.aliases.iter().map(|((type_url, _), of)| (type_url.clone(), of.clone())).collect()
    }

    /// Some of what is there, in order, behind a name: that may be the last that was taken before.
    pub(super) fn there_behind(&self, behind: Option<&Key>) -> (Vec<(Key, Side)>, Option<Key>) {
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let part: Vec<_> = self.names.range((from, Bound::Unbounded)).take(BATCH).collect();
        let last = part.last().map(|(key, _)| (*key).clone());
        let there = part.into_iter().filter_map(|(key, said)| match said {
            Said::There(side) => Some((key.clone(), side.clone())),
            Said::Gone | Said::Unclear => None,
        });
        (there.collect(), last)
    }

    /// Why not all can be compared, if something stands in the way.
    pub(super) fn trouble(&self) -> Option<String> {
        let silent = || self.at.is_none().then(|| "it did not answer".to_owned());
        match self.is_full {
            true => Some("it says far more than the relay knows of it".to_owned()),
            false => self.lost.clone().or_else(|| self.unreadable.clone()).or_else(silent),
        }
    }
}

/// The name that is asked for, if it is one alone.
pub(super) fn name_of((type_url, interest): &Ask) -> Option<Key> {
    match interest {
        Interest::Name(name) if !name.is_glob() => Some((type_url.clone(), name.clone())),
        _ => None,
    }
}

fn cut(text: &str) -> String {
    text.chars().take(WORDS).collect()
}
