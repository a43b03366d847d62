//! Clients that do what they may, and what they may not.

use h2::Reason;
use http::HeaderMap;

use super::calls::Bed;
use super::contention::Dice;
use super::*;

const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

fn status() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", 14.into());
    trailers
}

/// What bounds a call is in its body: its first request, its age, what others need.
#[tokio::test(start_paused = true)]
async fn a_call_ends_though_its_client_leaves_no_room() {
    for said in [0, 100] {
        let mut bed = Bed::new(said).await;
        let (script, dropped, mut body, _requests) = bed.call(false).await;
        script.data(&vec![0; said as usize]);
        sleep(Duration::from_secs(1)).await;
        script.say(Ok(Frame::trailers(status())));
        timeout(Duration::from_secs(1), dropped).await.expect("it goes on").unwrap_err();
        while let Some(data) = body.data().await {
            data.unwrap();
        }
        assert_eq!(body.trailers().await.unwrap(), Some(status()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_breaks_though_its_client_leaves_no_room() {
    let mut bed = Bed::new(0).await;
    let (script, dropped, mut body, _requests) = bed.call(false).await;
    sleep(Duration::from_secs(1)).await;
    script.say(Err(io::Error::other("it breaks")));
    timeout(Duration::from_secs(1), dropped).await.expect("it goes on").unwrap_err();
    assert_eq!(body.data().await.unwrap().unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));
}

/// What it sends in that moment it may then send elsewhere, for sure not done.
#[tokio::test(start_paused = true)]
async fn a_client_without_a_call_is_told_that_it_is_let_go() {
    let mut client = Quiet::connect(Duration::from_secs(200)).await;
    assert_eq!(client.next(GOAWAY, 0).await.expect("no word")[..], [0; 8], "none of its calls was looked at");
    assert!(client.next(GOAWAY, 0).await.is_none());
}

/// For each of them all of its streams are gone through.
#[tokio::test(start_paused = true)]
async fn who_changes_settings_all_the_time_is_told_to_be_calm() {
    let mut client = Quiet::connect(Duration::from_secs(1 << 20)).await;
    for _ in 0..900 {
        client.write(SETTINGS, 0, &[0, 4, 0, 1, 0, 0]).await;
        assert!(client.next(SETTINGS, ACK).await.is_some());
    }
    client.write(PING, 0, &[1; 8]).await;
    assert!(client.next(PING, ACK).await.is_some(), "it may change them now and then");
    // What is written after that may not be taken.
    let settings = [0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0].repeat(110);
    client.0.write_all(&settings).await.unwrap();
    let calm = [[0; 4], 11_u32.to_be_bytes()].concat();
    assert_eq!(client.next(GOAWAY, 0).await.as_deref(), Some(&calm[..]));
    assert!(client.next(GOAWAY, 0).await.is_none(), "and the connection is over");
}

/// What a frame costs has little to do with how long it is.
#[tokio::test(start_paused = true)]
async fn others_have_their_turn_beside_who_sends_short_frames() {
    const MANY: usize = 10_000;
    let (mut near, far) = tokio::io::duplex(1 << 20);
    let (_serving, ended) = serve(far, Router::new(), pending());
    // PRIORITY, of which nothing follows.
    let short = [0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
    let ping = [&[0, 0, 8, PING, 0, 0, 0, 0, 0][..], &[1; 8]].concat();
    let all = [PREFACE, &[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0], &short.repeat(MANY), &ping].concat();
    near.write_all(&all).await.unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    let count = turns.clone();
    tokio::spawn(async move {
        poll_fn(|cx| {
            count.fetch_add(1, Ordering::Relaxed);
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })
        .await;
    });
    let mut client = Quiet(near, ended);
    assert!(client.next(PING, ACK).await.is_some());
    // Each 2 KiB of them are more than a turn.
    assert!(turns.load(Ordering::Relaxed) >= all.len() / (2 << 10), "{turns:?}");
}

/// A client whose side takes so many bytes, and that reads none.
async fn deaf(takes: usize, patience: Duration) -> (DuplexStream, JoinHandle<()>, tokio::sync::oneshot::Sender<()>) {
    let (mut near, far) = tokio::io::duplex(takes);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let limits = Limits { first_request: patience, ..limits() };
    let (serving, _) = serve_within(limits, far, Router::new(), async { drop(stopped.await) });
    near.write_all(PREFACE).await.unwrap();
    near.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await.unwrap();
    (near, serving, stop)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_let_go() {
    for takes in [24, 100, 1000] {
        let (mut near, _serving, _stop) = deaf(takes, Duration::from_secs(200)).await;
        let start = Instant::now();
        let gone =
            async { while near.write_all(&[0, 0, 8, PING, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]).await.is_ok() {} };
        timeout(Duration::from_secs(1000), gone).await.expect("it stays");
        assert!(start.elapsed().as_secs() <= 200, "{takes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_keeps_nobody_from_stopping() {
    let (_near, serving, stop) = deaf(24, Duration::from_secs(200)).await;
    sleep(Duration::from_secs(1)).await;
    stop.send(()).unwrap();
    timeout(Duration::from_secs(300), serving).await.expect("it goes on").unwrap();
}

/// With a call, and however much it has to say itself.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_stopped_reading_does_not_stay_with_its_calls() {
    let (mut near, far) = tokio::io::duplex(1000);
    let asked = Arc::new(AtomicUsize::new(0));
    let router = Router::new().fallback(move || async move { Response::new(Body::new(Endless(asked))) });
    let open = OpenCalls::default();
    let serving = Serving { router, limits: limits(), limited: Arc::new(|_| {}), open: open.clone(), tls: None };
    let connections = tokio_stream::iter([Ok((far, seat()))]).chain(tokio_stream::pending());
    tokio::spawn(serving.serve(connections, pending()));
    let start = Instant::now();
    near.write_all(PREFACE).await.unwrap();
    near.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await.unwrap();
    // POST http://relay/ on a stream that stays open.
    let request = [&[0, 0, 10, HEADERS, 4, 0, 0, 0, 1, 0x83, 0x86, 0x84, 0x41, 5][..], b"relay"].concat();
    near.write_all(&request).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*open.borrow(), 1);
    let gone = async { while near.write_all(&[0, 0, 8, PING, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]).await.is_ok() {} };
    timeout(Duration::from_secs(1000), gone).await.expect("it stays");
    assert!(start.elapsed().as_secs() <= 320);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*open.borrow(), 0);
}

/// There is a byte of the window with each call that waits.
#[tokio::test(start_paused = true)]
async fn many_calls_that_wait_leave_the_window_of_their_connection_to_one() {
    let mut bed = Bed::new(60_000).await;
    let mut waiting = Vec::new();
    for _ in 0..99 {
        waiting.push(bed.call(false).await);
    }
    let (script, _kept, mut body, _requests) = bed.call(false).await;
    for _ in 0..20 {
        script.data(&[1; 60_000]);
        assert_eq!(timeout(Duration::from_secs(1), calls::read(&mut body, 60_000)).await.unwrap().len(), 60_000);
    }
    for (script, _, body, _) in &mut waiting {
        script.data(b"an update");
        assert_eq!(calls::read(body, 9).await, b"an update");
    }
}

#[tokio::test(start_paused = true)]
async fn http1_without_an_end_of_a_request_is_let_go() {
    for request in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nhost:",
        "x",
    ] {
        let (mut near, far) = tokio::io::duplex(1 << 16);
        let (_serving, _ended) = serve(far, Router::new(), pending());
        let start = Instant::now();
        near.write_all(request.as_bytes()).await.unwrap();
        let over = timeout(Duration::from_secs(1000), async { near.read_to_end(&mut Vec::new()).await.unwrap() });
        over.await.unwrap_or_else(|_| panic!("{request} stays"));
        assert!(start.elapsed().as_secs() <= 300, "{request} {:?}", start.elapsed());
    }
}

/// Of what is said before there is a request nothing else bounds what is kept, and for how long.
#[tokio::test(start_paused = true)]
async fn headers_of_http1_are_short_and_whole_in_time() {
    let (mut client, far) = tokio::io::duplex(1 << 10);
    let (_, ended) = serve(far, Router::new(), pending());
    let start = Instant::now();
    client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").await.unwrap();
    let mut taken = 0;
    while client.write_all(&[b"x: ", &[b'y'; 251][..], b"\r\n"].concat()).await.is_ok() {
        taken += 256;
        assert!(taken < 64 << 10, "it takes all that comes");
    }
    assert!(taken > 14 << 10, "{taken}");
    assert!(start.elapsed() < Duration::from_secs(1) && ended.lock().unwrap().is_empty());

    let (mut client, far) = tokio::io::duplex(1 << 10);
    let (_, ended) = serve(far, Router::new(), pending());
    let start = Instant::now();
    for piece in ["GET / HTTP/1.1\r\nhost: a\r\n", "a: b\r\n", "c: d\r\n"] {
        client.write_all(piece.as_bytes()).await.unwrap();
        sleep(Duration::from_secs(4)).await;
    }
    timeout(Duration::from_secs(60), client.read_to_end(&mut Vec::new())).await.expect("it is kept").unwrap();
    assert!(start.elapsed() < Duration::from_secs(13), "{:?}", start.elapsed());
    assert_eq!(*ended.lock().unwrap(), ["preface"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_call_that_its_client_ends_is_over() {
    let mut client = Quiet::connect(Duration::from_secs(1 << 20)).await;
    client.write(GOAWAY, 0, &[0; 8]).await;
    let over = timeout(Duration::from_secs(1), async { client.0.read_to_end(&mut Vec::new()).await });
    over.await.expect("it stays").unwrap();
}

/// Neither has a path that is served, or what follows the headers.
#[tokio::test(start_paused = true)]
async fn odd_requests_are_answered_and_the_next_is_too() {
    let (near, far) = tokio::io::duplex(1 << 16);
    serve(far, Router::new(), pending());
    let (mut http2, connection) = h2::client::handshake(near).await.unwrap();
    tokio::spawn(connection);
    for (method, uri) in
        [("CONNECT", "relay:80"), ("HEAD", "http://relay/"), ("OPTIONS", "http://relay/"), ("GET", "http://relay/")]
    {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let (response, _requests) = http2.send_request(request, method != "CONNECT").unwrap();
        let response = timeout(Duration::from_secs(1), response).await.unwrap_or_else(|_| panic!("{method}")).unwrap();
        assert_eq!(response.status(), 404, "{method}");
        http2 = http2.ready().await.unwrap();
    }
}

/// Frames that are legal by themselves, and any order of them.
fn frames(dice: &mut Dice) -> Vec<u8> {
    let mut all = Vec::new();
    let mut newest = 1;
    for _ in 0..dice.roll(60) {
        let known = |dice: &mut Dice, newest: u64| u32::try_from(1 + 2 * dice.roll(newest.div_ceil(2) + 1)).unwrap();
        let size = |dice: &mut Dice| {
            u32::try_from([0, 1, 100, 65_535, 0x7fff_ffff][usize::try_from(dice.roll(5)).unwrap()]).unwrap()
        };
        let (kind, flags, stream, payload) = match dice.roll(16) {
            0..4 => {
                newest += 2;
                let flags = 4 | u8::try_from(dice.roll(2)).unwrap();
                let request = [&[0x83, 0x86, 0x84, 0x41, 5][..], b"relay"].concat();
                (HEADERS, flags, u32::try_from(newest).unwrap(), request)
            }
            4..7 => (3, 0, known(dice, newest), 8_u32.to_be_bytes().to_vec()),
            7..9 => (
                0,
                u8::try_from(dice.roll(8) / 7).unwrap(),
                known(dice, newest),
                vec![0; usize::try_from(dice.roll(100)).unwrap()],
            ),
            9..12 => (
                8,
                0,
                if dice.roll(3) == 0 { 0 } else { known(dice, newest) },
                size(dice).max(u32::from(dice.roll(20) > 0)).to_be_bytes().to_vec(),
            ),
            12..14 => (SETTINGS, 0, 0, [&[0, 4][..], &size(dice).to_be_bytes()].concat()),
            14 => (
                PING,
                u8::try_from(dice.roll(2)).unwrap(),
                0,
                if dice.roll(2) == 0 { vec![1; 8] } else { vec![0x0b, 0x7b, 0xa2, 0xf0, 0x8b, 0x9b, 0xfe, 0x54] },
            ),
            _ if dice.roll(10) > 0 => continue,
            _ => (GOAWAY, 0, 0, vec![0; 8]),
        };
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        all.extend([&length[1..], &[kind, flags], &stream.to_be_bytes(), &payload].concat());
    }
    all
}

/// Says much, and then waits.
struct Long(Endless);

impl http_body::Body for Long {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0.0.load(Ordering::Relaxed) > 200_000 {
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll_frame(cx)
    }
}

/// In however many pieces, whether it reads or not, and whether the relay stops meanwhile.
async fn blurts(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (near, far) = tokio::io::duplex([100, 3000, 1 << 16][usize::try_from(dice.roll(3)).unwrap()]);
    let router = Router::new().fallback(|requests: Body| async move {
        tokio::spawn(axum::body::to_bytes(requests, usize::MAX));
        Response::new(Body::new(Long(Endless(Arc::default()))))
    });
    let open = OpenCalls::default();
    let serving = Serving { router, limits: limits(), limited: Arc::new(|_| {}), open: open.clone(), tls: None };
    let connections = tokio_stream::iter([Ok((far, seat()))]).chain(tokio_stream::pending());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serving.serve(connections, async { drop(stopped.await) }));
    let (mut reader, mut writer) = tokio::io::split(near);
    let reads = dice.roll(3) > 0;
    let reading = tokio::spawn(async move {
        if reads {
            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        } else {
            pending::<()>().await;
        }
    });
    let mut said = [PREFACE, &[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]].concat();
    said.extend(frames(&mut dice));
    let piece = 1 + usize::try_from(dice.roll(200)).unwrap();
    let mut stop = Some(stop);
    for piece in said.chunks(piece) {
        if timeout(Duration::from_secs(1), writer.write_all(piece)).await.is_err() {
            break;
        }
        if dice.roll(100) == 0 {
            drop(stop.take());
        }
        if dice.roll(2) == 0 {
            tokio::task::yield_now().await;
        }
    }
    if dice.roll(2) == 0 {
        reading.abort();
        let _ = reading.await;
        drop(writer);
    }
    drop(stop);
    timeout(Duration::from_secs(1000), serving).await.unwrap_or_else(|_| panic!("seed {seed} stays")).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*open.borrow(), 0, "seed {seed}");
}

#[test]
fn whatever_a_client_blurts_out_its_calls_are_over_with_its_connection() {
    let seeds = std::env::var("BLURT_SEEDS").map_or(0..200, |to| 0..to.parse().unwrap());
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(blurts(seed));
    }
}
