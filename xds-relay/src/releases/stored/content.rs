//! What is in a release, with as little read as there can be: relays that share a store have most of it already.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};

use crate::releases::keyspace::Kind;
use crate::releases::manifest::{BodyHash, Item, Manifest};
use crate::releases::records::hash;
use crate::releases::release::Release;
use crate::releases::stored::Stored;
use crate::releases::stored::error::StoredError;

/// Of so many missing parts or bodies each is asked for; of more, all are.
const FEW: usize = 64;

impl Stored {
    /// The items of a release and their encoded `Any`s, in the manifest's order. `has` knows those that are served already.
    ///
    /// # Errors
    /// As [`manifest`](Self::manifest) and [`body`](Self::body).
    pub(crate) fn content(
        &mut self,
        release: Release,
        has: &dyn Fn(BodyHash) -> Option<Bytes>,
    ) -> Result<(Manifest, Vec<Bytes>), StoredError> {
        if self.is_unread && !self.has(release) {
            self.read_content()?;
        }
        self.read_parts(release)?;
        let manifest = self.manifest(release)?;
        let known = |stored: &Self, item: &Item| has(item.body).or_else(|| stored.seen.of(item.body).cloned());
        let missing = manifest.items().iter().filter(|item| known(self, item).is_none()).count();
        let read = if missing > FEW { self.all_bodies(&manifest, has)? } else { HashMap::new() };
        let mut bodies = Vec::with_capacity(manifest.items().len());
        for item in manifest.items() {
            let body = match known(self, item).or_else(|| read.get(&item.body).cloned()) {
                Some(body) => body,
                None => self.body(item.body)?,
            };
            bodies.push(body);
        }
        // What is served now is not needed twice; parts are, by who hears what others change of them.
        let (parts, is_shared) = (&self.parts, self.is_shared);
        self.seen.retain(|hash| is_shared && parts.contains_key(hash));
        Ok((manifest, bodies))
    }

    /// Has the parts of a release where they are not read one by one.
    fn read_parts(&mut self, release: Release) -> Result<(), StoredError> {
        let record = self.releases.get(&release).cloned();
        let parts = record.iter().flat_map(|record| &record.parts).filter_map(|part| hash(part));
        if parts.filter(|part| self.seen.of(*part).is_none()).count() > FEW {
            for entry in self.store.list(&self.keys.parts())?.entries {
                self.seen.insert(BodyHash::of(&entry.value), entry.value);
            }
        }
        Ok(())
    }

    /// The bodies of a release that are not known, read together: those of a 256th of all at a time, as there may be many of other
    /// releases. What is damaged is not among them.
    fn all_bodies(
        &self,
        manifest: &Manifest,
        has: &dyn Fn(BodyHash) -> Option<Bytes>,
    ) -> Result<HashMap<BodyHash, Bytes>, StoredError> {
        let missing = manifest.items().iter().map(|item| item.body).filter(|body| has(*body).is_none());
        let mut read: HashMap<BodyHash, Option<BytesMut>> = missing.map(|body| (body, None)).collect();
        for first in 0..=u8::MAX {
            if !read.keys().any(|body| body.0.first() == Some(&first)) {
                continue;
            }
            for piece in self.store.list(&self.keys.bodies(first))?.entries {
                let Some(Kind::Body(body)) = self.keys.kind(&piece.key) else { continue };
                if let Some(whole) = BodyHash::of_key(body).and_then(|body| read.get_mut(&body)) {
                    whole.get_or_insert_default().extend_from_slice(&piece.value);
                }
            }
        }
        let whole = read.into_iter().filter_map(|(hash, body)| Some((hash, body?.freeze())));
        Ok(whole.filter(|(hash, body)| BodyHash::of(body) == *hash).collect())
    }
}
