//! What a program brings may call the client that it is part of: no lock is held while its code runs.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream as _;
use xds_transport::{Frame, TypeRules};

use super::{CDS, OTHER, TOP, heard, message, now, xdstp};
use crate::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
use crate::federation::{Dialed, Held, SnapshotOrigin};
use crate::test::Network;
use crate::upstream::{Connection, Consumer};
use crate::{Client, Metrics, Transport, Watch};

/// What a client is to its own parts.
type Own = Arc<OnceLock<Client>>;
/// What a part does with it, once.
type Call = Box<dyn Fn(&Client) + Send + Sync>;

/// A transport that does something with its client as it opens a stream to a server, and as that stream ends.
struct Calls {
    network: Network,
    client: Own,
    server: &'static str,
    opening: Mutex<Option<Call>>,
    ending: Mutex<Option<Call>>,
}

/// A stream that does it when it is dropped.
struct Ends(Box<dyn Dialed>, Own, Option<Call>);

/// Metrics that do something with their client when a server is not asked any more.
struct Asks(Own, AtomicBool);

impl Transport for Calls {
    fn open(&self, server: &Server, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        let call = if server.uri() == self.server { self.opening.lock().unwrap().take() } else { None };
        call.iter().for_each(|call| call(self.client.get().unwrap()));
        let ending = if server.uri() == self.server { self.ending.lock().unwrap().take() } else { None };
        Box::new(Ends(self.network.open(server, node, consumer), self.client.clone(), ending))
    }
}

impl Dialed for Ends {
    fn nudge(&self) {
        self.0.nudge();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.2.iter().for_each(|call| call(self.1.get().unwrap()));
    }
}

impl Metrics for Asks {
    fn connected(&self, _: &str, is: Option<bool>) {
        let client = self.0.get().unwrap();
        assert!(client.status(false).generic_xds_configs.len() < 2);
        self.1.fetch_or(is.is_none(), Ordering::Relaxed);
    }
}

/// Runs what may block itself for ever, and fails if it does.
pub(super) fn unblocked<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let running = thread::spawn(move || tell.send(run()));
    let told = told.recv_timeout(Duration::from_secs(20)).expect("it blocks itself, or failed");
    running.join().unwrap().unwrap();
    told
}

fn bootstrap() -> Bootstrap {
    let server = |uri| Server::new(uri, ChannelCreds::Insecure);
    Bootstrap::new(server(TOP))
        .with_authority("a", Authority::default())
        .with_authority("b", Authority::default())
        .with_authority("other", Authority::default().with_server(server(OTHER)))
        .with_authority("both", Authority::default().with_server(server(TOP)).with_server(server(OTHER)))
        .with_authority("two", Authority::default().with_server(server("first:1")).with_server(server("second:1")))
}

/// A client of servers that have `x` of each authority, whose transport does this as it opens the stream to a server, and that as
/// the stream ends.
fn client(server: &'static str, opening: Option<Call>, ending: Option<Call>) -> (Network, Client) {
    let network = Network::new(now());
    for (server, authority) in [(TOP, "a"), (TOP, "b"), (TOP, "both"), (OTHER, "other"), ("second:1", "two")] {
        for id in ["x", "y"] {
            let name = xdstp(authority, CDS, id);
            network.server(server).put(CDS, &name, "1", &message(&name, "1"));
        }
    }
    let own = Own::default();
    let (opening, ending) = (Mutex::new(opening), Mutex::new(ending));
    let transport = Calls { network: network.clone(), client: own.clone(), server, opening, ending };
    let client = Client::builder(bootstrap()).transport(transport).build().unwrap();
    (network, own.get_or_init(|| client).clone())
}

fn hears_of(watch: &mut Watch, name: &str) -> bool {
    heard(watch) == [format!("put {name} 1")]
}

#[test]
fn a_transport_may_watch_anything_while_it_opens_a_stream() {
    for (server, first, second) in [
        (TOP, ("a", "x"), ("a", "x")),
        (TOP, ("a", "x"), ("a", "y")),
        (TOP, ("a", "x"), ("b", "x")),
        (TOP, ("a", "x"), ("other", "x")),
        (TOP, ("a", "x"), ("both", "x")),
        (TOP, ("both", "x"), ("a", "x")),
        (TOP, ("both", "x"), ("both", "y")),
        ("first:1", ("two", "x"), ("two", "y")),
        ("first:1", ("two", "x"), ("a", "y")),
        ("second:1", ("two", "x"), ("two", "y")),
        ("second:1", ("two", "x"), ("other", "y")),
    ] {
        unblocked(move || {
            let names = [first, second].map(|(authority, id)| xdstp(authority, CDS, id));
            let (name, kept) = (names[1].clone(), Arc::<Mutex<Option<Watch>>>::default());
            let keeping = kept.clone();
            let call: Call = Box::new(move |client| *keeping.lock().unwrap() = Some(client.watch(CDS, &name)));
            let (network, client) = client(server, Some(call), None);
            network.server("first:1").go_down("it is down");
            let mut watch = client.watch(CDS, &names[0]);
            network.settle();
            let mut other = kept.lock().unwrap().take().unwrap();
            assert!(hears_of(&mut watch, &names[0]), "{server} {first:?} {second:?}");
            assert!(hears_of(&mut other, &names[1]), "{server} {first:?} {second:?}");
        });
    }
}

