//! All that is kept of values under keys: whose they are is said while a store may be open already, or be opened later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::federation::lock;
use crate::state::format::{Moment, ScopeId};
use crate::state::kept::State;
use crate::state::kept_values::{KeptValue, KeptValues};
use crate::state::saver::Saver;
use crate::state::value_format::ReadValues;

/// Owners, and what was read before they came.
#[derive(Default)]
pub(crate) struct OwnedValues(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    owners: Vec<Arc<KeptValues>>,
    /// None before anything was read.
    read: Option<HashMap<ScopeId, ReadValues>>,
    /// How often something was saved since.
    saved: usize,
}

/// After so many times that something was saved nobody comes for what was read: it is known then which keys there are, and no more.
const AWAITED: usize = 60;

impl State {
    /// Keeps values under keys that somebody else has: `of` is what tells these keys from all others, and `label` what they are for people.
    /// They are of an origin by its position in the configuration. What was kept before is given to `reader`, once: now, or later
    /// by whoever opens the store, and not at all if there is nothing.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use std::time::{Instant, SystemTime};
    /// use xdstp_client::state::{Identities, KeptChange, KeptValue, Memory, State};
    ///
    /// let (store, now, wall) = (Memory::default(), Instant::now(), SystemTime::now());
    /// let open = || State::open(store.clone(), Identities::new(vec![None], None, String::new()), None, now, wall);
    /// let state = open()?;
    /// let values = state.keep_values(0, &["inventory", "eu"], "inventory", |_| unreachable!("nothing was kept"));
    /// values.change([("web".to_owned(), KeptChange::Put(KeptValue::new("10.0.0.1", "")))]);
    /// state.keep(&[], now, wall)?;
    ///
    /// let (given, kept) = channel();
    /// let _values = open()?.keep_values(0, &["inventory", "eu"], "inventory", move |kept| given.send(kept).unwrap());
    /// assert_eq!(kept.recv()?, [("web".to_owned(), KeptValue::new("10.0.0.1", ""))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_values(
        &self,
        origin: usize,
        of: &[&str],
        label: &str,
        reader: impl Fn(Vec<(String, KeptValue)>) + Send + Sync + 'static,
    ) -> Arc<KeptValues> {
        let parts: Vec<&[u8]> = [&b"values"[..]].into_iter().chain(of.iter().map(|part| part.as_bytes())).collect();
        let values = Arc::new(KeptValues::new(ScopeId::of(&parts), label, origin, Box::new(reader)));
        let read = {
            let Inner { owners, read, .. } = &mut *lock(&self.values.0);
            owners.push(values.clone());
            read.as_mut().map(|read| read.remove(&values.id).unwrap_or_default())
        };
        read.into_iter().for_each(|read| values.give(values.opened(read)));
        values
    }
}

impl OwnedValues {
    /// That is in the store, which is open now.
    pub(crate) fn opened(&self, mut read: HashMap<ScopeId, ReadValues>) {
        let opened: Vec<_> = {
            let inner = &mut *lock(&self.0);
            let of = |owner: &Arc<KeptValues>| (owner.clone(), read.remove(&owner.id).unwrap_or_default());
            let opened = inner.owners.iter().map(of).collect();
            (inner.read, inner.saved) = (Some(read), 0);
            opened
        };
        // Who is given what one of several had may ask for what is known of all.
        let given: Vec<_> = opened.into_iter().map(|(owner, read)| (owner.opened(read), owner)).collect();
        given.into_iter().for_each(|(given, owner)| owner.give(given));
    }

    /// The store is not there any more.
    pub(crate) fn lost(&self) {
        self.owners().iter().for_each(|owner| owner.lost());
    }

    /// Adds to what is written what is otherwise in the store. Whether that was all.
    pub(crate) fn save(&self, saver: &mut Saver, at: Moment) -> bool {
        {
            let inner = &mut *lock(&self.0);
            inner.saved += 1;
            let read = inner.read.iter_mut().filter(|_| inner.saved == AWAITED);
            read.flat_map(HashMap::values_mut).for_each(ReadValues::forget);
        }
        self.owners().iter().fold(true, |all, owner| all & owner.save(saver, at))
    }

    /// Whether anything was kept of an origin.
    pub(crate) fn had_any(&self, origin: usize) -> bool {
        self.owners().iter().any(|owner| owner.origin == origin && owner.had_any())
    }

    /// Since when nobody has said that what is kept of an origin is so, in seconds since 1970.
    pub(crate) fn stale_since(&self, origin: usize) -> Option<u64> {
        self.owners().iter().filter(|owner| owner.origin == origin).filter_map(|owner| owner.stale_since()).min()
    }

    fn owners(&self) -> Vec<Arc<KeptValues>> {
        lock(&self.0).owners.clone()
    }
}

#[cfg(test)]
mod tests;
