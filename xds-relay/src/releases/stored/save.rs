//! Keeping a release: parts, then the record that it is begun, bodies, and the record that it is whole.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use prost::Message as _;
use sha2::{Digest, Sha256};
use xdstp_client::state::{Compare, Op};

use crate::releases::act::{Publisher, millis_of};
use crate::releases::control::error::ControlError;
use crate::releases::manifest::{BodyHash, Item, Manifest};
use crate::releases::records::{FORMAT, ItemRecord, PartRecord, ReleaseRecord, hash};
use crate::releases::release::Release;
use crate::releases::sealed::seal;
use crate::releases::stored::Stored;
use crate::releases::stored::batch::{Batch, is_one};
use crate::releases::stored::error::StoredError;

/// How much of a body is one value: etcd takes no more than 1.5 MiB in a request.
pub(super) const PIECE: usize = 512 << 10;

/// A release that is not kept, or not all of it: what it is, and what is to be written.
pub(super) struct New {
    pub(super) release: Release,
    pub(super) record: Arc<ReleaseRecord>,
    /// All of them, and the bodies of each.
    pub(super) parts: HashMap<BodyHash, Vec<BodyHash>>,
    /// Those that are not there.
    put_parts: Vec<Op>,
    begun: Op,
    pieces: Vec<Op>,
    whole: Op,
}

impl New {
    /// What is written of it at once, in an order in which who hears it knows of each what is in it.
    pub(super) fn ops(&self) -> impl Iterator<Item = &Op> {
        self.put_parts.iter().chain(&self.pieces).chain([&self.whole])
    }
}

impl Stored {
    /// Keeps a release, before it is published; `body` gives the encoded `Any` of each. What is kept already is not written, and
    /// what nobody needs any more is removed: the last 20 are kept, and what is stable, and the candidate.
    ///
    /// # Errors
    /// The store cannot be written, somebody else publishes, or a body is not there. Nothing that was kept is lost.
    pub fn save(
        &mut self,
        manifest: &Manifest,
        by: Publisher,
        from: &str,
        at: SystemTime,
        body: &dyn Fn(&Item) -> Option<Bytes>,
    ) -> Result<(), StoredError> {
        if self.base.publisher != Some(by) {
            return Err(ControlError::NotThePublisher.into());
        }
        if self.put(manifest, from, at, body)? {
            self.sweep(manifest.release())?;
            self.is_unread = false;
        }
        Ok(())
    }

