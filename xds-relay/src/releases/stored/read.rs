//! Reading what is kept of a release: every byte of it is what its hash says.

use bytes::{Bytes, BytesMut};
use prost::Message as _;

use crate::releases::manifest::{BodyHash, Manifest};
use crate::releases::records::{ItemRecord, PartRecord, hash};
use crate::releases::release::Release;
use crate::releases::stored::Stored;
use crate::releases::stored::error::{Damage, StoredError};

impl Stored {
    /// What is in a release.
    ///
    /// # Errors
    /// It is not kept, or not as it was written, or the store cannot be read.
    pub fn manifest(&self, release: Release) -> Result<Manifest, StoredError> {
        let record = self.releases.get(&release).filter(|record| record.complete);
        let record = record.ok_or(StoredError::NotKept(release))?;
        let mut items = Vec::new();
        for part in record.parts.iter().filter_map(|part| hash(part)) {
            let key = self.keys.part(&part);
            let found = self.store.list(&key)?.entries.into_iter().find(|entry| entry.key == key);
            let content = found.ok_or_else(|| Damage::new(&*key, "it is missing"))?.value;
            if BodyHash::of(&content) != part {
                return Err(Damage::new(key, "its hash is another").into());
            }
            let read = PartRecord::decode(content).ok();
            let read = read.and_then(|part| part.items.iter().map(ItemRecord::item).collect::<Option<Vec<_>>>());
            items.extend(read.ok_or_else(|| Damage::new(key, "it is no such message"))?);
        }
        let manifest = Manifest::new(items);
        if manifest.release() != release {
            return Err(Damage::new(self.keys.release(release), "it names other parts").into());
        }
        Ok(manifest)
    }

    /// The encoded `Any` of a resource in a release that is kept. What is damaged is written anew when it is
    /// [saved](Self::save) the next time.
    ///
    /// # Errors
    /// It is not there, or not as it was written, or the store cannot be read.
    pub fn body(&mut self, body: BodyHash) -> Result<Bytes, StoredError> {
        let prefix = self.keys.body(&body);
        let pieces = self.store.list(&prefix)?.entries;
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
        if BodyHash::of(&content) != body {
            self.bodies.remove(&body);
            return Err(Damage::new(prefix, "its hash is another").into());
        }
        Ok(content)
    }
}
