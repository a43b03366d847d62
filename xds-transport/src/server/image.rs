//! What several clients are sent alike, encoded once: a part of a collection, for all who come to it before anything changes.
//!
//! It lives as long as somebody is being sent it, or has not said that he has it: who keeps it for others keeps no memory.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use xdstp_cache::Place;
use xdstp_uri::ResourceName;

use crate::server::session::Reference;

/// How much of it there may be in this process, in bytes: what nobody else comes for, who reads slowly keeps to himself.
const MOST: usize = 16 << 20;
/// How many there may be of one source.
const MOST_KEPT: usize = 64;

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The resources of a delta response, as all are sent them who are at the same place of the same collection.
pub struct Image {
    from: Place,
    to: Place,
    bytes: Bytes,
    names: Vec<ResourceName>,
    references: Vec<Reference>,
}

impl Image {
    /// Of what was written for who came from one place to another; none where there is too much already.
    pub(crate) fn new(
        (from, to): (Place, Place),
        bytes: Bytes,
        names: Vec<ResourceName>,
        references: Vec<Reference>,
    ) -> Option<Arc<Self>> {
        let image = Arc::new(Self { from, to, bytes, names, references });
        // Given back where this drops it.
        let before = BYTES.fetch_add(image.bytes.len(), Ordering::Relaxed);
        (before + image.bytes.len() <= MOST).then_some(image)
    }

    /// Where one must be to be sent it.
    pub fn from(&self) -> &Place {
        &self.from
    }

    /// Where one is who was.
    pub fn to(&self) -> &Place {
        &self.to
    }

    /// Elements of `DeltaDiscoveryResponse.resources`.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn names(&self) -> &[ResourceName] {
        &self.names
    }

    pub(crate) fn references(&self) -> &[Reference] {
        &self.references
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("from", &self.from).field("names", &self.names).finish_non_exhaustive()
    }
}

/// The images of one cache that somebody still has.
#[derive(Debug, Default)]
pub struct Images(Vec<(Place, Weak<Image>)>);

impl Images {
    /// That of who is at a place.
    pub fn at(&self, place: &Place) -> Option<Arc<Image>> {
        self.0.iter().find(|(from, _)| from == place)?.1.upgrade()
    }

    /// Others are to be sent it, too.
    pub fn keep(&mut self, image: &Arc<Image>) {
        self.0.retain(|(from, kept)| *from != image.from && kept.strong_count() > 0);
        if self.0.len() < MOST_KEPT {
            self.0.push((image.from, Arc::downgrade(image)));
        }
    }
}
