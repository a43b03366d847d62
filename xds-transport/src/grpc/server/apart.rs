//! What takes long is done apart: on a worker of the runtime, the streams of others would wait for it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tonic::Status;

use crate::grpc::now;
use crate::grpc::server::gzip::{self, Unpack};
use crate::grpc::server::state::{StreamState, status_of};
use crate::grpc::server::turns::{Turn, Turns};
use crate::server::{ProtocolError, Source};

/// A stream of so many names is not closed at once.
const MANY: usize = 1000;

/// Those of the process, as its processors are.
static PLACES: LazyLock<Places> = LazyLock::new(Places::new);

/// Where long requests are handled.
struct Places {
    /// Who handles one has a processor. The others that there may be at a time leave one to everybody else, as far as the
    /// system divides them.
    all: Turns,
    /// Of these, requests of more bytes than [`VERY_LONG`] have one: who lists a thousand names does not wait behind all who
    /// list a hundred thousand.
    very_long: Turns,
}

const VERY_LONG: usize = 256 << 10;

impl Places {
    fn new() -> Self {
        Self { all: Turns::new(2), very_long: Turns::new(1) }
    }

    /// When it is the client's turn, a place for as long as what is returned is kept.
    async fn next(&self, is_very_long: bool, client: Option<u64>) -> (Option<Turn>, Turn) {
        if is_very_long {
            let very_long = self.very_long.of(client).next().come().await;
            // As others wait for it, it does not wait for all of its client that are less long.
            (Some(very_long), self.all.next().come().await)
        } else {
            (None, self.all.of(client).next().come().await)
        }
    }
}

/// Streams of many names are closed one at a time: a client that is lost with a hundred of them leaves the processors to others.
static PLACE_TO_CLOSE: Semaphore = Semaphore::const_new(1);

/// A request that takes long.
pub(crate) enum Long {
    /// As it is.
    Plain(Bytes),
    /// Compressed, of no more than so many bytes when it is not.
    Packed(Bytes, usize),
}

impl Long {
    /// How many bytes of it are kept.
    pub(crate) fn len(&self) -> usize {
        let (Self::Plain(message) | Self::Packed(message, _)) = self;
        message.len()
    }

    /// How long one that is compressed is, is not known before.
    fn is_very_long(&self) -> bool {
        matches!(self, Self::Packed(..)) || self.len() > VERY_LONG
    }
}

/// As long as something is done apart, whatever becomes of it.
struct Busy<'a, S: Source>(&'a StreamState<S>);

impl<'a, S: Source> Busy<'a, S> {
    fn new(state: &'a StreamState<S>) -> Self {
        state.apart.busy.store(true, Ordering::SeqCst);
        Self(state)
    }
}

impl<S: Source> Drop for Busy<'_, S> {
    fn drop(&mut self) {
        self.0.apart.busy.store(false, Ordering::SeqCst);
        // Whoever abandons it later finds that nothing is done apart.
        if self.0.apart.abandoned.load(Ordering::SeqCst) {
            self.0.close();
        }
        self.0.wake.wake();
    }
}

impl<S: Source + Send + 'static> StreamState<S> {
    /// Handles a request that lists many names, when it is the turn of its client.
    ///
    /// # Errors
    /// What ends the stream.
    pub(crate) async fn handle_apart(self: &Arc<Self>, long: Long, client: Option<u64>) -> Result<(), Status> {
        let places = PLACES.next(long.is_very_long(), client).await;
        let state = self.clone();
        let handling = tokio::task::spawn_blocking(move || {
            let _places = places;
            let _busy = Busy::new(&*state);
            let message = match long {
                Long::Plain(message) => message,
                Long::Packed(packed, limit) => state.unpack(&packed, limit)?,
            };
            let mut inner = state.lock();
            let inner = &mut *inner;
            let Some(source) = inner.source.as_mut() else { return Ok(()) };
            inner.stream.handle_message(now(), message, source).map_err(|error| status_of(&error, source))
        });
        handling.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }

    fn unpack(&self, packed: &[u8], limit: usize) -> Result<Bytes, Status> {
        gzip::unpack(packed, limit).map_err(|error| match error {
            Unpack::TooLong => {
                self.refusal(&ProtocolError::TooLong { what: "decompressed request", length: limit + 1, limit })
            }
            Unpack::Broken(words) => Status::internal(words),
        })
    }

    /// Nobody is there any more. What is done apart closes the stream when it is done.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.apart.abandoned.store(true, Ordering::SeqCst);
        if self.apart.is_busy() {
            return;
        }
        let is_long = self.lock().stream.names() > MANY;
        match Handle::try_current() {
            Ok(runtime) if is_long => {
                let state = self.clone();
                drop(runtime.spawn(async move {
                    let Ok(place) = PLACE_TO_CLOSE.acquire().await else { return };
                    drop(tokio::task::spawn_blocking(move || {
                        let _place = place;
                        state.close();
                    }));
                }));
            }
            _ => self.close(),
        }
    }
}

impl<S: Source> StreamState<S> {
    fn close(&self) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        if let Some(mut source) = inner.source.take() {
            inner.stream.close(&mut source);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, Condvar, Mutex};
    use std::task::{Context, Waker};
    use std::time::Duration;

    use prost::Message;
    use tonic::Code;
    use xdstp_cache::{
        Cache, Failed, Interest, Options, Pull, Pulled, Removals, Resource, SubscriberId, TypeUrl, Unanswered, Version,
    };
    use xdstp_uri::{CanonicalText, ResourceName};

