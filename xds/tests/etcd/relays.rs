//! Relays in this process, and clients of them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;
use xds_relay::config::{Config, Etcd, Origin};
use xds_relay::file_origin::Descriptors;
use xds_relay::{Error, Relay};
use xds_transport::wire::Any;
use xdstp_client::{Client, Endpoint, Event, Watch};

use crate::cluster::LONG;

pub const PREFIX: &str = "mesh/";
pub const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

/// The cluster at these addresses.
pub fn etcd(endpoints: &[String]) -> Etcd {
    Etcd::new(endpoints.iter().map(|endpoint| endpoint.parse().unwrap()), PREFIX)
}

/// One that has etcd as its origin. It ends with this.
pub struct Running {
    pub address: String,
    pub admin: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<Result<(), Error>>>,
}

impl Running {
    pub fn start(endpoints: &[String]) -> Self {
        Self::of(etcd(endpoints))
    }

    pub fn of(etcd: Etcd) -> Self {
        let mut config = Config::new([Origin::etcd("kv", etcd).with_authorities(["kv.example.com"])]);
        config.drain = Duration::ZERO;
        let (started, start) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let relay = Relay::builder(config).listener(listener).admin_listener(admin).bind().await?;
                let admin = relay.admin_address().unwrap().unwrap().to_string();
                started.send((relay.listen_address().unwrap().to_string(), admin)).unwrap();
                relay.run(async { drop(stopped.await) }).await
            })
        };
        let thread = thread::spawn(run);
        let (address, admin) = start.recv_timeout(LONG).unwrap();
        Self { address, admin, stop: Some(stop), thread: Some(thread) }
    }
}

impl Running {
    /// What a page of it says.
    pub fn page(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.admin).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Waits until a page says so.
    pub fn until(&self, path: &str, is_so: impl Fn(u16, &str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let (status, page) = self.page(path);
            if is_so(status, &page) {
                return page;
            }
            assert!(since.elapsed() < LONG, "{status}: {page}");
            thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(error)) = self.thread.take().and_then(|thread| thread.join().ok()) {
            assert!(thread::panicking(), "{error}");
        }
    }
}

/// Who watches a cluster.
pub struct Watching {
    runtime: Runtime,
    watch: Watch,
    _client: Client,
}

impl Watching {
    pub fn of(relay: &Running, name: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let entered = runtime.enter();
        let client = Client::connect(Endpoint::new(&relay.address).unwrap());
        let watch = client.watch(&*format!("type.googleapis.com/{CLUSTER}"), name);
        drop(entered);
        Self { runtime, watch, _client: client }
    }

    /// What comes next: a name and the time in it, or what is wrong, in words.
    pub fn next(&mut self) -> String {
        let watch = &mut self.watch;
        words(self.runtime.block_on(async { timeout(LONG, watch.changed()).await }).unwrap())
    }

    /// Whether nothing came by now.
    pub fn is_quiet(&mut self) -> bool {
        self.watch.try_next().is_none()
    }
}

fn words(event: Event) -> String {
    static TYPES: LazyLock<Descriptors> = LazyLock::new(|| Descriptors::built_in().unwrap());
    match event {
        Event::Put { name, resource, .. } => {
            let any = Any::decode(resource).unwrap();
            let json = TYPES.to_json(&any.type_url, &any.value);
            format!("{} {}", name.as_str(), json["connect_timeout"].as_str().unwrap_or("-"))
        }
        Event::Removed { name } => format!("{} is gone", name.as_str()),
        Event::Failed { error, .. } => error.to_string(),
        Event::Ambient { error, .. } => error.map_or("well".to_owned(), |error| error.to_string()),
        Event::Answered => "answered".to_owned(),
        other => format!("{other:?}"),
    }
}
