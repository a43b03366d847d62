//! What an earlier version of the program kept by another name, and what becomes of that: it is kept by the name of now.

use std::collections::BTreeMap;

use xds_transport::Frame;
use xdstp_cache::{Interest, Known, TypeUrl};

use crate::federation::{Knows, Lack, ScopeKey};
use crate::state::format::{Moment, ScopeId, ScopeRecord, read_key};
use crate::state::kept::State;
use crate::state::saver::{Place, Saver};
use crate::state::store::{Store, StoreError};

/// A scope that is used, and was kept by another name.
pub(crate) struct Renamed {
    pub(crate) key: ScopeKey,
    pub(crate) origin: usize,
    pub(crate) former: ScopeId,
    pub(crate) id: ScopeId,
    pub(crate) known: Vec<Known<Frame>>,
}

impl State {
    /// Keeps by their names of now the scopes that are used, and were kept by others. Before anything that is heard of them: what is there by
    /// a former name is no older.
    pub(crate) fn rename(&self, saver: &mut Saver, store: &dyn Store, at: Moment) -> Result<(), StoreError> {
        let mut renamed = self.take_renamed();
        while let Some(next) = renamed.pop() {
            match store.list(&next.former.prefix()) {
                Ok(listing) => {
                    let keys = listing.entries.into_iter().map(|entry| entry.key);
                    // First: a body that two keys have is one of its own.
                    keys.filter(|key| read_key(key).is_some()).for_each(|key| saver.delete(key));
                    self.keep_anew(saver, next, at);
                }
                Err(error) => {
                    renamed.push(next);
                    self.rename_again(renamed);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn keep_anew(&self, saver: &mut Saver, Renamed { key, origin, id, known, .. }: Renamed, at: Moment) {
        let stale_since = self.is_stale_since(&id);
        // Its name had the servers in it.
        let said_by = self.identities.said_by(origin).unwrap_or_default().to_owned();
        let (is_mixed, whose) = (said_by.is_empty(), self.identities.whose(&key, origin).unwrap_or_default());
        let (label, used) = (key.to_string(), at.seconds());
        let record = || ScopeRecord {
            label: label.clone(),
            used,
            stale_since,
            whose: whose.clone(),
            is_complete: false,
            said_by: said_by.clone(),
        };
        let place = Place { key: &key, is_watched: false, id: &id, is_mixed, record: &record };
        for (of, known) in by_wish(known) {
            saver.set(&place, Knows { of, known, lack: Lack::Gone, is_said: false, aliases: None }, at);
        }
    }
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
