//! The links of one subscriber.

use crate::keys::{LinkKey, Target};
use crate::subscribers::places::Places;
use crate::subscribers::targets::Targets;

/// So many are gone through. Models of a whole cache have few: they are to meet the table, too.
const FEW: usize = if cfg!(test) { 1 } else { 8 };
/// To give back room for as few is not worth it.
const LITTLE: usize = if cfg!(test) { 4 } else { 64 };

/// In order, and found by what they are to.
#[derive(Default)]
pub(crate) struct Links {
    all: Vec<LinkKey>,
    /// Where each is, if there are more than [`FEW`], but for the one that is being left.
    places: Option<Box<Places>>,
    /// No link before this one is to a name that was not answered.
    pub(crate) first_unanswered: u32,
    /// The last of them is being left: it is found, and stands no longer among the others.
    leaving: bool,
    /// The subscriber is closed: of the first, so many are gone, and so many stand no longer among the others.
    closing: Option<(u32, u32)>,
}

impl Links {
    /// Those that are not being left.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[LinkKey] {
        let (_, left) = self.closing.unwrap_or_default();
        let end = self.all.len() - usize::from(self.leaving);
        self.all.get(left as usize..end).unwrap_or_default()
    }

    /// Whether there may be more than one.
    #[inline]
    pub(crate) fn may_be_several(&self) -> bool {
        self.all.len() > 1
    }

    #[inline]
    pub(crate) fn find(&self, target: Target, by: Targets<'_>) -> Option<LinkKey> {
        let (gone, _) = self.closing.unwrap_or_default();
        let is = |at: LinkKey| by.of(at) == target;
        let Some(places) = &self.places else {
            return self.all.iter().skip(gone as usize).copied().find(|at| is(*at));
        };
        let at = |place: usize| self.all.get(place).copied().filter(|_| place >= gone as usize);
        let place = places.find(by.hash(target), |place| at(place).is_some_and(is));
        place.and_then(at).or_else(|| self.all.last().copied().filter(|at| self.leaving && is(*at)))
    }

    /// To a target that none of them is to.
    #[inline]
    pub(crate) fn push(&mut self, at: LinkKey, by: Targets<'_>) {
        debug_assert!(!self.leaving && self.closing.is_none(), "another is being left");
        let place = self.all.len();
        self.all.push(at);
        match &mut self.places {
            Some(places) if places.fits(place + 1) => {
                let all = &self.all;
                let hash = |place: usize| all.get(place).map_or(0, |at| by.hash_of(*at));
                places.insert(hash(place), place, hash);
            }
            None if place < FEW => {}
            _ => self.index(place + 1, by),
        }
    }

    /// One of them is being left.
    pub(crate) fn leave(&mut self, at: LinkKey, by: Targets<'_>) {
        debug_assert!(!self.leaving && self.closing.is_none(), "another is being left");
        let found = match &self.places {
            None => self.all.iter().position(|other| *other == at),
            Some(places) => places.find(by.hash_of(at), |place| self.all.get(place) == Some(&at)),
        };
        let Some(place) = found else { return };
        let last = self.all.len() - 1;
        let unanswered = self.first_unanswered as usize;
        // The last of the answered takes its place, so that the unanswered one behind them need not be looked for anew.
        let hole = if place < unanswered { unanswered - 1 } else { place };
        self.first_unanswered = hole.min(unanswered) as u32;
        if let Some(places) = &mut self.places {
            places.remove(by.hash_of(at), place);
        }
        for (to, from) in [(place, hole), (hole, last)] {
            self.all.swap(to, from);
            if let (Some(places), Some(moved), true) = (&mut self.places, self.all.get(to), to != from) {
                places.set(by.hash_of(*moved), from, to);
            }
        }
        self.leaving = true;
    }

    /// The next of a subscriber that is closed, of which not more than `most` are taken; with whether they are the last. First the
    /// `collections`, if there are any: a name is left with all that it is in, or that would seem to have been left before it.
    pub(crate) fn close(&mut self, most: usize, collections: bool, by: Targets<'_>) -> (Vec<LinkKey>, bool) {
        if self.closing.is_none() && collections {
            self.all.sort_by_key(|at| matches!(by.of(*at), Target::Slot(_)));
            if self.places.is_some() {
                self.index(self.all.len(), by);
            }
        }
        let (_, left) = self.closing.get_or_insert_default();
        let part: Vec<_> = self.all.iter().skip(*left as usize).take(most).copied().collect();
        *left += part.len() as u32;
        (part, *left as usize == self.all.len())
    }

    /// What was being left, or was closed first, is gone.
    pub(crate) fn drop_left(&mut self, by: Targets<'_>) {
        if let Some((gone, _)) = &mut self.closing {
            *gone += 1;
            return;
        }
        debug_assert!(self.leaving, "none is being left");
        self.all.pop();
        self.leaving = false;
        // Twice what is left, so that as many come or go before it is made anew.
        let len = self.all.len();
        if self.all.capacity() > LITTLE && len < self.all.capacity() / 8 {
            self.all.shrink_to(2 * len);
            self.places = None;
            if len > FEW {
                self.index(2 * len, by);
            }
        }
    }

    /// Finds out where each of them is, with room for so many.
    #[inline(never)]
    fn index(&mut self, room: usize, by: Targets<'_>) {
        let mut places = Places::with_room(room);
        let hash = |place: usize| self.all.get(place).map_or(0, |at| by.hash_of(*at));
        (0..self.all.len()).for_each(|place| places.insert(hash(place), place, hash));
        self.places = Some(Box::new(places));
    }
}

#[cfg(test)]
mod tests;
