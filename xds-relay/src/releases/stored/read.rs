//! Reading what is kept of a release: every byte of it is what its hash says.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use xdstp_client::state::Store;

use crate::releases::keyspace::Keyspace;
use crate::releases::manifest::{BodyHash, Manifest};
use crate::releases::records::{ItemRecord, PartRecord, ReleaseRecord, hash};
use crate::releases::release::Release;
use crate::releases::stored::Stored;
use crate::releases::stored::error::{Damage, StoredError};
use crate::releases::stored::log::{Logged, logged};

/// Reads what is kept of a scope while others go on with it: it knows the releases that there were, and what was removed since is not
/// there.
#[derive(Clone)]
pub struct Reader {
    store: Arc<dyn Store>,
    keys: Keyspace,
    releases: BTreeMap<Release, Arc<ReleaseRecord>>,
}

impl Stored {
    /// What reads all that there is now, and needs nothing of this.
    pub fn reader(&self) -> Reader {
        Reader { store: self.store.clone(), keys: self.keys.clone(), releases: self.releases.clone() }
    }

    /// What is in a release.
    ///
    /// # Errors
    /// It is not kept, or not as it was written, or the store cannot be read.
    pub fn manifest(&self, release: Release) -> Result<Manifest, StoredError> {
        manifest(&*self.store, &self.keys, release, self.releases.get(&release), &|part| self.seen.of(part).cloned())
    }

    /// The encoded `Any` of a resource in a release that is kept. What is damaged is written anew when it is
    /// [saved](Self::save) the next time.
    ///
    /// # Errors
    /// It is not there, or not as it was written, or the store cannot be read.
    pub fn body(&mut self, of: BodyHash) -> Result<Bytes, StoredError> {
        let read = body(&*self.store, &self.keys, of);
        if matches!(read, Err(StoredError::Damaged { .. })) {
            self.bodies.remove(&of);
        }
        read
    }
}

impl Reader {
    /// As [`Stored::manifest`].
    ///
    /// # Errors
    /// As there.
    pub fn manifest(&self, release: Release) -> Result<Manifest, StoredError> {
        manifest(&*self.store, &self.keys, release, self.releases.get(&release), &|_| None)
    }

    /// As [`Stored::body`].
    ///
    /// # Errors
    /// As there.
    pub fn body(&self, of: BodyHash) -> Result<Bytes, StoredError> {
        body(&*self.store, &self.keys, of)
    }

    /// What was done, as it was done: the last thousand changes. What is damaged is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn log(&self) -> Result<Vec<Logged>, StoredError> {
        let entries = self.store.list(&self.keys.log())?.entries;
        let mut read: Vec<_> = entries.iter().filter_map(|entry| logged(&entry.key, &entry.value)).collect();
        read.sort_by_key(|entry| entry.number);
        Ok(read)
    }
}

fn manifest(
    store: &dyn Store,
    keys: &Keyspace,
    release: Release,
    record: Option<&Arc<ReleaseRecord>>,
    seen: &dyn Fn(BodyHash) -> Option<Bytes>,
) -> Result<Manifest, StoredError> {
    let record = record.filter(|record| record.complete).ok_or(StoredError::NotKept(release))?;
    let mut items = Vec::new();
    for part in record.parts.iter().filter_map(|part| hash(part)) {
        let key = keys.part(&part);
        let content = match seen(part) {
            Some(content) => content,
            None => {
                let found = store.list(&key)?.entries.into_iter().find(|entry| entry.key == key);
                found.ok_or_else(|| Damage::new(&*key, "it is missing"))?.value
            }
        };
        if BodyHash::of(&content) != part {
            return Err(Damage::new(key, "its hash is another").into());
        }
        let read = PartRecord::decode(content).ok();
        let read = read.and_then(|part| part.items.iter().map(ItemRecord::item).collect::<Option<Vec<_>>>());
        items.extend(read.ok_or_else(|| Damage::new(key, "it is no such message"))?);
    }
    let manifest = Manifest::new(items);
    if manifest.release() != release {
        return Err(Damage::new(keys.release(release), "it names other parts").into());
    }
    Ok(manifest)
}

fn body(store: &dyn Store, keys: &Keyspace, of: BodyHash) -> Result<Bytes, StoredError> {
    let prefix = keys.body(&of);
    let pieces = store.list(&prefix)?.entries;
    let content = match &*pieces {
        [piece] => piece.value.clone(),
        pieces => pieces
            .iter()
            .fold(BytesMut::new(), |mut whole, piece| {
                whole.extend_from_slice(&piece.value);
                whole
            })
            .freeze(),
    };
    if BodyHash::of(&content) == of { Ok(content) } else { Err(Damage::new(prefix, "its hash is another").into()) }
}
