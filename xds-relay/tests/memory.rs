//! What a relay keeps of a resource and of a name that a client asked for, in exact live bytes.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and has a clock")]

use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use allocation_counter::measure;
use bytes::Bytes;
use prost::Message;
use xds_relay::Config;
use xds_relay::metrics::Metrics;
use xds_relay::relay_core::{Dial, Dialed, EveryNode, Position, RelayCore, Routes};
use xds_transport::client::{Command, Event, Stream as ClientStream, Verdict};
use xds_transport::server::{Settings, Stream, Transmit};
use xds_transport::wire::Node;
use xds_transport::{Frame, Protocol};
use xdstp_cache::{Cache, Interest, Options};
use xdstp_client::Backoff;
use xdstp_client::upstream::{Consumer, Upstream};

const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// Does something, and counts what it keeps or gives back.
fn counted<T>(kept: &mut usize, act: impl FnOnce() -> T) -> T {
    let mut done = None;
    *kept = kept.checked_add_signed(measure(|| done = Some(act())).bytes_current.try_into().unwrap()).unwrap();
    done.unwrap()
}

/// The streams that the relay opened.
#[derive(Clone)]
struct Dialer {
    now: Instant,
    /// The origin's, which are no part of the relay.
    settings: Settings,
    links: Arc<Mutex<Vec<Link>>>,
}

/// A stream of the relay, and the origin's end of it.
struct Link {
    consumer: Box<dyn Consumer>,
    upstream: Upstream,
    far_end: Stream,
}

struct Held;

impl Dialed for Held {
    fn nudge(&self) {}
}

impl Dial for Dialer {
    fn dial(&self, _: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let protocol = Protocol::Delta;
        let stream = ClientStream::new(protocol, node, self.settings.rules.clone());
        let upstream = Upstream::new(stream, Backoff::default(), self.now);
        let far_end = Stream::new(protocol, self.settings.clone());
        self.links.lock().unwrap().push(Link { consumer, upstream, far_end });
        Box::new(Held)
    }
}

/// Of 1000 bytes, no two alike: a field that nobody knows fills them.
fn body(name: &str) -> Frame {
    let assignment = [&[0x0a, name.len().try_into().unwrap()], name.as_bytes()].concat();
    let filling = 1000 - assignment.len() - 3;
    // Field 15, and a length of two bytes.
    let head = [0x7a, (filling % 128 + 128).try_into().unwrap(), (filling / 128).try_into().unwrap()];
    Frame::of_message(&ENDPOINTS.into(), &[assignment, head.to_vec(), vec![0; filling]].concat())
}

/// A relay before an origin, and what the relay keeps.
struct World {
    origin: Cache<Frame>,
    core: Arc<RelayCore>,
    dialer: Dialer,
    links: Vec<Link>,
    clients: Vec<(Stream, Routes)>,
    /// In bytes.
    kept: usize,
}

impl World {
    fn new(resources: usize, name: fn(usize) -> String) -> Self {
        let (mut origin, now) = (Cache::new(Options::default()), Instant::now());
        for index in 0..resources {
            let (name, resource) = (name(index), body(&name(index)).into_resource(Some("1".into())));
            let mut edit = origin.edit(now);
            edit.put(&ENDPOINTS.into(), &name.parse().unwrap(), resource);
            let _ = edit.finish();
        }
        let config = "origins: [{ name: up, server: 'a:1' }]\nlimits: { names: 10000000, names_per_stream: 1000000 }";
        let config = Config::parse("relay.yaml", config).unwrap();
        let dialer = Dialer { now, settings: Settings::default(), links: Arc::default() };
        let core =
            RelayCore::new(&config, Box::new(EveryNode), Box::new(dialer.clone()), Arc::new(Metrics::new([ENDPOINTS])));
        Self { origin, core, dialer, links: Vec::new(), clients: Vec::new(), kept: 0 }
    }

    /// A client that is sent all it wants.
    fn client(&mut self, protocol: Protocol, node: usize, wants: impl IntoIterator<Item = Interest>) {
        let now = self.dialer.now;
        let node = Node { id: node.to_string(), ..Node::default() }.encode_to_vec();
        let mut machine = ClientStream::new(protocol, node.into(), self.dialer.settings.rules.clone());
        machine.connected(now);
        wants.into_iter().for_each(|wanted| machine.apply(Command::Subscribe(ENDPOINTS.into(), wanted)));
        let mut client = counted(&mut self.kept, || {
            let routes = self.core.open_stream(protocol, Waker::noop().clone(), None);
            (Stream::new(protocol, self.core.settings()), routes)
        });
        while self.exchange(&mut client, &mut machine) {}
        self.clients.push(client);
    }

    /// Has the relay hear what a client and the origin say, and the other way round; whether anybody said anything.
    fn exchange(&mut self, (stream, routes): &mut (Stream, Routes), machine: &mut ClientStream) -> bool {
        let (now, kept) = (self.dialer.now, &mut self.kept);
        let mut said = false;
        while let Some(request) = machine.poll_transmit(now) {
            said = true;
            counted(kept, || stream.handle_message(now, Bytes::copy_from_slice(&request), routes).unwrap());
        }
        self.links.append(&mut self.dialer.links.lock().unwrap());
        for link in &mut self.links {
            said |= link.drive(&mut self.origin, now, kept);
        }
        // A copy: what was the relay's is dropped.
        while let Some(response) =
            counted(kept, || stream.poll_transmit(now, routes).unwrap().map(|response| response.into_bytes().to_vec()))
        {
            *kept -= response.capacity();
            said = true;
            machine.handle_message(now, response.into()).unwrap();
            while let Some(Event::Update(update)) = machine.poll_event() {
                assert!(update.rejected.is_empty(), "what is refused costs more");
                machine.apply(Command::Finish(update.id, Verdict::Accept));
            }
        }
        said
    }
}

