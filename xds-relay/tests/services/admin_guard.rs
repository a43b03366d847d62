//! Who sees the admin pages: by token, and by TLS where others reach them.

use std::fs;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use xds_relay::{Config, Relay};

use crate::Running;
use crate::stream::in_time;
use crate::tls::{Authority, Files};

const TOKEN: &str = "one-0123456789abcdef";
const WRITER: &str = "writer-0123456789abcdef";

async fn get(io: impl AsyncRead + AsyncWrite + Unpin, path: &str, token: Option<&str>) -> String {
    asked(io, "GET", path, token).await
}

pub(crate) async fn asked(
    mut io: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    token: Option<&str>,
) -> String {
    let token = token.map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
    let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{token}\r\n");
    io.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // Who does not say good-bye says what there is to say before that.
    let _ = in_time(io.read_to_string(&mut answer)).await;
    answer
}

/// A relay whose admin pages are told so.
async fn relay(files: &Files, admin: &str) -> Running {
    let text = format!("listen: 127.0.0.1:0\nadmin: {}\norigins: [{{ name: files, files: $resources }}]\n", admin);
    Running::run(Relay::bind(Config::parse("relay.yaml", &files.filled(&text)).unwrap()).await.unwrap())
}

#[tokio::test]
async fn a_page_needs_a_token_and_health_does_not() {
    let files = Files::new();
    files.write("tokens", TOKEN);
    let relay = relay(&files, "{ address: 127.0.0.1:0, token: $tokens }").await;
    let connect = async || TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    for path in ["/", "/config_dump", "/metrics", "/api/v1/status", "/api/v1/clients", "/api/v1/clients/1"] {
        for token in [None, Some("two-0123456789abcdef"), Some("")] {
            let answer = get(connect().await, path, token).await;
            assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
            assert!(answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
        }
    }
    for path in ["/healthz", "/readyz"] {
        assert!(get(connect().await, path, None).await.starts_with("HTTP/1.1 200 "), "{path}");
    }
    let metrics = get(connect().await, "/metrics", Some(TOKEN)).await;
    assert!(metrics.contains("xds_relay_downstream_denied_total{reason=\"admin\"} 18\n"), "{metrics}");
}

#[tokio::test]
async fn what_is_wrong_in_files_is_told_to_who_may_see_what_is_in_them_and_to_others_how_much_is() {
    for (admin, is_for_all) in [("{ address: 127.0.0.1:0, token: $tokens }", false), ("127.0.0.1:0", true)] {
        let files = Files::new();
        files.write("tokens", TOKEN);
        fs::remove_file(files.path("resources/a.yaml")).unwrap();
        // Nothing is known of what an origin has that had no files as the relay began.
        let relay = relay(&files, admin).await;
        let connect = async || TcpStream::connect(relay.admin.unwrap()).await.unwrap();
        files.write("resources/secret-shop.yaml", "resources: [{}, 7]");
        let mut answer = String::new();
        while !answer.contains("secret-shop") {
            answer = get(connect().await, "/readyz", Some(TOKEN)).await;
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        }
        let to_others = get(connect().await, "/readyz", None).await;
        assert!(to_others.starts_with("HTTP/1.1 503 ") && to_others.contains("origin \"files\""), "{to_others}");
        assert_eq!(to_others.contains("secret-shop"), is_for_all, "{to_others}");
        assert_eq!(to_others.ends_with("files are not good, and the last good state is kept: 2 errors\n"), !is_for_all);
    }
}

#[tokio::test]
async fn who_has_no_origin_asked_once_more_is_told_which_can_be() {
    let files = Files::new();
    let origins =
        files.filled("[{ name: files, files: $resources }, { name: up, server: '127.0.0.1:1', authorities: [up] }]");
    let relay = Running::start(&origins).await;
    let connect = async || TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    for (query, status, words) in [
        ("", 400, "origin: expected the name of an origin, as in `?origin=NAME`"),
        ("?origin=nobody", 404, "it is not there: no origin is called `nobody`"),
        (
            "?origin=files",
            409,
            "origin `files` (files) is asked for nothing: the relay has all of it, and it cannot be compared",
        ),
    ] {
        let answer = asked(connect().await, "POST", &format!("/api/v1/drift{query}"), None).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.ends_with(&format!("{words}; those that can be asked: up\n")), "{answer}");
    }
}

