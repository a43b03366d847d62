//! This project's cache, and its server streams on it.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::{Frame, Protocol};
use xdstp_cache::{Cache, Interest, Options, Pull, Removals, Resource, SubscriberId, TypeUrl, Woken};
use xdstp_uri::ResourceName;

use crate::tasks::{Signal, Tasks};
use crate::{Peer, TYPE_URL, Workload, body};

pub type Shared = Arc<Mutex<Cache<Frame>>>;

/// The cache, without a protocol: a subscriber pulls its change set and looks at the body.
pub struct Cached(Published);

/// The cache behind delta streams: a subscriber builds the response, ready for HTTP/2.
pub struct Served {
    published: Published,
    streams: Vec<Arc<Mutex<Stream>>>,
}

/// What both have: a cache whose changes wake tasks.
struct Published {
    cache: Shared,
    type_url: TypeUrl,
    name: ResourceName,
    round: u64,
    next: Option<Resource<Frame>>,
    tasks: Tasks,
    /// By subscriber.
    signals: Vec<Signal>,
    woken: Woken,
    interested: usize,
}

/// A cache of this workload's resources.
pub fn cache(workload: Workload, resources: usize) -> Cache<Frame> {
    let mut options = Options::default();
    options.wildcard_covers_xdstp = workload == Workload::Wildcard;
    let mut cache = Cache::new(options);
    let resource = resource(0);
    for index in 0..resources {
        let name = workload.name(index).parse().unwrap();
        let mut edit = cache.edit(Instant::now());
        edit.put(&TYPE_URL.into(), &name, resource.clone());
        let _ = edit.finish();
    }
    cache
}

/// A resource as it comes out of a response: with the digest of its content.
pub fn resource(round: u64) -> Resource<Frame> {
    Frame::new(body(round)).into_resource(Some(round.to_string().into()))
}

/// A delta stream that has been sent what it asks for, and has ACKed it.
pub fn stream(asks: Vec<String>, cache: &mut Cache<Frame>) -> Stream {
    let now = Instant::now();
    let mut stream = Stream::new(Protocol::Delta, Settings::default());
    let first = DeltaDiscoveryRequest {
        type_url: TYPE_URL.into(),
        resource_names_subscribe: asks,
        ..DeltaDiscoveryRequest::default()
    };
    stream.handle_message(now, first.encode_to_vec().into(), cache).unwrap();
    while stream.poll_transmit(now, cache).unwrap().is_some() {
        acknowledge(&mut stream, cache);
    }
    stream
}

/// ACKs the last response of a stream.
pub fn acknowledge(stream: &mut Stream, cache: &mut Cache<Frame>) {
    let ack = ack(responses(stream));
    stream.handle_message(Instant::now(), ack, cache).unwrap();
}

/// How many responses a stream has sent: their nonces count them.
pub fn responses(stream: &Stream) -> u64 {
    stream.sessions().map(|session| session.tally.responses).sum()
}

/// An encoded ACK.
pub fn ack(nonce: u64) -> Bytes {
    let ack = DeltaDiscoveryRequest {
        type_url: TYPE_URL.into(),
        response_nonce: nonce.to_string(),
        ..DeltaDiscoveryRequest::default()
    };
    ack.encode_to_vec().into()
}

impl Published {
    fn new(workload: Workload, resources: usize, subscribers: usize) -> Self {
        Self {
            cache: Arc::new(Mutex::new(cache(workload, resources))),
            type_url: TYPE_URL.into(),
            name: workload.name(0).parse().unwrap(),
            round: 0,
            next: None,
            tasks: Tasks::default(),
            signals: Vec::new(),
            woken: Woken::default(),
            interested: workload.interested(subscribers),
        }
    }

    fn prepare(&mut self) {
        self.round += 1;
        self.next = Some(resource(self.round));
    }

    fn publish(&mut self) {
        let Some(next) = self.next.take() else { return };
        let mut cache = self.cache.lock().unwrap();
        let mut edit = cache.edit_reusing(Instant::now(), std::mem::take(&mut self.woken));
        edit.put(&self.type_url, &self.name, next);
        self.woken = edit.finish();
        drop(cache);
        assert_eq!(self.woken.iter().count(), self.interested);
        for id in self.woken.iter() {
            self.signals[id.index()].wake();
        }
        self.tasks.run_until(self.interested);
    }
}

impl Peer for Cached {
    fn new(workload: Workload, resources: usize, subscribers: usize) -> Self {
        let mut published = Published::new(workload, resources, subscribers);
        for who in 0..subscribers {
            let shared = published.cache.clone();
            let mut cache = shared.lock().unwrap();
            let id = cache.open(&published.type_url);
            for text in workload.asks(who, resources) {
                cache.subscribe(id, &Interest::from(ResourceName::parse(&text).unwrap()));
            }
            pull(&mut cache, id);
            assert_eq!(id.index(), published.signals.len());
            let task = published.cache.clone();
            published.signals.push(published.tasks.spawn(move || pull(&mut task.lock().unwrap(), id)));
        }
        Self(published)
    }

    fn prepare(&mut self) {
        self.0.prepare();
    }

    fn publish(&mut self) {
        self.0.publish();
    }
}

fn pull(cache: &mut Cache<Frame>, id: SubscriberId) {
    if !cache.has_work(id) {
        return;
    }
    cache.pull(id, Removals::Include, &mut |pull| {
        if let Pull::Put { name, resource, .. } = pull {
            black_box((name.as_str(), resource.value.any().len()));
        }
        ControlFlow::Continue(())
    });
}

impl Peer for Served {
    fn new(workload: Workload, resources: usize, subscribers: usize) -> Self {
        let mut published = Published::new(workload, resources, subscribers);
        let mut streams = Vec::new();
        for who in 0..subscribers {
            let shared = published.cache.clone();
            let stream = Arc::new(Mutex::new(stream(workload.asks(who, resources), &mut shared.lock().unwrap())));
            let (task, source) = (stream.clone(), published.cache.clone());
            published.signals.push(published.tasks.spawn(move || {
                let (mut stream, mut cache) = (task.lock().unwrap(), source.lock().unwrap());
                let mut response = stream.poll_transmit(Instant::now(), &mut *cache).unwrap().unwrap();
                // A gRPC message starts with five bytes of its own.
                black_box(response.chunk_after(&[0; 5]));
                assert_eq!(response.remaining(), 0);
            }));
            streams.push(stream);
        }
        Self { published, streams }
    }

    fn prepare(&mut self) {
        self.published.prepare();
    }

    fn publish(&mut self) {
        self.published.publish();
    }

    fn settle(&mut self) {
        let mut cache = self.published.cache.lock().unwrap();
        for id in self.published.woken.iter() {
            acknowledge(&mut self.streams[id.index()].lock().unwrap(), &mut cache);
        }
    }
}