#[test]
fn a_transport_may_drop_a_watch_and_ask_for_what_is_known_while_it_opens_a_stream() {
    unblocked(|| {
        let before = Arc::<Mutex<Option<Watch>>>::default();
        let dropping = before.clone();
        let call: Call = Box::new(move |client| {
            drop(dropping.lock().unwrap().take());
            assert_eq!(client.status(true).generic_xds_configs.len(), 1);
            client.sweep(now());
        });
        let (network, client) = client(TOP, Some(call), None);
        *before.lock().unwrap() = Some(client.watch(CDS, &xdstp("other", CDS, "x")));
        network.settle();
        let name = xdstp("a", CDS, "x");
        let mut watch = client.watch(CDS, &name);
        network.settle();
        assert!(hears_of(&mut watch, &name));
    });
}

#[test]
fn a_transport_may_watch_while_a_stream_ends() {
    unblocked(|| {
        let kept = Arc::<Mutex<Option<Watch>>>::default();
        let (keeping, name) = (kept.clone(), xdstp("a", CDS, "y"));
        let again = name.clone();
        let call: Call = Box::new(move |client| *keeping.lock().unwrap() = Some(client.watch(CDS, &again)));
        let (network, client) = client(TOP, None, Some(call));
        drop(client.watch(CDS, &xdstp("a", CDS, "x")));
        network.settle();
        client.sweep(now());
        network.settle();
        assert!(hears_of(&mut kept.lock().unwrap().take().unwrap(), &name));
        assert_eq!(network.server(TOP).streams(), 1);
    });
}

/// A transport whose streams are there at once, and are told so: no server is at their end.
#[derive(Clone, Default)]
struct Idle(Arc<Mutex<Vec<Weak<Consumes>>>>);

type Consumes = Mutex<Box<dyn Consumer>>;

/// The end of one, which has its consumer.
struct Ended {
    _consumer: Arc<Consumes>,
}

impl Idle {
    /// Has consumers say what they want.
    fn drive(&self) {
        let consumers: Vec<_> = self.0.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
        consumers.iter().for_each(|consumer| consumer.lock().unwrap().commands(now(), &mut |_| ()));
    }
}

impl Transport for Idle {
    fn open(&self, _: &Server, _: Bytes, mut consumer: Box<dyn Consumer>) -> Box<dyn Dialed> {
        consumer.connection(now(), Connection::Connected);
        consumer.connection(now(), Connection::Answered);
        let consumer = Arc::new(Mutex::new(consumer));
        self.0.lock().unwrap().push(Arc::downgrade(&consumer));
        Box::new(Ended { _consumer: consumer })
    }
}

impl Dialed for Ended {
    fn nudge(&self) {}
}

#[test]
fn metrics_may_ask_for_what_is_known_whatever_happens() {
    unblocked(|| {
        let (idle, own) = (Idle::default(), Own::default());
        let metrics = Arc::new(Asks(own.clone(), AtomicBool::default()));
        let builder = Client::builder(bootstrap()).transport(idle.clone()).metrics(metrics.clone());
        let client = own.get_or_init(|| builder.build().unwrap());
        for name in ["x".to_owned(), xdstp("two", CDS, "x")] {
            metrics.1.store(false, Ordering::Relaxed);
            let watch = client.watch(CDS, &name);
            idle.drive();
            drop(watch);
            idle.drive();
            client.sweep(now());
            assert!(metrics.1.load(Ordering::Relaxed), "{name}");
        }
    });
}

/// A task that has a watch.
struct Task {
    _watch: Mutex<Watch>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

fn poll(watch: &mut Watch, waker: &Waker) -> bool {
    Pin::new(watch).poll_next(&mut Context::from_waker(waker)).is_ready()
}

#[test]
fn a_watch_may_be_all_that_holds_a_task_that_watches() {
    for next in [None, Some(Waker::noop())] {
        unblocked(move || {
            let (_network, client) = client(TOP, None, None);
            let mut watch = client.watch(CDS, "who");
            let task = Arc::new(Task { _watch: Mutex::new(client.watch(CDS, "x")) });
            let over = Arc::downgrade(&task);
            assert!(!poll(&mut watch, &task.into()));
            match next {
                Some(waker) => _ = poll(&mut watch, waker),
                None => drop(watch),
            }
            assert!(over.upgrade().is_none());
        });
    }
}

/// Sets what an origin has when it is woken, once.
struct Sets(Arc<SnapshotOrigin>, Mutex<Option<Vec<Held>>>);

impl Wake for Sets {
    fn wake(self: Arc<Self>) {
        let content = self.1.lock().unwrap().take();
        content.into_iter().for_each(|content| self.0.set(content, now()));
    }
}

#[test]
fn who_is_woken_by_an_origin_of_its_own_may_change_what_that_has_and_the_last_word_counts() {
    unblocked(|| {
        let origin = Arc::new(SnapshotOrigin::new("own", TypeRules::envoy().into()));
        let builder = Client::builder(bootstrap()).transport(Network::new(now()));
        let client = builder.default_origin(origin.clone()).build().unwrap();
        let names = ["a", "b"].map(|authority| xdstp(authority, CDS, "x"));
        let at = |version: &str| -> Vec<Held> {
            let held = |name: &String| {
                let frame = Frame::of_message(&CDS.into(), &message(name, version));
                (CDS.into(), name.parse().unwrap(), frame.into_resource(Some(version.into())))
            };
            names.iter().map(held).collect()
        };
        let waker = Waker::from(Arc::new(Sets(origin.clone(), Mutex::new(Some(at("2"))))));
        let mut watches = names.each_ref().map(|name| client.watch(CDS, name));
        watches.iter_mut().for_each(|watch| assert!(!poll(watch, &waker)));
        origin.set(at("1"), now());
        let said = watches.each_mut().map(heard);
        assert_eq!(said, names.map(|name| [format!("put {name} 2")]));
    });
}
