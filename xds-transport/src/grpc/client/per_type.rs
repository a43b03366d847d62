//! A stream for each type, by a method of its own, as one (rule 1).

use std::error::Error as _;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use xdstp_cache::TypeUrl;

use super::channel::GrpcChannel;
use super::exchange::Exchange;
use super::not_grpc::NotGrpc;
use super::received::Received;
use crate::{Protocol, TypeRules};

/// How long a request waits for the connection to have a stream for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Resources of all types from a server that has no aggregated method: on one channel, a stream for each type that is asked for, by
/// the method of its service, opened with the first request for it. One that ends does so alone while there are others, and is
/// opened again with the next request for its type.
///
/// No stream waits for another: each hands over one request at a time, and a type is asked for its next when there is room. All that
/// is kept here is one request and one response of each.
///
/// ```no_run
/// use std::{sync::Arc, time::Instant};
/// use bytes::Bytes;
/// use tonic::metadata::MetadataMap;
/// use xds_transport::client::Stream;
/// use xds_transport::grpc::client::{PerType, TypeEvent};
/// use xds_transport::{Protocol, TypeRules};
/// use xdstp_cache::ResourceError;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:18000").connect().await?;
/// let rules = Arc::new(TypeRules::envoy());
/// let mut machine = Stream::new(Protocol::Sotw, Bytes::new(), rules.clone()).per_type();
/// let mut streams = PerType::open(channel, rules, machine.protocol(), 64 << 20, MetadataMap::new());
/// machine.connected(Instant::now());
/// while let Some(event) = streams.next(|room| machine.poll_transmit_by_type(Instant::now(), room)).await? {
///     match event {
///         TypeEvent::Message(of, message) => machine.handle_message_of(Instant::now(), &of, message)?,
///         TypeEvent::Unimplemented(of, status) => {
///             machine.refuse_type(&of, ResourceError::new(status.code() as i32, status.message()));
///         }
///         // After a while: `machine.ask_again(&of)`.
///         TypeEvent::Ended(of, _status) => machine.type_ended(&of),
///         TypeEvent::Opened(..) => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct PerType {
    rules: Arc<TypeRules>,
    protocol: Protocol,
    open: Box<dyn Fn(String) -> Exchange + Send>,
    streams: Vec<OfType>,
    /// Which one is looked at first: each has its turn.
    turn: usize,
    /// Of any of them.
    received: Received,
    /// One of them took its request: there is room for another.
    taken: Arc<Notify>,
}

/// What happened on the stream of one type.
#[derive(Debug)]
pub enum TypeEvent {
    /// What the server answered it with, before any response: some do so only with the first.
    Opened(TypeUrl, MetadataMap),
    /// A response came for the type.
    Message(TypeUrl, Bytes),
    /// The stream of the type is over, because the server has no method for it. Those of others go on.
    Unimplemented(TypeUrl, Status),
    /// The stream of the type is over, well or with a status. Those of others go on.
    Ended(TypeUrl, Option<Status>),
}

struct OfType {
    type_url: TypeUrl,
    exchange: Exchange,
    /// The server has answered it.
    opened: bool,
    /// Until when the connection may have no stream for it.
    waits_until: Option<tokio::time::Instant>,
}

impl PerType {
    /// No stream yet. Each will carry `metadata`, which the server has before any request, and responses of up to
    /// `max_message_size` bytes.
    pub fn open(
        channel: impl GrpcChannel + Clone,
        rules: Arc<TypeRules>,
        protocol: Protocol,
        max_message_size: usize,
        metadata: MetadataMap,
    ) -> Self {
        let (received, taken) = (Received::default(), Arc::new(Notify::new()));
        let (note, tell) = (received.clone(), taken.clone());
        let open = Box::new(move |method| {
            let tell = tell.clone();
            let taken = move || tell.notify_one();
            Exchange::open_beside(channel.clone(), method, max_message_size, metadata.clone(), note.clone(), taken)
        });
        Self { rules, protocol, open, streams: Vec::new(), turn: 0, received, taken }
    }

    /// The next thing that happens on any of them; `None` when the server ended the last of them well. Meanwhile whatever `transmit`
    /// yields is sent: it is told which types there is room for, and asked until it has nothing more for these. Dropping the future
    /// loses nothing, so call this anew when there is more to send.
    ///
    /// # Errors
    /// What the server, or the transport, ended the last of them with. Where that is no gRPC the source is
    /// [`NotGrpc`](super::NotGrpc).
    pub async fn next(
        &mut self,
        mut transmit: impl FnMut(&mut dyn FnMut(&TypeUrl) -> bool) -> Option<(TypeUrl, Bytes)>,
    ) -> Result<Option<TypeEvent>, Status> {
        loop {
            while let Some((of, request)) = transmit(&mut |of| self.has_room(of)) {
                self.send(of, request)?;
            }
            let starves_at = self.starves_at();
            let Self { taken, streams, turn, .. } = self;
            let (at, end) = tokio::select! {
                biased;
                () = taken.notified() => continue,
                (at, happened) = std::future::poll_fn(|cx| poll_next(streams, turn, cx)) => match happened {
                    Ok(Some(event)) => return Ok(Some(event)),
                    Ok(None) => (at, None),
                    Err(status) => (at, Some(status)),
                },
                at = starved(starves_at) => (at, Some(Status::resource_exhausted(NO_STREAM))),
            };
            let over = self.streams.remove(at);
            return match end {
                end if !self.streams.is_empty() => Ok(Some(over.ended(end))),
                None => Ok(None),
                Some(status) => Err(status),
            };
        }
    }

