//! The clients: as little as a client can be, so that the load costs less than what it loads.
//! One connection and one stream each; every response is walked, counted and ACKed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use clap::ValueEnum;
use fan_out::delta_ads::PATH;
use fan_out::{Error, PREFIX, complete, content, framed, framed_with};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::{RecvStream, SendStream};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use xds_transport::wire::walk::{FieldValue, Fields, text_at};
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Node};

/// HTTP/2 windows, stream and connection: a batch fits, as it does with Envoy's defaults.
const WINDOW: u32 = 4 << 20;
/// How long a round, or the opening of a stream, may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// How clients are told of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    Delta,
    /// Every request repeats all names.
    Sotw,
}

/// What clients do with what they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// They read, count and ACK it.
    All,
    /// HTTP/2 receives it, nobody takes it, and no window is opened anew.
    OneWindow,
    /// Nothing is read from the socket once the stream is open.
    Nothing,
}

/// Clients of one server, all subscribed to the same. They leave when this is dropped.
pub(crate) struct Clients {
    server: SocketAddr,
    answers: Arc<Answers>,
    /// Every client is another node, of one cluster.
    distinct: bool,
    reading: Reading,
    /// Whether streams are to be ended by the server, each with a status: that counts as what is to arrive.
    until_ended: bool,
    /// What it is spoken to with, if not in clear text.
    tls: Option<TlsConnector>,
    running: Mutex<JoinSet<()>>,
    opened: AtomicU64,
    progress: Arc<Progress>,
}

/// What a stream asks and answers.
struct Answers {
    protocol: Protocol,
    /// The names, as a request carries them: over SotW each does.
    names: Bytes,
}

#[derive(Default)]
struct Progress {
    /// The version that every update must have.
    round: AtomicU64,
    /// How many updates are still to arrive, at all clients together.
    pending: AtomicI64,
    changed: Notify,
    failed: Mutex<Option<Error>>,
}

impl Clients {
    pub(crate) fn new(server: SocketAddr, protocol: Protocol, subscribe: Vec<String>) -> Self {
        let names = match protocol {
            Protocol::Delta => {
                DeltaDiscoveryRequest { resource_names_subscribe: subscribe, ..Default::default() }.encode_to_vec()
            }
            Protocol::Sotw => DiscoveryRequest { resource_names: subscribe, ..Default::default() }.encode_to_vec(),
        };
        let answers = Arc::new(Answers { protocol, names: names.into() });
        Self {
            server,
            answers,
            distinct: false,
            reading: Reading::All,
            until_ended: false,
            tls: None,
            running: Mutex::default(),
            opened: AtomicU64::new(0),
            progress: Arc::default(),
        }
    }

    /// Has every client be a node of its own, all of one cluster.
    pub(crate) fn distinct(self) -> Self {
        Self { distinct: true, ..self }
    }

    /// Has clients say, as they come, that they hold these resources at the versions of such rounds.
    pub(crate) fn holding(mut self, held: impl Iterator<Item = (String, u64)>) -> Self {
        #[derive(Clone, PartialEq, Message)]
        struct Entry {
            #[prost(string, tag = "1")]
            name: String,
            #[prost(string, tag = "2")]
            version: String,
        }
        let entry = |(name, round): (String, u64)| Entry { name, version: round.to_string() }.encode_to_vec().into();
        let initial_resource_versions = held.map(entry).collect();
        let held = DeltaDiscoveryRequest { initial_resource_versions, ..Default::default() }.encode_to_vec();
        let Answers { protocol, names } = &*self.answers;
        self.answers = Arc::new(Answers { protocol: *protocol, names: [&names[..], &held].concat().into() });
        self
    }

    /// Has clients read so much.
    pub(crate) fn reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// Has clients expect that the server ends their streams.
    pub(crate) fn until_ended(self) -> Self {
        Self { until_ended: true, ..self }
    }

    /// Has clients speak TLS.
    pub(crate) fn by_tls(self, tls: Option<TlsConnector>) -> Self {
        Self { tls, ..self }
    }

