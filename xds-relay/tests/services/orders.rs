//! Orders from outside: freezing, going on, taking back; and who may not.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use xds_relay::api::{Audit, CandidateState, OrderDone, ReleaseDiff};
use xds_relay::{Config, Relay};

use crate::Running;
use crate::pages::page;
use crate::releases::{client, sent, start_with, told, write};
use crate::stream::in_time;
use crate::tls::{Authority, Files};

const TOKEN: &str = "token-0123456789abcdef";

/// A directory with resources of these names.
fn directory(names: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("resources")).unwrap();
    write(directory.path(), names);
    directory
}

/// Status and body.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, head: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let request = format!("{head}\r\nhost: localhost\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let exchange = async {
        // Who is refused early is not listened to.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        // Nor to the end, which the system tells after the answer.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    };
    let answer = in_time(exchange).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

const POST: &str = "POST /api/v1/orders HTTP/1.1\r\ncontent-type: application/json";

fn of(order: &str, more: Value) -> Value {
    let mut body = json!({ "order": order, "by": "ann", "why": "a test" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// As somebody on the same machine, who may have seen it at a mark.
pub(crate) async fn order(
    directory: &Path,
    order: &str,
    more: Value,
    mark: Option<&str>,
) -> Result<OrderDone, (u16, String)> {
    let stream = UnixStream::connect(directory.join("state/orders")).await.unwrap();
    let mark = mark.map_or_else(String::new, |mark| format!("\r\nif-match: \"{mark}\""));
    match exchange(stream, &format!("{POST}{mark}"), &of(order, more).to_string()).await {
        (200, body) => Ok(serde_json::from_str(&body).unwrap()),
        refused => Err(refused),
    }
}

#[tokio::test]
async fn what_is_ordered_is_done_kept_and_told_with_who_and_why() {
    let directory = directory(&["a"]);
    let directory = directory.path();
    let relay = start_with(directory, "").await;
    let stable = told(&relay, |scope| scope.stable.is_some()).await.stable;
    let mut canary = client(&relay, "canary").await;
    assert_eq!(sent(&mut canary, None).await, "a");

    // What is new waits while there is a freeze, and canaries get it when that ends.
    let frozen = order(directory, "freeze", json!({}), None).await.unwrap();
    assert_eq!((&*frozen.done, frozen.is_kept, &*frozen.scope), ("frozen", true, "old-style"));
    write(directory, &["a", "b"]);
    let waits = told(&relay, |scope| scope.candidate.is_some()).await;
    assert_eq!(waits.candidate.as_ref().unwrap().state, CandidateState::Frozen);
    assert_eq!((waits.clients.stable, waits.clients.candidate), (1, 0));
    let user = waits.frozen.unwrap();
    assert!(user.by.starts_with("ann (uid ") && user.why == "a test", "{user:?}");
    assert_eq!(order(directory, "unfreeze", json!({}), None).await.unwrap().done, "unfrozen");
    assert_eq!(sent(&mut canary, None).await, "b");

    let (_, diff) = page(&relay, "/api/v1/releases/diff").await;
    let diff: ReleaseDiff = serde_json::from_str(&diff).unwrap();
    let added: Vec<_> = diff.added.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!((added, diff.changed.len(), diff.removed.len(), diff.more), (vec!["b"], 0, 0, 0));
    assert_eq!(order(directory, "hold", json!({}), None).await.unwrap().done, "held");
    let error = order(directory, "stage", json!({ "stage": 2 }), None).await.unwrap_err();
    assert_eq!(error, (409, "there is no stage 2: there are 1\n".to_owned()));
    assert_eq!(order(directory, "promote", json!({}), None).await.unwrap().done, "promoted");
    let promoted = told(&relay, |scope| scope.candidate.is_none() && scope.stable != stable).await;

    // Back to what was, which clients are told.
    let done = order(directory, "rollback", json!({ "to": stable }), Some(&promoted.mark)).await.unwrap();
    assert_eq!(done.done, "rolled back");
    let rolled_back = told(&relay, |scope| scope.stable == stable).await;
    assert_eq!((&rolled_back.refused, &rolled_back.mark), (&vec![promoted.stable.unwrap()], &done.mark));
    assert_eq!(sent(&mut client(&relay, "web").await, None).await, "a");

    let (_, audit) = page(&relay, "/api/v1/audit?limit=4").await;
    let Audit { entries, more, .. } = serde_json::from_str(&audit).unwrap();
    let said: Vec<_> = entries.iter().map(|entry| entry.done.as_str()).collect();
    assert_eq!(said, ["rolled back", "promoted", "held", "unfrozen"]);
    assert!(entries.iter().all(|entry| entry.by == user.by && entry.why == "a test" && entry.release.is_some()));
    assert_eq!(more, 4, "taken over, promoted, frozen, waits");
    assert_eq!((&entries[0].release, entries[0].number), (&stable, 7));
    let taken_back: Vec<_> = entries.iter().map(|entry| entry.taken_back.clone()).collect();
    assert_eq!(taken_back, [Some(rolled_back.refused[0].clone()), None, None, None], "what was stable");
}

#[tokio::test]
async fn an_order_as_the_documentation_has_it_is_done() {
    let directory = directory(&["a"]);
    let directory = directory.path();
    let relay = start_with(directory, "").await;
    told(&relay, |scope| scope.stable.is_some()).await;
    let readme = include_str!("../../README.md");
    let mut orders =
        readme.lines().filter_map(|line| line.strip_prefix("$ curl --unix-socket state/orders http://localhost"));
    let order = orders.next().unwrap();
    let [path, header, body] =
        [order.split(' ').next(), order.split('\'').nth(1), order.split('\'').nth(3)].map(Option::unwrap);
    let request = format!("POST {path} HTTP/1.1");
    let send = async |head: &str| {
        let stream = UnixStream::connect(directory.join("state/orders")).await.unwrap();
        exchange(stream, head, body).await
    };
    let (status, words) = send(&request).await;
    assert!(status == 415 && words.contains("Content-Type: application/json"), "{status} {words}");
    let (status, done) = send(&format!("{request}\r\n{header}")).await;
    assert_eq!((status, serde_json::from_str::<OrderDone>(&done).unwrap().done.as_str()), (200, "frozen"));
}

#[tokio::test]
async fn an_order_about_what_has_changed_since_it_was_looked_at_is_not_done() {
    let directory = directory(&["a"]);
    let directory = directory.path();
    let relay = start_with(directory, "").await;
    let seen = told(&relay, |scope| scope.stable.is_some()).await.mark;
    order(directory, "freeze", json!({}), Some(&seen)).await.unwrap();
    let now = told(&relay, |scope| scope.frozen.is_some()).await.mark;
    for mark in [&*seen, "0", "x"] {
        let (status, words) = order(directory, "unfreeze", json!({}), Some(mark)).await.unwrap_err();
        assert_eq!((status, words), (412, format!("something was done since you looked: it is at {now} now\n")));
    }
    let told = told(&relay, |_| true).await;
    assert!(told.frozen.is_some() && told.mark == now);
    order(directory, "unfreeze", json!({}), Some(&now)).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_changes_nothing() {
    let directory = directory(&["a"]);
    let directory = directory.path();
    let relay = start_with(directory, "").await;
    let before = told(&relay, |scope| scope.stable.is_some()).await;
    let unknown = "0".repeat(32);
    for (name, more, status, words) in [
        ("unfreeze", json!({}), 409, "nothing is frozen\n"),
        ("hold", json!({}), 409, "there is no release under way\n"),
        ("promote", json!({}), 409, "there is no release under way\n"),
        ("stage", json!({}), 400, "stage: expected which, from 1\n"),
        ("stage", json!({ "stage": 0 }), 400, "stage: expected which, from 1\n"),
        ("freeze", json!({ "stage": 1 }), 400, "stage: only a stage has one\n"),
        ("freeze", json!({ "to": unknown }), 400, "to: only a rollback has one\n"),
        ("rollback", json!({ "to": "x" }), 400, "`x`: expected the id of a release: 32 hexadecimal digits\n"),
        ("rollback", json!({ "to": unknown }), 404, &*format!("release {unknown} is not kept\n")),
        ("freeze", json!({ "scope": "xdstp://a" }), 404, "there are no releases of xdstp://a\n"),
        ("freeze", json!({ "by": " " }), 400, "by: empty; expected who wants it, and why: that is kept\n"),
        ("freeze", json!({ "why": "" }), 400, "why: empty; expected who wants it, and why: that is kept\n"),
        ("freeze", json!({ "why": "a\nb" }), 400, "why: expected one line of up to 1024 bytes\n"),
        ("freeze", json!({ "by": "a".repeat(65) }), 400, "by: expected one line of up to 64 bytes\n"),
    ] {
        assert_eq!(order(directory, name, more, None).await.unwrap_err(), (status, words.to_owned()), "{name}");
    }
    for (body, status) in [("{", 400), ("{}", 422), (r#"{ "order": "melt", "by": "a", "why": "b" }"#, 422)] {
        let stream = UnixStream::connect(directory.join("state/orders")).await.unwrap();
        assert_eq!(exchange(stream, POST, body).await.0, status, "{body}");
    }
    let large = of("freeze", json!({ "more": "a".repeat(1 << 20) })).to_string();
    let stream = UnixStream::connect(directory.join("state/orders")).await.unwrap();
    assert_eq!(exchange(stream, POST, &large).await.0, 413);
    assert_eq!(told(&relay, |_| true).await, before);
    let (status, words) = page(&relay, "/api/v1/releases/diff").await;
    assert_eq!((status, &*words), (404, "there is nothing to compare: no release is under way, and none is named\n"));
}

#[tokio::test]
async fn who_may_not_order_is_told_so_and_pages_take_no_orders() {
    let directory = directory(&["a"]);
    let directory = directory.path();
    fs::write(directory.join("tokens"), TOKEN).unwrap();
    let text = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\norigins: [{ name: files, files: resources }]\n\
        state: { path: state }\nrollout: [{ scope: old-style, settle: 0s }]\n\
        orders: { address: '127.0.0.1:0', token: tokens }\n";
    let relay = Relay::bind(Config::parse(directory.join("relay.yaml"), text).unwrap()).await.unwrap();
    let at = relay.orders_address().unwrap().and_then(|at| at.tcp()).unwrap();
    let relay = Running::run(relay);
    let is = |scope: &xds_relay::api::ReleasedScope| scope.stable.is_some();
    told(&relay, is).await;
    let freeze = of("freeze", json!({})).to_string();
    let bearer = format!("\r\nauthorization: Bearer {TOKEN}");
    for (more, status) in [
        ("", 401),
        ("\r\nauthorization: Bearer token-fedcba9876543210", 401),
        (&*format!("{bearer}\r\norigin: http://evil.example"), 403),
        (&*format!("{bearer}\r\nsec-fetch-site: cross-site"), 403),
        (&*format!("{bearer}\r\nif-match: 1"), 400),
        (&*format!("{bearer}\r\nif-match: \"1\"\r\nif-match: \"2\""), 400),
    ] {
        let stream = TcpStream::connect(at).await.unwrap();
        assert_eq!(exchange(stream, &format!("{POST}{more}"), &freeze).await.0, status, "{more}");
    }
    for (head, status) in [("GET /api/v1/orders HTTP/1.1", 405), ("POST /api/v1/releases HTTP/1.1", 405)] {
        let stream = TcpStream::connect(at).await.unwrap();
        assert_eq!(exchange(stream, &format!("{head}{bearer}"), &freeze).await.0, status, "{head}");
    }
    // The pages show only, whoever asks.
    let stream = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    assert_eq!(exchange(stream, &format!("{POST}{bearer}"), &freeze).await.0, 404);
    assert_eq!(told(&relay, |_| true).await.frozen, None);
    let stream = TcpStream::connect(at).await.unwrap();
    assert_eq!(exchange(stream, &format!("{POST}{bearer}"), &freeze).await.0, 200);
    // Who orders may change what the pages of others show only: here, what is logged is not the relay's to say.
    let stream = TcpStream::connect(at).await.unwrap();
    assert_eq!(exchange(stream, &format!("POST /logging?level=debug HTTP/1.1{bearer}"), "").await.0, 404);
    // Nothing shows who it was but the name.
    assert_eq!(told(&relay, |scope| scope.frozen.is_some()).await.frozen.unwrap().by, "ann (by a token)");
    let (_, metrics) = page(&relay, "/metrics").await;
    assert!(metrics.contains("xds_relay_downstream_denied_total{reason=\"admin\"} 2\n"), "{metrics}");

    // By which names it is reached counts anew, and so do its tokens.
    let at_host = async |host: &str, token: &str| {
        let head = format!("{POST}\r\nauthorization: Bearer {token}\r\nhost: {host}\r\ncontent-length: 2\r\n\r\n{{}}");
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        in_time(stream.read_exact(&mut answer)).await.unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    assert_eq!([at_host("localhost", TOKEN).await, at_host("evil.example", TOKEN).await], ["422", "421"]);
    let mut config = relay.reloader.config();
    config.admin_hosts = vec!["relay.example".to_owned()];
    relay.reloader.apply(config).unwrap();
    assert_eq!([at_host("localhost", TOKEN).await, at_host("relay.example", TOKEN).await], ["421", "422"]);
    fs::write(directory.join("tokens"), "another-0123456789abcdef").unwrap();
    in_time(async { while at_host("relay.example", TOKEN).await != "401" {} }).await;
    assert_eq!(at_host("relay.example", "another-0123456789abcdef").await, "422");
}

#[tokio::test]
async fn the_socket_of_orders_is_for_the_user_of_the_relay_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = directory(&["a"]);
    let mut relay = start_with(directory.path(), "").await;
    let socket = directory.path().join("state/orders");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    relay.stop();
    relay.stopped().await;
    assert!(!socket.exists(), "it goes with the relay");
    let relay = start_with(directory.path(), "orders: none").await;
    assert!(!socket.exists());
    let (_, told) = page(&relay, "/api/v1/releases").await;
    assert!(!told.contains("orders"), "{told}");
}

#[tokio::test]
async fn an_order_that_does_not_say_what_it_is_written_in_is_told_what_to_send() {
    let directory = directory(&["a"]);
    let _relay = start_with(directory.path(), "").await;
    let order = "{\"order\": \"freeze\", \"by\": \"ann\", \"why\": \"a quiet weekend\"}";
    let form = "content-type: application/x-www-form-urlencoded";
    for (path, content_type, words) in [
        ("/api/v1/orders", "", "an order is JSON and says so: expected `Content-Type: application/json` and, say, `{"),
        (
            "/api/v1/orders",
            form,
            "an order is JSON and says so: expected `Content-Type: application/json` and, say, `{",
        ),
        (
            "/releases",
            "content-type: application/json",
            "Programs send their orders to /api/v1/orders, as application/json.",
        ),
    ] {
        let stream = UnixStream::connect(directory.path().join("state/orders")).await.unwrap();
        let site = if path == "/releases" { "sec-fetch-site: same-origin" } else { "accept: */*" };
        let content_type = if content_type.is_empty() { "accept-language: en" } else { content_type };
        let head = format!("POST {path} HTTP/1.1\r\n{content_type}\r\n{site}");
        let (status, answer) = exchange(stream, &head, order).await;
        assert!(status == 415 && answer.contains(words), "{path} {content_type}: {status} {answer}");
    }
}

/// A form on a page, as a browser sends it.
async fn press(directory: &Path, site: &str, form: &str) -> (u16, String) {
    let stream = UnixStream::connect(directory.join("state/orders")).await.unwrap();
    let head = "POST /releases HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded\r\norigin: null";
    exchange(stream, &format!("{head}\r\nsec-fetch-site: {site}"), form).await
}

#[tokio::test]
async fn where_orders_are_taken_the_pages_have_buttons_and_a_form_of_another_site_presses_none() {
    let directory = directory(&["a"]);
    let directory = directory.path();
    let relay = start_with(directory, "").await;
    told(&relay, |scope| scope.stable.is_some()).await;
    write(directory, &["<b>", "a"]);
    let seen = told(&relay, |scope| scope.candidate.is_some()).await;
    let get = async |path: &str| {
        let stream = UnixStream::connect(directory.join("state/orders")).await.unwrap();
        exchange(stream, &format!("GET {path} HTTP/1.1"), "").await
    };
    let (status, html) = get("/releases").await;
    assert_eq!(status, 200, "{html}");
    assert!(!html.contains("rollback --to"), "there is none to go back to: {html}");
    for words in ["<form", "value=\"freeze\"", "value=\"rollback\"", "cluster: canary", "aria-current=\"step\""] {
        assert!(html.contains(words), "{words}: {html}");
    }
    let command = format!("xds relay rollout promote --scope old-style --mark {} --why", seen.mark);
    assert!(html.contains(&command), "{html}");
    let (_, shown) = page(&relay, "/releases").await;
    assert!(shown.contains(&command) && !shown.contains("<form") && shown.contains("Orders are taken at"), "{shown}");
    let (status, diff) = page(&relay, "/releases/diff").await;
    assert!(status == 200 && diff.contains("&lt;b&gt;") && !diff.contains("<b>"), "{diff}");

    let form = format!("scope=old-style&mark={}&order=promote&by=ann&why=a+test", seen.mark);
    for (site, form, status) in [
        ("cross-site", form.as_str(), 403),
        ("same-site", &form, 403),
        ("same-origin", "order=promote", 422),
        ("same-origin", &form.replace("ann", ""), 400),
        ("same-origin", &form.replace(&format!("mark={}", seen.mark), "mark=1"), 412),
        ("same-origin", &form.replace("promote", "unfreeze"), 409),
    ] {
        let (is, html) = press(directory, site, form).await;
        assert_eq!(is, status, "{form}: {html}");
        assert!(html.contains("It is not done"), "{html}");
    }
    assert_eq!(told(&relay, |_| true).await.candidate, seen.candidate);
    assert_eq!(press(directory, "same-origin", &form).await.0, 303);
    assert_eq!(told(&relay, |scope| scope.candidate.is_none()).await.stable, Some(seen.candidate.unwrap().release));
    let (_, audit) = page(&relay, "/audit").await;
    assert!(audit.contains("promoted") && audit.contains("a test") && audit.contains("ann (uid "), "{audit}");
    // And back to the one before.
    let first = seen.stable.as_deref().unwrap();
    let promoted = told(&relay, |_| true).await;
    let (_, html) = get("/releases").await;
    let command = format!("xds relay rollback --to {first} --scope old-style --mark {} --why", promoted.mark);
    let button = format!("<input type=\"hidden\" name=\"to\" value=\"{first}\">");
    assert!(html.matches(&command).count() == 1 && html.matches(&button).count() == 1, "{html}");
    let back = format!("scope=old-style&mark={}&order=rollback&to={first}&by=ann&why=a+test", promoted.mark);
    assert_eq!(press(directory, "same-origin", &back).await.0, 303);
    assert_eq!(told(&relay, |_| true).await.stable.as_deref(), Some(first));
    // The pages that only show take none.
    let stream = TcpStream::connect(relay.admin.unwrap()).await.unwrap();
    assert_eq!(exchange(stream, "POST /releases HTTP/1.1\r\nsec-fetch-site: same-origin", &form).await.0, 405);
}

#[tokio::test]
async fn over_tls_who_shows_no_certificate_orders_nothing_and_whose_it_is_is_noted() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    let text = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\norigins: [{ name: files, files: $resources }]\n\
        state: { path: $state }\nrollout: [{ scope: old-style, settle: 0s }]\n\
        orders: { address: '0.0.0.0:0', tls: { certificate: $server.pem, key: $server.key, client_ca: $ca.pem } }\n";
    let relay = Relay::bind(Config::parse("relay.yaml", &files.filled(text)).unwrap()).await.unwrap();
    let port = relay.orders_address().unwrap().and_then(|at| at.tcp()).unwrap().port();
    let relay = Running::run(relay);
    told(&relay, |scope| scope.stable.is_some()).await;
    let connect = async |identity: Option<(String, String)>| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(xdstp_client::tls::provider());
        let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        let io = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("127.0.0.1").unwrap(), io).await
    };
    let freeze = of("freeze", json!({})).to_string();
    for stranger in [None, Some(Authority::new("others").vouches_for("ci", None))] {
        // By TLS 1.3 who is refused hears of it as he reads.
        if let Ok(mut io) = in_time(connect(stranger)).await {
            let _ =
                io.write_all(format!("{POST}\r\ncontent-length: {}\r\n\r\n{freeze}", freeze.len()).as_bytes()).await;
            let mut answer = Vec::new();
            let _ = in_time(io.read_to_end(&mut answer)).await;
            assert!(answer.is_empty(), "{answer:?}");
        }
    }
    assert_eq!(told(&relay, |_| true).await.frozen, None);
    let ci = ca.vouches_for_uri("spiffe://example.com/ci");
    let (status, words) = exchange(in_time(connect(Some(ci))).await.unwrap(), POST, &freeze).await;
    assert_eq!(status, 200, "{words}");
    assert_eq!(told(&relay, |scope| scope.frozen.is_some()).await.frozen.unwrap().by, "ann (spiffe://example.com/ci)");
}
