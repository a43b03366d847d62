//! What a program holds to see resources change.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;
use xdstp_cache::{Interest, TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::store::{Store, WatcherId};
use crate::upstream::Driver;

/// A subscription, which ends when it is dropped.
///
/// It holds no queue: a resource that changes three times before it is looked at is seen once, as it is then.
#[derive(Debug)]
pub struct Watch {
    store: Arc<Store>,
    /// The stream lives for as long as somebody watches.
    _driver: Arc<Driver>,
    type_url: TypeUrl,
    interest: Interest,
    id: WatcherId,
    news: Arc<Notify>,
}

/// What a [`Watch`] sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A resource is new or changed.
    Put {
        /// Its name.
        name: ResourceName,
        /// Its version: the origin's, or else a hash of its content.
        version: Version,
        /// Its content, an encoded `google.protobuf.Any`.
        body: Bytes,
    },
    /// A resource does not exist, or does no longer.
    Removed {
        /// Its name.
        name: ResourceName,
    },
    /// The origin answered for the wildcard or the glob: from now on it is known, and empty if nothing came.
    Answered,
}

impl Watch {
    pub(crate) fn new(store: Arc<Store>, driver: Arc<Driver>, type_url: TypeUrl, interest: Interest) -> Self {
        let news = Arc::new(Notify::new());
        let id = store.watch(&type_url, &interest, Arc::clone(&news));
        Self { store, _driver: driver, type_url, interest, id, news }
    }

    /// What is watched.
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The next change. Dropping the future loses nothing.
    pub async fn changed(&mut self) -> Event {
        loop {
            if let Some(event) = self.store.next(&self.type_url, &self.interest, self.id) {
                return event;
            }
            self.news.notified().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.store.unwatch(&self.type_url, &self.interest, self.id);
    }
}
