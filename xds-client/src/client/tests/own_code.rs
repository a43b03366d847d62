//! What a program brings may call the client that it is part of: no lock is held while its code runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::{CDS, OTHER, TOP, heard, message, now, xdstp};
use crate::bootstrap::{Authority, Bootstrap, ChannelCreds, Server};
use crate::federation::Dialed;
use crate::test::Network;
use crate::upstream::Consumer;
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
        .with_authority("two", Authority::default().with_server(server("first:1")).with_server(server("second:1")))
}

/// A client of servers that have `x` of each authority, whose transport does this as it opens the stream to a server, and that as
/// the stream ends.
fn client(server: &'static str, opening: Option<Call>, ending: Option<Call>) -> (Network, Client) {
    let network = Network::new(now());
    for (server, authority) in [(TOP, "a"), (TOP, "b"), (OTHER, "other"), ("second:1", "two")] {
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

#[test]
fn metrics_may_ask_for_what_is_known_whatever_happens() {
    unblocked(|| {
        let (network, own) = (Network::new(now()), Own::default());
        let metrics = Arc::new(Asks(own.clone(), AtomicBool::default()));
        let builder = Client::builder(bootstrap()).transport(network.clone());
        let client = own.get_or_init(|| builder.metrics(metrics.clone()).build().unwrap());
        let watch = client.watch(CDS, "x");
        network.settle();
        drop(watch);
        network.settle();
        client.sweep(now());
        network.settle();
        assert!(metrics.1.load(Ordering::Relaxed));
    });
}
