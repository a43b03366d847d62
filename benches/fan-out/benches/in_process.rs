//! What an update costs before HTTP/2: the cache and 100 server streams in one thread, nothing else.
//! One iteration changes one resource, lets every stream pull and encode its response, and ACKs it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fan_out::content::{self, Naming};
use prost::Message;
use xds_transport::server::{Settings, Stream};
use xds_transport::wire::DeltaDiscoveryRequest;
use xds_transport::{Frame, Protocol};
use xdstp_cache::{Cache, Options, Resource, TypeUrl, Woken};
use xdstp_uri::ResourceName;

const STREAMS: usize = 100;

#[derive(Clone, Copy)]
enum Subscribed {
    Glob,
    Exact,
    Wildcard,
}

struct FanOut {
    type_url: TypeUrl,
    cache: Cache<Frame>,
    streams: Vec<Stream>,
    names: Vec<ResourceName>,
    /// The nonce of the last response: the same on every stream.
    nonce: u64,
    round: u64,
    woken: Woken,
}

impl FanOut {
    fn new(subscribed: Subscribed, resources: usize) -> Self {
        let type_url = TypeUrl::from(content::TYPE_URL);
        // A wildcard covers old-style names.
        let name_of = |index| match subscribed {
            Subscribed::Wildcard => format!("pool/{index}"),
            Subscribed::Glob | Subscribed::Exact => Naming::Pool.name(index),
        };
        let names: Vec<_> = (0..resources).map(|index| ResourceName::parse(&name_of(index)).unwrap()).collect();
        let interest = match subscribed {
            Subscribed::Glob => Naming::Pool.collections(),
            Subscribed::Exact => Naming::Pool.interest(10, true),
            Subscribed::Wildcard => vec!["*".to_owned()],
        };
        let mut fan_out = Self {
            type_url,
            cache: Cache::new(Options::default()),
            streams: Vec::new(),
            names,
            nonce: 0,
            round: 0,
            woken: Woken::default(),
        };
        for index in 0..resources {
            let update = fan_out.update(index);
            fan_out.upsert(index, update);
        }
        let first = request(|request| request.resource_names_subscribe = interest);
        for _ in 0..STREAMS {
            let mut stream = Stream::new(Protocol::Delta, Settings::default());
            stream.handle_message(Instant::now(), first.clone(), &mut fan_out.cache).unwrap();
            // The initial state is several responses of a bounded size.
            let mut nonce = 0;
            while stream.poll_transmit(Instant::now(), &mut fan_out.cache).unwrap().is_some() {
                nonce += 1;
                stream.handle_message(Instant::now(), ack(nonce), &mut fan_out.cache).unwrap();
            }
            fan_out.nonce = nonce;
            fan_out.streams.push(stream);
        }
        fan_out
    }

    /// The next state of a resource, as an upstream response would bring it.
    fn update(&mut self, index: usize) -> Resource<Frame> {
        self.round += 1;
        let resource = Naming::Pool.resource(index, self.round);
        let any = resource.resource.unwrap_or_default().encode_to_vec();
        Frame::new(any.into()).into_resource(Some(self.round.to_string().into()))
    }

    fn upsert(&mut self, index: usize, update: Resource<Frame>) {
        let mut edit = self.cache.edit_reusing(Instant::now(), std::mem::take(&mut self.woken));
        edit.put(&self.type_url, &self.names[index], update);
        self.woken = edit.finish();
    }

    /// Changes a resource and brings it to every stream. How many bytes that is.
    fn round(&mut self, index: usize, update: Resource<Frame>) -> usize {
        let now = Instant::now();
        self.upsert(index, update);
        assert_eq!(self.woken.iter().count(), STREAMS);
        self.nonce += 1;
        let ack = ack(self.nonce);
        let mut bytes = 0;
        for subscriber in self.woken.iter() {
            let stream = &mut self.streams[subscriber.index()];
            let mut response =
                stream.poll_transmit(now, &mut self.cache).unwrap().expect("who is woken has something to send");
            bytes += response.chunk_after(&[0; 5]).unwrap_or_default().len();
            stream.handle_message(now, ack.clone(), &mut self.cache).unwrap();
        }
        bytes
    }
}

fn request(fill: impl FnOnce(&mut DeltaDiscoveryRequest)) -> Bytes {
    let mut request = DeltaDiscoveryRequest { type_url: content::TYPE_URL.into(), ..Default::default() };
    fill(&mut request);
    request.encode_to_vec().into()
}

fn ack(nonce: u64) -> Bytes {
    request(|request| request.response_nonce = nonce.to_string())
}

fn update_to_100_streams(c: &mut Criterion) {
    let mut group = c.benchmark_group("update_to_100_streams");
    group.throughput(Throughput::Elements(STREAMS as u64)).warm_up_time(Duration::from_millis(500));
    let cases = [("glob", Subscribed::Glob), ("exact", Subscribed::Exact), ("wildcard", Subscribed::Wildcard)];
    for (label, subscribed) in cases {
        for resources in [1_000, 10_000] {
            let mut fan_out = FanOut::new(subscribed, resources);
            // What everybody is subscribed to, whatever the interest.
            let mut next = (0..10).cycle();
            group.bench_function(BenchmarkId::new(label, resources), |b| {
                // Both closures change it, one after the other.
                let fan_out = std::cell::RefCell::new(&mut fan_out);
                b.iter_batched(
                    || {
                        let index = next.next().unwrap_or_default();
                        (index, fan_out.borrow_mut().update(index))
                    },
                    |(index, update)| fan_out.borrow_mut().round(index, update),
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, update_to_100_streams);
criterion_main!(benches);
