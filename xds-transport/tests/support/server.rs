//! A cache that streams are served from, and the time.

use std::time::Instant;

use prost::Message;
use xds_transport::wire::{DeltaDiscoveryResponse, DiscoveryResponse};
use xds_transport::{Frame, Response, TypeRules};
use xdstp_cache::{Cache, Interest, Options, SubscriberId, TypeUrl};

use super::{CLUSTERS, EdsClusterConfig, Payload, any_moment, payload};

/// The cache of a control plane, or of a relay, and the time.
pub(crate) struct Server {
    pub(crate) cache: Cache<Frame>,
    pub(crate) now: Instant,
    pub(crate) woken: Vec<SubscriberId>,
}

impl Server {
    pub(crate) fn new(options: Options) -> Self {
        Self { cache: Cache::new(options), now: any_moment(), woken: Vec::new() }
    }

    /// A control plane: what it does not hold does not exist.
    pub(crate) fn origin() -> Self {
        Self::new(Options::default())
    }

    /// A relay: what it does not hold was not answered yet.
    pub(crate) fn relay() -> Self {
        let mut options = Options::default();
        options.authoritative = false;
        Self::new(options)
    }

    /// A control plane that holds these resources at version 1.
    pub(crate) fn with(of: &str, names: &[&str]) -> Self {
        let mut server = Self::origin();
        for name in names {
            server.put(of, name, "1");
        }
        server
    }

    /// Stores a resource whose body says its version.
    pub(crate) fn put(&mut self, of: &str, name: &str, version: &str) {
        self.put_frame(of, name, version, Frame::of_message(&of.into(), &payload(name, version)));
    }

    pub(crate) fn put_frame(&mut self, of: &str, name: &str, version: &str, frame: Frame) {
        let aliases: Vec<_> = frame.aliases().collect();
        let resource = frame.into_resource(Some(version.into()));
        let name = name.parse().unwrap();
        let mut edit = self.cache.edit(self.now);
        edit.put_with_aliases(&of.into(), &name, aliases, resource);
        self.woken.extend(edit.finish());
    }

    /// A cluster that gets its endpoints under another name.
    pub(crate) fn put_cluster(&mut self, name: &str, endpoints: &str, version: &str) {
        let eds = Some(EdsClusterConfig { service_name: endpoints.into() });
        let payload = Payload { name: name.into(), eds, body: version.into() };
        let frame = Frame::of_message(&CLUSTERS.into(), &payload.encode_to_vec());
        self.put_frame(CLUSTERS, name, version, frame);
    }

    pub(crate) fn remove(&mut self, of: &str, name: &str) {
        let mut edit = self.cache.edit(self.now);
        edit.remove(&of.into(), &name.parse().unwrap());
        self.woken.extend(edit.finish());
    }

    pub(crate) fn fail(&mut self, of: &str, name: &str, code: i32) {
        let error = xdstp_cache::ResourceError::new(code, "why");
        let mut edit = self.cache.edit(self.now);
        edit.fail(&of.into(), &name.parse().unwrap(), error);
        self.woken.extend(edit.finish());
    }

    pub(crate) fn answered(&mut self, of: &str, collection: &str) {
        let collection = Interest::from(collection.parse::<xdstp_uri::ResourceName>().unwrap());
        let mut edit = self.cache.edit(self.now);
        edit.answered(&of.into(), &collection);
        self.woken.extend(edit.finish());
    }

    /// Takes over what an origin answered over delta.
    pub(crate) fn receive_delta(&mut self, response: &DeltaDiscoveryResponse) {
        let response = Response::from_delta(response.encode_to_vec().into()).unwrap();
        self.receive(response);
    }

    pub(crate) fn receive_sotw(&mut self, response: &DiscoveryResponse) {
        let response = Response::from_sotw(response.encode_to_vec().into(), &TypeRules::envoy()).unwrap();
        self.receive(response);
    }

    fn receive(&mut self, response: Response) {
        assert_eq!(response.rejected, []);
        let of = TypeUrl::from(response.type_url);
        let mut edit = self.cache.edit(self.now);
        for received in response.resources {
            let resource = received.frame.unwrap().into_resource(received.version);
            edit.put(&of, &received.name, resource);
        }
        for name in response.removed {
            edit.remove(&of, &name);
        }
        self.woken.extend(edit.finish());
    }
}