/// What changes something, or costs an origin something.
const CHANGES: [&str; 3] = ["/logging?level=trace", "/log_level/trace", "/api/v1/drift?origin=files"];

#[tokio::test]
async fn a_token_for_reading_changes_nothing() {
    let files = Files::new();
    files.write("tokens", TOKEN);
    let relay = relay(&files, "{ address: 127.0.0.1:0, token: $tokens }").await;
    let connect = async || TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    assert!(get(connect().await, "/logging", Some(TOKEN)).await.starts_with("HTTP/1.1 404 "), "a program's");
    for path in CHANGES.into_iter().chain(["/ready/false", "/ready/true"]) {
        let answer = asked(connect().await, "POST", path, Some(TOKEN)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        assert!(answer.contains("admin.write_token") && answer.contains("`orders`"), "{answer}");
        let stranger = asked(connect().await, "POST", path, None).await;
        assert!(stranger.starts_with("HTTP/1.1 401 "), "{path}: {stranger}");
    }
}

#[tokio::test]
async fn a_token_for_writing_changes_and_sees_and_counts_anew_when_its_file_changes() {
    let files = Files::new();
    files.write("tokens", TOKEN);
    files.write("writers", WRITER);
    for admin in ["token: $tokens, write_token: $writers", "write_token: $writers"] {
        let relay = relay(&files, &format!("{{ address: 127.0.0.1:0, {admin} }}")).await;
        let connect = async || TcpStream::connect(relay.admin.unwrap()).await.unwrap();
        for path in CHANGES {
            let answer = asked(connect().await, "POST", path, Some(WRITER)).await;
            // A program's log is its own, and nothing asks that origin.
            let status = if path.contains("drift") { "HTTP/1.1 409 " } else { "HTTP/1.1 404 " };
            assert!(answer.starts_with(status), "{admin} {path}: {answer}");
            let reader = asked(connect().await, "POST", path, Some(TOKEN)).await;
            assert!(reader.starts_with("HTTP/1.1 403 "), "{admin} {path}: {reader}");
        }
        assert!(get(connect().await, "/metrics", Some(WRITER)).await.starts_with("HTTP/1.1 200 "));
        let expected = if admin.starts_with("token") { "HTTP/1.1 401 " } else { "HTTP/1.1 200 " };
        assert!(get(connect().await, "/metrics", None).await.starts_with(expected), "{admin}");
        files.write("writers", "two-writer-0123456789");
        let mut answer = String::new();
        while !answer.starts_with("HTTP/1.1 40") || answer.starts_with("HTTP/1.1 404 ") {
            answer = asked(connect().await, "POST", CHANGES[0], Some(WRITER)).await;
        }
        files.write("writers", WRITER);
    }
}

#[tokio::test]
async fn where_others_reach_them_the_pages_are_secured() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("tokens", TOKEN);
    files.write("ca.pem", &ca.pem);
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    let admin = "{ address: 0.0.0.0:0, token: $tokens, tls: { certificate: $server.pem, key: $server.key } }";
    let relay = relay(&files, admin).await;
    let port = relay.admin.unwrap().port();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(files.path("ca.pem")).unwrap()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(xdstp_client::tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let connect = async || {
        let io = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        connector.connect(ServerName::try_from("127.0.0.1").unwrap(), io).await.unwrap()
    };
    // One that says nothing holds up no other.
    let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    assert!(get(connect().await, "/readyz", None).await.starts_with("HTTP/1.1 200 "));
    assert!(get(connect().await, "/config_dump", None).await.starts_with("HTTP/1.1 401 "));
    assert!(get(connect().await, "/config_dump", Some(TOKEN)).await.starts_with("HTTP/1.1 200 "));
    let change = asked(connect().await, "POST", CHANGES[0], Some(TOKEN)).await;
    assert!(change.starts_with("HTTP/1.1 403 "), "{change}");
    let clear = get(TcpStream::connect(("127.0.0.1", port)).await.unwrap(), "/readyz", Some(TOKEN)).await;
    assert!(!clear.contains("200"), "{clear}");
}
