//! Who has a source by reference, or in a box, has a source.

use std::ops::ControlFlow;

use bytes::Bytes;
use xdstp_cache::{Failed, Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::server::error::{NodeError, ProtocolError, Refused};
use crate::server::source::Source;
use crate::server::tally::Tally;

/// Every method, those that a source may leave out too: none of its own is to be passed over.
macro_rules! forward {
    ($source:ident, $holder:ty) => {
        impl<$source: Source + ?Sized> Source for $holder {
            fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
                (**self).identify(node)
            }

            fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
                (**self).open(type_url)
            }

            fn close(&mut self, id: SubscriberId, tally: &Tally) {
                (**self).close(id, tally)
            }

            fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
                (**self).subscribe(id, interest)
            }

            fn subscribe_known(&mut self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
                (**self).subscribe_known(id, text)
            }

            fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
                (**self).unsubscribe(id, interest)
            }

            fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
                (**self).resume(id, held)
            }

            fn pull(
                &mut self,
                id: SubscriberId,
                removals: Removals,
                visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
            ) -> Pulled {
                (**self).pull(id, removals, visitor)
            }

            fn pull_errors(
                &mut self,
                id: SubscriberId,
                removals: Removals,
                visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
            ) -> bool {
                (**self).pull_errors(id, removals, visitor)
            }

            fn visit(
                &mut self,
                id: SubscriberId,
                visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>),
            ) -> Unanswered {
                (**self).visit(id, visitor)
            }

            fn visit_leaving(
                &mut self,
                id: SubscriberId,
                removals: Removals,
                visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
            ) {
                (**self).visit_leaving(id, removals, visitor)
            }

            fn refused(&mut self) -> Option<Refused> {
                (**self).refused()
            }

            fn ends(&mut self, error: &ProtocolError) {
                (**self).ends(error)
            }

            fn words(&self, error: &ProtocolError) -> String {
                (**self).words(error)
            }

            fn too_long_name(&mut self) {
                (**self).too_long_name()
            }

            fn has_work(&self, id: SubscriberId) -> bool {
                (**self).has_work(id)
            }

            fn has_additions(&self, id: SubscriberId) -> bool {
                (**self).has_additions(id)
            }

            fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
                (**self).resend(id, name)
            }

            fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
                (**self).look_up(id, name, look)
            }

            fn has_sotw_origin(&self) -> bool {
                (**self).has_sotw_origin()
            }

            fn changes(&self, id: SubscriberId) -> Option<u64> {
                (**self).changes(id)
            }

            fn newest_removal(&self, id: SubscriberId) -> u64 {
                (**self).newest_removal(id)
            }

            fn type_version(&self, id: SubscriberId) -> Option<Version> {
                (**self).type_version(id)
            }

            fn system_version(&self, id: SubscriberId) -> Option<Version> {
                (**self).system_version(id)
            }
        }
    };
}

forward!(S, &mut S);
forward!(S, Box<S>);
