//! Names that are gone, kept for those who come back: bounded in number and age.

use std::time::Instant;

use crate::keys::ListKey;
use crate::moments::Seq;
use crate::store::list::List;
use crate::store::tables::Store;

impl<V> Store<V> {
    /// Forgets the content of what went before a moment.
    pub(crate) fn expire_departures(&mut self, before: Instant) {
        self.types.values_mut().for_each(|of| of.departures.expire(before));
    }

    /// A link of a list has passed its tombstones up to a moment: it comes, goes on, or goes.
    pub(crate) fn pass(&mut self, at: ListKey, from: Option<Seq>, to: Option<Seq>) {
        let List { passed, owed, needed, .. } = &mut self.lists[at];
        if let Some(cursor) = to {
            *passed.entry(cursor).or_default() += 1;
        }
        if let Some(cursor) = from
            && let Some(links) = passed.get_mut(&cursor)
        {
            *links -= 1;
            if *links == 0 {
                passed.remove(&cursor);
            }
        }
        if owed.is_empty() {
            return;
        }
        let slowest = passed.first_key_value().map_or(Seq::MAX, |(cursor, _)| *cursor);
        while owed.front().is_some_and(|oldest| oldest.seq <= slowest) {
            owed.pop_front();
        }
        if owed.is_empty() {
            // A large change may have made it large.
            (*owed, *needed) = Default::default();
        }
    }

    pub(crate) fn with_tombstones(&mut self, at: ListKey, change: impl FnOnce(&mut List)) {
        let list = &mut self.lists[at];
        let Some(was) = list.gone.front().map(|gone| gone.at) else { return };
        change(list);
        let is = list.gone.front().map(|gone| gone.at);
        if is != Some(was) {
            self.buried.remove(&(was, at));
            self.buried.extend(is.map(|is| (is, at)));
        }
    }
}
