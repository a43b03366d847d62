//! Calls over HTTP/2, with the `h2` of a client.

use std::collections::VecDeque;
use std::task::Waker;

use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use proptest::prelude::*;
use tokio::io::duplex;
use tokio::sync::oneshot;

use super::*;

/// A body whose frames a test says one by one.
#[derive(Clone, Default)]
pub(super) struct Script(Arc<Mutex<Said>>);

#[derive(Default)]
struct Said {
    frames: VecDeque<Result<Frame<Bytes>, io::Error>>,
    over: bool,
    asked: usize,
    waker: Option<Waker>,
}

struct Spoken {
    script: Script,
    /// Dropped with the body.
    _kept: oneshot::Sender<()>,
}

impl Script {
    pub(super) fn say(&self, frame: Result<Frame<Bytes>, io::Error>) {
        self.change(|said| said.frames.push_back(frame));
    }

    pub(super) fn data(&self, data: &[u8]) {
        self.say(Ok(Frame::data(Bytes::copy_from_slice(data))));
    }

    pub(super) fn end(&self) {
        self.change(|said| said.over = true);
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        let mut said = self.0.lock().unwrap();
        change(&mut said);
        if let Some(waker) = said.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }
}

impl http_body::Body for Spoken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut said = self.script.0.lock().unwrap();
        said.asked += 1;
        match said.frames.pop_front() {
            None if !said.over => {
                said.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            frame => Poll::Ready(frame),
        }
    }
}

/// A client, and the relay that serves every call with the next of these scripts.
pub(super) struct Bed {
    pub(super) http2: SendRequest<Bytes>,
    pub(super) connection: JoinHandle<Result<(), h2::Error>>,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) serving: JoinHandle<()>,
    pub(super) ended: EndedBy,
    scripts: Arc<Mutex<VecDeque<Spoken>>>,
}

impl Bed {
    pub(super) async fn new(windows: u32) -> Self {
        let (near, far) = duplex(1 << 16);
        let scripts = Arc::<Mutex<VecDeque<Spoken>>>::default();
        let next = scripts.clone();
        let router = Router::new().fallback(move |requests: Body| async move {
            let spoken = next.lock().unwrap().pop_front().unwrap();
            // What the client says is read, whatever it is.
            tokio::spawn(axum::body::to_bytes(requests, usize::MAX));
            Response::new(Body::new(spoken))
        });
        let (stop, stopped) = oneshot::channel();
        let (serving, ended) = serve(far, router, async { drop(stopped.await) });
        let mut client = h2::client::Builder::new();
        client.initial_window_size(windows).initial_connection_window_size(windows.max(65_535));
        let (http2, connection) = client.handshake::<_, Bytes>(near).await.unwrap();
        Self { http2, connection: tokio::spawn(connection), stop, serving, ended, scripts }
    }

    /// Opens a call; the second resolves when the relay has let go of its answer.
    pub(super) async fn call(
        &mut self,
        half_closed: bool,
    ) -> (Script, oneshot::Receiver<()>, RecvStream, h2::SendStream<Bytes>) {
        let (script, (kept, dropped)) = (Script::default(), oneshot::channel());
        self.scripts.lock().unwrap().push_back(Spoken { script: script.clone(), _kept: kept });
        let request = Request::post("http://relay/").body(()).unwrap();
        let (response, requests) = self.http2.send_request(request, half_closed).unwrap();
        (script, dropped, response.await.unwrap().into_body(), requests)
    }
}

