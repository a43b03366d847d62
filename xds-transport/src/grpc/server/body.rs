//! The response body: asked by HTTP/2 when there is room, it pulls the stream then.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::grpc::now;
use crate::grpc::server::alarm::Alarm;
use crate::grpc::server::state::{StreamState, status_of};
use crate::grpc::server::streams::Entry;
use crate::grpc::server::turns::{Turn, Turns};
use crate::server::{Source, Transmit};

/// Ends with trailers: an error would become RST_STREAM, and the client would not learn why.
pub(crate) struct ResponseBody<S: Source + Send + 'static> {
    state: Arc<StreamState<S>>,
    reading: JoinHandle<()>,
    /// What is being written; one at a time.
    transmit: Option<Transmit>,
    alarm: Alarm,
    /// When to look although nothing happened.
    timeout: Option<Instant>,
    /// The last look found something and there may be more, or it paused, or there was none yet.
    more: bool,
    /// It was much that was found, or looked at: the next look is long as well.
    is_long: bool,
    /// Where those wait that are, if they do, and this one if it does.
    turns: Option<Turns>,
    turn: Option<Turn>,
    over: bool,
    _entry: Entry,
}

/// A response of more bytes is no small one.
const LONG: usize = 32 << 10;

impl<S: Source + Send + 'static> ResponseBody<S> {
    pub(crate) fn new(state: Arc<StreamState<S>>, reading: JoinHandle<()>, entry: Entry, turns: Option<Turns>) -> Self {
        let (alarm, is_long, turn) = (Alarm::at(now().into()), false, None);
        let (transmit, timeout) = (None, None);
        Self { state, reading, transmit, alarm, timeout, more: true, is_long, turns, turn, over: false, _entry: entry }
    }

    /// The next response, if there is one, is what is to be written; or the status the stream ends with.
    fn poll_stream(&mut self) -> Result<(), Status> {
        let mut inner = self.state.lock();
        let inner = &mut *inner;
        if let Some(status) = self.state.take_end(inner.source.as_mut()) {
            return Err(status);
        }
        let Some(source) = inner.source.as_mut() else { return Err(Status::ok("")) };
        self.transmit = inner.stream.poll_transmit(now(), source).map_err(|error| status_of(&error, source))?;
        let is_there = self.transmit.is_some();
        if !is_there && inner.half_closed && !inner.stream.has_paused() {
            return Err(Status::ok(""));
        }
        self.more = is_there && inner.stream.may_continue() || inner.stream.has_paused();
        let is_large = self.transmit.as_ref().is_some_and(|transmit| transmit.remaining() > LONG);
        self.is_long = self.more && (is_large || inner.stream.has_paused());
        self.timeout = inner.stream.poll_timeout();
        Ok(())
    }

    /// Ready at once for a look that is not long.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Turn>> {
        let Some(turns) = &self.turns else { return Poll::Ready(None) };
        let is_new = self.turn.is_none();
        let turn = self.turn.get_or_insert_with(|| turns.next());
        ready!(turn.poll_come(cx));
        if is_new {
            // Those of this thread that were woken before have their turn first: if not, all that are long would look one after the
            // other.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.turn.take())
    }

    fn next_chunk(&mut self) -> Option<Bytes> {
        let chunk = self.transmit.as_mut()?.next_chunk();
        if chunk.is_none() {
            self.transmit = None;
        }
        chunk
    }

    fn trailers(&mut self, status: &Status) -> Frame<Bytes> {
        self.over = true;
        let mut trailers = HeaderMap::new();
        if status.add_header(&mut trailers).is_err() {
            trailers.insert("grpc-status", http::HeaderValue::from(13));
        }
        Frame::trailers(trailers)
    }
}

