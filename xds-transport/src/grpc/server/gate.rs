//! A cache that says nothing before it was filled: what is not in it yet is not known to be gone.

use std::ops::ControlFlow;

use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, ResourceError, Selector, SubscriberId, TypeUrl,
    Unanswered, Version, Visited,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::server::{Source, Tally};

/// A cache, and whether it is to be pulled from. Subscriptions are taken before, too.
pub(crate) struct Gate<'a> {
    pub(crate) open: bool,
    pub(crate) cache: &'a mut Cache<Frame>,
}

impl Source for Gate<'_> {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        Source::open(self.cache, type_url)
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        Source::open_selecting(self.cache, type_url, selector)
    }

    fn covers(&self, id: SubscriberId, name: &ResourceName) -> bool {
        Source::covers(self.cache, id, name)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        Source::close(self.cache, id, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::subscribe(self.cache, id, interest)
    }

    fn subscribe_known(&mut self, id: SubscriberId, text: &CanonicalText<'_>) -> Option<(ResourceName, bool)> {
        Source::subscribe_known(self.cache, id, text)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::unsubscribe(self.cache, id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        Source::resume(self.cache, id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        if self.open { Source::pull(self.cache, id, removals, visitor) } else { Pulled::default() }
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        self.open && Source::pull_errors(self.cache, id, removals, visitor)
    }

    fn pull_refusals(
        &mut self,
        id: SubscriberId,
        collections: Option<&[Interest]>,
        visitor: &mut dyn FnMut(&ResourceName, &ResourceError),
    ) {
        if self.open {
            Source::pull_refusals(self.cache, id, collections, visitor);
        }
    }

    fn refusals(&self, id: SubscriberId) -> usize {
        if self.open { Source::refusals(self.cache, id) } else { 0 }
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        self.visit_selected(id, &mut |visited| visitor(visited.name, visited.resource))
    }

    fn visit_selected(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(Visited<'_, Frame>)) -> Unanswered {
        if self.open {
            return Source::visit_selected(self.cache, id, visitor);
        }
        let mut unanswered = Unanswered::default();
        (unanswered.names, unanswered.held, unanswered.collections) = (1, 1, 1);
        unanswered
    }

    fn visit_leaving(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>) -> bool,
    ) {
        Source::visit_leaving(self.cache, id, removals, visitor);
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        self.open && Source::has_work(self.cache, id)
    }

    fn has_additions(&self, id: SubscriberId) -> bool {
        self.open && Source::has_additions(self.cache, id)
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        Source::resend(self.cache, id, name)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        Source::look_up(self.cache, id, name, look);
    }

    fn changes(&self, id: SubscriberId) -> Option<u64> {
        self.open.then(|| Source::changes(self.cache, id)).flatten()
    }

    fn newest_removal(&self, id: SubscriberId) -> u64 {
        Source::newest_removal(self.cache, id)
    }

    fn type_version(&self, id: SubscriberId) -> Option<Version> {
        Source::type_version(self.cache, id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use xdstp_cache::Options;

    use super::*;

    fn pulled(gate: &mut Gate<'_>, id: SubscriberId) -> (usize, usize) {
        let (mut resources, mut errors) = (0, 0);
        gate.pull(id, Removals::Include, &mut |_| {
            resources += 1;
            ControlFlow::Continue(())
        });
        let stopped = gate.pull_errors(id, Removals::Include, &mut |_| {
            errors += 1;
            ControlFlow::Continue(())
        });
        assert!(!stopped, "nobody stopped it");
        (resources, errors)
    }

    #[test]
    fn nothing_is_said_before_it_is_filled_and_then_all_of_it() {
        let (url, there, fails) = (TypeUrl::from("type.example.com/T"), "a".parse().unwrap(), "b".parse().unwrap());
        let mut cache = Cache::new(Options::default());
        let id = Gate { open: false, cache: &mut cache }.open(&url);
        for name in [&there, &fails] {
            Gate { open: false, cache: &mut cache }.subscribe(id, &Interest::Name(ResourceName::clone(name)));
        }
        let mut edit = cache.edit(Instant::now());
        edit.put(&url, &there, Frame::of_message(&url, b"1").into_resource(None));
        edit.fail(&url, &fails, ResourceError::new(13, "broken"));
        drop(edit.finish());

        let mut gate = Gate { open: false, cache: &mut cache };
        assert_eq!((gate.has_work(id), gate.has_additions(id), gate.changes(id)), (false, false, None));
        assert_eq!(pulled(&mut gate, id), (0, 0));
        let mut seen = 0;
        let unanswered = gate.visit(id, &mut |_, _| seen += 1);
        assert_eq!(seen, 0);
        let open = (unanswered.names > 0, unanswered.held > 0, unanswered.collections > 0);
        assert_eq!(open, (true, true, true), "whatever it asks for may be there");

        let mut gate = Gate { open: true, cache: &mut cache };
        assert!(gate.has_work(id) && gate.has_additions(id));
        assert_eq!(pulled(&mut gate, id), (1, 1));
        assert!(!gate.has_work(id) && !gate.has_additions(id), "all was said");
        assert!(!gate.visit(id, &mut |_, _| seen += 1).any());
        assert_eq!(seen, 1);
    }

    /// Removals wait anew whenever another joins those that a subscriber is yet to be told of, filled or not.
    #[test]
    fn the_newest_removal_is_that_of_the_cache() {
        let (url, name) = (TypeUrl::from("type.example.com/T"), "a".parse().unwrap());
        let mut cache = Cache::new(Options::default());
        let mut gate = Gate { open: true, cache: &mut cache };
        let id = gate.open(&url);
        gate.subscribe(id, &Interest::Name(ResourceName::clone(&name)));
        let mut edit = gate.cache.edit(Instant::now());
        edit.put(&url, &name, Frame::of_message(&url, b"1").into_resource(None));
        drop(edit.finish());
        assert_eq!((pulled(&mut gate, id), gate.newest_removal(id)), ((1, 0), 0));
        let mut edit = gate.cache.edit(Instant::now());
        edit.remove(&url, &name);
        drop(edit.finish());
        assert_ne!(gate.newest_removal(id), 0);
    }
}
