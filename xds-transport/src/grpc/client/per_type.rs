//! A stream for each type, by a method of its own, as one (rule 1).

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use xdstp_cache::TypeUrl;

use super::channel::GrpcChannel;
use super::exchange::Exchange;
use super::received::Received;
use crate::{Protocol, TypeRules};

/// Resources of all types from a server that has no aggregated method: on one channel, a stream for each type that is asked for, by
/// the method of its service, opened with the first request for it. When one ends they are over, but for a method that the server
/// does not have while it has others.
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
///         TypeEvent::Opened(_) => {}
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
    /// What the server answered it with, before any response.
    Opened(MetadataMap),
    /// A response came for the type.
    Message(TypeUrl, Bytes),
    /// The server has no method for the type, and answered the stream of another: it is not to be asked for this any more.
    Unimplemented(TypeUrl, Status),
}

struct OfType {
    type_url: TypeUrl,
    /// Or that the server has no such method.
    exchange: Result<Exchange, Status>,
    /// That it has none was said.
    told: bool,
    /// The server has answered it.
    opened: bool,
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

    /// The next thing that happens on any of them; `None` when the server ended one well. Meanwhile whatever `transmit` yields is
    /// sent: it is told which types there is room for, and asked until it has nothing more for these. Dropping the future loses
    /// nothing, so call this anew when there is more to send.
    ///
    /// # Errors
    /// What the server, or the transport, ended one of them with; for a method that the server does not have, when it has had none so
    /// far. Where that is no gRPC the source is [`NotGrpc`](super::NotGrpc).
    pub async fn next(
        &mut self,
        mut transmit: impl FnMut(&mut dyn FnMut(&TypeUrl) -> bool) -> Option<(TypeUrl, Bytes)>,
    ) -> Result<Option<TypeEvent>, Status> {
        loop {
            while let Some((of, request)) = transmit(&mut |of| self.has_room(of)) {
                self.send(of, request)?;
            }
            if let Some(event) = self.unimplemented()? {
                return Ok(Some(event));
            }
            let Self { taken, streams, turn, .. } = self;
            tokio::select! {
                biased;
                () = taken.notified() => {}
                happened = std::future::poll_fn(|cx| poll_next(streams, turn, cx)) => {
                    if let Some(happened) = happened {
                        return happened;
                    }
                }
            }
        }
    }

    /// When bytes of a response came in last on any of them, be it whole or not, by tokio's clock. It is noted while
    /// [`next`](Self::next) is awaited.
    pub fn received_at(&self) -> Option<Instant> {
        self.received.last()
    }

    fn has_room(&self, of: &TypeUrl) -> bool {
        self.streams.iter().find(|stream| stream.type_url == *of).is_none_or(OfType::has_room)
    }

    fn send(&mut self, of: TypeUrl, request: Bytes) -> Result<(), Status> {
        if let Some(stream) = self.streams.iter().find(|stream| stream.type_url == of) {
            stream.send(request);
            return Ok(());
        }
        let service = self.rules.service_of(&of);
        let service = service.ok_or_else(|| Status::internal(format!("there is no method for {of}")))?;
        let exchange = (self.open)(service.method(self.protocol));
        let stream = OfType { type_url: of, exchange: Ok(exchange), told: false, opened: false };
        stream.send(request);
        self.streams.push(stream);
        Ok(())
    }

    /// A method that the server does not have. That is a word about one type once it has answered another: who has none of them may be
    /// no server of this kind.
    fn unimplemented(&mut self) -> Result<Option<TypeEvent>, Status> {
        if self.streams.iter().any(|stream| stream.opened && stream.exchange.is_ok()) {
            return Ok(self.streams.iter_mut().find_map(OfType::tell));
        }
        let mut whys = self.streams.iter().map(|stream| stream.exchange.as_ref().err());
        match whys.next_back().flatten() {
            Some(why) if whys.all(|why| why.is_some()) => Err(why.clone()),
            _ => Ok(None),
        }
    }
}

/// `None`: one has no method.
fn poll_next(
    streams: &mut [OfType],
    turn: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Option<TypeEvent>, Status>>> {
    let (before, from) = streams.split_at_mut((*turn).min(streams.len()));
    let from_turn = from.iter_mut().zip(*turn..);
    for (stream, at) in from_turn.chain(before.iter_mut().zip(0..)) {
        if let Poll::Ready(happened) = stream.poll_next(cx) {
            *turn = at + 1;
            return Poll::Ready(happened);
        }
    }
    Poll::Pending
}

impl OfType {
    fn has_room(&self) -> bool {
        self.exchange.as_ref().is_ok_and(Exchange::has_room)
    }

    fn send(&self, request: Bytes) {
        if let Ok(exchange) = &self.exchange {
            exchange.send(request);
        }
    }

    /// That there is no such method, once.
    fn tell(&mut self) -> Option<TypeEvent> {
        let why = self.exchange.as_ref().err().filter(|_| !std::mem::replace(&mut self.told, true))?;
        Some(TypeEvent::Unimplemented(self.type_url.clone(), why.clone()))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Option<TypeEvent>, Status>>> {
        let Ok(exchange) = &mut self.exchange else { return Poll::Pending };
        let happened = if self.opened {
            let message = ready!(exchange.poll_next(cx));
            message.map(|message| message.map(|message| TypeEvent::Message(self.type_url.clone(), message)))
        } else {
            ready!(exchange.poll_metadata(cx)).map(|metadata| Some(TypeEvent::Opened(metadata)))
        };
        match happened {
            Err(status) if status.code() == Code::Unimplemented => {
                self.exchange = Err(status);
                return Poll::Ready(None);
            }
            Ok(_) => self.opened = true,
            Err(_) => {}
        }
        Poll::Ready(Some(happened))
    }
}

impl std::fmt::Debug for PerType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types: Vec<_> = self.streams.iter().map(|stream| &stream.type_url).collect();
        f.debug_struct("PerType").field("types", &types).finish_non_exhaustive()
    }
}
