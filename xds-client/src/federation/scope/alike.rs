//! What several subscribers of a scope are sent alike.

use std::sync::Arc;
use std::time::Instant;

use xds_transport::server::Image;
use xdstp_cache::{Place, SubscriberId};

use super::Scope;

impl Scope {
    /// Where a subscriber is, and what was written for another one that was there.
    pub(crate) fn image(&self, id: SubscriberId) -> Option<(Place, Option<Arc<Image>>)> {
        let state = self.lock();
        let place = state.cache.place(id)?;
        Some((place, state.images.at(&place)))
    }

    /// A subscriber is sent an image instead of a [pull](Self::pull). With when what it was woken for came.
    pub(crate) fn pass(&self, id: SubscriberId, image: &Image) -> Option<(bool, Option<Instant>)> {
        let mut state = self.lock();
        let more = state.cache.pass(id, image.from(), image.to())?;
        Some((more, state.heard_at.get_mut(id.index()).and_then(Option::take)))
    }

    pub(crate) fn keep(&self, image: &Arc<Image>) {
        self.lock().images.keep(image);
    }
}
