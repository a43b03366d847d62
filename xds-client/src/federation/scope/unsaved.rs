//! What is known of a scope, for who keeps it where it survives a restart.

use std::collections::BTreeSet;
use std::time::Instant;

use xds_transport::Frame;
use xdstp_cache::{Cache, Interest, Known};

use super::{BATCH, Scope};
use crate::federation::demand::Wish;

/// What is known of a name, or of a collection.
pub type Knows = (Wish, Vec<Known<Frame>>);

/// What may be other than it was.
pub enum Unsaved {
    /// Of these, this is known now.
    Some(Vec<Knows>),
    /// All of it.
    All,
}

impl Scope {
    /// Takes some of what may be other than it was when that was taken last: `None` if nothing is.
    pub fn take_unsaved(&self, now: Instant) -> Option<Unsaved> {
        let cache = &mut self.lock().cache;
        if !cache.has_noted() {
            return None;
        }
        let Some(noted) = cache.take_noted(BATCH) else { return Some(Unsaved::All) };
        Some(Unsaved::Some(noted.into_iter().map(|wish| known(cache, wish, now)).collect()))
    }

    /// Whether anything is.
    pub fn is_unsaved(&self) -> bool {
        self.lock().cache.has_noted()
    }

    /// Has all of it taken anew: what was taken is not kept after all.
    pub fn unsave(&self) {
        self.lock().cache.note_all();
    }

    /// All of which anything may be known, and in parts of that what is; `others` is what was known before.
    pub fn known(&self, others: impl IntoIterator<Item = Wish>, now: Instant, mut visitor: impl FnMut(Knows)) {
        let mut wishes: BTreeSet<Wish> = others.into_iter().collect();
        self.visit_stored(
            |stored| (stored.type_url.clone(), Interest::Name(stored.name.clone())),
            |wish| {
                wishes.insert((wish.0.clone(), Interest::Wildcard));
                wishes.insert(wish);
            },
        );
        wishes.extend(self.subscriptions().into_iter().filter(|(_, interest)| interest.is_collection()));
        let wishes: Vec<_> = wishes.into_iter().collect();
        for part in wishes.chunks(BATCH) {
            let known: Vec<Knows> = {
                let cache = &self.lock().cache;
                part.iter().map(|wish| known(cache, wish.clone(), now)).collect()
            };
            known.into_iter().for_each(&mut visitor);
        }
    }
}

fn known(cache: &Cache<Frame>, wish: Wish, now: Instant) -> Knows {
    let known = cache.known_of(&wish.0, &wish.1, now);
    let known = known.into_iter().map(|known| known.map(Frame::clone)).collect();
    (wish, known)
}