pub(super) async fn read(body: &mut RecvStream, many: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < many {
        let data = body.data().await.expect("there is more").unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        all.extend_from_slice(&data);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_body_is_asked_once_for_what_it_says_and_once_for_more() {
    let mut bed = Bed::new(1 << 20).await;
    let (script, _kept, mut body, _requests) = bed.call(false).await;
    sleep(Duration::from_secs(1)).await;
    let before = script.asked();
    for round in 1..=100 {
        script.data(b"an update");
        assert_eq!(read(&mut body, 9).await, b"an update");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(script.asked() - before, 2 * round);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_back_is_over_though_its_client_had_said_all() {
    for half_closed in [false, true] {
        let mut bed = Bed::new(1 << 20).await;
        let (script, dropped, body, mut requests) = bed.call(half_closed).await;
        script.data(b"something");
        sleep(Duration::from_secs(1)).await;
        requests.send_reset(Reason::CANCEL);
        drop(body);
        timeout(Duration::from_secs(1), dropped).await.expect("it goes on").unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_no_room_is_over_when_it_is_taken_back() {
    let mut bed = Bed::new(100).await;
    let (script, dropped, body, mut requests) = bed.call(true).await;
    script.data(&[0; 1000]);
    sleep(Duration::from_secs(1)).await;
    requests.send_reset(Reason::CANCEL);
    drop(body);
    timeout(Duration::from_secs(1), dropped).await.expect("it goes on").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_call_is_over_when_its_connection_is() {
    let mut bed = Bed::new(1 << 20).await;
    let (_script, dropped, _body, _requests) = bed.call(true).await;
    bed.connection.abort();
    timeout(Duration::from_secs(1), dropped).await.expect("it goes on").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_read_costs_the_others_of_its_connection_nothing() {
    let mut bed = Bed::new(1 << 20).await;
    let (stuck, _first, _unread, _requests) = bed.call(false).await;
    // Of the window of the stream, and not of the connection's: that is the client's to give.
    stuck.data(&vec![0; 1 << 19]);
    let (script, _second, mut body, _more) = bed.call(false).await;
    script.data(b"an update");
    assert_eq!(timeout(Duration::from_secs(1), read(&mut body, 9)).await.unwrap(), b"an update");
}

#[tokio::test(start_paused = true)]
async fn trailers_come_after_all_that_is_said() {
    let mut bed = Bed::new(1 << 20).await;
    let (script, dropped, mut body, _requests) = bed.call(false).await;
    script.data(&[7; 100_000]);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", 14.into());
    script.say(Ok(Frame::trailers(trailers.clone())));
    assert_eq!(read(&mut body, 100_000).await, [7; 100_000]);
    assert!(body.data().await.is_none());
    assert_eq!(body.trailers().await.unwrap(), Some(trailers));
    dropped.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_resets_its_call_and_no_other() {
    let mut bed = Bed::new(1 << 20).await;
    let (broken, _first, mut body, _requests) = bed.call(false).await;
    let (script, _second, mut other, _more) = bed.call(false).await;
    broken.say(Err(io::Error::other("it breaks")));
    assert_eq!(body.data().await.unwrap().unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));
    script.data(b"an update");
    assert_eq!(read(&mut other, 9).await, b"an update");
}

#[tokio::test(start_paused = true)]
async fn what_a_client_says_makes_room_for_more() {
    let mut bed = Bed::new(1 << 20).await;
    let (_script, _kept, _body, mut requests) = bed.call(false).await;
    // More than the windows of a stream and of its connection.
    let mut left: usize = 200 << 20;
    while left > 0 {
        requests.reserve_capacity(left.min(1 << 20));
        let room = timeout(Duration::from_secs(1), poll_fn(|cx| requests.poll_capacity(cx)));
        let room = room.await.expect("no room").unwrap().unwrap().min(left);
        requests.send_data(Bytes::from(vec![0; room]), false).unwrap();
        left -= room;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_ends_with_its_last_call_once_it_is_to_stop() {
    let mut bed = Bed::new(1 << 20).await;
    let (script, _kept, mut body, mut requests) = bed.call(false).await;
    bed.stop.send(()).unwrap();
    sleep(Duration::from_secs(1000)).await;
    assert!(!bed.serving.is_finished(), "a call is open");
    script.data(b"the last");
    script.end();
    assert_eq!(read(&mut body, 8).await, b"the last");
    assert!(body.data().await.is_none_or(|data| data.unwrap().is_empty()));
    // As gRPC's clients do when they have their status.
    requests.send_reset(Reason::NO_ERROR);
    timeout(Duration::from_secs(1), bed.serving).await.expect("it is served still").unwrap();
    bed.connection.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_let_go_up_to_twice_its_patience_after_its_last_call() {
    let mut bed = Bed::new(1 << 20).await;
    let start = Instant::now();
    let (script, _kept, mut body, requests) = bed.call(false).await;
    sleep(Duration::from_secs(1000)).await;
    assert!(!bed.connection.is_finished());
    script.end();
    assert!(body.data().await.is_none_or(|data| data.unwrap().is_empty()));
    drop(requests);
    let _ = bed.connection.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 1500);
    assert_eq!(*bed.ended.lock().unwrap(), ["first_request"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_call_ends_at_once_when_it_is_to_stop() {
    let bed = Bed::new(1 << 20).await;
    sleep(Duration::from_secs(1)).await;
    bed.stop.send(()).unwrap();
    timeout(Duration::from_secs(1), bed.serving).await.expect("it is served still").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the windows, and the lengths of what is said, and whoever runs first: on two threads.
    #[test]
    fn what_is_said_comes_whole_and_in_order(
        window in prop_oneof![1..100_u32, 1000..100_000_u32],
        chunks in prop::collection::vec(prop_oneof![0..40_usize, 1000..40_000_usize], 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        runtime.block_on(async {
            let mut bed = Bed::new(window).await;
            let (script, _kept, mut body, _requests) = bed.call(false).await;
            let mut said = Vec::new();
            for (number, length) in chunks.iter().enumerate() {
                said.extend(vec![u8::try_from(number).unwrap(); length / if window < 100 { 100 } else { 1 }]);
            }
            let speaking = {
                let (said, lengths) = (said.clone(), chunks.clone());
                tokio::spawn(async move {
                    let mut rest = &said[..];
                    for length in lengths {
                        let (now, later) = rest.split_at(length.min(rest.len()));
                        script.data(now);
                        rest = later;
                        tokio::task::yield_now().await;
                    }
                    script.end();
                })
            };
            let heard = timeout(Duration::from_secs(60), read(&mut body, said.len())).await.expect("it hangs");
            assert!(heard == said, "something else is heard");
            assert!(body.data().await.is_none_or(|data| data.unwrap().is_empty()));
            speaking.await.unwrap();
        });
    }
}
