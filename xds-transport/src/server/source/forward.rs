//! Who has a source by reference, or in a box, has a source.

use std::ops::ControlFlow;

use bytes::Bytes;
use xdstp_cache::{
    Failed, Interest, Pull, Pulled, Removals, Resource, Selector, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::server::error::{NodeError, ProtocolError, Refused};
use crate::server::source::{Answer, Source};
use crate::server::tally::Tally;

/// Every method but those that open and close, and those too that a source may leave out: none of another source is to be
/// passed over. Of `rest`, without what is said of its client.
macro_rules! forward {
    ($this:ident => $source:expr) => {
        fn identify(&mut $this, node: &Bytes) -> Result<(), NodeError> {
            Source::identify(&mut $source, node)
        }

        fn answered(&mut $this, id: SubscriberId, answer: &Answer<'_>) {
            Source::answered(&mut $source, id, answer);
        }

        forward!(rest $this => $source);
    };
    (rest $this:ident => $source:expr) => {
        fn subscribe(&mut $this, id: SubscriberId, interest: &Interest) -> bool {
            Source::subscribe(&mut $source, id, interest)
        }

        fn subscribe_known(&mut $this, id: SubscriberId, text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
            Source::subscribe_known(&mut $source, id, text)
        }

        fn unsubscribe(&mut $this, id: SubscriberId, interest: &Interest) -> bool {
            Source::unsubscribe(&mut $source, id, interest)
        }

        fn selects(&$this, id: SubscriberId) -> bool {
            Source::selects(&$source, id)
        }

        fn heard_at(&mut $this, id: SubscriberId) -> Option<std::time::Instant> {
            Source::heard_at(&mut $source, id)
        }

        fn took(&mut $this, id: SubscriberId, took: crate::server::Took) {
            Source::took(&mut $source, id, took);
        }

        fn image(
            &mut $this,
            id: SubscriberId,
        ) -> Option<(xdstp_cache::Place, Option<std::sync::Arc<crate::server::Image>>)> {
            Source::image(&mut $source, id)
        }

        fn pass(&mut $this, id: SubscriberId, image: &crate::server::Image) -> Option<bool> {
            Source::pass(&mut $source, id, image)
        }

        fn keep(&mut $this, id: SubscriberId, image: &std::sync::Arc<crate::server::Image>) {
            Source::keep(&mut $source, id, image);
        }

        fn covers(&$this, id: SubscriberId, name: &ResourceName) -> bool {
            Source::covers(&$source, id, name)
        }

        fn resume(&mut $this, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
            Source::resume(&mut $source, id, held);
        }

        fn pull(
            &mut $this,
            id: SubscriberId,
            removals: Removals,
            visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
        ) -> Pulled {
            Source::pull(&mut $source, id, removals, visitor)
        }

        fn pull_errors(
            &mut $this,
            id: SubscriberId,
            removals: Removals,
            visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
        ) -> bool {
            Source::pull_errors(&mut $source, id, removals, visitor)
        }

        fn pull_refusals(
            &mut $this,
            id: SubscriberId,
            collections: Option<&[xdstp_cache::Interest]>,
            visitor: &mut dyn FnMut(&ResourceName, &xdstp_cache::ResourceError),
        ) {
            Source::pull_refusals(&mut $source, id, collections, visitor);
        }

        fn refusals(&$this, id: SubscriberId) -> usize {
            Source::refusals(&$source, id)
        }

        fn visit(
            &mut $this,
            id: SubscriberId,
            visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
        ) -> Unanswered {
            Source::visit(&mut $source, id, visitor)
        }

        fn visit_selected(
            &mut $this,
            id: SubscriberId,
            visitor: &mut dyn FnMut(xdstp_cache::Visited<'_, Frame>),
        ) -> Unanswered {
            Source::visit_selected(&mut $source, id, visitor)
        }

        fn visit_leaving(
            &mut $this,
            id: SubscriberId,
            removals: Removals,
            visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
        ) {
            Source::visit_leaving(&mut $source, id, removals, visitor);
        }

        fn refused(&mut $this) -> Option<Refused> {
            Source::refused(&mut $source)
        }

        fn ends(&mut $this, error: &ProtocolError) {
            Source::ends(&mut $source, error);
        }

        fn words(&$this, error: &ProtocolError) -> String {
            Source::words(&$source, error)
        }

        fn too_long_name(&mut $this) {
            Source::too_long_name(&mut $source);
        }

        fn keeps(&mut $this, id: SubscriberId, names: usize) {
            Source::keeps(&mut $source, id, names);
        }

        fn has_work(&$this, id: SubscriberId) -> bool {
            Source::has_work(&$source, id)
        }

        fn has_additions(&$this, id: SubscriberId) -> bool {
            Source::has_additions(&$source, id)
        }

        fn resend(&mut $this, id: SubscriberId, name: &ResourceName) -> bool {
            Source::resend(&mut $source, id, name)
        }

        fn look_up(&$this, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
            Source::look_up(&$source, id, name, look);
        }

        fn has_sotw_origin(&$this) -> bool {
            Source::has_sotw_origin(&$source)
        }

        fn changes(&$this, id: SubscriberId) -> Option<u64> {
            Source::changes(&$source, id)
        }

        fn newest_removal(&$this, id: SubscriberId) -> u64 {
            Source::newest_removal(&$source, id)
        }

        fn type_version(&$this, id: SubscriberId) -> Option<Version> {
            Source::type_version(&$source, id)
        }

        fn system_version(&$this, id: SubscriberId) -> Option<Version> {
            Source::system_version(&$source, id)
        }
    };
}

#[cfg(feature = "grpc-server")]
pub(crate) use forward;

impl<S: Source + ?Sized> Source for &mut S {
    forward!(self => **self);

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        (**self).open(type_url)
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        (**self).open_selecting(type_url, selector)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        (**self).close(id, tally);
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    forward!(self => **self);

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        (**self).open(type_url)
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        (**self).open_selecting(type_url, selector)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        (**self).close(id, tally);
    }
}
