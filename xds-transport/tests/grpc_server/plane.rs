//! A server with a cache, which keeps count of its streams.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::DuplexStream;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;
use tonic::transport::Server;
use xds_transport::Frame;
use xds_transport::grpc::server::{Accept, Accepted, Opened, Service};
use xds_transport::server::{Settings, Source, Tally};
use xdstp_cache::{
    Cache, Failed, Interest, Options, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version,
};
use xdstp_uri::ResourceName;

use crate::CDS;
use crate::call::Connection;

/// What streams are served from, and what is known of them.
#[derive(Clone)]
pub(crate) struct Plane {
    cache: Arc<Mutex<Cache<Frame>>>,
    pub(crate) count: Arc<Count>,
    pub(crate) waits: Arc<Waits>,
}

/// To subscribe to this name takes until the plane lets it.
pub(crate) const WAITS: &str = "waits";

#[derive(Default)]
pub(crate) struct Waits {
    begun: Notify,
    over: Mutex<bool>,
    ended: Condvar,
}

impl Waits {
    /// Returns once somebody waits.
    pub(crate) async fn begun(&self) {
        self.begun.notified().await;
    }

    pub(crate) fn end(&self) {
        *self.over.lock().unwrap() = true;
        self.ended.notify_all();
    }

    /// Not for ever: where this keeps the runtime, nobody could end it, and the test is to fail.
    fn wait(&self) {
        self.begun.notify_one();
        let over = self.over.lock().unwrap();
        let (over, _) = self.ended.wait_timeout_while(over, Duration::from_secs(20), |over| !*over).unwrap();
        assert!(*over, "nobody ended it");
    }
}

#[derive(Debug, Default)]
pub(crate) struct Count {
    opened: AtomicUsize,
    closed: AtomicUsize,
    dropped: AtomicUsize,
    /// Of which client each was that was opened.
    clients: Mutex<Vec<Option<u64>>>,
    /// Of which client each was that was looked at.
    looks: Mutex<Vec<Option<u64>>>,
}

impl Count {
    /// Sessions opened, sessions closed, sources dropped.
    pub(crate) fn all(&self) -> (usize, usize, usize) {
        let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
        (count(&self.opened), count(&self.closed), count(&self.dropped))
    }

    /// Of which client each session is, in the order in which they were opened.
    pub(crate) fn clients(&self) -> Vec<Option<u64>> {
        self.clients.lock().unwrap().clone()
    }

    /// Of which client the sessions are that were looked at, look by look.
    pub(crate) fn looks(&self) -> Vec<Option<u64>> {
        self.looks.lock().unwrap().clone()
    }
}

/// A server that is reached by connections in memory.
pub(crate) struct Served {
    connections: mpsc::UnboundedSender<io::Result<DuplexStream>>,
    streams: mpsc::UnboundedReceiver<Opened>,
    unfinished: Box<dyn Fn() -> usize>,
}

impl Served {
    pub(crate) async fn connect(&self) -> Connection {
        Connection::handshake(self.connect_raw()).await
    }

    pub(crate) fn connect_raw(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(1 << 16);
        self.connections.send(Ok(far)).unwrap();
        near
    }

    /// The next stream that was opened.
    pub(crate) async fn opened(&mut self) -> Opened {
        self.streams.recv().await.unwrap()
    }

    /// So many bytes of requests are kept, until they are handled.
    pub(crate) async fn keeps(&self, bytes: usize) {
        for _ in 0..100_000 {
            if (self.unfinished)() == bytes {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} bytes, and not {bytes}", (self.unfinished)());
    }
}

#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) max_stream_age: Option<Duration>,
    pub(crate) max_request_bytes: Option<usize>,
    pub(crate) max_unfinished_bytes: Option<usize>,
    pub(crate) first_request_within: Option<Duration>,
    pub(crate) long_turns: Option<usize>,
    pub(crate) settings: Settings,
}

impl Plane {
    /// One with clusters of these names, and a body of this many bytes each.
    pub(crate) fn with(names: impl IntoIterator<Item = String>, bytes: usize, ttl: Option<Duration>) -> Self {
        Self::of(Options::default(), names, bytes, ttl)
    }

    /// The same, with a cache that looks at no more of them at a time.
    pub(crate) fn that_looks_at(most: usize, names: impl IntoIterator<Item = String>) -> Self {
        let mut options = Options::default();
        options.looks = most;
        Self::of(options, names, 10, None)
    }

    fn of(options: Options, names: impl IntoIterator<Item = String>, bytes: usize, ttl: Option<Duration>) -> Self {
        let cache = Arc::new(Mutex::new(Cache::new(options)));
        let plane = Self { cache, count: Arc::default(), waits: Arc::default() };
        for name in names {
            plane.put(&name, bytes, ttl);
        }
        plane
    }

    pub(crate) fn small() -> Self {
        Self::with(["a".to_owned()], 10, None)
    }

