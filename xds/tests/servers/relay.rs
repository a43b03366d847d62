use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};
use tempfile::TempDir;
use xds_relay::config::Address;
use xds_relay::{Config, Relay};

use super::cli::Run;
use super::origin::{Origin, Scene, nobody};
use super::watch::Watching;
use super::{CDS, objects, run};

const RULES: &str = "
fragments:
- rules:
  - {match: {request_node_match: {cluster_match: {exact_match: edge}}}, result: {string_fragment: edge}}
  - {match: {any_match: true}, result: {string_fragment: others}}
";

/// A relay with an origin and with files, which runs for as long as the tests do.
struct Running {
    _directory: TempDir,
    server: String,
    admin: String,
}

impl Running {
    fn start(origin: &str, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        fs::create_dir(directory.path().join("files")).unwrap();
        write("rules.yaml", RULES);
        let cluster = format!("{{ '@type': {CDS}, name: 'xdstp://mesh/envoy.config.cluster.v3.Cluster/a' }}");
        let secret = "{ '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: 'xdstp://mesh/\
                      envoy.extensions.transport_sockets.tls.v3.Secret/s', generic_secret: { secret: { inline_string: sesame } } }";
        write("files/a.yaml", &format!("resources:\n- {cluster}\n- {secret}\n"));
        let config = format!(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\naggregation: rules.yaml\n{more}\norigins:\n\
             - {{ name: up, server: '{origin}' }}\n- {{ name: mesh, files: files, authorities: [mesh] }}\n"
        );
        let file = directory.path().join("relay.yaml");
        let (addresses, serving) = mpsc::channel::<(Address, Address)>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let relay = Relay::bind(Config::parse(file, &config).unwrap()).await.unwrap();
                addresses.send((relay.listen_address().unwrap(), relay.admin_address().unwrap().unwrap())).unwrap();
                relay.run(std::future::pending()).await
            })
        });
        let (server, admin) = serving.recv().unwrap();
        Self { _directory: directory, server: server.to_string(), admin: admin.to_string() }
    }

    fn told(&self, args: &[&str]) -> Run {
        run(&[&["relay", "--admin", &self.admin], args].concat())
    }

    /// The same once it is what is waited for.
    fn told_once(&self, args: &[&str], done: impl Fn(&Run) -> bool) -> Run {
        (0..1000).map(|_| self.told(args)).find(done).unwrap_or_else(|| panic!("{args:?}"))
    }
}

#[test]
fn a_relay_is_told_of_with_its_clients_and_why_they_have_what_they_have() {
    let origin = Origin::play(&[Scene::clusters(&["web"])]);
    let relay = Running::start(&origin.address(), "");
    let status = relay.told(&["status"]);
    assert_eq!((status.code, &*status.err), (0, ""));
    assert!(status.out.contains("\nready\n0 clients: 0 synced, 0 waiting, 0 silent, 0 rejected\n"), "{}", status.out);
    assert!(status.out.contains("up      delta  idle   0/0"), "{}", status.out);
    assert_eq!(relay.told(&["clients"]).code, 1);

    let mut watching =
        Watching::start(&["--server", &relay.server, "--node", "n1", "--cluster", "c1", "cluster", "web"]);
    watching.line();
    let clients = relay.told_once(&["clients", "--state", "synced", "-o", "json"], |run| run.code == 0);
    let client = &objects(&clients)[0];
    for (key, value) in [
        ("node", json!("n1")),
        ("cluster", json!("c1")),
        ("protocol", json!("delta")),
        ("groups", json!(["others"])),
        ("types", json!([CDS])),
        ("state", json!("SYNCED")),
    ] {
        assert_eq!(client[key], value, "{client}");
    }
    let table = relay.told(&["clients", "--node", "n1"]);
    assert!(table.out.lines().nth(1).unwrap().contains("  n1    c1       SYNCED  "), "{}", table.out);
    assert_eq!(relay.told(&["clients", "--search", "nobody"]).code, 1);

    let id = format!("#{}", client["id"]);
    for who in ["n1", &id] {
        let explained = relay.told(&["explain", who, "cluster", "web"]);
        assert_eq!((explained.code, &*explained.err), (0, ""));
        for words in [
            "The client asked for it by its name.",
            "fragment 1, rule 1 (line 4) not matched: cluster is \"c1\", not \"edge\"",
            "fragment 1, rule 2 (line 5) matched: others",
            "It is held in the scope \"others\".",
            "It comes from the origin \"up\" (delta).",
            "Its version is \"v1\".",
            "The client was sent that, and accepted it.",
        ] {
            assert!(explained.out.contains(words), "{words}: {}", explained.out);
        }
    }
    let other = relay.told(&["explain", "n1", "cluster", "other", "-o", "json"]);
    let explained = &objects(&other)[0]["explained"];
    assert_eq!((other.code, &explained["known"], explained.get("wanted_as")), (1, &json!(false), None));
    let nobody = relay.told(&["explain", "n2", "cluster", "web"]);
    assert_eq!((nobody.code, &*nobody.err), (1, "xds: there is no client n2\n"));
}

