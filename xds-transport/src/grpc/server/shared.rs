//! One cache that all streams are served from.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tonic::Status;
use xdstp_cache::{
    Cache, Edit, Failed, Interest, Options, Outcome, Pull, Pulled, Removals, Resource, Selector, SubscriberId, TypeUrl,
    Unanswered, Version,
};
use xdstp_uri::{CanonicalText, ResourceName};

use crate::frame::Frame;
use crate::grpc::now;
use crate::grpc::server::accept::{Accept, Accepted, Opened};
use crate::grpc::server::client::{Caller, Client, Clients};
use crate::grpc::server::client_status::ClientStatus;
use crate::grpc::server::events::{Event, Events, Sender, What};
use crate::grpc::server::handle::Wake;
use crate::grpc::server::served::{self, Served, ServedEdit};
use crate::grpc::server::service::Service;
use crate::put::Misfit;
use crate::server::{Answer, NodeError, ProtocolError, Refused, Settings, Source, Tally, forward};
use crate::types::TypeRules;
use crate::wire::client_status::ClientConfig;

/// A cache that every stream is served from, whoever its client is: what is put into it goes to all who ask for it. Cheap to
/// clone.
///
/// ```no_run
/// use xds_transport::grpc::server::Shared;
/// use xds_transport::{Frame, server::Settings};
/// use xdstp_cache::{Cache, Options};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let shared = Shared::new(Cache::new(Options::default()), Settings::default());
/// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// // A Cluster's field 1 is its name.
/// let cart = Frame::of_message(&clusters, b"\x0a\x04cart").into_resource(None);
/// shared.put(&clusters, &"cart".parse()?, cart)?;
///
/// let routes = shared.service().into_routes();
/// tonic::transport::Server::builder().add_routes(routes).serve("[::1]:18000".parse()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Shared {
    served: Arc<Mutex<Served>>,
    settings: Settings,
    events: Sender,
    clients: Clients,
}

impl Shared {
    /// Serves what is in a cache, and what comes into it.
    pub fn new(cache: Cache<Frame>, settings: Settings) -> Self {
        Self::opened(cache, settings, true, Sender::default())
    }

    /// Says nothing before it is changed for the first time: clients that come before wait, and keep what they have.
    pub(crate) fn unfilled(settings: Settings, events: Sender) -> Self {
        Self::opened(Cache::new(Options::default()), settings, false, events)
    }

    fn opened(cache: Cache<Frame>, settings: Settings, open: bool, events: Sender) -> Self {
        let served = Arc::new(Mutex::new(Served::new(cache, open)));
        Self { served, settings, events, clients: Clients::default() }
    }

    /// A service of streams that are served from this.
    pub fn service(&self) -> Service<Self> {
        Service::new(self.clone()).settings(self.settings.clone())
    }

    /// There is this resource from now on; as long as its frame [says](Frame::until), if it says so.
    ///
    /// # Errors
    /// When it does not fit its type or its name: nothing is changed then.
    pub fn put(&self, type_url: &TypeUrl, name: &ResourceName, resource: Resource<Frame>) -> Result<Outcome, Misfit> {
        resource.value.fits(&self.settings.rules, type_url, name)?;
        Ok(self.edit(|edit| edit.put_fitting(type_url, name, resource)))
    }

    /// It is gone.
    pub fn remove(&self, type_url: &TypeUrl, name: &ResourceName) {
        self.edit(|edit| edit.remove(type_url, name));
    }

    /// Looks at the cache. Every stream waits for it.
    pub fn look<T>(&self, look: impl FnOnce(&Cache<Frame>) -> T) -> T {
        let mut served = self.lock();
        served.cache.expire(now());
        look(&served.cache)
    }

