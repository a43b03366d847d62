use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::Running;
use crate::stream::{Call, Origin, Served, framed, in_time, trailers};

const METHOD: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

/// A client's stream, and the one it became.
async fn reporting(origin: &Origin) -> (Running, Call, Served) {
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let mut call = Call::open(relay.address, METHOD).await;
    // The relay decodes none of it.
    call.sending.send_data(framed(b"\xffthe node"), false).unwrap();
    let mut served = origin.accept().await;
    assert_eq!(served.path, METHOD);
    assert_eq!(served.headers["te"], "trailers");
    assert_eq!(served.headers["content-type"], "application/grpc");
    assert_eq!(served.receiving.message().await.unwrap().unwrap(), &b"\xffthe node"[..]);
    (relay, call, served)
}

#[tokio::test]
async fn load_reports_pass_both_ways_and_so_does_the_end_that_the_origin_makes() {
    for (code, words) in [("0", ""), ("7", "not yours")] {
        let origin = Origin::listen().await;
        let (_relay, mut call, mut served) = reporting(&origin).await;
        let mut answers = served.respond();
        for round in 0..3_u8 {
            answers.send_data(framed(&[round; 100]), false).unwrap();
            assert_eq!(call.message().await.unwrap(), vec![round; 100]);
            call.sending.send_data(framed(&[round; 7]), false).unwrap();
            assert_eq!(served.receiving.message().await.unwrap().unwrap(), vec![round; 7]);
        }
        answers.send_trailers(trailers(code, words)).unwrap();
        assert_eq!(call.status().await, (code.parse().unwrap(), words.to_owned()));
    }
}

#[tokio::test]
async fn the_end_that_the_client_makes_reaches_the_origin() {
    let origin = Origin::listen().await;
    let (_relay, mut call, mut served) = reporting(&origin).await;
    let _answers = served.respond();
    call.response().await;
    call.sending.send_data(Bytes::new(), true).unwrap();
    assert_eq!(served.receiving.message().await.unwrap(), None);

    let origin = Origin::listen().await;
    let (_relay, mut call, mut served) = reporting(&origin).await;
    let _answers = served.respond();
    call.response().await;
    call.sending.send_reset(h2::Reason::CANCEL);
    assert!(served.receiving.message().await.is_err());
}

#[tokio::test]
async fn an_origin_that_goes_away_is_unavailable() {
    let origin = Origin::listen().await;
    let (relay, mut call, mut served) = reporting(&origin).await;
    let answers = served.respond();
    call.response().await;
    drop(answers);
    served.cut();
    let (code, words) = call.status().await;
    assert_eq!(code, 14);
    assert!(words.starts_with("the stream to the origin broke: "), "{words}");

    drop(origin);
    let (code, words) = Call::open(relay.address, METHOD).await.status().await;
    assert_eq!(code, 14);
    assert!(words.starts_with("the origin \"up\" cannot be reached: "), "{words}");
}

/// Nothing piles up in the relay: who reads slowly holds back who writes, to what the windows of HTTP/2 and the
/// buffers of TCP hold.
#[tokio::test]
async fn an_origin_that_reads_slowly_holds_the_client_back() {
    const ALL: usize = 64 << 20;
    const HELD: usize = 16 << 20;
    let origin = Origin::listen().await;
    let (_relay, mut call, mut served) = reporting(&origin).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let writing = tokio::spawn(async move {
        let piece = Bytes::from(vec![0; 1 << 16]);
        while counted.load(Ordering::Relaxed) < ALL {
            call.sending.reserve_capacity(piece.len());
            let room = in_time(std::future::poll_fn(|cx| call.sending.poll_capacity(cx))).await.unwrap().unwrap();
            call.sending.send_data(piece.slice(..room), false).unwrap();
            counted.fetch_add(room, Ordering::Relaxed);
        }
        call.sending.send_data(Bytes::new(), true).unwrap();
        call
    });
    let mut read = 0;
    while let Some(data) = served.receiving.data().await.unwrap() {
        read += data.len();
        let ahead = sent.load(Ordering::Relaxed).saturating_sub(read);
        assert!(ahead <= HELD, "{ahead} bytes are somewhere");
    }
    assert!(read >= ALL);
    drop(writing.await.unwrap());
}

#[tokio::test]
async fn a_relay_of_files_takes_no_load_reports_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let relay = Running::start(&format!("[{{ name: mesh, files: '{}' }}]", directory.path().display())).await;
    let words = "the default origin \"mesh\" has files, and takes no load reports";
    assert_eq!(Call::open(relay.address, METHOD).await.status().await, (12, words.to_owned()));
}

#[tokio::test]
async fn a_relay_that_stops_ends_the_streams_of_load_reports() {
    let origin = Origin::listen().await;
    let (mut relay, mut call, mut served) = reporting(&origin).await;
    let _answers = served.respond();
    call.response().await;
    relay.stop();
    assert_eq!(call.status().await, (14, "the relay is shutting down".to_owned()));
    assert!(served.receiving.message().await.is_err());
    in_time(relay.stopped()).await;
}