    /// Connects `count` more clients and waits until each has the `initial` resources it subscribed to, if it reads them.
    pub(crate) async fn connect(&self, count: usize, initial: usize) -> Result<(), Error> {
        let initial = if self.reading == Reading::All { initial } else { 0 };
        // Some at a time, or the listener's backlog overflows.
        for done in (0..count).step_by(32) {
            let now = (count - done).min(32);
            self.progress.expect(self.progress.round.load(Ordering::Relaxed), now * initial);
            for _ in 0..now {
                self.open().await?;
            }
            self.arrived().await?;
        }
        Ok(())
    }

    /// The same, of whom none waits for the others.
    pub(crate) async fn connect_at_once(&self, count: usize, initial: usize) -> Result<(), Error> {
        self.progress.expect(0, count * initial);
        let mut opening = (0..count).map(|_| self.open()).collect::<FuturesUnordered<_>>();
        while let Some(opened) = opening.next().await {
            opened?;
        }
        self.arrived().await
    }

    /// From now on, `updates` updates of version `round` are to arrive.
    pub(crate) fn expect(&self, round: u64, updates: usize) {
        self.progress.expect(round, updates);
    }

    /// How much of what is expected has not arrived.
    pub(crate) fn pending(&self) -> usize {
        self.progress.pending.load(Ordering::Acquire).try_into().unwrap_or(0)
    }

