use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Running;
use crate::loops::page;
use crate::stream::{Call, Origin, Served, connect, framed, in_time, send, trailers};

const PATH: &str = "x-xds-relay-path";
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
async fn the_client_s_metadata_passes_up_and_what_is_of_its_connection_does_not() {
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let said: [(&str, &[u8]); 6] = [
        ("authorization", b"Bearer me"),
        ("x-cluster", b"one"),
        ("x-cluster", b"two"),
        ("x-trace-bin", b"AAEC"),
        ("grpc-encoding", b"gzip"),
        ("proxy-authorization", b"Basic me"),
    ];
    let _call = Call::open_with(relay.address, METHOD, &said).await;
    let headers = origin.accept().await.headers;
    let values = |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(values("authorization"), ["Bearer me"]);
    assert_eq!(values("x-cluster"), ["one", "two"]);
    assert_eq!(values("x-trace-bin"), ["AAEC"]);
    assert_eq!(values("grpc-encoding"), ["gzip"]);
    assert_eq!((values("content-type"), values("te")), (vec!["application/grpc"], vec!["trailers"]));
    assert_eq!(values("proxy-authorization"), [""; 0]);
}

/// Over HTTP/1 a client can name more that is only between it and the relay.
#[tokio::test]
async fn what_a_client_says_of_its_connection_alone_stays_there() {
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let mut client = TcpStream::connect(relay.address).await.unwrap();
    let head = format!(
        "POST {METHOD} HTTP/1.1\r\nhost: me\r\ncontent-type: application/grpc\r\ncontent-length: 5\r\n\
         connection: keep-alive, X-Mine\r\nx-mine: 1\r\nx-yours: 2\r\nkeep-alive: timeout=5\r\n\r\n\0\0\0\0\0"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let headers = origin.accept().await.headers;
    assert_eq!(headers["x-yours"], "2");
    for name in ["host", "connection", "keep-alive", "x-mine", "content-length"] {
        assert!(!headers.contains_key(name), "{name}");
    }
}

/// What everybody may know of a relay that goes by a token.
fn instance(token: &str) -> String {
    let digest = Sha256::digest(u128::from_str_radix(token, 16).unwrap().to_be_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn rule_159_load_reports_go_round_no_loop_of_relays() {
    const OTHER: &str = "000000000000000000000000000000b0";
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let _from_a_relay = Call::open_with(relay.address, METHOD, &[(PATH, OTHER.as_bytes())]).await;
    let served = origin.accept().await;
    let path = served.headers[PATH].to_str().unwrap();
    let (own, before) = path.split_once(',').unwrap();
    assert_eq!((own.len(), before), (32, OTHER));
    let again = format!("{OTHER},{path}");
    let (code, words) = Call::open_with(relay.address, METHOD, &[(PATH, again.as_bytes())]).await.status().await;
    let [own, other] = [own, OTHER].map(instance);
    assert_eq!((code, words), (9, format!("a loop of relays: {own} → {other} → {own}")));
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
async fn no_load_reports_wait_where_the_origin_bears_one_stream_on_a_connection() {
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut call = Call::open(relay.address, METHOD).await;
        let mut connection = origin.connection(Some(1)).await;
        let mut served = connection.stream().await;
        let answers = served.respond();
        call.response().await;
        open.push((call, served, answers, connection));
    }
}

#[tokio::test]
async fn clients_that_do_not_read_hold_up_no_other() {
    // What the relay lets an origin send on a stream before anybody reads it.
    const UNREAD: usize = 2 << 20;
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let mut call = Call::open(relay.address, METHOD).await;
    let mut connection = origin.connection(None).await;
    let mut served = connection.stream().await;
    let mut stuck = Vec::new();
    for _ in 0..4 {
        let call = Call::open(relay.address, METHOD).await;
        let mut served = connection.stream().await;
        let mut answers = served.respond();
        send(&mut answers, UNREAD).await;
        stuck.push((call, served, answers));
    }
    served.respond().send_data(framed(b"for you"), false).unwrap();
    assert_eq!(call.message().await.unwrap(), &b"for you"[..]);
}

#[tokio::test]
async fn streams_that_the_origin_does_not_read_hold_up_no_other_of_the_client() {
    // What the relay lets a client send on a stream before it is read.
    const UNREAD: usize = 128 << 10;
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let client = connect(relay.address).await;
    let (mut stuck, mut unread) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut call = Call::open_on(&client, relay.address, METHOD, &[]).await;
        send(&mut call.sending, UNREAD).await;
        stuck.push(call);
    }
    let mut call = Call::open_on(&client, relay.address, METHOD, &[("x-who", b"me")]).await;
    call.sending.send_data(framed(b"read me"), false).unwrap();
    let mut connection = origin.connection(None).await;
    let mut served = connection.stream().await;
    while !served.headers.contains_key("x-who") {
        unread.push(std::mem::replace(&mut served, connection.stream().await));
    }
    assert_eq!(served.receiving.message().await.unwrap().unwrap(), &b"read me"[..]);
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

#[tokio::test]
async fn rule_132_of_streams_of_load_reports_there_are_so_many_and_they_are_counted() {
    let origin = Origin::listen().await;
    let origins = format!("[{{ name: up, server: '{}' }}]", origin.address());
    let relay = Running::start_with(&origins, "limits: { load_report_streams: 1 }").await;
    let mut call = Call::open(relay.address, METHOD).await;
    call.sending.send_data(framed(b"the node"), false).unwrap();
    let mut served = origin.accept().await;
    assert_eq!(served.receiving.message().await.unwrap().unwrap(), &b"the node"[..]);
    let mut answers = served.respond();
    answers.send_data(framed(&[7; 100]), false).unwrap();
    assert_eq!(call.message().await.unwrap(), vec![7; 100]);

    let words = "more than 1 streams of load reports (limits.load_report_streams of the relay)";
    assert_eq!(Call::open(relay.address, METHOD).await.status().await, (8, words.to_owned()));
    let counted = |lines: &'static [&'static str]| {
        let relay = &relay;
        async move {
            loop {
                let text = page(relay, "/metrics").await;
                if lines.iter().all(|line| text.lines().any(|other| other == *line)) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
    };
    in_time(counted(&[
        "xds_relay_downstream_refused_total{limit=\"load_report_streams\"} 1",
        "xds_relay_load_report_streams{origin=\"up\"} 1",
        "xds_relay_load_report_streams_opened_total{origin=\"up\"} 1",
        "xds_relay_load_report_bytes_total{direction=\"up\",origin=\"up\"} 13",
        "xds_relay_load_report_bytes_total{direction=\"down\",origin=\"up\"} 105",
    ]))
    .await;
    answers.send_trailers(trailers("0", "")).unwrap();
    assert_eq!(call.status().await.0, 0);
    in_time(counted(&["xds_relay_load_report_streams{origin=\"up\"} 0"])).await;
    // There is room again.
    let _next = Call::open(relay.address, METHOD).await;
    origin.accept().await;
}

/// That nobody can be reached is not the client's doing, and it may need the streams that it may open for something else.
#[tokio::test]
async fn a_stream_that_reaches_no_origin_is_none_of_those_that_its_client_may_open() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origins = format!("[{{ name: up, server: '{}' }}]", nobody.local_addr().unwrap());
    drop(nobody);
    let rules = "clients: [{ match: { any: true }, limits: { new_streams_per_second: 1 } }]";
    let relay = Running::start_with(&origins, rules).await;
    for _ in 0..3 {
        let (code, words) = Call::open(relay.address, METHOD).await.status().await;
        assert_eq!(code, 14, "{words}");
    }
}

#[tokio::test]
async fn a_connection_on_which_load_is_reported_makes_room_for_nobody() {
    let origin = Origin::listen().await;
    let origins = format!("[{{ name: up, server: '{}' }}]", origin.address());
    let relay = Running::start_with(&origins, "limits: { connections: 1 }").await;
    let mut call = Call::open(relay.address, METHOD).await;
    call.sending.send_data(framed(b"the node"), false).unwrap();
    let mut served = origin.accept().await;
    assert!(served.receiving.message().await.unwrap().is_some());
    let mut refused = TcpStream::connect(relay.address).await.unwrap();
    assert_eq!(in_time(refused.read(&mut [0])).await.unwrap_or(0), 0);
    call.sending.send_data(framed(b"load"), false).unwrap();
    assert_eq!(served.receiving.message().await.unwrap().unwrap(), &b"load"[..]);
}
