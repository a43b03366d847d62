//! Subscribers that come from a scope, or go on in another, of the same names.

use xds_transport::Frame;
use xdstp_cache::{Along, Interest, Resource, SubscriberId, TypeUrl};

use super::Scope;

impl Scope {
    /// What a subscriber wants here, and what it was told.
    pub(crate) fn along(&self, id: SubscriberId) -> Along {
        self.lock().cache.along(id)
    }

    /// A subscriber goes on here: it is told what is otherwise than where it was.
    pub(crate) fn go_on(&self, type_url: &TypeUrl, id: SubscriberId, along: &Along) {
        for interest in &along.interests {
            self.subscribe(type_url, id, interest);
        }
        let held = {
            let cache = &self.lock().cache;
            let digest = |name| cache.resource(type_url, name).map(Resource::<Frame>::digest);
            along.held.iter().map(|held| (held.name.clone(), held.version_beside(digest(&held.name)))).collect()
        };
        self.resume(type_url, id, held);
    }

    /// Anything that a subscriber wants here, if it does.
    pub(crate) fn any_interest(&self, id: SubscriberId) -> Option<Interest> {
        self.lock().cache.interests(id).next()
    }

    /// Has a subscriber pull, whether there is anything new or not.
    pub(crate) fn wake(&self, id: SubscriberId) {
        let waker = self.lock().wakers.get(id.index()).cloned().flatten();
        waker.into_iter().for_each(std::task::Waker::wake);
    }
}