    use super::*;
    use crate::grpc::server::handle::{Shared, Wake};
    use crate::grpc::server::state::Inner;
    use crate::server::{Answer, NodeError, Refused, Settings, Stream, Tally, forward};
    use crate::wire::DiscoveryRequest;
    use crate::{Frame, Protocol};

    /// What is closed at once.
    #[derive(Default)]
    struct Closing {
        now: Mutex<usize>,
        another: Condvar,
        most: AtomicUsize,
    }

    struct Closes {
        cache: Cache<Frame>,
        closing: Arc<Closing>,
    }

    impl Source for Closes {
        forward!(self => self.cache);

        fn open(&mut self, type_url: &TypeUrl) -> SubscriberId {
            self.cache.open(type_url)
        }

        /// Takes until another one is closed, too; or nobody comes.
        fn close(&mut self, _: SubscriberId, _: &Tally) {
            let mut now = self.closing.now.lock().unwrap();
            *now += 1;
            self.closing.most.fetch_max(*now, Ordering::SeqCst);
            self.closing.another.notify_all();
            let alone = |now: &mut usize| *now == 1;
            let (mut now, _) = self.closing.another.wait_timeout_while(now, Duration::from_millis(100), alone).unwrap();
            *now -= 1;
        }
    }

    #[tokio::test]
    async fn streams_of_many_names_are_closed_one_at_a_time() {
        let closing = Arc::<Closing>::default();
        let names = (0..=MANY).map(|name| name.to_string()).collect();
        let (type_url, node) = ("T".to_owned(), Bytes::new());
        let request = DiscoveryRequest { type_url, node, resource_names: names, ..Default::default() };
        let states: Vec<_> = (0..3)
            .map(|_| {
                let mut stream = Stream::new(Protocol::Sotw, Settings::default());
                let mut source = Closes { cache: Cache::new(Options::default()), closing: closing.clone() };
                stream.handle_message(now(), request.encode_to_vec().into(), &mut source).unwrap();
                let inner = Inner { stream, source: Some(source), half_closed: false };
                Arc::new(StreamState::new(inner, Wake::default()))
            })
            .collect();
        states.iter().for_each(StreamState::abandon);
        while states.iter().any(|state| state.lock().source.is_some()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(closing.most.load(Ordering::SeqCst), 1);
    }

    /// Admin pages, and streams that must end others, do not wait for a long request.
    #[test]
    fn nobody_waits_for_a_stream_that_is_busy() {
        let stream = Stream::new(Protocol::Delta, Settings::default());
        let inner = Inner { stream, source: None, half_closed: false };
        let state = Arc::new(StreamState::<Cache<Frame>>::new(inner, Wake::default()));
        let shared: Arc<dyn Shared> = state.clone();
        let mut looks = 0;
        shared.inspect(&mut |_| looks += 1);
        {
            let _busy = Busy::new(&*state);
            let _handled = state.lock();
            shared.inspect(&mut |_| looks += 1);
            shared.refuse(&ProtocolError::Aged);
            shared.end(Status::ok(""));
        }
        shared.inspect(&mut |_| looks += 1);
        assert_eq!(looks, 2);
        let mut source = Cache::new(Options::default());
        let end = state.take_end(Some(&mut source)).map(|status| status.code());
        assert_eq!(end, Some(Code::Unavailable), "the first word counts");
        assert!(state.take_end(Some(&mut source)).is_none());
    }

    /// Which of these has its place when, where one is handled at a time: of which client, and whether it is very long.
    fn order(asked: &[(u64, bool)]) -> Vec<usize> {
        let places = Places::new();
        let held = [places.all.next(), places.all.next()];
        let next = |(client, is_very_long): &(u64, bool)| Some(Box::pin(places.next(*is_very_long, Some(*client))));
        let mut waits: Vec<_> = asked.iter().map(next).collect();
        let mut look = |order: &mut Vec<usize>| {
            for (at, waits) in waits.iter_mut().enumerate() {
                let Some(next) = waits else { continue };
                if next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    *waits = None;
                    order.push(at);
                }
            }
        };
        let mut order = Vec::new();
        look(&mut order);
        assert!(order.is_empty(), "none is left");
        let [first, _another] = held;
        drop(first);
        while order.len() < asked.len() {
            let before = order.len();
            look(&mut order);
            assert!(order.len() > before, "all wait: {order:?}");
        }
        order
    }

    #[test]
    fn who_sends_one_long_request_waits_for_one_of_who_sends_many() {
        let many = |is_very_long| [vec![(1, is_very_long); 6], vec![(2, is_very_long)]].concat();
        assert_eq!(order(&many(false)), [0, 6, 1, 2, 3, 4, 5]);
        // The first has the one place of very long ones when the second comes.
        assert_eq!(order(&many(true)), [0, 1, 6, 2, 3, 4, 5]);
    }

    /// It has the one place for which those of others wait.
    #[test]
    fn a_very_long_request_does_not_wait_for_all_others_of_its_client() {
        let asked = [vec![(1, false); 5], vec![(1, true), (2, true)]].concat();
        assert_eq!(order(&asked), [0, 5, 1, 2, 6, 3, 4]);
    }

    /// Who asks for a thousand names does not wait behind those who ask for a hundred thousand.
    #[test]
    fn what_is_very_long_is_known_before_it_is_handled() {
        let plain = |length| Long::Plain(vec![0; length].into()).is_very_long();
        assert_eq!([plain(VERY_LONG), plain(VERY_LONG + 1)], [false, true]);
        assert!(Long::Packed(Bytes::from_static(b"small"), 1 << 20).is_very_long(), "it may be");
    }
}