    /// Does anything else to the cache, and wakes the streams that have something to pull then. What belongs together is one
    /// change: no stream sees a part of it. What is put here is not over by itself. Where clients wait for the first change of a
    /// [group](super::NodeGroups), this is one, whatever it does.
    ///
    /// ```
    /// use xds_transport::grpc::server::Shared;
    /// use xds_transport::{Frame, server::Settings};
    /// use xdstp_cache::{Cache, Options, ResourceError};
    ///
    /// let shared = Shared::new(Cache::<Frame>::new(Options::default()), Settings::default());
    /// let clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    /// let cart = "cart".parse()?;
    /// shared.change(|edit| {
    ///     edit.remove(&clusters, &"shop".parse()?);
    ///     edit.fail(&clusters, &cart, ResourceError::new(ResourceError::PERMISSION_DENIED, "not yours"));
    ///     Ok::<_, xdstp_uri::ParseError>(())
    /// })?;
    /// assert!(shared.look(|cache| cache.error(&clusters, &cart).is_some()));
    /// # Ok::<(), xdstp_uri::ParseError>(())
    /// ```
    pub fn change<T>(&self, change: impl FnOnce(&mut Edit<'_, Frame>) -> T) -> T {
        self.edit(|of| change(&mut of.cache))
    }

    pub(crate) fn edit<T>(&self, edit: impl FnOnce(&mut ServedEdit<'_>) -> T) -> T {
        served::edit(&self.served, true, edit)
    }

    pub(crate) fn rules(&self) -> &TypeRules {
        &self.settings.rules
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Served> {
        served::lock(&self.served)
    }

    /// The streams that are served from this, as their clients.
    pub fn clients(&self) -> Vec<Client> {
        self.clients.all()
    }

    /// What clients do from now on, as it happens.
    pub fn events(&self) -> Events {
        self.events.subscribe()
    }

    /// What a stream is served from.
    pub(crate) fn source(&self, caller: Caller) -> SharedSource {
        let wake = caller.wake.clone();
        let client = Client::new(caller, Arc::downgrade(&self.served));
        served::arm(&self.served, &mut self.lock());
        let key = self.clients.insert(client.clone());
        SharedSource { shared: self.clone(), wake, client, key, types: Vec::new() }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl ClientStatus for Shared {
    fn visit_clients(&self, contents: bool, visitor: &mut dyn FnMut(ClientConfig) -> ControlFlow<()>) {
        let _ = self.clients().iter().filter_map(|client| client.config(contents)).try_for_each(visitor);
    }
}

impl Accept for Shared {
    type Source = SharedSource;

    async fn accept(&self, opened: Opened) -> Result<Accepted<SharedSource>, Status> {
        Ok(self.source(opened.into()).into())
    }
}

/// What one stream pulls from a [`Shared`] cache. Each call takes its lock, and no other.
#[derive(Debug)]
pub struct SharedSource {
    shared: Shared,
    wake: Wake,
    client: Client,
    /// Its place among the clients.
    key: usize,
    types: Vec<(SubscriberId, TypeUrl)>,
}

impl SharedSource {
    fn tell(&self, what: impl FnOnce() -> What) {
        self.shared.events.tell(|| Event { client: self.client.clone(), what: what() });
    }
}

impl Source for SharedSource {
    forward!(rest self => self.shared.lock().gate());

    fn identify(&mut self, node: &Bytes) -> Result<(), NodeError> {
        self.client.identify(node);
        self.tell(|| What::Came);
        Ok(())
    }

    fn answered(&mut self, id: SubscriberId, answer: &Answer<'_>) {
        let Some((_, type_url)) = self.types.iter().find(|(open, _)| *open == id) else { return };
        self.tell(|| What::of(type_url, answer));
    }

    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.open_selecting(type_url, &Selector::default())
    }

    fn open_selecting(&mut self, type_url: &TypeUrl, selector: &Selector) -> SubscriberId {
        let mut served = self.shared.lock();
        let id = served.cache.open_selecting(type_url, selector);
        served.wakes.insert(id, self.wake.clone());
        drop(served);
        self.types.push((id, type_url.clone()));
        id
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        let mut served = self.shared.lock();
        served.wakes.remove(&id);
        Source::close(&mut served.cache, id, tally);
        drop(served);
        self.types.retain(|(open, _)| *open != id);
    }
}

impl Drop for SharedSource {
    fn drop(&mut self) {
        self.shared.clients.remove(self.key);
        if self.client.is_identified() {
            self.tell(|| What::Left);
        }
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use std::time::Instant;

    use xdstp_cache::ResourceError;

    use super::*;
    use crate::testing::{self, conforms};

    impl testing::Edit for SharedSource {
        fn put(&mut self, type_url: &TypeUrl, name: &ResourceName, resource: Resource<Frame>, _: Instant) {
            assert!(self.shared.put(type_url, name, resource).is_ok(), "nobody describes its type");
        }

        fn remove(&mut self, type_url: &TypeUrl, name: &ResourceName, _: Instant) {
            self.shared.remove(type_url, name);
        }

        fn fail(&mut self, type_url: &TypeUrl, name: &ResourceName, error: ResourceError, _: Instant) -> bool {
            self.shared.change(|edit| edit.fail(type_url, name, error));
            true
        }
    }

    fn source() -> SharedSource {
        let shared = Shared::new(Cache::new(Options::default()), Settings::default());
        shared.source(Caller::nobody())
    }

    #[tokio::test]
    async fn what_one_stream_has_of_a_shared_cache_is_a_source() {
        conforms(source).unwrap();
    }

    #[tokio::test]
    async fn a_stream_is_woken_while_it_is_there_and_not_after() {
        let (clusters, name) = (TypeUrl::from("type.example.com/T"), "a".parse().unwrap());
        let put = |shared: &Shared, body: &[u8]| {
            shared.put(&clusters, &name, Frame::of_message(&clusters, body).into_resource(None)).unwrap();
        };
        let mut one = source();
        let mut other = one.shared.source(Caller::nobody());
        let id = one.open(&clusters);
        other.open(&clusters);
        one.subscribe(id, &Interest::Wildcard);
        one.pull(id, Removals::Include, &mut |_| ControlFlow::Continue(()));
        put(&one.shared, b"1");
        assert!(one.wake.take_due() && !other.wake.take_due(), "who did not ask for it sleeps on");
        one.pull(id, Removals::Include, &mut |_| ControlFlow::Continue(()));
        one.close(id, &Tally::default());
        put(&one.shared, b"2");
        assert!(!one.wake.take_due());
        let served = one.shared.lock();
        assert_eq!((served.wakes.len(), served.cache.subscriber_count()), (1, 1));
    }

    /// A stream that leaves one type is told of by the others.
    #[tokio::test(start_paused = true)]
    async fn what_is_answered_is_told_with_its_type_once_another_type_is_closed() {
        let [left, stays] = ["type.example.com/T", "type.example.com/U"].map(TypeUrl::from);
        let mut source = source();
        let mut events = source.shared.events();
        let [first, second] = [&left, &stays].map(|of| source.open(of));
        source.close(first, &Tally::default());
        source.answered(second, &Answer { nonce: 1, error: None, resources: &[] });
        let told = tokio::time::timeout(std::time::Duration::from_secs(1), events.next()).await;
        let told = told.expect("nothing is told").unwrap().unwrap();
        assert!(format!("{:?}", told.what).contains(stays.as_str()), "{told:?}");
    }
}