#[test]
fn drift_is_what_an_origin_says_otherwise_to_who_asks_it_anew() {
    let first = Scene::clusters(&["same", "web"]);
    let origin = Origin::play(&[first.clone(), first, Scene::with(&[("same", &[]), ("web", &[0x20, 3])])]);
    let relay = Running::start(&origin.address(), "");
    let mut watching = Watching::start(&["--server", &relay.server, "--node", "n1", "cluster", "same", "web"]);
    watching.line();
    watching.line();
    let none = relay.told(&["drift", "up"]);
    assert_eq!((none.code, &*none.err), (0, ""));
    assert!(none.out.starts_with("others: 2 the same, 0 differ\n1 clients: "), "{}", none.out);

    let drift = relay.told(&["drift", "up", "--type", "cluster", "-o", "json"]);
    let told = &objects(&drift)[0]["scopes"][0];
    assert_eq!((drift.code, &told["scope"], &told["same"]), (1, &json!("others"), &json!(1)), "{}", drift.out);
    assert_eq!(told["drifts"], json!([{ "type_url": CDS, "name": "web", "served": "v1", "at_origin": "v1" }]));
    let table = relay.told(&["drift", "up", "--scope", "others"]);
    assert_eq!(table.code, 1);
    assert!(
        table.out.contains("\nothers  Cluster  web   v1      v1, other content\n\nothers: 1 the same, 1 differ\n"),
        "{}",
        table.out
    );
    assert_eq!(relay.told(&["drift", "up", "--scope", "nobody"]).out.lines().next(), Some("nothing is asked of it"));
    for (no_streams, words) in [
        ("mesh", "origin `mesh` (files) is asked for nothing: the relay has all of it, and it cannot be compared"),
        ("nobody", "no origin is called `nobody`"),
    ] {
        let run = relay.told(&["drift", no_streams]);
        assert_eq!((run.code, run.err), (1, format!("xds: {words}; those that can be asked: up\n")));
    }
}

#[test]
fn resources_are_listed_and_shown_without_secrets() {
    let origin = Origin::play(&[Scene::clusters(&["web"])]);
    let relay = Running::start(&origin.address(), "");
    let mut watching = Watching::start(&["--server", &relay.server, "--node", "n1", "cluster", "web"]);
    watching.line();
    let listed = relay.told(&["resources", "-o", "json"]);
    let listed: Vec<Value> = objects(&listed);
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(listed.iter().any(|row| row["name"] == "web" && row["scope"] == "others" && row["version"] == "v1"));
    let found = relay.told(&["resources", "cluster", "--search", "we"]);
    assert!(found.code == 0 && found.out.lines().count() == 2, "{}", found.out);
    assert_eq!(relay.told(&["resources", "listener"]).code, 1);
    let first = relay.told(&["resources", "--limit", "1"]);
    assert_eq!(
        (first.out.lines().count(), &*first.err),
        (2, "xds: there are more: --limit says how many are listed\n")
    );

    let web = relay.told(&["resources", "cluster", "--name", "web"]);
    assert_eq!(web.code, 0);
    for words in ["version    v1\n", "scope      others\n", "wanted by  n1 (#", "as web\n", "\nname: web\n"] {
        assert!(web.out.contains(words), "{words}: {}", web.out);
    }
    let name = "xdstp://mesh/envoy.extensions.transport_sockets.tls.v3.Secret/s";
    for form in ["text", "json"] {
        let secret = relay.told(&["resources", "secret", "--name", name, "-o", form]);
        assert!(secret.code == 0 && !secret.out.contains("sesame"), "{}", secret.out);
    }
    let none = relay.told(&["resources", "cluster", "--name", "none"]);
    assert_eq!((none.code, &*none.err), (1, "xds: the relay holds no Cluster none\n"));
}

