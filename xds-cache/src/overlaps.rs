//! Variants of a name that are equally good for who selects among them.

use std::sync::Arc;

use xdstp_uri::ResourceName;

use crate::cache::Cache;
use crate::keys::{SelectorKey, TypeKey};
use crate::variant::{Overlap, Variant};

/// How many overlaps are kept for whoever asks.
const MAX_OVERLAPS: usize = 100;

impl<V> Cache<V> {
    /// Whose variants were found equally good, and for whom: since this was asked last, and of many the last hundred.
    /// [`Outcomes::overlapping`](crate::Outcomes::overlapping) counts all. Only what somebody selects is looked at: to find all
    /// overlaps of a set of variants is for its control plane, and `xds_matcher` has a lint for that.
    pub fn take_overlaps(&mut self) -> Vec<Overlap> {
        std::mem::take(&mut self.overlaps).into()
    }

    /// Two were found: one is served, and the other is not.
    pub(crate) fn note_overlap(
        &mut self,
        type_key: TypeKey,
        name: &ResourceName,
        key: Option<SelectorKey>,
        served: Arc<Variant>,
        other: Arc<Variant>,
    ) {
        self.totals.overlapping += 1;
        if self.overlaps.len() >= MAX_OVERLAPS {
            self.overlaps.pop_front();
        }
        let type_url = self.store[type_key].url.clone();
        let selector = self.store.selectors.of(key).clone();
        self.overlaps.push_back(Overlap { type_url, name: name.clone(), selector, served, other });
    }
}
