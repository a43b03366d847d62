//! What a client asks for is looked at again where what it may ask for has changed: on its stream, which goes on.
//!
//! What is denied now is told as it would be to who asks for it now, once, and what may be had again is served as if it were asked
//! for now. Nothing is said of the rest.

use xds_transport::server::Source as _;
use xdstp_cache::{Interest, SubscriberId};

use super::Routes;
use crate::federation::denied::name_of;
use crate::federation::judged::Judging;
use crate::federation::part::Part;

impl Routes {
    /// Whether something that is asked for was not looked at since what may be asked for has changed.
    pub(super) fn is_to_be_judged(&self) -> bool {
        self.judging.by != self.client.judged() || !self.judging.rest.is_empty()
    }

    /// Looks at some of it, if there is any: as much as one stream may before others have their turn.
    pub(super) fn judge(&mut self) {
        let by = self.client.judged();
        if self.judging.by != by {
            self.judging = Judging { by, rest: self.all_interests() };
        }
        if self.judging.rest.is_empty() {
            return;
        }
        let rest = &mut self.judging.rest;
        let now = rest.split_off(rest.len().saturating_sub(self.federation.limits.names_per_turn.max(1)));
        for (id, interest) in now {
            self.judge_interest(id, &interest);
        }
        // What is left, and what is to be told of types that were looked at before, is for the next round.
        self.waker.wake_by_ref();
    }

    fn all_interests(&self) -> Vec<(SubscriberId, Interest)> {
        let mut all = Vec::new();
        for (index, subscriber) in &self.subscribers {
            let id = SubscriberId::from_index(index as u32);
            let interests = subscriber.parts.iter().flat_map(|part| part.scope.interests(part.id));
            let denied = subscriber.denied.iter().flat_map(|denied| denied.asked().cloned().map(Interest::from));
            all.extend(interests.chain(denied).map(|interest| (id, interest)));
        }
        all
    }

    /// By now it may not be asked for any more, nor by this one.
    fn judge_interest(&mut self, id: SubscriberId, interest: &Interest) {
        let Some(subscriber) = self.subscribers.get(id.index()) else { return };
        let Some(name) = name_of(interest) else { return };
        let was_denied = subscriber.denied.as_ref().is_some_and(|denied| denied.is_asked(&name));
        let part =
            subscriber.part(&self.federation, interest).filter(|part| part.scope.wants(part.id, interest)).cloned();
        let denies = self.denying().why(&subscriber.type_url, interest).is_some();
        match (part, was_denied) {
            (Some(_), _) if denies => {
                self.unsubscribe(id, interest);
                self.deny(id, interest);
            }
            (None, true) if !denies => {
                self.leave_denied(id, interest);
                self.subscribe(id, interest);
            }
            (Some(part), _) => self.judge_alias(id, interest, &part),
            _ => {}
        }
    }

    /// It may be asked for: what it stands for may not be, or may be again.
    fn judge_alias(&mut self, id: SubscriberId, interest: &Interest, part: &Part) {
        let Interest::Name(name) = interest else { return };
        let Some(subscriber) = self.subscribers.get_mut(id.index()) else { return };
        let Some(own) = part.scope.stands_for(&subscriber.type_url, name) else { return };
        // Whoever may have all that a node group has may have it by any name.
        let has_all = part.scope.key.authority().is_none() && part.scope.wants(part.id, &Interest::Wildcard);
        let denies = !has_all && self.client.denies(&subscriber.type_url, &Interest::Name(own)).is_some();
        if denies {
            if subscriber.denied.get_or_insert_default().stands_for_denied(name.clone()) {
                self.client.denied(&subscriber.type_url, interest, true);
            }
        } else if subscriber.denied.as_ref().is_some_and(|denied| denied.is_alias(name)) {
            self.subscribe(id, interest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Waker;

    use bytes::Bytes;
    use xds_transport::server::{NodeError, Source as _};
    use xdstp_cache::{Pull, Removals, ResourceError, TypeUrl};
    use xdstp_uri::ResourceName;

    use super::*;
    use crate::federation::client::Client;
    use crate::federation::node_group::NodeGroup;
    use crate::federation::origin::ByNode;
    use crate::federation::share::OverLimit;
    use crate::federation::tests::federation;

    /// May not ask for anything whenever it was judged an odd number of times.
    struct Judged(Arc<AtomicU64>);

    impl Client for Judged {
        fn identify(&self, _: &Bytes) -> Result<NodeGroup, NodeError> {
            Ok(NodeGroup::new(Vec::new(), "all".to_owned()))
        }

        fn is_limited(&self) -> bool {
            true
        }

        fn judged(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn denies(&self, _: &TypeUrl, _: &Interest) -> Option<ResourceError> {
            (self.judged() % 2 == 1).then(|| ResourceError::new(ResourceError::PERMISSION_DENIED, "no"))
        }

        fn refused(&self, error: &OverLimit) -> String {
            error.to_string()
        }
    }

    /// What is said of names: those that are not there, and those that are denied.
    fn round(routes: &mut Routes, id: SubscriberId) -> (usize, usize) {
        let (mut gone, mut denied) = (0, 0);
        routes.pull(id, Removals::Include, &mut |pull| {
            gone += usize::from(matches!(pull, Pull::Removed { .. }));
            ControlFlow::Continue(())
        });
        routes.pull_errors(id, Removals::Include, &mut |_| {
            denied += 1;
            ControlFlow::Continue(())
        });
        (gone, denied)
    }

    /// The same, until nothing is left to say.
    fn rounds(routes: &mut Routes, id: SubscriberId) -> (usize, usize) {
        let (mut gone, mut denied) = (0, 0);
        while routes.has_work(id) {
            let of = round(routes, id);
            (gone, denied) = (gone + of.0, denied + of.1);
        }
        (gone, denied)
    }

    #[test]
    fn no_more_is_looked_at_in_a_turn_than_others_can_wait_for_and_the_last_rules_count() {
        let ((federation, _), judged) = (federation(ByNode::Nothing, true), Arc::<AtomicU64>::default());
        let client = Box::new(Judged(judged.clone()));
        let mut routes = Routes::new(federation, 1, client, Waker::noop().clone(), Arc::default());
        routes.identify(&Bytes::new()).unwrap();
        let id = routes.open(&"T".into());
        for at in 0..25 {
            routes.subscribe(id, &Interest::from(format!("b{at}").parse::<ResourceName>().unwrap()));
        }
        assert_eq!(rounds(&mut routes, id), (25, 0));
        judged.store(1, Ordering::Relaxed);
        assert!(routes.has_work(id));
        let each: Vec<_> = (0..3).map(|_| round(&mut routes, id)).collect();
        assert_eq!((each, routes.has_work(id)), (vec![(0, 10), (0, 10), (0, 5)], false));
        judged.store(2, Ordering::Relaxed);
        round(&mut routes, id);
        judged.store(3, Ordering::Relaxed);
        assert_eq!(rounds(&mut routes, id).1, 10, "the others were told, and were not looked at in between");
    }
}