    /// The same of what was kept and is lost, by whoever has it. Nothing is removed.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub(crate) fn put_back(
        &mut self,
        manifest: &Manifest,
        from: &str,
        at: SystemTime,
        body: &dyn Fn(&Item) -> Option<Bytes>,
    ) -> Result<(), StoredError> {
        self.put(manifest, from, at, body).map(drop)
    }

    /// Whether it was not there.
    fn put(
        &mut self,
        manifest: &Manifest,
        from: &str,
        at: SystemTime,
        body: &dyn Fn(&Item) -> Option<Bytes>,
    ) -> Result<bool, StoredError> {
        let Some(new) = self.not_kept(manifest, from, at, body)? else { return Ok(false) };
        self.is_unread = true;
        // What is begun says which bodies may be there: the parts say it, and are there first. What is written at once is whole.
        if is_one(new.ops()) {
            self.write(new.ops().cloned())?;
        } else {
            let begun = std::slice::from_ref(&new.begun);
            self.write(new.put_parts.iter().chain(begun).cloned())?;
            self.write(new.pieces.iter().cloned())?;
            self.write([new.whole.clone()])?;
        }
        self.keep(new);
        Ok(true)
    }

    /// What is to be written of a release: none, if all of it is kept.
    pub(super) fn not_kept(
        &mut self,
        manifest: &Manifest,
        from: &str,
        at: SystemTime,
        body: &dyn Fn(&Item) -> Option<Bytes>,
    ) -> Result<Option<New>, StoredError> {
        if self.is_unread {
            self.read_content()?;
        }
        let release = manifest.release();
        let missing: Vec<_> = manifest.items().iter().filter(|item| !self.bodies.contains(&item.body)).collect();
        if missing.is_empty() && self.is_whole(release) {
            return Ok(None);
        }
        let bodies = content_of(&missing, body)?;
        let parts = parts_of(manifest);
        let mut record = ReleaseRecord {
            format: FORMAT,
            at: millis_of(at),
            from: from.to_owned(),
            number: self.releases.values().map(|record| record.number).max().unwrap_or_default().saturating_add(1),
            complete: false,
            parts: parts.iter().map(|(part, ..)| part.0.to_vec()).collect(),
            resources: manifest.items().len() as u64,
        };
        let key = self.keys.release(release);
        let new = parts.iter().filter(|(part, ..)| !self.parts.contains_key(part));
        let put_parts = new.map(|(part, content, _)| Op::put(self.keys.part(part), content.clone())).collect();
        let begun = Op::put(&*key, seal(&key, &record));
        let pieces = bodies.iter().flat_map(|(hash, content)| {
            let piece = |(at, piece): (usize, &[u8])| Op::put(self.keys.piece(hash, at), content.slice_ref(piece));
            content.chunks(PIECE).enumerate().map(piece)
        });
        let pieces = pieces.collect();
        record.complete = true;
        let whole = Op::put(&*key, seal(&key, &record));
        let parts = parts.into_iter().map(|(part, _, bodies)| (part, bodies)).collect();
        Ok(Some(New { release, record: record.into(), parts, put_parts, begun, pieces, whole }))
    }

    /// Whether a release is kept, and nothing of it was damaged since, as far as that was heard.
    fn is_whole(&self, release: Release) -> bool {
        let key = self.keys.release(release);
        let record = self.releases.get(&release).filter(|record| record.complete);
        record.is_some_and(|record| {
            record.parts.iter().filter_map(|part| hash(part)).all(|of| self.parts.contains_key(&of))
        }) && !self.damaged.iter().any(|damage| damage.key == key)
    }

    /// It is kept now.
    pub(super) fn keep(&mut self, New { release, record, parts, put_parts, whole, .. }: New) {
        self.damaged.retain(|damage| !put_parts.iter().chain([&whole]).any(|op| op.key() == damage.key));
        self.bodies.extend(parts.values().flatten().copied());
        self.releases.insert(release, record);
        self.parts.extend(parts);
    }

    /// Writes, unless the control value has changed: who publishes no more does not write.
    pub(super) fn write(&mut self, ops: impl IntoIterator<Item = Op>) -> Result<(), StoredError> {
        // Who has what was lost puts it back, whoever publishes.
        let store = if self.went_back { &self.store } else { &self.writer };
        let mut batch = Batch::new(&**store, Compare::unchanged(self.keys.control(), self.revision));
        ops.into_iter().try_for_each(|op| batch.add(op))?;
        let written = batch.write()?.unwrap_or_default();
        // Nobody else writes what the publisher does: what is heard of it later is known. What is put back several may write.
        if !self.went_back {
            self.floor = written.max(self.floor);
        }
        Ok(())
    }
}

/// The bodies of items, which are what their hashes say; each once.
fn content_of(items: &[&Item], body: &dyn Fn(&Item) -> Option<Bytes>) -> Result<Vec<(BodyHash, Bytes)>, StoredError> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for item in items.iter().filter(|item| seen.insert(item.body)) {
        let content = body(item).filter(|content| BodyHash::of(content) == item.body);
        let missing = || StoredError::NoBody { type_url: item.type_url.to_string(), name: item.name.clone() };
        found.push((item.body, content.ok_or_else(missing)?));
    }
    Ok(found)
}

/// The parts of a manifest: each one's hash, content, and bodies. A change of one resource is one of one part.
fn parts_of(manifest: &Manifest) -> Vec<(BodyHash, Bytes, Vec<BodyHash>)> {
    let mut buckets: BTreeMap<u8, (PartRecord, Vec<BodyHash>)> = BTreeMap::new();
    for item in manifest.items() {
        let name = Sha256::new().chain_update(item.type_url.as_str()).chain_update([0]).chain_update(&item.name);
        let bucket = name.finalize().first().copied().unwrap_or_default();
        let (part, bodies) = buckets.entry(bucket).or_default();
        part.items.push(ItemRecord::of(item));
        bodies.push(item.body);
    }
    let encoded = |(part, bodies): (PartRecord, Vec<BodyHash>)| {
        let content = Bytes::from(part.encode_to_vec());
        (BodyHash::of(&content), content, bodies)
    };
    buckets.into_values().map(encoded).collect()
}
