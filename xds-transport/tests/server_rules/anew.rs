//! A source that has to ask anew for what a client was sent, as a relay does for what may not be cached.

use std::ops::ControlFlow;

use prost::Message;
use xds_transport::server::{Settings, Source, Stream, Tally};
use xds_transport::wire::DiscoveryRequest;
use xds_transport::{Frame, Protocol};
use xdstp_cache::{
    Cache, Failed, Interest, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::ResourceName;

use crate::support::{CLUSTERS, Server};

/// While it asks, the name is not there, and not gone either.
struct Asking {
    cache: Cache<Frame>,
    asks: bool,
}

impl Source for Asking {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.cache.open(type_url)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        Source::close(&mut self.cache, id, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::subscribe(&mut self.cache, id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::unsubscribe(&mut self.cache, id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        self.cache.resume(id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        self.cache.pull(id, removals, visitor)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        Source::pull_errors(&mut self.cache, id, removals, visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        let asks = self.asks;
        let mut unanswered = self.cache.visit(id, &mut |name, resource| {
            if !(asks && name.as_str() == "b") {
                visitor(name, resource);
            }
        });
        unanswered.names += usize::from(asks);
        unanswered.held += usize::from(asks);
        unanswered
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        self.cache.has_work(id)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        Source::look_up(&self.cache, id, name, look);
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        self.cache.resend(id, name)
    }
}

#[test]
fn rule_150_no_full_state_leaves_out_what_was_sent_and_is_asked_for_anew() {
    let mut server = Server::with(CLUSTERS, &["a", "b"]);
    let mut stream = Stream::new(Protocol::Sotw, Settings::default());
    let mut request = DiscoveryRequest { type_url: CLUSTERS.into(), ..DiscoveryRequest::default() };
    request.resource_names = ["a", "b"].map(String::from).into();
    let cache = std::mem::replace(&mut server.cache, Server::origin().cache);
    let mut source = Asking { cache, asks: false };
    stream.handle_message(server.now, request.encode_to_vec().into(), &mut source).unwrap();
    let first = stream.poll_transmit(server.now, &mut source).unwrap().unwrap();
    assert_eq!(first.resources, 2);
    request.response_nonce = "1".into();
    stream.handle_message(server.now, request.encode_to_vec().into(), &mut source).unwrap();

    source.asks = true;
    std::mem::swap(&mut server.cache, &mut source.cache);
    server.put(CLUSTERS, "a", "2");
    std::mem::swap(&mut server.cache, &mut source.cache);
    assert!(stream.poll_transmit(server.now, &mut source).unwrap().is_none(), "its absence would delete it");
    source.asks = false;
    assert_eq!(stream.poll_transmit(server.now, &mut source).unwrap().unwrap().resources, 2);
}