impl Link {
    fn drive(&mut self, origin: &mut Cache<Frame>, now: Instant, kept: &mut usize) -> bool {
        let mut said = false;
        let mut response = None;
        loop {
            while let Some(request) = self.turn(response.take(), now, kept) {
                said = true;
                self.far_end.handle_message(now, request, origin).unwrap();
            }
            response = self.far_end.poll_transmit(now, origin).unwrap().map(Transmit::into_bytes);
            if response.is_none() {
                return said;
            }
            said = true;
        }
    }

    /// Has the relay hear a response, if there is one; what it asks for.
    fn turn(&mut self, response: Option<Bytes>, now: Instant, kept: &mut usize) -> Option<Bytes> {
        let Self { consumer, upstream, .. } = self;
        let request = counted(kept, || {
            if upstream.should_connect(now) {
                let connection = upstream.connected(now);
                consumer.connection(now, connection);
            }
            if let Some(response) = &response {
                let answered = upstream.handle_message(now, Bytes::copy_from_slice(response)).unwrap();
                answered.into_iter().for_each(|connection| consumer.connection(now, connection));
                while let Some(Event::Update(update)) = upstream.poll_event() {
                    let id = update.id;
                    let verdict = consumer.update(now, update);
                    upstream.apply(Command::Finish(id, verdict));
                }
            }
            consumer.commands(now, &mut |command| upstream.apply(command));
            upstream.poll_transmit(now).map(|request| request.to_vec())
        });
        // The origin's from here on.
        *kept -= request.as_ref().map_or(0, Vec::capacity);
        request.map(Bytes::from)
    }
}

fn old_style(index: usize) -> String {
    format!("cluster-{index:06}")
}

const GLOB: &str = "xdstp://control-plane.example/envoy.config.endpoint.v3.ClusterLoadAssignment/pool/*";

fn new_style(index: usize) -> String {
    GLOB.replace('*', &format!("{index:06}"))
}

fn by_name(index: usize) -> Interest {
    Interest::Name(new_style(index).parse().unwrap())
}

/// What a client wants that wants all.
fn all(name: fn(usize) -> String) -> Interest {
    if name(0).starts_with("xdstp:") { Interest::Name(GLOB.parse().unwrap()) } else { Interest::Wildcard }
}

/// What the relay keeps for groups that have all of the resources.
fn kept(resources: usize, name: fn(usize) -> String, groups: usize) -> usize {
    let mut world = World::new(resources, name);
    (0..groups).for_each(|node| world.client(Protocol::Delta, node, [all(name)]));
    world.kept
}

/// What each resource makes of it, but for its name.
fn each(resources: usize, name: fn(usize) -> String, groups: usize) -> usize {
    (kept(resources, name, groups) - kept(0, name, groups)) / resources - name(0).len()
}

#[test]
fn a_resource_costs_380_bytes_above_its_body_and_its_name_and_470_where_groups_may_share_it() {
    for (name, goal) in [(new_style as fn(_) -> _, 380), (old_style, 470)] {
        for resources in [1_000, 10_000, 100_000] {
            let above = each(resources, name, 1) - body(&name(0)).any().len();
            println!("{above} bytes for each of {resources}, above its body and its name {}", name(0));
            assert!(above <= goal, "{above}");
        }
    }
}

/// Where every node is a group of its own, and the origin has the same for all of them.
#[test]
fn a_resource_costs_a_further_group_240_bytes() {
    for (groups, resources) in [(10, 10_000), (100, 1_000), (1_000, 100)] {
        let of_one = kept(resources, old_style, 1) - kept(0, old_style, 1);
        let of_all = kept(resources, old_style, groups) - kept(0, old_style, groups);
        let each = (of_all - of_one) / (groups - 1) / resources;
        println!("{each} bytes for each of {resources} of each of {groups} groups");
        assert!(each <= 240, "{each}");
    }
}

#[test]
fn a_group_costs_18_kilobytes() {
    let each = (kept(0, old_style, 1_001) - kept(0, old_style, 1)) / 1_000;
    println!("{each} bytes for each of 1000 groups, with its stream and a client");
    assert!(each <= 18_000, "{each}");
}

#[test]
fn a_name_costs_a_client_44_bytes_over_delta_and_88_over_sotw() {
    for (protocol, goal) in [(Protocol::Delta, 44), (Protocol::Sotw, 88)] {
        for (clients, names) in [(10, 1_000), (100, 100), (100, 1_000)] {
            let mut world = World::new(1_000, new_style);
            // What others want is asked for already.
            world.client(Protocol::Delta, 0, (0..1_000).map(by_name));
            let mut wants = |each: usize| {
                let before = world.kept;
                for client in 0..clients {
                    world.client(protocol, 0, (0..each).map(|at| by_name((client * each + at) % 1_000)));
                }
                world.kept - before
            };
            let one = wants(1);
            let each = (wants(names) - one) / clients / (names - 1);
            println!("{each} bytes for each of {names} names of {clients} clients, {protocol:?}");
            assert!(each <= goal, "{each}");
        }
    }
}
