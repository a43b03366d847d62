use std::fs;
use std::net::SocketAddr;
use std::sync::mpsc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use xds_relay::{Config, Relay};

use super::origin::{Origin, Scene};
use super::{CDS, run, run_until};

/// Certificates and keys, and a relay that has them and a cluster.
pub struct Secure {
    directory: TempDir,
    address: SocketAddr,
    pub admin: String,
    pub orders: Option<String>,
}

impl Secure {
    fn new() -> Self {
        Self::with("admin: 127.0.0.1:0\n")
    }

    /// With this in its configuration, where `$` is its directory.
    pub fn with(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        write("ca.pem", &params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        for name in ["relay.example.com", "me"] {
            let key = KeyPair::generate().unwrap();
            let certificate = CertificateParams::new(vec![name.to_owned(), "localhost".to_owned()])
                .unwrap()
                .signed_by(&key, &issuer)
                .unwrap();
            write(&format!("{name}.pem"), &certificate.pem());
            write(&format!("{name}.key"), &key.serialize_pem());
        }
        fs::create_dir(directory.path().join("files")).unwrap();
        write("files/a.yaml", &format!("resources: [{{'@type': {CDS}, name: web}}]"));
        write("token", "a-token-0123456789\n");
        let config = "listen: 127.0.0.1:0\norigins: [{name: files, files: $files}]\n\
                      tls: {certificate: $relay.example.com.pem, key: $relay.example.com.key, client_ca: $ca.pem}\n";
        let config = format!("{config}{more}").replace('$', &format!("{}/", directory.path().display()));
        let (addresses, serving) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let relay = Relay::bind(Config::parse("relay.yaml", &config).unwrap()).await.unwrap();
                let admin = relay.admin_address().unwrap().unwrap().to_string();
                let orders = relay.orders_address().unwrap().map(|orders| orders.to_string());
                addresses.send((relay.listen_address().unwrap().tcp().unwrap(), admin, orders)).unwrap();
                relay.run(std::future::pending()).await
            })
        });
        let (address, admin, orders) = serving.recv().unwrap();
        Self { directory, address, admin, orders }
    }

    pub fn file(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn a_server_is_spoken_to_by_tls_with_a_certificate_of_our_own() {
    let secure = Secure::new();
    let file = |name: &str| secure.directory.path().join(name).to_str().unwrap().to_owned();
    let (ca, cert, key) = (file("ca.pem"), file("me.pem"), file("me.key"));
    let get = |more: &[&str]| {
        let server = secure.address.to_string();
        let args = ["get", "--server", &server, "--ca", &ca];
        run(&[&args[..], more, &["cluster", "web"]].concat())
    };
    let name = ["--server-name", "relay.example.com"];
    let identity = ["--cert", cert.as_str(), "--key", key.as_str()];
    let run = get(&[&name[..], &identity].concat());
    assert_eq!((run.code, run.out.lines().count(), &*run.err), (0, 2, ""));

    assert_eq!(get(&["--cert", &cert]).code, 2, "a certificate needs its key");
    let text = format!(
        r#"{{"xds_servers": [{{"server_uri": "localhost:{}", "channel_creds": [{{"type": "tls", "config": {{
            "ca_certificate_file": "{ca}", "certificate_file": "{cert}", "private_key_file": "{key}" }} }}] }}] }}"#,
        secure.address.port()
    );
    let bootstrap = file("bootstrap.json");
    fs::write(&bootstrap, text).unwrap();
    let run = self::run(&["get", "--bootstrap", &bootstrap, "cluster", "web"]);
    assert_eq!((run.code, run.out.lines().count(), &*run.err), (0, 2, ""));
}

#[test]
fn a_server_that_is_not_who_it_should_be_is_not_asked() {
    let secure = Secure::new();
    let file = |name: &str| secure.directory.path().join(name).to_str().unwrap().to_owned();
    let server = secure.address.to_string();
    let ca = file("ca.pem");
    let args = ["get", "--server", &server, "--ca", &ca, "--server-name", "other", "cluster", "web"];
    let run = run_until(|run| run.err.contains("no stream to"), &args);
    assert_eq!((run.code, &*run.out), (3, ""));
    assert!(run.err.contains("certificate"), "{}", run.err);

    let clear = run_until(|run| run.err.contains("no stream to"), &["get", "--server", &server, "cluster", "web"]);
    assert_eq!(clear.code, 3);
    assert!(clear.err.contains("it speaks TLS, and was spoken to in clear text: https://"), "{}", clear.err);
    let origin = Origin::play(&[Scene::clusters(&["web"])]).address();
    let args = ["get", "--server", &origin, "--ca", &ca, "--server-name", "other", "cluster", "web"];
    let secure = run_until(|run| run.err.contains("no stream to"), &args);
    assert_eq!(secure.code, 3);
    assert!(secure.err.contains("it does not speak TLS: http://"), "{}", secure.err);
}
