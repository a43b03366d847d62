//! Calls that contend for the windows of one connection, whoever runs first.

use std::collections::HashMap;

use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use tokio::sync::mpsc;

use super::*;

/// Numbers that a seed decides.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn size(&mut self) -> usize {
        let most = [1, 10, 1000, 40_000][usize::try_from(self.roll(4)).unwrap()];
        usize::try_from(self.roll(most)).unwrap()
    }
}

async fn pause(dice: &mut Dice) {
    match dice.roll(8) {
        0 => sleep(Duration::from_millis(1)).await,
        1..4 => tokio::task::yield_now().await,
        _ => {}
    }
}

/// How a body ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// With its last chunk, and says so.
    Known,
    Nothing,
    Trailers,
    Error,
    Never,
}

/// Says chunks of these lengths, all of the bytes the position says, now and then after a while.
struct Lengths {
    left: std::vec::IntoIter<usize>,
    said: usize,
    end: End,
    over: bool,
    dice: Dice,
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _kept: mpsc::Sender<()>,
}

fn byte(position: usize) -> u8 {
    (position % 251) as u8
}

impl http_body::Body for Lengths {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        if let Some(wait) = &mut this.waits {
            std::task::ready!(wait.as_mut().poll(cx));
            this.waits = None;
        } else {
            let mut dice = Dice(this.dice.roll(u64::MAX) | 1);
            let mut wait: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move { pause(&mut dice).await });
            if wait.as_mut().poll(cx).is_pending() {
                this.waits = Some(wait);
                return Poll::Pending;
            }
        }
        if let Some(length) = this.left.next() {
            let from = this.said;
            this.said += length;
            return Poll::Ready(Some(Ok(Frame::data((from..this.said).map(byte).collect()))));
        }
        this.over = true;
        Poll::Ready(match this.end {
            End::Known | End::Nothing => None,
            End::Trailers => {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", 0.into());
                Some(Ok(Frame::trailers(trailers)))
            }
            End::Error => Some(Err(io::Error::other("it breaks"))),
            End::Never => {
                this.over = false;
                return Poll::Pending;
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.over || (self.end == End::Known && self.left.len() == 0)
    }
}

/// What is said on which path.
type Plans = Arc<Mutex<HashMap<String, Lengths>>>;

/// What a client does on one call.
async fn call(mut http2: SendRequest<Bytes>, plans: Plans, number: u64, seed: u64) {
    let mut dice = Dice(seed | 1);
    let lengths: Vec<_> = (0..dice.roll(30)).map(|_| dice.size()).collect();
    let whole: usize = lengths.iter().sum();
    let ends = [End::Known, End::Nothing, End::Trailers, End::Error, End::Never];
    let end = ends[usize::try_from(dice.roll(5)).unwrap()];
    // Whether it is taken back, and when.
    let taken_back = (dice.roll(3) == 0).then(|| usize::try_from(dice.roll(whole as u64 + 1)).unwrap());
    let (kept, mut dropped) = mpsc::channel(1);
    let said = Lengths {
        left: lengths.into_iter(),
        said: 0,
        end,
        over: false,
        dice: Dice(dice.roll(u64::MAX) | 1),
        waits: None,
        _kept: kept,
    };
    let half_closed = dice.roll(2) == 0;
    plans.lock().unwrap().insert(format!("/{number}"), said);
    http2 = http2.ready().await.unwrap();
    let (response, mut requests) =
        http2.send_request(Request::post(format!("http://relay/{number}")).body(()).unwrap(), half_closed).unwrap();
    let mut body: RecvStream = match response.await {
        Ok(response) => response.into_body(),
        Err(error) => {
            assert!(end == End::Error && error.is_reset(), "{error}");
            assert!(dropped.recv().await.is_none());
            return;
        }
    };
    let (mut heard, mut owed) = (0, 0);
    let broken = loop {
        if taken_back.is_some_and(|at| heard >= at) {
            if dice.roll(2) == 0 {
                requests.send_reset(Reason::CANCEL);
            }
            break false;
        }
        if end == End::Never && heard == whole {
            break false;
        }
        // It lets the other side wait for the rest of its window, but not for ever.
        let next = timeout(Duration::from_millis(1 + dice.roll(3)), body.data()).await;
        match next {
            Err(_) => {
                body.flow_control().release_capacity(owed).unwrap();
                owed = 0;
            }
            Ok(None) => break false,
            Ok(Some(Err(error))) => {
                assert!(end == End::Error && error.is_reset(), "{error}");
                break true;
            }
            Ok(Some(Ok(data))) => {
                assert!(data.iter().enumerate().all(|(at, said)| *said == byte(heard + at)), "out of order");
                heard += data.len();
                owed += data.len();
                if dice.roll(2) == 0 {
                    let now = usize::try_from(dice.roll(owed as u64 + 1)).unwrap();
                    body.flow_control().release_capacity(now).unwrap();
                    owed -= now;
                }
            }
        }
        pause(&mut dice).await;
    };
    if taken_back.is_none() && !broken {
        assert_eq!(heard, whole);
        if end == End::Trailers {
            assert!(body.trailers().await.unwrap().is_some());
        }
    }
    drop((body, requests));
    // The other side has let go of it too.
    assert!(dropped.recv().await.is_none());
}

async fn contend(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (near, far) = tokio::io::duplex([70, 1000, 1 << 16][usize::try_from(dice.roll(3)).unwrap()]);
    let plans = Plans::default();
    let said = plans.clone();
    let router = Router::new().fallback(move |request: Request<Body>| async move {
        Response::new(Body::new(said.lock().unwrap().remove(request.uri().path()).unwrap()))
    });
    let (_serving, _ended) = serve(far, router, pending());
    let mut client = h2::client::Builder::new();
    let window =
        |dice: &mut Dice| u32::try_from([1, 100, 5000, 100_000][usize::try_from(dice.roll(4)).unwrap()]).unwrap();
    client.initial_window_size(window(&mut dice)).initial_connection_window_size(65_535);
    let (http2, mut connection) = client.handshake::<_, Bytes>(near).await.unwrap();
    let mut settings = Dice(dice.roll(u64::MAX) | 1);
    let connection = tokio::spawn(async move {
        let mut change = tokio::time::interval(Duration::from_millis(1));
        loop {
            tokio::select! {
                over = &mut connection => return over,
                _ = change.tick() => {
                    // Fails where the last one is not acknowledged yet.
                    let _ = connection.set_initial_window_size(window(&mut settings));
                }
            }
        }
    });
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..1 + dice.roll(8) {
        calls.spawn(call(http2.clone(), plans.clone(), number, dice.roll(u64::MAX)));
    }
    while let Some(over) = calls.join_next().await {
        over.unwrap();
    }
    connection.abort();
}

/// Whatever the windows become meanwhile: what is said comes whole and in order, or the call is over on both sides.
#[test]
fn calls_that_contend_for_windows_end_on_both_sides() {
    let seeds = std::env::var("CONTENTION_SEEDS").map_or(0..20, |to| {
        let (from, to) = to.split_once('-').unwrap();
        from.parse().unwrap()..to.parse().unwrap()
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap();
    for seed in seeds {
        runtime.block_on(async {
            let within = timeout(Duration::from_secs(60), tokio::spawn(contend(seed))).await;
            within.unwrap_or_else(|_| panic!("seed {seed} hangs")).unwrap_or_else(|_| panic!("seed {seed}"));
        });
    }
}
