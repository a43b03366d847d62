//! Any bytes, as what a client sends a server of TLS that wants certificates.

use std::fs;
use std::sync::OnceLock;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use xds_transport::grpc::server::ClientCertificate;
use xds_transport::grpc::tls::{ServerFiles, ServerTls};

/// Two of TLS's content types are all that a server says to who has no keys: an alert (21) or a handshake (22); between the two
/// it may say that it changes its cipher (20), and what it says then is shown as data (23).
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=23;

/// Whoever has no keys comes to nothing, and is told so by TLS. The same bytes as a certificate are one, or none.
pub(crate) fn handshake(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let heard = runtime.block_on(async {
        let (client, server) = tokio::io::duplex(1 << 20);
        let (mut from, mut to) = tokio::io::split(client);
        let talking = async {
            // It may be closed at the other end by now.
            let _ = to.write_all(bytes).await;
            let _ = to.shutdown().await;
            let mut heard = Vec::new();
            let _ = from.read_to_end(&mut heard).await;
            heard
        };
        let (accepted, heard) = tokio::join!(tls().accept(server), talking);
        assert!(accepted.is_err(), "a handshake without keys");
        heard
    });
    assert!(heard.first().is_none_or(|first| CONTENT_TYPES.contains(first)), "{heard:?}");
    if let Some(certificate) = ClientCertificate::new([bytes.to_vec()]) {
        assert!(!certificate.subject().contains(|c: char| c.is_ascii_control()));
    }
}

/// A certificate that is its own authority.
fn tls() -> &'static ServerTls {
    static TLS: OnceLock<ServerTls> = OnceLock::new();
    TLS.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let [pem, key] = ["a.pem", "a.key"].map(|name| directory.path().join(name));
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        fs::write(&pem, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        ServerTls::load(ServerFiles::new(&pem, key).with_client_ca(&pem)).unwrap()
    })
}
