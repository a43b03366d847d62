//! By TLS, and by unix sockets, a server keeps the same rules.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use xdstp_client::tls::provider;

use super::cli::xds;
use super::own::kept;
use xds_transport::Dialect;

use super::plane::{Plane, serve};

/// Who the server is, and not by the address where it is found.
const NAME: &str = "plane.example.com";

/// Our own control plane, by TLS to who shows a certificate, at an address and at a unix socket.
struct Secure {
    directory: TempDir,
    address: SocketAddr,
    adapter: SocketAddr,
}

impl Secure {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for authority in ["ours", "theirs"] {
            certify(directory.path(), authority);
        }
        let config = config(directory.path());
        let socket = directory.path().join("socket");
        let (started, start) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let plane = serve(Dialect::Final).await;
                let by_tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let by_unix = UnixListener::bind(socket).unwrap();
                started.send((by_tcp.local_addr().unwrap(), plane.adapter)).unwrap();
                loop {
                    tokio::select! {
                        Ok((io, _)) = by_tcp.accept() => {
                            io.set_nodelay(true).unwrap();
                            tokio::spawn(carry(config.clone(), io, plane));
                        }
                        Ok((io, _)) = by_unix.accept() => {
                            tokio::spawn(carry(config.clone(), io, plane));
                        }
                        else => {}
                    }
                }
            });
        });
        let (address, adapter) = start.recv().unwrap();
        Self { directory, address, adapter }
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn adapter(&self) -> String {
        format!("tcp:{}", self.adapter)
    }
}

/// Writes an authority's certificate, one of a server and one of a client.
fn certify(directory: &Path, authority: &str) {
    let write = |name: &str, text: &str| fs::write(directory.join(format!("{authority}-{name}")), text).unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    write("ca.pem", &params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    for (name, of) in [("server", NAME), ("client", "client.example.com")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![of.to_owned()]).unwrap();
        write(&format!("{name}.pem"), &params.signed_by(&key, &issuer).unwrap().pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
}

fn config(directory: &Path) -> Arc<ServerConfig> {
    let certificate = |name: &str| CertificateDer::from_pem_file(directory.join(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ours-ca.pem")).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
    let key = PrivateKeyDer::from_pem_file(directory.join("ours-server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate("ours-server.pem")], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// What is said by TLS, to the control plane and back, for as long as there is a connection.
async fn carry(config: Arc<ServerConfig>, io: impl AsyncRead + AsyncWrite + Unpin, plane: Plane) {
    // Who is refused is not waited for, as by many a server: what it writes then fails, and the alert is there to be read.
    let Ok(mut client) = TlsAcceptor::from(config).accept(io).await else { return };
    let mut server = TcpStream::connect(plane.server).await.unwrap();
    server.set_nodelay(true).unwrap();
    // However it ends: both sides see it.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

#[test]
fn by_tls_with_a_certificate_our_control_plane_keeps_every_rule() {
    let secure = Secure::new();
    let (ca, cert, key) = (secure.file("ours-ca.pem"), secure.file("ours-client.pem"), secure.file("ours-client.key"));
    let tls = ["--ca", &ca, "--cert", &cert, "--key", &key, "--server-name", NAME];
    let adapter = secure.adapter();
    assert!(kept(&[&[&secure.address.to_string(), "--adapter", &adapter], &tls[..]].concat()) >= 60);
    let socket = format!("unix:{}", secure.file("socket"));
    assert!(kept(&[&[&socket, "--adapter", &adapter, "--only", "1-20"], &tls[..]].concat()) > 10);
}

#[test]
fn who_is_not_taken_is_told_why() {
    let secure = Secure::new();
    let (address, ours, theirs) =
        (secure.address.to_string(), secure.file("ours-ca.pem"), secure.file("theirs-ca.pem"));
    let (cert, key) = (secure.file("theirs-client.pem"), secure.file("theirs-client.key"));
    let socket = format!("unix:{}", secure.file("nobody"));
    let name = ["--server-name", NAME];
    for (args, why) in [
        ([&["--ca", &ours], &name[..]].concat(), "CertificateRequired"),
        ([&["--ca", &ours, "--cert", &cert, "--key", &key], &name[..]].concat(), "received fatal alert"),
        ([&["--ca", &theirs], &name[..]].concat(), "certificate"),
        (vec!["--ca", &ours], "certificate"),
        (vec![], "https://"),
    ] {
        // Which of the two ends is ahead is another matter each time.
        for _ in 0..10 {
            let run = xds(&[&["conformance", &address, "--timeout", "60"], &args[..]].concat(), "");
            assert_eq!((run.code, &*run.out), (3, ""), "{args:?} {}", run.err);
            assert!(run.err.contains("no connection to") && run.err.contains(why), "{args:?} {}", run.err);
        }
    }
    let run = xds(&["conformance", &socket, "--timeout", "60"], "");
    assert_eq!((run.code, run.err.contains("nobody")), (3, true), "{}", run.err);
}
