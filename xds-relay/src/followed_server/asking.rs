//! What it asks, and hears.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::Bytes;
use xds_transport::server::NodeError;
use xds_transport::server::Source as _;
use xdstp_cache::{Interest, Pull, Removals, ResourceError, SubscriberId, TypeUrl};
use xdstp_client::federation::{Client, Federation, NodeGroup, OverLimit, Routes};

use super::gathered::Asked;
use super::server::FollowedServer;
use crate::lock::lock;
use crate::relay_core::LimitError;

/// The relay, as the one client.
pub(super) struct Itself(pub(super) Arc<Mutex<Option<String>>>);

impl Client for Itself {
    fn identify(&self, _: &Bytes) -> Result<NodeGroup, NodeError> {
        Ok(NodeGroup::new(Vec::new(), "follow".to_owned()))
    }

    fn refused(&self, error: &OverLimit) -> String {
        let words = LimitError::from(error.clone()).to_string();
        *lock(&self.0) = Some(words.clone());
        words
    }
}

/// What a server is asked by, as the one client.
pub(super) fn routes(federation: &Arc<Federation>, node: &Bytes, client: Itself, waker: &Waker) -> Routes {
    let number = federation.number_routes();
    let mut routes = Routes::new(federation.clone(), number, Box::new(client), waker.clone(), Arc::default());
    // Its own node is of its own group.
    let _ = routes.identify(node);
    routes
}

impl FollowedServer {
    /// Takes what is new. Whether anything is.
    pub(super) fn hear(&mut self) -> bool {
        let mut is_news = false;
        let Self { routes, subscribers, gathered, withheld, .. } = self;
        for (type_url, id) in subscribers {
            let mut goes_on = true;
            while goes_on {
                let pulled = routes.pull(*id, Removals::Include, &mut |pull| {
                    is_news = true;
                    match pull {
                        Pull::Put { name, resource, .. } => {
                            gathered.put((type_url.clone(), name.clone()), resource.clone());
                        }
                        Pull::Removed { name, .. } if !name.is_glob() => {
                            gathered.gone((type_url.clone(), name.clone()));
                        }
                        _ => {}
                    }
                    ControlFlow::Continue(())
                });
                is_news |= pulled.answered;
                goes_on = pulled.more;
            }
            routes.pull_errors(*id, Removals::Include, &mut |failed| {
                is_news = true;
                if Interest::from(failed.name.clone()).is_collection() {
                    withheld.insert(type_url.clone(), failed.error.message.to_string());
                } else if failed.removed && !failed.beside && failed.error.code == ResourceError::NOT_FOUND {
                    // Any other error says nothing of whether it is there.
                    gathered.gone((type_url.clone(), failed.name.clone()));
                }
                ControlFlow::Continue(())
            });
        }
        self.hear_refused() || is_news
    }

    fn hear_refused(&mut self) -> bool {
        let news = self.judge.news();
        let is_news = news.is_some();
        self.all_refused = news.unwrap_or_else(|| std::mem::take(&mut self.all_refused));
        is_news
    }

    pub(super) fn ask_all(&mut self) {
        while self.ask() && self.hear() {}
        if self.ask_again() && self.hear() {
            while self.ask() && self.hear() {}
        }
    }

    /// Asks for what is referred to. Whether there is more than before.
    fn ask(&mut self) -> bool {
        let Asked { more, left } = self.gathered.ask();
        for (type_url, name) in left {
            let id = self.subscriber(&type_url);
            let name = (type_url, name);
            self.judge.forget(&name);
            let (type_url, name) = name;
            let interest = Interest::Name(name);
            self.routes.unsubscribe(id, &interest);
            self.unasked.remove(&(type_url, interest));
        }
        let is_more = !more.is_empty();
        more.into_iter().for_each(|(type_url, name)| self.subscribe(type_url, Interest::Name(name)));
        is_more
    }

    pub(super) fn subscribe(&mut self, type_url: TypeUrl, interest: Interest) {
        let id = self.subscriber(&type_url);
        self.routes.subscribe(id, &interest);
        if lock(&self.refused).is_some() {
            self.unasked.insert((type_url, interest));
        }
    }

    /// Asks for what was too much before: less may be wanted since, or more may be asked for. Whether there is any.
    fn ask_again(&mut self) -> bool {
        let unasked = std::mem::take(&mut self.unasked);
        // What is wanted no more was not asked for either.
        let _ = self.routes.refused();
        *lock(&self.refused) = None;
        if unasked.is_empty() {
            return false;
        }
        unasked.into_iter().for_each(|(type_url, interest)| self.subscribe(type_url, interest));
        true
    }

    fn subscriber(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let routes = &mut self.routes;
        *self.subscribers.entry(type_url.clone()).or_insert_with(|| routes.open(type_url))
    }
}
