//! Who comes back with a session of TLS.

use std::sync::Arc;

use rustls::{ClientConfig, HandshakeKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use xds_relay::{Config, Relay};
use xds_transport::grpc::tls::Pem;

use crate::Running;
use crate::stream::in_time;
use crate::tls::{Authority, Files};

/// How a client connects for the second time, with what it was told of sessions at the first.
async fn second(client: &Arc<ClientConfig>, port: u16) -> HandshakeKind {
    for _ in 0..2 {
        let io = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let connecting = TlsConnector::from(client.clone()).connect("127.0.0.1".try_into().unwrap(), io);
        let mut io = in_time(connecting).await.unwrap();
        if io.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
            return HandshakeKind::Resumed;
        }
        io.write_all(b"GET /readyz HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        in_time(io.read_to_end(&mut answer)).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&answer));
    }
    HandshakeKind::Full
}

/// A relay, and the ports of all who are spoken to by TLS; of orders, where it takes any.
async fn start(files: &Files, tls: &str, orders: &str) -> (Running, Vec<u16>) {
    let text = format!(
        "listen: 127.0.0.1:0\ntls: {tls}\norigins: [{{ name: files, files: $resources }}]\n\
         admin: {{ address: '127.0.0.1:0', tls: {tls} }}\n{orders}"
    );
    let relay = Relay::bind(Config::parse("relay.yaml", &files.filled(&text)).unwrap()).await.unwrap();
    let orders = relay.orders_address().unwrap().and_then(|at| at.tcp());
    let relay = Running::run(relay);
    let addresses = [Some(relay.address), relay.admin, orders];
    (relay, addresses.into_iter().flatten().map(|at| at.port()).collect())
}

#[tokio::test]
async fn where_certificates_are_asked_for_no_session_is_resumed() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    files.identity("client", ca.vouches_for("client", None));
    let read = |name| Pem::read(&files.path(name)).unwrap();
    let builder = || {
        let builder = ClientConfig::builder_with_provider(xdstp_client::tls::provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(read("ca.pem").roots().unwrap())
    };
    let (certificate, key) = (read("client.pem").certificates().unwrap(), read("client.key").key().unwrap());
    let shows = Arc::new(builder().with_client_auth_cert(certificate, key).unwrap());
    let tls = "{ certificate: $server.pem, key: $server.key, client_ca: $ca.pem }";
    let orders = format!(
        "orders: {{ address: '127.0.0.1:0', tls: {tls} }}\nstate: {{ path: $state }}\nrollout: [{{ scope: old-style }}]\n"
    );
    let (_asks, ports) = start(&files, tls, &orders).await;
    assert_eq!(ports.len(), 3);
    for port in ports {
        assert_eq!(second(&shows, port).await, HandshakeKind::Full);
    }
    // Where none are it is.
    let (_trusts, ports) = start(&files, "{ certificate: $server.pem, key: $server.key }", "").await;
    let shows_none = Arc::new(builder().with_no_client_auth());
    for port in ports {
        assert_eq!(second(&shows_none, port).await, HandshakeKind::Resumed);
    }
}