    /// Closes the stream of a type. The next request for it opens another.
    pub fn close(&mut self, of: &TypeUrl) {
        self.streams.retain(|stream| stream.type_url != *of);
    }

    /// Whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// When bytes of a response came in last on any of them, be it whole or not, by tokio's clock. It is noted while
    /// [`next`](Self::next) is awaited.
    pub fn received_at(&self) -> Option<Instant> {
        self.received.last()
    }

    fn has_room(&self, of: &TypeUrl) -> bool {
        self.streams.iter().find(|stream| stream.type_url == *of).is_none_or(|stream| stream.exchange.has_room())
    }

    fn send(&mut self, of: TypeUrl, request: Bytes) -> Result<(), Status> {
        if let Some(stream) = self.streams.iter().find(|stream| stream.type_url == of) {
            stream.exchange.send(request);
            return Ok(());
        }
        let service = self.rules.service_of(&of);
        let service = service.ok_or_else(|| Status::internal(format!("there is no method for {of}")))?;
        let exchange = (self.open)(service.method(self.protocol));
        let waits_until = tokio::time::Instant::now().checked_add(PATIENCE);
        let stream = OfType { type_url: of, exchange, opened: false, waits_until };
        stream.exchange.send(request);
        self.streams.push(stream);
        Ok(())
    }

    /// The first that the connection has no stream for, while it has one for others: it would wait unseen for one of these to end.
    fn starves_at(&mut self) -> Option<(usize, tokio::time::Instant)> {
        for stream in &mut self.streams {
            stream.waits_until = stream.waits_until.filter(|_| !stream.opened && !stream.exchange.has_room());
        }
        let bears_any = self.streams.iter().any(|stream| stream.waits_until.is_none());
        let waiting = self.streams.iter().enumerate().filter_map(|(at, stream)| Some((at, stream.waits_until?)));
        waiting.filter(|_| bears_any).min_by_key(|(_, until)| *until)
    }
}

/// Why there is no stream for a type.
const NO_STREAM: &str = "the connection has no room for a stream of this type beside those of others";

async fn starved(next: Option<(usize, tokio::time::Instant)>) -> usize {
    let Some((at, until)) = next else { return std::future::pending().await };
    tokio::time::sleep_until(until).await;
    at
}

/// What happened, and on which one.
fn poll_next(
    streams: &mut [OfType],
    turn: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<(usize, Result<Option<TypeEvent>, Status>)> {
    let (before, from) = streams.split_at_mut((*turn).min(streams.len()));
    let first = before.len();
    for (stream, at) in from.iter_mut().zip(first..).chain(before.iter_mut().zip(0..)) {
        if let Poll::Ready(happened) = stream.poll_next(cx) {
            *turn = at + 1;
            return Poll::Ready((at, happened));
        }
    }
    Poll::Pending
}

impl OfType {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<TypeEvent>, Status>> {
        let happened = if self.opened {
            let message = ready!(self.exchange.poll_next(cx));
            message.map(|message| message.map(|message| TypeEvent::Message(self.type_url.clone(), message)))
        } else {
            let metadata = ready!(self.exchange.poll_metadata(cx));
            self.opened |= metadata.is_ok();
            metadata.map(|metadata| Some(TypeEvent::Opened(self.type_url.clone(), metadata)))
        };
        Poll::Ready(happened)
    }

    /// It is over. A method that has answered is there, and who speaks no gRPC says nothing of methods.
    fn ended(self, end: Option<Status>) -> TypeEvent {
        let speaks_grpc = |status: &Status| status.source().is_none_or(|source| !source.is::<NotGrpc>());
        match end {
            Some(status) if status.code() == Code::Unimplemented && !self.opened && speaks_grpc(&status) => {
                TypeEvent::Unimplemented(self.type_url, status)
            }
            end => TypeEvent::Ended(self.type_url, end),
        }
    }
}

impl std::fmt::Debug for PerType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types: Vec<_> = self.streams.iter().map(|stream| &stream.type_url).collect();
        f.debug_struct("PerType").field("types", &types).finish_non_exhaustive()
    }
}
