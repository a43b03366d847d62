//! What a subscriber is sent as others are: one part's, told as it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use xds_transport::server::Image;
use xdstp_cache::{Place, SubscriberId};

use super::Routes;
use super::pull::earliest;
use crate::federation::part::Part;

impl Routes {
    pub(super) fn image_of(&self, id: SubscriberId) -> Option<(Place, Option<Arc<Image>>)> {
        let part = self.told_as_it_is(id)?;
        part.scope.image(part.id)
    }

    pub(super) fn pass_image(&mut self, id: SubscriberId, image: &Image) -> Option<bool> {
        let part = self.told_as_it_is(id)?;
        let (more, heard) = part.scope.pass(part.id, image)?;
        let subscriber = self.subscribers.get_mut(id.index())?;
        subscriber.end_opening();
        subscriber.heard_at = earliest(subscriber.heard_at, heard);
        self.view.served.store(true, Ordering::Relaxed);
        Some(more)
    }

    pub(super) fn keep_image(&self, id: SubscriberId, image: &Arc<Image>) {
        self.told_as_it_is(id).into_iter().for_each(|part| part.scope.keep(image));
    }

    /// The only part of a subscriber, if nothing of what that visits is set aside, kept from the client or its own.
    fn told_as_it_is(&self, id: SubscriberId) -> Option<&Part> {
        let subscriber = self.subscribers.get(id.index())?;
        let [part] = &*subscriber.parts else { return None };
        let is_shared = part.scope.shared && !part.sets_aside;
        let is_shared = is_shared && subscriber.private_parts.is_empty() && subscriber.private.is_empty();
        let is_as_it_is = subscriber.moved.is_none() && subscriber.denied.is_none() && !subscriber.looks_again();
        let is_due = self.client.is_limited() || self.view.looks_anew.load(Ordering::Relaxed) || self.is_to_be_judged();
        (is_shared && is_as_it_is && !is_due).then_some(part)
    }
}
