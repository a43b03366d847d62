//! A cache as a source: its stream is woken by whom a change names.

use std::ops::ControlFlow;

use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, ResourceError, Selector, Subscribed, SubscriberId,
    TypeUrl, Unanswered, Version, Visited,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::server::source::Source;
use crate::server::tally::Tally;

impl Source for Cache<Frame> {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        Self::open(self, type_url)
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        Self::open_selecting(self, type_url, selector)
    }

    fn close(&mut self, id: SubscriberId, _: &Tally) {
        Self::close(self, id);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Self::subscribe(self, id, interest) != Subscribed::Again
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        let held = self.is_subscribed(id, interest);
        Self::unsubscribe(self, id, interest);
        held
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        Self::resume(self, id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        Self::pull(self, id, removals, visitor)
    }

    fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        Self::covers(self, id, name)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        Self::pull_errors(self, id, removals, visitor)
    }

    fn pull_refusals(
        &mut self,
        id: SubscriberId,
        collections: Option<&[Interest]>,
        visitor: &mut dyn FnMut(&ResourceName, &ResourceError),
    ) {
        Self::pull_refusals(self, id, collections, visitor);
    }

    fn refusals(&self, id: SubscriberId) -> usize {
        Self::refusals(self, id)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Self::visit(self, id, visitor)
    }

    fn visit_selected(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(Visited<'_, Frame>)) -> Unanswered {
        Self::visit_selected(self, id, visitor)
    }

    fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        Self::visit_leaving(self, id, removals, visitor);
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        Self::has_work(self, id)
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        Self::has_additions(self, id)
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        Self::resend(self, id, name)
    }

    fn subscribe_known(&mut self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
        let (subscribed, name) = Self::subscribe_known(self, id, text)?;
        Some((name.clone(), subscribed != Subscribed::Again))
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        if let Some(resource) = self.wanted(id, name) {
            look(resource);
        }
    }

    fn changes(&self, _: SubscriberId) -> Option<u64> {
        Some(Self::changes(self))
    }

    fn newest_removal(&self, id: SubscriberId) -> u64 {
        Self::newest_removal(self, id)
    }

    fn type_version(&self, id: SubscriberId) -> Option<Version> {
        Self::type_version(self, id).cloned()
    }
}
