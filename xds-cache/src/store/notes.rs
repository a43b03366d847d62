//! Of what something changed, for who keeps it elsewhere, too.

use std::collections::HashSet;

use crate::interest::Interest;
use crate::text::TypeUrl;

/// Each once: bounded by what there is, or else by a number.
pub(crate) struct Notes {
    changed: HashSet<(TypeUrl, Interest)>,
    most: usize,
    /// They were too many.
    all: bool,
}

impl Notes {
    pub(crate) fn of(most: usize) -> Self {
        Self { changed: HashSet::new(), most, all: false }
    }

    /// Whether it is more than is noted.
    pub(crate) fn is_all(&self) -> bool {
        self.all
    }

    pub(crate) fn any(&self) -> bool {
        self.all || !self.changed.is_empty()
    }

    pub(crate) fn note_all(&mut self) {
        (self.changed, self.all) = (HashSet::new(), true);
    }

    /// Up to so many of them; `None` if all of it may be other than it was.
    pub(crate) fn take(&mut self, most: usize) -> Option<Vec<(TypeUrl, Interest)>> {
        if std::mem::take(&mut self.all) {
            return None;
        }
        let taken: Vec<_> = self.changed.iter().take(most).cloned().collect();
        taken.iter().for_each(|noted| _ = self.changed.remove(noted));
        Some(taken)
    }

    pub(crate) fn note(&mut self, type_url: TypeUrl, interest: Interest) {
        self.changed.insert((type_url, interest));
        if self.changed.len() > self.most {
            self.note_all();
        }
    }
}