#[test]
fn a_relay_that_is_not_ready_is_1_and_one_that_cannot_be_asked_is_3() {
    let relay = Running::start(&nobody(), "ready_when: origins");
    let status = relay.told(&["status"]);
    assert_eq!(status.code, 1);
    assert!(status.out.contains("\nnot ready: origin \"up\" ("), "{}", status.out);
    assert_eq!(objects(&relay.told(&["status", "-o", "json"]))[0]["ready"], false);

    let address = nobody();
    let away = run(&["relay", "--admin", &address, "status"]);
    assert_eq!((away.code, &*away.out), (3, ""));
    assert!(away.err.starts_with(&format!("xds: no answer from the relay at {address}: ")), "{}", away.err);
    // Where xDS is served.
    let other = run(&["relay", "--admin", &relay.server, "status"]);
    assert_eq!(other.code, 3, "{}", other.err);
    for args in [&["relay", "--admin", "x", "status"][..], &["relay"], &["relay", "resources", "--name", "x"]] {
        assert_eq!(run(args).code, 2, "{args:?}");
    }
}

#[test]
fn whatever_answers_is_one_answer_and_silence_is_none() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let waited = run(&["relay", "--admin", &address, "--timeout", "0.2", "status"]);
    assert_eq!((waited.code, waited.err.contains("timed out")), (3, true), "{}", waited.err);

    let answering = |answer: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer.as_bytes());
        });
        run(&["relay", "--admin", &address, "status"])
    };
    for (answer, words) in [
        ("SSH-2.0-OpenSSH\r\n\r\n", "that is no HTTP"),
        ("HTTP/1.1 404 Not Found\r\n\r\nnothing \u{1b}[2Jhere", "HTTP 404: nothing \\u{1b}[2Jhere"),
        ("HTTP/1.1 200 OK\r\n\r\n<html>", "expected value"),
    ] {
        let run = answering(answer);
        assert_eq!((run.code, &*run.out), (3, ""));
        assert!(run.err.contains(words), "{}", run.err);
    }
}

#[test]
fn a_certificate_that_has_expired_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    fs::write(path("a.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(path("a.key"), key.serialize_pem()).unwrap();
    let tls = format!("tls: {{ certificate: {}, key: {} }}", path("a.pem"), path("a.key"));
    let relay = Running::start(&nobody(), &tls);
    let status = relay.told_once(&["status"], |run| run.out.contains("tls.certificate"));
    let line = status.out.lines().find(|line| line.contains("tls.certificate")).unwrap();
    assert!(line.starts_with("tls.certificate is expired: it expired "), "{line}");
    assert!(line.ends_with(&format!("d ago ({})", path("a.pem"))), "{line}");
}

#[cfg(unix)]
#[test]
fn an_admin_socket_is_spoken_to_by_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 1024];
        let many = stream.read(&mut asked).unwrap();
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n{\"ready\": true, \"version\": \"9\", \"new\": 1}").unwrap();
        String::from_utf8(asked[..many].to_vec()).unwrap()
    });
    let run = run(&["relay", "status", "--admin", &format!("unix:{}", path.display()), "-o", "json"]);
    assert_eq!((run.code, objects(&run)), (0, vec![json!({ "ready": true, "version": "9", "new": 1 })]));
    assert!(serving.join().unwrap().starts_with("GET /api/v1/status HTTP/1.0\r\n"));
}
