//! TLS on both sides, over loopback: who is taken for whom, and what those are told who are not.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use xds_relay::api::{CertificateState, Status};
use xds_relay::{Config, Relay};
use xds_transport::wire::Node;
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::tls::Tls;
use xdstp_client::{Backoff, Client, Endpoint, Error, Event, Watch};

use super::Running;
use crate::pages::page;
use crate::stream::in_time;

pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A directory with certificates, keys and resources.
pub(crate) struct Files(TempDir);

/// Somebody who vouches for others.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key.
    pub(crate) fn vouches_for(&self, name: &str, until: Option<(i32, u8, u8)>) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if let Some((year, month, day)) = until {
            params.not_after = rcgen::date_time_ymd(year, month, day);
        }
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

impl Authority {
    /// The same for a URI.
    pub(crate) fn vouches_for_uri(&self, uri: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.subject_alt_names.push(rcgen::SanType::URI(uri.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

impl Files {
    pub(crate) fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::create_dir(files.path("resources")).unwrap();
        files.serve(1);
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// NAME.pem and NAME.key.
    pub(crate) fn identity(&self, name: &str, (certificate, key): (String, String)) {
        self.write(&format!("{name}.pem"), &certificate);
        self.write(&format!("{name}.key"), &key);
    }

    /// One cluster, of so many seconds.
    fn serve(&self, seconds: u32) {
        let text = format!("resources: [{{ '@type': {CDS}, name: a, connect_timeout: {seconds}s }}]");
        let (written, served) = (self.path("resources.new"), self.path("resources/a.yaml"));
        fs::write(&written, text).unwrap();
        fs::rename(written, served).unwrap();
    }

    /// A relay that serves the cluster.
    pub(crate) async fn relay(&self, tls: &str) -> Running {
        let origins = format!("[{{ name: files, files: {} }}]", self.path("resources").display());
        Running::start_with(&origins, &format!("tls: {}", self.filled(tls))).await
    }

    /// With the directory in place of `$`.
    pub(crate) fn filled(&self, text: &str) -> String {
        text.replace('$', &format!("{}/", self.0.path().display()))
    }

    /// Who trusts `ca`, and has the identity of NAME.pem.
    pub(crate) fn tls(&self, ca: &str, identity: Option<&str>) -> Tls {
        let mut files = TlsFiles::default();
        files.ca_certificate = Some(self.path(ca));
        files.identity = identity.map(|name| (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key"))));
        Tls::from_files(files)
    }
}

pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    let at_once = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    Endpoint::new(&address.to_string()).unwrap().with_backoff(at_once)
}

pub(crate) fn watch(address: SocketAddr, tls: Tls) -> Watch {
    Client::connect(endpoint(address).with_tls(tls)).watch(CDS, "a")
}

pub(crate) async fn version_of(watch: &mut Watch) -> String {
    loop {
        match watch.changed().await {
            Event::Put { version, .. } => return version.to_string(),
            // It is tried on.
            Event::Failed { name: None, .. } | Event::Ambient { .. } => {}
            event => panic!("{event:?}"),
        }
    }
}

/// Why there is no stream.
pub(crate) async fn why_not(endpoint: Endpoint) -> String {
    let client = Client::connect(endpoint);
    match client.watch(CDS, "a").changed().await {
        Event::Failed { error: Error::Unreachable { reason, .. }, .. } => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn relays_and_a_client_that_all_show_certificates() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    files.identity("far", ca.vouches_for("far.example.com", None));
    files.identity("near", ca.vouches_for("127.0.0.1", None));
    files.identity("client", ca.vouches_for("client.example.com", None));

    let far = files.relay("{ certificate: $far.pem, key: $far.key, client_ca: $ca.pem }").await;
    let origin = "{ ca: $ca.pem, certificate: $near.pem, key: $near.key, server_name: far.example.com }";
    let origins = format!("[{{ name: far, server: '{}', tls: {} }}]", far.address, files.filled(origin));
    let tls = files.filled("tls: { certificate: $near.pem, key: $near.key, client_ca: $ca.pem }");
    let near = Running::start_with(&origins, &tls).await;

    let mut clusters = watch(near.address, files.tls("ca.pem", Some("client")));
    let first = version_of(&mut clusters).await;
    files.serve(2);
    assert_ne!(version_of(&mut clusters).await, first, "an update goes all the way");
}

#[tokio::test]
async fn who_is_not_vouched_for_is_refused_with_words() {
    let (files, ca, stranger) = (Files::new(), Authority::new("ours"), Authority::new("stranger"));
    files.write("ca.pem", &ca.pem);
    files.write("stranger.pem", &stranger.pem);
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    files.identity("unknown", stranger.vouches_for("client", None));
    files.identity("late", ca.vouches_for("client", Some((2001, 1, 1))));

    let relay = files.relay("{ certificate: $server.pem, key: $server.key, client_ca: $ca.pem }").await;
    let secure = |ca, identity| endpoint(relay.address).with_tls(files.tls(ca, identity));
    for (endpoint, words) in [
        (secure("ca.pem", None), "CertificateRequired"),
        (secure("ca.pem", Some("unknown")), "UnknownCA"),
        (secure("ca.pem", Some("late")), "CertificateExpired"),
        (secure("stranger.pem", None), "UnknownIssuer"),
        (secure("none.pem", None), "none.pem: No such file"),
        (endpoint(relay.address), "it speaks TLS, and was spoken to in clear text"),
    ] {
        let said = why_not(endpoint).await;
        assert!(said.contains(words), "{words}: {said}");
    }
    let other = files.tls("ca.pem", None).with_server_name("other.example.com").unwrap();
    let said = why_not(endpoint(relay.address).with_tls(other)).await;
    assert!(said.contains("other.example.com"), "{said}");

    files.identity("server", ca.vouches_for("127.0.0.1", Some((2001, 1, 1))));
    let late = files.relay("{ certificate: $server.pem, key: $server.key }").await;
    let said = why_not(endpoint(late.address).with_tls(files.tls("ca.pem", None))).await;
    assert!(said.contains("expired"), "{said}");

    let clear = Running::start(&format!("[{{ name: files, files: {} }}]", files.path("resources").display())).await;
    let said = why_not(endpoint(clear.address).with_tls(files.tls("ca.pem", None))).await;
    assert!(said.contains("it does not speak TLS: http://") && said.contains("InvalidContentType"), "{said}");
}

/// As Kubernetes replaces what it mounts: a link to the directory of the files is moved.
#[cfg(unix)]
#[tokio::test]
async fn certificates_that_are_replaced_count_for_new_connections_and_open_streams_go_on() {
    let files = Files::new();
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    for (generation, authority) in [("1", &before), ("2", &after)] {
        fs::create_dir(files.path(generation)).unwrap();
        files.write(&format!("{generation}/ca.pem"), &authority.pem);
        files.identity(&format!("{generation}/server"), authority.vouches_for("127.0.0.1", None));
        files.identity(&format!("{generation}/client"), authority.vouches_for("client", None));
    }
    let link = |generation: &str| {
        std::os::unix::fs::symlink(files.path(generation), files.path("link.new")).unwrap();
        fs::rename(files.path("link.new"), files.path("now")).unwrap();
    };
    link("1");
    let tls = "{ certificate: $now/server.pem, key: $now/server.key, client_ca: $now/ca.pem }";
    let relay = files.relay(tls).await;
    let mut old = watch(relay.address, files.tls("1/ca.pem", Some("1/client")));
    let first = version_of(&mut old).await;

    link("2");
    // It tries until it is taken.
    let mut new = watch(relay.address, files.tls("2/ca.pem", Some("2/client")));
    assert_eq!(version_of(&mut new).await, first);
    let said = why_not(endpoint(relay.address).with_tls(files.tls("1/ca.pem", Some("1/client")))).await;
    assert!(said.contains("UnknownIssuer"), "{said}");
    files.serve(2);
    assert_ne!(version_of(&mut old).await, first);
    assert_ne!(version_of(&mut new).await, first);
}

/// As Kubernetes replaces what it mounts, for whoever connects: files are those of the next connection, and who has one keeps it.
#[cfg(unix)]
#[tokio::test]
async fn who_connects_shows_and_trusts_what_is_in_files_by_then_and_open_streams_go_on() {
    let files = Files::new();
    for (generation, authority) in [("1", Authority::new("before")), ("2", Authority::new("after"))] {
        fs::create_dir(files.path(generation)).unwrap();
        files.write(&format!("{generation}/ca.pem"), &authority.pem);
        files.identity(&format!("{generation}/server"), authority.vouches_for("127.0.0.1", None));
        files.identity(&format!("{generation}/client"), authority.vouches_for("client", None));
    }
    let link = |generation: &str| {
        std::os::unix::fs::symlink(files.path(generation), files.path("link.new")).unwrap();
        fs::rename(files.path("link.new"), files.path("now")).unwrap();
    };
    link("1");
    let far = files.relay("{ certificate: $now/server.pem, key: $now/server.key, client_ca: $now/ca.pem }").await;
    let tls = files.filled("{ ca: $now/ca.pem, certificate: $now/client.pem, key: $now/client.key }");
    let origin = format!("name: far, server: '{}', tls: {tls}, streams_per_connection: 1", far.address);
    let near = Running::start(&format!("[{{ {origin} }}]")).await;
    let node = |id: &str| Node { id: id.to_owned(), ..Node::default() };
    // Each node has a stream of its own to the origin, and each stream a connection.
    let by_near = |id: &str| Client::connect(endpoint(near.address).with_node(&node(id))).watch(CDS, "a");
    let own = files.tls("now/ca.pem", Some("now/client"));
    let mut before = [by_near("before"), watch(far.address, own.clone())];
    let mut first = Vec::new();
    for watch in &mut before {
        first.push(version_of(watch).await);
    }

    link("2");
    for mut after in [watch(far.address, own.clone()), by_near("after")] {
        assert_eq!(version_of(&mut after).await, first[0]);
    }
    let said = why_not(endpoint(far.address).with_tls(files.tls("2/ca.pem", Some("1/client")))).await;
    assert!(said.contains("UnknownCA"), "{said}");
    files.serve(2);
    for watch in &mut before {
        assert_ne!(version_of(watch).await, first[0]);
    }
    let metrics = page(&near, "/metrics").await.1;
    assert!(metrics.contains("xds_relay_upstream_disconnects_total{origin=\"far\"} 0\n"), "{metrics}");
}

#[tokio::test]
async fn pages_and_metrics_say_when_certificates_expire() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    files.identity("late", ca.vouches_for("127.0.0.1", Some((2001, 1, 1))));
    files.identity("ours", ca.vouches_for("ours", None));
    let origins = files.filled("[{ name: up, server: 'a:1', tls: { certificate: $ours.pem, key: $ours.key } }]");
    let tls = files.filled("tls: { certificate: $late.pem, key: $late.key, client_ca: $ca.pem }");
    let relay = Running::start_with(&origins, &tls).await;
    // They are looked at beside what is served.
    let (status, told) = in_time(async {
        loop {
            let (_, body) = page(&relay, "/api/v1/status").await;
            let status: Status = serde_json::from_str(&body).unwrap();
            if !status.certificates.is_empty() {
                return (status, body);
            }
        }
    })
    .await;
    use CertificateState::{Expired, Good};
    let shown: Vec<_> = status.certificates.iter().map(|of| (of.field.as_str(), of.state)).collect();
    let expected = [("origins[0].tls.certificate", Good), ("tls.certificate", Expired), ("tls.client_ca", Good)];
    assert_eq!(shown, expected);
    assert!(told.contains(r#""state":"expired""#), "{told}");
    let metrics = page(&relay, "/metrics").await.1;
    let value = |name: &str, field: &str| {
        let front = format!("xds_relay_certificate_{name}_seconds{{field=\"{field}\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&front));
        value.unwrap_or_else(|| panic!("{metrics}")).parse::<i64>().unwrap()
    };
    assert!(value("expires_in", "tls.certificate") < 0 && value("expires_in", "tls.client_ca") > 1 << 30);
    assert!(value("lifetime", "origins[0].tls.certificate") > 1 << 30);
    let overview = page(&relay, "/").await.1;
    assert!(overview.contains("late.pem") && overview.contains(">expired<"), "{overview}");
}

#[test]
fn a_check_names_what_is_expired_on_either_side() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.identity("good", ca.vouches_for("a", None));
    files.identity("late", ca.vouches_for("a", Some((2001, 1, 1))));
    let check = |tls: &str, origin: &str| {
        let text = format!("tls: {tls}\norigins: [{{ name: up, server: 'a:1', tls: {origin} }}]\n");
        let config = Config::parse(Path::new("relay.yaml"), &files.filled(&text)).unwrap();
        xds_relay::check(&config).map(drop).map_err(|error| error.to_string())
    };
    let identity = |name: &str| format!("{{ certificate: ${name}.pem, key: ${name}.key }}");
    assert_eq!(check(&identity("good"), &identity("good")), Ok(()));
    for (tls, origin) in [("late", "good"), ("good", "late")] {
        let said = check(&identity(tls), &identity(origin)).unwrap_err();
        assert!(said.contains("late.pem: ") && said.contains("expired"), "{said}");
    }
}

#[tokio::test]
async fn what_is_no_certificate_is_named_at_the_start() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.identity("a", ca.vouches_for("a", None));
    files.identity("b", ca.vouches_for("b", None));
    files.write("empty.pem", "");
    files.write("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA");
    let error = async |text: &str| {
        let text = format!("listen: 127.0.0.1:0\nadmin: none\n{}", files.filled(text));
        let config = Config::parse(Path::new("relay.yaml"), &text).unwrap();
        let checked = xds_relay::check(&config).map(drop).unwrap_err().to_string();
        let Err(bound) = Relay::bind(config).await else { panic!("{text}") };
        assert_eq!(bound.to_string(), checked, "--check says what the start says");
        checked.replace(&format!("{}/", files.0.path().display()), "$")
    };
    let origins = "origins: [{ name: up, server: 'a:1' }]\n";
    for (tls, words) in [
        (
            "{ certificate: $empty.pem, key: $a.key }",
            "tls.certificate: $empty.pem: there is no certificate in it; expected PEM",
        ),
        ("{ certificate: $a.pem, key: $a.pem }", "tls.key: $a.pem: there is no private key in it; expected PEM"),
        ("{ certificate: $torn.pem, key: $a.key }", "tls.certificate: $torn.pem: "),
        ("{ certificate: $a.pem, key: $b.key }", "tls.key: $a.pem with the key $b.key: "),
        (
            "{ certificate: $a.pem, key: $a.key, client_ca: $empty.pem }",
            "tls.client_ca: $empty.pem: there is no certificate",
        ),
    ] {
        let said = error(&format!("{origins}tls: {tls}\n")).await;
        assert!(said.starts_with(words), "{said}");
    }
    let said = error("origins: [{ name: up, server: 'a:1', tls: { ca: $a.key } }]\n").await;
    assert_eq!(said, "origins[0].tls.ca: $a.key: there is no certificate in it; expected PEM");
}

#[tokio::test]
async fn other_files_count_for_who_comes_and_open_streams_go_on() {
    let (files, one, two) = (Files::new(), Authority::new("one"), Authority::new("two"));
    for (name, ca) in [("one", &one), ("two", &two)] {
        files.write(&format!("{name}-ca.pem"), &ca.pem);
        files.identity(name, ca.vouches_for("127.0.0.1", None));
    }
    let relay = files.relay("{ certificate: $one.pem, key: $one.key }").await;
    let mut before = watch(relay.address, files.tls("one-ca.pem", None));
    version_of(&mut before).await;
    let (mut config, reloader) = (relay.reloader.config(), relay.reloader.clone());
    let other =
        files.filled("{ origins: [{ name: a, server: 'a:1' }], tls: { certificate: $two.pem, key: $two.key } }");
    config.tls = Config::parse("relay.yaml", &other).unwrap().tls;
    let with_ca = {
        let mut config = config.clone();
        config.tls.as_mut().unwrap().client_ca = Some(files.path("one-ca.pem"));
        config
    };
    let reloaded = tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap();
    assert_eq!((reloaded.applied.join(" "), reloaded.needs_restart), ("tls.certificate tls.key".to_owned(), vec![]));
    version_of(&mut watch(relay.address, files.tls("two-ca.pem", None))).await;
    files.serve(2);
    version_of(&mut before).await;

    // Whether clients show certificates is not for files to say, and one that is not good changes nothing.
    let reloader = relay.reloader.clone();
    let reloaded = tokio::task::spawn_blocking(move || reloader.apply(with_ca)).await.unwrap().unwrap();
    assert_eq!((reloaded.applied, reloaded.needs_restart), (vec![], vec!["tls.client_ca".to_owned()]));
    files.write("one.key", "");
    let (mut config, reloader) = (relay.reloader.config(), relay.reloader.clone());
    config.tls.as_mut().unwrap().key = files.path("one.key");
    let error = tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("tls.key: "), "{error}");
    version_of(&mut watch(relay.address, files.tls("two-ca.pem", None))).await;
}
