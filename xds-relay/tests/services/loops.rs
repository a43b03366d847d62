//! Rule 159 over sockets: relays that are, through others, their own origin.

use std::net::SocketAddr;

use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use xds_transport::Protocol;
use xds_transport::wire::{DeltaDiscoveryRequest, Node};

use crate::Running;
use crate::stream::{Call, Origin, framed, in_time};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const KEY: &str = "x-xds-relay-path";

/// What leads to a relay that is not there yet.
struct Cable {
    address: SocketAddr,
    to: watch::Sender<Option<SocketAddr>>,
    ended: mpsc::UnboundedReceiver<()>,
}

impl Cable {
    async fn lay() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (to, mut target) = watch::channel(None);
        let (end, ended) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let Some(to) = *target.wait_for(Option::is_some).await.unwrap() else { return };
                let end = end.clone();
                tokio::spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(to).await {
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                    let _ = end.send(());
                });
            }
        });
        Self { address, to, ended }
    }
}

/// A client that asks for a cluster, with what it says before that.
async fn asking(address: SocketAddr, headers: &[(&str, &[u8])]) -> Call {
    let mut call = Call::open_with(address, Protocol::Delta.aggregated_method(), headers).await;
    let node = Node { id: "client".into(), ..Node::default() }.encode_to_vec().into();
    let (type_url, resource_names_subscribe) = (CLUSTERS.into(), vec!["x".into()]);
    let request = DeltaDiscoveryRequest { node, type_url, resource_names_subscribe, ..Default::default() };
    // Who is refused at once may have gone already.
    let _ = call.sending.send_data(framed(&request.encode_to_vec()), false);
    call
}

pub(crate) async fn page(relay: &Running, path: &str) -> String {
    let mut stream = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn rule_159_the_stream_that_closes_a_loop_is_ended_and_no_other() {
    for (relays, protocol) in [(1, "delta"), (2, "delta"), (2, "sotw"), (3, "delta"), (3, "sotw")] {
        let mut cables = Vec::new();
        for _ in 0..relays {
            cables.push(Cable::lay().await);
        }
        let mut ring = Vec::new();
        for relay in 0..relays {
            let origin = cables[(relay + 1) % relays].address;
            let origins = format!("[{{ name: up, server: '{origin}', protocol: {protocol} }}]");
            ring.push(Running::start_with(&origins, "unknown: wait").await);
            let _ = cables[relay].to.send(Some(ring[relay].address));
        }
        let mut client = asking(ring[0].address, &[]).await;
        let instance = client.response().await[KEY].to_str().unwrap().to_owned();

        // Each asks the next; the last one asks the first, which finds itself.
        in_time(cables[0].ended.recv()).await.unwrap();
        let last = page(&ring[relays - 1], "/config_dump").await;
        assert!(last.contains(&format!("FailedPrecondition: a loop of relays: {instance} → ")), "{last}");
        assert!(last.contains(&format!(" → {instance}\"")), "{last}");
        let first = page(&ring[0], "/metrics").await;
        assert!(!first.contains("xds_relay_downstream_loops_total 0"), "{first}");
        for cable in &mut cables[1..] {
            assert!(cable.ended.try_recv().is_err(), "another stream was ended");
        }
    }
}

#[tokio::test]
async fn rule_159_a_relay_that_finds_itself_behind_its_origin_ends_the_stream_and_says_so() {
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    let mut client = asking(relay.address, &[]).await;
    let mut served = origin.accept().await;
    let instance = client.response().await[KEY].to_str().unwrap().to_owned();
    assert!(
        !served.headers[KEY].to_str().unwrap().contains(&instance),
        "nobody downstream knows what it says upstream"
    );
    let _answers = served.respond_with(KEY, &format!("00000000000000b0,{instance}"));
    while let Ok(Some(_)) = served.receiving.message().await {}
    // The client has nothing to wait for here.
    let (code, words) = client.status().await;
    assert_eq!(code, 14);
    let ring = format!("a loop of relays: {instance} → 00000000000000b0 → {instance}");
    assert!(words.ends_with(&ring), "{words}");
}

#[tokio::test]
async fn rule_159_who_says_of_relays_what_cannot_be_is_refused() {
    let origin = Origin::listen().await;
    let relay = Running::start(&format!("[{{ name: up, server: '{}' }}]", origin.address())).await;
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let hops = [TOKEN; 10].join(",");
    let many = [TOKEN; 300].join("|");
    for (path, expected) in [
        (&b""[..], "x-xds-relay-path is no path of relays"),
        (b"\xff\xfe", "x-xds-relay-path is no path of relays"),
        (b"relay-1", "x-xds-relay-path is no path of relays"),
        (many.as_bytes(), "x-xds-relay-path is no path of relays"),
        (b"0123456789abcdef", "x-xds-relay-path is no path of relays"),
        (hops.as_bytes(), "10 relays stand one behind the other, of at most 8"),
    ] {
        let (code, words) = asking(relay.address, &[(KEY, path)]).await.status().await;
        assert_eq!(code, 9);
        assert!(words.starts_with(expected), "{words}");
    }
    // And who comes from far away is not.
    let path = &hops.as_bytes()[..9 * 33 - 1];
    assert!(asking(relay.address, &[(KEY, path)]).await.response().await.contains_key(KEY));
}