impl<S: Source + Send + 'static> Body for ResponseBody<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        if let Some(chunk) = this.next_chunk() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        loop {
            // Before looking, or a wake between looking and registering is lost.
            this.state.wake.register(cx.waker());
            if this.state.apart.is_busy() {
                // Nobody waits behind it for that.
                this.turn = None;
                return Poll::Pending;
            }
            if !this.state.wake.take_due() && !this.more {
                let Some(timeout) = this.timeout else { return Poll::Pending };
                this.alarm.set(timeout.into());
                ready!(this.alarm.poll(cx));
            }
            // Its end is no long look, and nobody is to wait for it in the line.
            let waits = this.is_long && !this.state.must_end();
            let _turn = if waits { ready!(this.poll_turn(cx)) } else { None };
            if let Err(status) = this.poll_stream() {
                this.turn = None;
                return Poll::Ready(Some(Ok(this.trailers(&status))));
            }
            if let Some(transmit) = &mut this.transmit {
                let length = u32::try_from(transmit.remaining()).unwrap_or(u32::MAX).to_be_bytes();
                let [a, b, c, d] = length;
                let chunk = transmit.chunk_after(&[0, a, b, c, d]).unwrap_or_default();
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
            if this.more {
                // The others of this thread have their turn now.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl<S: Source + Send + 'static> Drop for ResponseBody<S> {
    fn drop(&mut self) {
        self.reading.abort();
        self.state.abandon();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use bytes::BytesMut;
    use prost::Message as _;
    use xdstp_cache::{Cache, Options, TypeUrl};

    use super::*;
    use crate::grpc::server::handle::{self, Shared};
    use crate::grpc::server::state::Inner;
    use crate::grpc::server::streams::Streams;
    use crate::server::{Settings, Stream};
    use crate::wire::DeltaDiscoveryRequest;
    use crate::wire::walk;
    use crate::{Frame, Protocol};

    const URL: &str = "type.example.com/T";

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Names of which all but the last are held as they are, in a cache that looks at one of those at a time.
    fn begun(names: &[&str]) -> ResponseBody<Cache<Frame>> {
        begun_in_turn(names, None)
    }

    fn begun_in_turn(names: &[&str], turns: Option<Turns>) -> ResponseBody<Cache<Frame>> {
        let url = TypeUrl::from(URL);
        let mut options = Options::default();
        options.looks = 1;
        let mut source = Cache::new(options);
        let mut edit = source.edit(now());
        for name in names {
            edit.put(&url, &name.parse().unwrap(), Frame::of_message(&url, b"1").into_resource(None));
        }
        drop(edit.finish());
        let version = Frame::of_message(&url, b"1").into_resource(None).version;
        let held = |name: &&str| {
            let mut held = BytesMut::new();
            walk::put_bytes(&mut held, 1, name.as_bytes());
            walk::put_bytes(&mut held, 2, version.as_str().as_bytes());
            held.freeze()
        };
        let request = DeltaDiscoveryRequest {
            type_url: URL.to_owned(),
            resource_names_subscribe: names.iter().map(|&name| name.to_owned()).collect(),
            initial_resource_versions: names[..names.len() - 1].iter().map(held).collect(),
            ..DeltaDiscoveryRequest::default()
        };
        let mut stream = Stream::new(Protocol::Delta, Settings::default());
        stream.handle_message(now(), request.encode_to_vec().into(), &mut source).unwrap();
        let inner = Inner { stream, source: Some(source), half_closed: false };
        let state = Arc::new(StreamState::new(inner, handle::Wake::default()));
        let shared: Arc<dyn Shared> = state.clone();
        let entry = Streams::default().enter(Arc::downgrade(&shared), None).unwrap();
        ResponseBody::new(state, tokio::spawn(async {}), entry, turns)
    }

    #[tokio::test]
    async fn a_stream_that_pauses_is_polled_again_and_what_it_has_written_it_does_not_keep() {
        let (mut body, woken) = (begun(&["a", "b", "c", "d"]), Arc::<Woken>::default());
        let waker = woken.clone().into();
        let mut cx = Context::from_waker(&waker);
        let mut poll = |body: &mut ResponseBody<_>| {
            let polled = Pin::new(body).poll_frame(&mut cx);
            polled.map(|frame| frame.unwrap().unwrap().into_data().unwrap())
        };
        let mut pauses = 0;
        while poll(&mut body).is_pending() {
            pauses += 1;
            assert_eq!(woken.0.load(Ordering::Relaxed), pauses, "nobody else has it polled again");
        }
        assert!(pauses > 0);
        while poll(&mut body).is_ready() {}
        assert!(body.transmit.is_none());
    }

    /// Who is to be polled, in the order in which they were woken.
    #[derive(Default)]
    struct Queue(Mutex<VecDeque<usize>>);

    struct Woke(Arc<Queue>, usize);

    impl Wake for Woke {
        fn wake(self: Arc<Self>) {
            let mut queue = self.0.0.lock().unwrap();
            if !queue.contains(&self.1) {
                queue.push_back(self.1);
            }
        }
    }

    /// How many long looks there are, at the most, before somebody who has something to say at any moment is polled; and whether all
    /// came to their end.
    fn looks_before_others(turns: Option<&Turns>) -> (usize, bool) {
        const STREAMS: usize = 20;
        let names: Vec<_> = (0..30).map(|name| format!("{name:02}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut bodies: Vec<_> = (0..STREAMS).map(|_| Some(begun_in_turn(&names, turns.cloned()))).collect();
        let queue = Arc::<Queue>::default();
        let wakers: Vec<Waker> = (0..STREAMS).map(|at| Arc::new(Woke(queue.clone(), at)).into()).collect();
        let mut looks = |at: usize| {
            let Some(body) = &mut bodies[at] else { return false };
            if Pin::new(&mut *body).poll_frame(&mut Context::from_waker(&wakers[at])).is_ready() {
                bodies[at] = None;
                return true;
            }
            // One that waits did not look.
            body.turn.is_none()
        };
        // Each comes, and is looked at once.
        (0..STREAMS).for_each(|at| _ = looks(at));
        let mut most = 0;
        loop {
            let before: Vec<_> = queue.0.lock().unwrap().drain(..).collect();
            if before.is_empty() {
                break;
            }
            most = most.max(before.into_iter().filter(|at| looks(*at)).count());
        }
        (most, bodies.iter().all(Option::is_none))
    }

    /// Who is woken behind all that is to be polled is polled after as many long looks as there are turns.
    #[tokio::test]
    async fn of_streams_that_have_much_to_do_few_are_looked_at_before_others_have_their_turn() {
        // Who is polled here is no task of its own, of which tokio would have it yield.
        tokio::task::unconstrained(async {
            for at_a_time in [1, 3] {
                assert_eq!(looks_before_others(Some(&Turns::new(at_a_time))), (at_a_time, true));
            }
            assert_eq!(looks_before_others(None), (20, true), "all stand in a row");
        })
        .await;
    }

    /// Two that wait for their turn, one behind the other.
    fn two_in_the_line(turns: &Turns, cx: &mut Context<'_>) -> [ResponseBody<Cache<Frame>>; 2] {
        [(); 2].map(|()| {
            let mut body = begun_in_turn(&["a", "b", "c", "d"], Some(turns.clone()));
            while body.turn.is_none() {
                assert!(Pin::new(&mut body).poll_frame(cx).is_pending());
            }
            body
        })
    }

    /// Whose stream is over in the line gives way to who stands behind it.
    #[tokio::test]
    async fn who_goes_while_it_waits_holds_up_nobody() {
        let turns = Turns::new(1);
        let held = turns.next();
        let mut cx = Context::from_waker(Waker::noop());
        let [first, mut second] = two_in_the_line(&turns, &mut cx);
        drop((held, first));
        assert!(Pin::new(&mut second).poll_frame(&mut cx).is_pending() && second.turn.is_none(), "it looked");
    }

    #[tokio::test]
    async fn who_has_one_stream_waits_for_one_of_who_has_many() {
        let turns = Turns::new(1);
        let held = turns.next();
        let mut cx = Context::from_waker(Waker::noop());
        let [mut first, mut second] = two_in_the_line(&turns.of(Some(1)), &mut cx);
        let [mut other, _one_more] = two_in_the_line(&turns.of(Some(2)), &mut cx);
        drop(held);
        let mut looks = |body: &mut ResponseBody<_>| {
            assert!(Pin::new(&mut *body).poll_frame(&mut cx).is_pending());
            body.turn.is_none()
        };
        assert_eq!([looks(&mut second), looks(&mut other), looks(&mut first)], [false, false, true]);
        assert_eq!([looks(&mut second), looks(&mut other)], [false, true]);
        // It has come again.
        assert_eq!([looks(&mut first), looks(&mut second)], [false, true]);
    }

    /// Whoever ends it may do so because of what those in front of it do, and it gives way at once.
    #[tokio::test]
    async fn a_stream_that_is_to_end_does_not_wait_for_its_turn() {
        let turns = Turns::new(1);
        let held = turns.next();
        let mut cx = Context::from_waker(Waker::noop());
        let [mut first, mut second] = two_in_the_line(&turns, &mut cx);
        first.state.end_with(Status::unavailable("elsewhere"));
        let Poll::Ready(Some(Ok(last))) = Pin::new(&mut first).poll_frame(&mut cx) else { panic!("it waits") };
        assert_eq!(last.trailers_ref().unwrap()["grpc-status"], "14");
        drop(held);
        assert!(Pin::new(&mut second).poll_frame(&mut cx).is_pending() && second.turn.is_none(), "it looked");
    }
}
