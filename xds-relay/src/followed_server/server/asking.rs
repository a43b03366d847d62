//! What it asks, and hears.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use xds_transport::server::Source as _;
use xdstp_cache::{Interest, Pull, Removals, SubscriberId, TypeUrl};
use xdstp_client::federation::{Federation, Routes};

use super::{FollowedServer, Itself};
use crate::followed_server::gathered::Asked;
use crate::followed_server::judge::encoded;
use crate::lock::lock;

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
                            if let Some(value) = encoded(name, resource) {
                                gathered.put((type_url.clone(), name.clone()), value, resource.value.any());
                            }
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
                } else if failed.removed && !failed.beside && !failed.error.is_transient() {
                    // Any other error says nothing of whether it is there.
                    gathered.gone((type_url.clone(), failed.name.clone()));
                }
                ControlFlow::Continue(())
            });
        }
        self.hear_refused() || is_news
    }

    fn hear_refused(&mut self) -> bool {
        if !self.judge.has_news() {
            return false;
        }
        for (name, refused) in self.judge.news() {
            let Some(value) = refused else {
                let (type_url, of) = &name;
                let mut there = None;
                if let Some(id) = self.subscribers.get(type_url) {
                    self.routes.look_up(*id, of, &mut |resource| there = Some(resource.clone()));
                }
                match there.and_then(|there| Some((encoded(of, &there)?, there))) {
                    Some((value, there)) => self.gathered.put(name, value, there.value.any()),
                    None => self.gathered.gone(name),
                }
                continue;
            };
            self.gathered.refused(name, value);
        }
        true
    }

    /// Asks for what is referred to. Whether there is more than before.
    pub(super) fn ask(&mut self) -> bool {
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
    pub(super) fn ask_again(&mut self) -> bool {
        let unasked = std::mem::take(&mut self.unasked);
        if unasked.is_empty() {
            return false;
        }
        let _ = self.routes.refused();
        *lock(&self.refused) = None;
        unasked.into_iter().for_each(|(type_url, interest)| self.subscribe(type_url, interest));
        true
    }

    fn subscriber(&mut self, type_url: &TypeUrl) -> SubscriberId {
        let routes = &mut self.routes;
        *self.subscribers.entry(type_url.clone()).or_insert_with(|| routes.open(type_url))
    }
}