    pub(crate) fn put(&self, name: &str, bytes: usize, ttl: Option<Duration>) {
        let mut payload = vec![0x0a, u8::try_from(name.len()).unwrap()];
        payload.extend(name.bytes());
        // An unknown field as long as wanted.
        payload.extend([0xfa, 0x7f]);
        let mut length = bytes;
        while length >= 0x80 {
            payload.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        payload.push(length as u8);
        payload.resize(payload.len() + bytes, b'x');
        let frame = Frame::of_message(&CDS.into(), &payload).with_wrapper(Bytes::new(), ttl, false);
        let name = ResourceName::parse(name).unwrap();
        let mut cache = self.lock();
        let mut edit = cache.edit(now());
        edit.put(&CDS.into(), &name, frame.into_resource(None));
        let _ = edit.finish();
    }

    pub(crate) fn serve(&self) -> Served {
        self.serve_with(Rules::default())
    }

    pub(crate) fn serve_with(&self, options: Rules) -> Served {
        let (connections, incoming) = mpsc::unbounded_channel();
        let (opened, streams) = mpsc::unbounded_channel();
        let Rules {
            max_stream_age,
            max_request_bytes,
            max_unfinished_bytes,
            first_request_within,
            long_turns,
            settings,
        } = options;
        let mut service = Service::new(Accepting { plane: self.clone(), opened })
            .settings(settings)
            .max_unfinished_bytes(max_unfinished_bytes.unwrap_or(1 << 20))
            .max_request_bytes(max_request_bytes.unwrap_or(16 << 20));
        if let Some(age) = max_stream_age {
            service = service.max_stream_age(age);
        }
        if let Some(time) = first_request_within {
            service = service.first_request_within(time);
        }
        if let Some(at_a_time) = long_turns {
            service = service.long_turns(at_a_time);
        }
        let unfinished = Box::new(service.unfinished_bytes());
        let server = Server::builder().accept_http1(true).add_routes(service.into_routes());
        tokio::spawn(server.serve_with_incoming(UnboundedReceiverStream::new(incoming)));
        Served { connections, streams, unfinished }
    }

    fn lock(&self) -> MutexGuard<'_, Cache<Frame>> {
        self.cache.lock().unwrap()
    }
}

pub(crate) fn now() -> std::time::Instant {
    tokio::time::Instant::now().into_std()
}

struct Accepting {
    plane: Plane,
    opened: mpsc::UnboundedSender<Opened>,
}

impl Accept for Accepting {
    type Source = Counted;

    /// A stream is refused with the words it asks for, or answered with those it says, and is of the client that it says.
    async fn accept(&self, opened: Opened) -> Result<Accepted<Counted>, Status> {
        let metadata = opened.metadata();
        if let Some(words) = metadata.get("x-refuse") {
            return Err(Status::failed_precondition(words.to_str().unwrap()));
        }
        let says = metadata.get("x-say").cloned();
        let client = metadata.get("x-client").map(|client| client.to_str().unwrap().parse().unwrap());
        let _ = self.opened.send(opened);
        let mut accepted = Accepted::from(Counted(self.plane.clone(), client));
        accepted.client = client;
        if let Some(words) = says {
            accepted.metadata.insert("x-said", words);
        }
        Ok(accepted)
    }
}

pub(crate) struct Counted(Plane, Option<u64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Source for Counted {
    fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
        self.0.count.opened.fetch_add(1, Ordering::SeqCst);
        self.0.count.clients.lock().unwrap().push(self.1);
        self.0.lock().open(type_url)
    }

    fn close(&mut self, id: SubscriberId, tally: &Tally) {
        self.0.count.closed.fetch_add(1, Ordering::SeqCst);
        Source::close(&mut *self.0.lock(), id, tally);
    }

    fn subscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        if interest.as_str() == WAITS {
            self.0.waits.wait();
        }
        Source::subscribe(&mut *self.0.lock(), id, interest)
    }

    fn unsubscribe(&mut self, id: SubscriberId, interest: &Interest) -> bool {
        Source::unsubscribe(&mut *self.0.lock(), id, interest)
    }

    fn resume(&mut self, id: SubscriberId, held: Vec<(ResourceName, Version)>) {
        self.0.lock().resume(id, held);
    }

    fn pull(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Pull<'_, Frame>) -> ControlFlow<()>,
    ) -> Pulled {
        self.0.count.looks.lock().unwrap().push(self.1);
        Source::pull(&mut *self.0.lock(), id, removals, visitor)
    }

    fn pull_errors(
        &mut self,
        id: SubscriberId,
        removals: Removals,
        visitor: &mut dyn FnMut(Failed<'_>) -> ControlFlow<()>,
    ) -> bool {
        Source::pull_errors(&mut *self.0.lock(), id, removals, visitor)
    }

    fn visit(&mut self, id: SubscriberId, visitor: &mut dyn FnMut(&ResourceName, &Resource<Frame>)) -> Unanswered {
        Source::visit(&mut *self.0.lock(), id, visitor)
    }

    fn has_work(&self, id: SubscriberId) -> bool {
        self.0.lock().has_work(id)
    }

    fn resend(&mut self, id: SubscriberId, name: &ResourceName) -> bool {
        self.0.lock().resend(id, name)
    }

    fn look_up(&self, id: SubscriberId, name: &ResourceName, look: &mut dyn FnMut(&Resource<Frame>)) {
        Source::look_up(&*self.0.lock(), id, name, look);
    }
}
