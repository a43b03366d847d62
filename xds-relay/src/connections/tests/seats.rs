//! A connection gives its seat to who comes while it has no stream, and keeps it while it has one.

use std::future::poll_fn;

use crate::claim::Claim;
use crate::seats::{Full, Seats};

use super::*;

const STREAM: &str = "/stream";

/// One connection on the only seat there is, of a relay that reads what is asked and does not answer. All are admitted who ask for
/// streams.
fn serve_on(seats: &Arc<Seats>, far: DuplexStream) {
    let cx = &mut Context::from_waker(std::task::Waker::noop());
    let Poll::Ready(Ok(seat)) = seats.poll_take(cx, (None, None), || {}) else { unreachable!("it is the first") };
    let router = Router::new().fallback(|request: Request<Body>| async move {
        if request.uri().path() == STREAM {
            request.extensions().get::<Claim>().unwrap().is_admitted();
        }
        let mut asked = request.into_body();
        let reads = poll_fn(move |cx| {
            while let Poll::Ready(Some(Ok(_))) = http_body::Body::poll_frame(Pin::new(&mut asked), cx) {}
            Poll::<()>::Pending
        });
        tokio::spawn(reads);
        Response::new(Body::new(Never))
    });
    let serving =
        Serving { router, limits: limits(), limited: Arc::new(|_| {}), open: OpenCalls::default(), tls: None };
    let connections = tokio_stream::iter([Ok((far, seat))]).chain(tokio_stream::pending());
    tokio::spawn(async move { serving.serve(connections, pending()).await });
}

/// An answer that has nothing to say yet.
struct Never;

impl http_body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Whether there is a seat for who comes, once the other is given away where it is.
async fn comes(seats: &Arc<Seats>) -> Result<(), Full> {
    let taken = poll_fn(|cx| seats.poll_take(cx, (None, None), || {}));
    timeout(Duration::from_secs(3600), taken).await.expect("nobody gives his seat away").map(drop)
}

const GOAWAY: u8 = 7;

#[tokio::test(start_paused = true)]
async fn who_has_no_stream_is_told_to_go_and_makes_room_before_it_said_what_it_speaks_too() {
    let (mut near, far) = tokio::io::duplex(1 << 16);
    let seats = Seats::new(1);
    serve_on(&seats, far);
    near.write_all(&PREFACE[..10]).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    assert_eq!(comes(&seats).await, Ok(()));
    let mut rest = Vec::new();
    near.read_to_end(&mut rest).await.unwrap();
    assert_eq!((rest.len(), start.elapsed()), (0, Duration::ZERO));

    let (near, far) = tokio::io::duplex(1 << 16);
    serve_on(&seats, far);
    let mut idle = Quiet(near, EndedBy::default());
    idle.0.write_all(PREFACE).await.unwrap();
    idle.write(SETTINGS, 0, &[]).await;
    sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    assert_eq!(comes(&seats).await, Ok(()));
    let mut said = Vec::new();
    idle.0.read_to_end(&mut said).await.unwrap();
    // The last is one of 8 bytes: no call was taken, and nothing is wrong.
    let last = &said[said.len() - 17..];
    assert_eq!((&last[..4], &last[13..]), (&[0, 0, 8, GOAWAY][..], &[0; 4][..]));
    assert_eq!(start.elapsed(), Duration::ZERO, "and closed");
}

#[tokio::test(start_paused = true)]
async fn who_has_a_stream_keeps_its_seat_and_a_call_on_which_nothing_is_asked_is_none() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let seats = Seats::new(1);
    serve_on(&seats, far);
    let (http2, connection) = h2::client::handshake(near).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = || Request::post("http://relay/stream").body(()).unwrap();
    let (response, mut asking) = http2.clone().ready().await.unwrap().send_request(request(), false).unwrap();
    let body = response.await.unwrap().into_body();
    asking.send_data(Bytes::from_static(b"who I am"), false).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(comes(&seats).await, Err(Full::All));
    assert!(!connection.is_finished());
    // Once it is over, the next says nothing.
    drop((asking, body));
    sleep(Duration::from_secs(1)).await;
    let (response, _asking) = http2.clone().ready().await.unwrap().send_request(request(), false).unwrap();
    let _body = response.await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(comes(&seats).await, Ok(()));
    connection.await.unwrap().unwrap();
}

/// What has no body is asked with its headers.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_all_there_from_the_start_is_a_stream_if_it_is_admitted_to_one() {
    for (path, seat) in [(STREAM, Err(Full::All)), ("/health", Ok(()))] {
        let (near, far) = tokio::io::duplex(1 << 16);
        let seats = Seats::new(1);
        serve_on(&seats, far);
        let (mut http2, connection) = h2::client::handshake(near).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(format!("http://relay{path}")).body(()).unwrap();
        let _body = http2.send_request(request, true).unwrap().0.await.unwrap();
        assert_eq!(comes(&seats).await, seat, "{path}");
    }
}

/// As who watches the relay's health, for which there is no rule and which never ends.
#[tokio::test(start_paused = true)]
async fn a_call_for_which_nobody_is_admitted_keeps_no_seat_whatever_is_said_on_it() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let seats = Seats::new(1);
    serve_on(&seats, far);
    let (http2, connection) = h2::client::handshake(near).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("http://relay/health").body(()).unwrap();
    let (response, mut asking) = http2.ready().await.unwrap().send_request(request, false).unwrap();
    let _body = response.await.unwrap();
    asking.send_data(Bytes::from_static(b"all of it"), false).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(comes(&seats).await, Ok(()));
    connection.await.unwrap().unwrap();
}