    /// Returns when all that was expected has arrived.
    pub(crate) async fn arrived(&self) -> Result<(), Error> {
        let wait = async {
            while self.progress.pending.load(Ordering::Acquire) > 0 {
                self.progress.changed.notified().await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, wait).await;
        if let Some(error) = self.progress.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        in_time.map_err(|_| {
            let pending = self.progress.pending.load(Ordering::Relaxed);
            format!("{pending} updates did not arrive within {PATIENCE:?}").into()
        })
    }

    fn node(&self) -> Node {
        let opened = self.opened.fetch_add(1, Ordering::Relaxed);
        let id = if self.distinct { format!("fan-out-{opened}") } else { "fan-out".to_owned() };
        Node { id, cluster: "fan-out".to_owned(), ..Node::default() }
    }

    /// Opens a stream and subscribes. Returns once the server knows of the stream.
    async fn open(&self) -> Result<(), Error> {
        let opening = async {
            let tcp = TcpStream::connect(self.server).await?;
            tcp.set_nodelay(true)?;
            match &self.tls {
                None => self.open_on(tcp).await,
                Some(tls) => self.open_on(tls.connect(ServerName::from(self.server.ip()), tcp).await?).await,
            }
        };
        let opened = tokio::time::timeout(PATIENCE, opening).await;
        opened.map_err(|_| format!("a stream was not open within {PATIENCE:?}"))?
    }

    async fn open_on(&self, io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<(), Error> {
        let (mut http2, mut connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake::<_, Bytes>(io)
            .await?;
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let driving = async move {
            tokio::select! {
                _ = &mut connection => {}
                () = stopped.notified() => std::future::pending().await,
            }
        };
        self.run(driving);
        let path = match self.answers.protocol {
            Protocol::Delta => PATH,
            Protocol::Sotw => content::SOTW_PATH,
        };
        let request = http::Request::post(format!("http://{}{path}", self.server))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (response, mut requests) = http2.send_request(request, false)?;
        requests.send_data(self.answers.first(&self.node()), false)?;
        let body = response.await?.into_body();
        let (progress, answers, reading) = (self.progress.clone(), self.answers.clone(), self.reading);
        let until_ended = self.until_ended;
        self.run(async move {
            // The connection lives as long as something can send on it.
            let _http2 = http2;
            if reading != Reading::All {
                if reading == Reading::Nothing {
                    stop.notify_one();
                }
                let _unread = (body, requests);
                return std::future::pending().await;
            }
            let ended = match receive(body, requests, &answers, &progress).await {
                Ok(true) if until_ended => progress.count(1),
                Ok(true) => Err("a server ended a stream".into()),
                Ok(false) => Err("a server ended a stream without a status".into()),
                Err(error) => Err(error),
            };
            if let Err(error) = ended {
                progress.fail(error);
            }
        });
        Ok(())
    }

    fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }
}

impl Progress {
    fn expect(&self, round: u64, updates: usize) {
        self.round.store(round, Ordering::Relaxed);
        self.pending.store(updates as i64, Ordering::Release);
    }

    fn count(&self, updates: usize) -> Result<(), Error> {
        let left = self.pending.fetch_sub(updates as i64, Ordering::AcqRel) - updates as i64;
        match left {
            0 => self.changed.notify_one(),
            1.. => {}
            _ => return Err("more updates arrived than were published".into()),
        }
        Ok(())
    }

    fn fail(&self, error: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.pending.store(0, Ordering::Release);
        self.changed.notify_one();
    }
}

/// Reads a stream to its end: whether that has a status.
async fn receive(
    mut body: RecvStream,
    mut requests: SendStream<Bytes>,
    answers: &Answers,
    progress: &Progress,
) -> Result<bool, Error> {
    let mut partial = BytesMut::new();
    while let Some(data) = body.data().await {
        let mut data = data?;
        body.flow_control().release_capacity(data.len())?;
        // A message that arrived in one piece is not copied.
        while let (true, Some(length)) = (partial.is_empty(), complete(&data)) {
            requests.send_data(answers.handle(&data.split_to(length), progress)?, false)?;
        }
        partial.extend_from_slice(&data);
        while let Some(length) = complete(&partial) {
            requests.send_data(answers.handle(&partial.split_to(length), progress)?, false)?;
        }
        if partial.is_empty() {
            partial = BytesMut::new();
        }
    }
    Ok(body.trailers().await?.is_some_and(|trailers| trailers.contains_key("grpc-status")))
}

impl Answers {
    /// The first request of a stream.
    fn first(&self, node: &Node) -> Bytes {
        let (node, type_url) = (node.encode_to_vec().into(), content::TYPE_URL.to_owned());
        match self.protocol {
            Protocol::Delta => {
                framed_with(&DeltaDiscoveryRequest { node, type_url, ..Default::default() }, &self.names)
            }
            Protocol::Sotw => framed_with(&DiscoveryRequest { node, type_url, ..Default::default() }, &self.names),
        }
    }

    /// Counts the resources of a response, and returns its ACK.
    fn handle(&self, message: &[u8], progress: &Progress) -> Result<Bytes, Error> {
        let round = progress.round.load(Ordering::Relaxed);
        let (mut updates, mut version, mut nonce) = (0, &[][..], &[][..]);
        for field in Fields::of(&message[PREFIX..]) {
            let field = field?;
            match (field.number, field.value) {
                (1, FieldValue::Bytes(text)) => version = text,
                (2, FieldValue::Bytes(resource)) => {
                    updates += 1;
                    let of = match self.protocol {
                        Protocol::Delta => text_at(resource, &[1]).unwrap_or_default().parse()?,
                        Protocol::Sotw => content::round_of(value_of(resource)?)?,
                    };
                    if of != round {
                        return Err(format!("an update of round {of} arrived in round {round}").into());
                    }
                }
                (5, FieldValue::Bytes(text)) => nonce = text,
                (6, FieldValue::Bytes(name)) if self.protocol == Protocol::Delta => {
                    return Err(format!("{name:?} was removed").into());
                }
                _ => {}
            }
        }
        progress.count(updates)?;
        self.ack(std::str::from_utf8(version)?, std::str::from_utf8(nonce)?)
    }

    fn ack(&self, version: &str, nonce: &str) -> Result<Bytes, Error> {
        let (type_url, response_nonce) = (content::TYPE_URL.to_owned(), nonce.to_owned());
        Ok(match self.protocol {
            Protocol::Delta => framed(&DeltaDiscoveryRequest { type_url, response_nonce, ..Default::default() }),
            Protocol::Sotw => {
                let version_info = version.to_owned();
                let ack = DiscoveryRequest { version_info, type_url, response_nonce, ..Default::default() };
                framed_with(&ack, &self.names)
            }
        })
    }
}

/// The body of an `Any`.
fn value_of(any: &[u8]) -> Result<&[u8], Error> {
    for field in Fields::of(any) {
        let field = field?;
        if let (2, FieldValue::Bytes(value)) = (field.number, field.value) {
            return Ok(value);
        }
    }
    Ok(&[])
}
