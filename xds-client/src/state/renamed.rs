//! What an earlier version of the program kept by another name, and what becomes of that: it is kept by the name of now, unless what
//! is there by that is newer. Versions may have gone back and forth: one of both is all that counts.

use std::collections::BTreeMap;

use xds_transport::Frame;
use xdstp_cache::{Interest, Known, TypeUrl};

use crate::federation::{Knows, Lack, ScopeKey};
use crate::state::format::{Moment, ScopeId, ScopeRecord, read_key};
use crate::state::kept::State;
use crate::state::read::Read;
use crate::state::saver::{Place, Saver};
use crate::state::store::{Op, Store, StoreError};

/// A scope that is used, and was kept by another name.
pub(crate) struct Renamed {
    key: ScopeKey,
    origin: usize,
    former: ScopeId,
    id: ScopeId,
    moved: Option<Moved>,
    /// What is to be deleted once what was put for it is there.
    left: Vec<Op>,
}

/// What counts of it: all that was kept by the former name.
pub(crate) struct Moved {
    /// When it was used last, in seconds since 1970: as long as not all is kept by the name of now, that was not used later.
    used: u64,
    /// Nothing else is there by the name of now any more.
    is_alone: bool,
    known: BTreeMap<(TypeUrl, Interest), Vec<Known<Frame>>>,
}

impl Read {
    /// Has what was read by a former name stand by the name of now, if it counts. Whether there is any in the store, and what of that
    /// is to be kept by the name of now.
    pub(crate) fn take_former(&mut self, former: &ScopeId, id: &ScopeId) -> Option<Option<Moved>> {
        let used = self.used.remove(former)?;
        let (known, since) = (self.loaded.remove(former).unwrap_or_default(), self.since.remove(former));
        let is_learned = self.learned.remove(former);
        let of_now = self.used.get(id).map(|used| (*used, self.learned.contains(id)));
        // What is there by both names was used at the same moment where a program was cut short that moved it from one to the other.
        let is_part = !is_learned && of_now == Some((used, false));
        let counts = match of_now {
            None => true,
            Some((of_now, true)) => !is_learned || of_now < used,
            // What others know is of no use to who knows anything.
            Some((of_now, false)) => !is_learned && of_now <= used,
        };
        if counts {
            let loaded = self.loaded.entry(id.clone()).or_default();
            if !is_part {
                loaded.clear();
            }
            loaded.extend(known.iter().cloned());
            // Its name had the servers in it.
            self.of_another.remove(id);
            self.used.insert(id.clone(), used);
            match since {
                Some(since) => _ = self.since.insert(id.clone(), since),
                None => _ = self.since.remove(id),
            }
            match is_learned {
                true => _ = self.learned.insert(id.clone()),
                false => _ = self.learned.remove(id),
            }
        }
        (!is_learned).then(|| counts.then(|| Moved { used, is_alone: is_part, known: by_wish(known) }))
    }

    /// It is of no use.
    pub(crate) fn forget(&mut self, id: &ScopeId) {
        self.loaded.remove(id);
        self.since.remove(id);
        self.used.remove(id);
        self.learned.remove(id);
    }
}

impl Renamed {
    pub(crate) fn new(key: &ScopeKey, origin: usize, former: ScopeId, id: &ScopeId, moved: Option<Moved>) -> Self {
        Self { key: key.clone(), origin, former, id: id.clone(), moved, left: Vec::new() }
    }
}

impl State {
    /// Keeps by their names of now the scopes that are used, and were kept by others: so much at once, and each before it goes by the former name.
    /// Before anything that is heard of them: what is there by a former name is no older. Whether that was all.
    pub(crate) fn rename(&self, saver: &mut Saver, store: &dyn Store, at: Moment) -> Result<bool, StoreError> {
        let (mut renamed, mut later) = (self.take_renamed(), Vec::new());
        while let Some(mut next) = renamed.pop() {
            let done = self.rename_one(saver, store, &mut next, at);
            if !matches!(done, Ok(true)) {
                later.push(next);
            }
            if done.is_err() || saver.is_full() {
                renamed.append(&mut later);
                self.rename_again(renamed);
                return done.map(|_| false);
            }
        }
        let is_all = later.is_empty();
        self.rename_again(later);
        Ok(is_all)
    }

    /// Whether all of it is.
    fn rename_one(
        &self,
        saver: &mut Saver,
        store: &dyn Store,
        renamed: &mut Renamed,
        at: Moment,
    ) -> Result<bool, StoreError> {
        let Renamed { key, origin, former, id, moved, left } = renamed;
        // What was put for these was written.
        left.drain(..).for_each(|op| saver.add(op));
        let said_by = self.identities.said_by(*origin).unwrap_or_default();
        let is_mixed = said_by.is_empty();
        let record = |used| ScopeRecord {
            label: key.to_string(),
            used,
            stale_since: self.is_stale_since(id),
            whose: self.identities.whose(key, *origin).unwrap_or_default(),
            is_complete: false,
            said_by: said_by.to_owned(),
        };
        if let Some(Moved { used, is_alone, known }) = moved {
            *is_alone = *is_alone || delete_all(saver, store, id)?;
            if !*is_alone {
                return Ok(false);
            }
            let is_any = !known.is_empty();
            let record = || record(*used);
            let place = Place { key, is_watched: false, id, is_mixed, record: &record };
            while !saver.is_full()
                && let Some((of, known)) = known.pop_first()
            {
                left.extend(saver.delete_later(former.key_of(&of.0, &of.1)));
                saver.set(&place, Knows { of, known, lack: Lack::Gone, is_said: false, aliases: None }, at);
            }
            if is_any {
                return Ok(false);
            }
        }
        if !delete_all(saver, store, former)? {
            return Ok(false);
        }
        if moved.is_some() && saver.scopes.has(id) {
            let record = || record(at.seconds());
            saver.uses(&Place { key, is_watched: false, id, is_mixed, record: &record }, at);
        }
        Ok(true)
    }
}

/// Nothing is kept of a scope. Whether that is all that is to be done for it.
fn delete_all(saver: &mut Saver, store: &dyn Store, id: &ScopeId) -> Result<bool, StoreError> {
    for entry in store.list(&id.prefix())?.entries {
        if saver.is_full() {
            return Ok(false);
        }
        if read_key(&entry.key).is_some() {
            saver.delete(entry.key);
        }
    }
    Ok(true)
}

fn by_wish(known: Vec<Known<Frame>>) -> BTreeMap<(TypeUrl, Interest), Vec<Known<Frame>>> {
    let mut wishes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for known in known {
        let of = match &known {
            Known::Present { type_url, name, .. } | Known::Gone { type_url, name, .. } => {
                (type_url.clone(), Interest::Name(name.clone()))
            }
            Known::Answered { type_url, collection, .. } => (type_url.clone(), collection.clone()),
            Known::TypeVersion { type_url, .. } => (type_url.clone(), Interest::Wildcard),
            _ => continue,
        };
        wishes.entry(of).or_default().push(known);
    }
    wishes
}
