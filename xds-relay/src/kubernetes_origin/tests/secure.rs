//! TLS, and who the relay is: on a socket, by the thread that a relay has.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use super::super::api::Api;
use super::super::collection::Collection;
use super::super::dial::Network;
use super::super::following::Following;
use super::super::value::Reader;
use super::cluster::Cluster;
use super::script;
use crate::config::{Kubernetes, OriginTls};
use crate::file_origin::{Descriptors, Served};
use crate::keyed_origin::testing::Heard;
use crate::tls;

const LONG: Duration = Duration::from_secs(60);

/// A cluster that speaks TLS on loopback, whose CA is in a file.
struct Secured {
    cluster: Cluster,
    port: u16,
    _runtime: Runtime,
}

fn ca() -> CertifiedIssuer<'static, KeyPair> {
    let mut ca = CertificateParams::new([]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap()
}

impl Secured {
    fn start(directory: &Path) -> Self {
        let (ca, key) = (ca(), KeyPair::generate().unwrap());
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
        fs::write(directory.join("ca.crt"), ca.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(xdstp_client::tls::provider());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let (port, cluster) = (listener.local_addr().unwrap().port(), Cluster::default());
        let (acceptor, of) = (TlsAcceptor::from(Arc::new(config)), cluster.clone());
        runtime.spawn(async move {
            while let Ok((io, _)) = listener.accept().await {
                let (acceptor, cluster) = (acceptor.clone(), of.clone());
                tokio::spawn(async move {
                    if let Ok(io) = acceptor.accept(io).await {
                        script::serve(cluster, io).await;
                    }
                });
            }
        });
        Self { cluster, port, _runtime: runtime }
    }

    fn follow(&self, directory: &Path) -> (Following, Receiver<Heard>) {
        let files = OriginTls { ca: Some(directory.join("ca.crt")), ..OriginTls::default() };
        let server = format!("https://127.0.0.1:{}/", self.port).parse().unwrap();
        let network = Network { server, tls: Some(tls::towards_files(&files)) };
        let api = Api::new(Arc::new(network), "kubernetes".to_owned(), Some(directory.join("token")));
        let (told, heard) = channel();
        let collections = Collection::all(&Kubernetes::in_cluster(), &["mesh".to_owned()]);
        let reader = Reader::new(Descriptors::built_in().unwrap(), Served::default());
        (Following::start(api, collections, reader, None, told).unwrap(), heard)
    }
}

fn trouble(heard: &Receiver<Heard>) -> String {
    loop {
        if let Heard::Trouble(Some(words)) = heard.recv_timeout(LONG).unwrap() {
            return words;
        }
    }
}

fn names(heard: &Receiver<Heard>) -> Vec<String> {
    loop {
        if let Heard::Names(names) = heard.recv_timeout(LONG).unwrap() {
            return names;
        }
    }
}

#[test]
fn a_token_that_was_replaced_counts_from_the_next_request_on_and_none_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    let secured = Secured::start(directory.path());
    secured.cluster.cluster("web", 1);
    fs::write(&token, "hunter\n2").unwrap();
    let (_following, heard) = secured.follow(directory.path());
    let words = trouble(&heard);
    assert!(words.ends_with("token: no token; expected one, and nothing else"), "{words}");
    fs::write(&token, "first.token.x\n").unwrap();
    assert_eq!(names(&heard), ["web"]);
    // As a volume of Kubernetes has it: another file in its place.
    fs::write(directory.path().join("next"), "second.token.x").unwrap();
    fs::rename(directory.path().join("next"), &token).unwrap();
    let tokens = || {
        let requests = secured.cluster.state().requests.clone();
        requests.into_iter().filter_map(|(_, token)| token).collect::<Vec<_>>()
    };
    let since = Instant::now();
    while !tokens().iter().any(|token| token == "Bearer second.token.x") {
        secured.cluster.cut();
        assert!(since.elapsed() < LONG, "{:?}", tokens());
        std::thread::yield_now();
    }
    assert_eq!(tokens()[0], "Bearer first.token.x");
}

#[test]
fn who_is_not_vouched_for_is_told_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let secured = Secured::start(directory.path());
    let good = fs::read(directory.path().join("ca.crt")).unwrap();
    secured.cluster.cluster("web", 1);
    fs::write(directory.path().join("token"), "a.b.c").unwrap();
    fs::write(directory.path().join("ca.crt"), ca().pem()).unwrap();
    let (following, heard) = secured.follow(directory.path());
    let words = trouble(&heard);
    assert!(words.contains("nothing is known: configmap/mesh: ") && words.contains("certificate"), "{words}");
    assert!(secured.cluster.state().requests.is_empty(), "nobody saw the token");
    // The CA that vouches for it counts once it is in the file.
    fs::write(directory.path().join("ca.crt"), good).unwrap();
    assert_eq!(names(&heard), ["web"]);
    drop(following);
    while heard.recv_timeout(LONG).is_ok() {}
}
