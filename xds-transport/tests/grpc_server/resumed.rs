//! Who comes back with a session of before: who showed a certificate is verified again.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, HandshakeKind, RootCertStore, ServerConfig,
    SignatureScheme,
};
use xds_transport::grpc::tls::{Notice, Pem, ServerFiles, ServerTls, provider};

use crate::authority::{Authority, Files};
use crate::call::Connection;
use crate::tls::{OURS, PRESENT, Secured, ours, served};

/// The first second in which what is good at present is no more.
const AFTER: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(64_092_211_200));

/// The verifier of rustls, once it is later.
#[derive(Debug)]
struct Later(Arc<dyn ClientCertVerifier>, Arc<AtomicBool>);

impl ClientCertVerifier for Later {
    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let now = if self.1.load(Ordering::Relaxed) { AFTER } else { now };
        self.0.verify_client_cert(shown, between, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        by: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, by, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        by: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, by, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// One that does without certificates, or not.
fn verifier(roots: RootCertStore, is_optional: bool, is_later: Arc<AtomicBool>) -> Arc<dyn ClientCertVerifier> {
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    let builder = if is_optional { builder.allow_unauthenticated() } else { builder };
    Arc::new(Later(builder.build().unwrap(), is_later))
}

/// By a whole configuration.
fn configured(files: &Files, verifier: Option<Arc<dyn ClientCertVerifier>>) -> ServerTls {
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let read = |name| Pem::read(&files.path(name)).unwrap();
    let (certificate, key) = (read("server.pem").certificates().unwrap(), read("server.key").key().unwrap());
    ServerTls::from_config(builder.with_single_cert(certificate, key).unwrap())
}

fn roots(files: &Files) -> RootCertStore {
    Pem::read(&files.path("ca.pem")).unwrap().roots().unwrap()
}

/// How a client connects, who has heard what a server says of sessions by then.
async fn kind(secured: &Secured, client: &Arc<ClientConfig>) -> HandshakeKind {
    let io = secured.secure(client.clone()).await.unwrap();
    let kind = io.get_ref().1.handshake_kind().unwrap();
    let connection = Connection::handshake(io).await;
    let mut call = connection.aggregated(xds_transport::Protocol::Delta).await;
    call.send(&crate::call::delta_wildcard());
    call.response().await;
    kind
}

/// All ways in which a server asks for certificates, of which one must be shown, or one may be.
fn asking(files: &Files, server: &ServerFiles, is_later: &Arc<AtomicBool>) -> Vec<(&'static str, ServerTls)> {
    let by_verifier = |is_optional| {
        let is_later = is_later.clone();
        let server = server.clone().with_verifier(move |roots| Ok(verifier(roots, is_optional, is_later.clone())));
        ServerTls::load(server).unwrap()
    };
    let by_config = |is_optional| configured(files, Some(verifier(roots(files), is_optional, is_later.clone())));
    vec![
        ("a verifier", by_verifier(false)),
        ("one that does without", by_verifier(true)),
        ("a configuration", by_config(false)),
        ("one that does without, in a configuration", by_config(true)),
    ]
}

#[tokio::test(start_paused = true)]
async fn who_shows_a_certificate_is_verified_each_time_and_who_shows_none_resumes() {
    use HandshakeKind::{Full, FullWithHelloRetryRequest, Resumed};
    let (files, _, server) = ours();
    let asks = [("client_ca", ServerTls::load(server.clone()).unwrap())].into_iter();
    let asks: Vec<_> = asks.chain(asking(&files, &server, &Arc::default())).collect();
    for version in [&TLS12, &TLS13] {
        for (way, tls) in &asks {
            let secured = Secured::serve_by(tls, |incoming| incoming);
            let client = files.client_of(&[version], "ca", Some("client"));
            for _ in 0..3 {
                let kind = kind(&secured, &client).await;
                assert!(matches!(kind, Full | FullWithHelloRetryRequest), "{way}, {version:?}: {kind:?}");
            }
        }
        let files_alone = ServerFiles::new(files.path("server.pem"), files.path("server.key"));
        let (_, does_without) = asks.last().unwrap();
        for tls in [&ServerTls::load(files_alone).unwrap(), &configured(&files, None), does_without] {
            let secured = Secured::serve_by(tls, |incoming| incoming);
            let client = files.client_of(&[version], "ca", None);
            assert!(matches!(kind(&secured, &client).await, Full | FullWithHelloRetryRequest));
            assert_eq!(kind(&secured, &client).await, Resumed, "{tls:?}, {version:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whose_certificate_has_expired_since_is_refused_as_if_he_came_for_the_first_time() {
    let (files, _, server) = ours();
    let is_later = Arc::<AtomicBool>::default();
    for (way, tls) in asking(&files, &server, &is_later) {
        is_later.store(false, Ordering::Relaxed);
        let mut secured = Secured::serve_by(&tls, |incoming| incoming);
        let client = files.client("ca", Some("client"));
        for _ in 0..2 {
            let connection = Connection::handshake(secured.secure(client.clone()).await.unwrap()).await;
            assert_eq!(served(&connection).await, 1, "{way}");
        }
        is_later.store(true, Ordering::Relaxed);
        let connected = secured.secure(client).await;
        let refusal = secured.refusal().await;
        assert!(refusal.starts_with("invalid peer certificate: certificate expired"), "{way}: {refusal}");
        drop(connected);
    }
}

#[tokio::test(start_paused = true)]
async fn whose_authority_is_not_ours_any_more_is_refused_with_a_session_of_before() {
    let (files, _, server) = ours();
    let mut secured = Secured::serve_by(&ServerTls::load(server).unwrap(), |incoming| incoming);
    let client = files.client("ca", Some("client"));
    let connection = Connection::handshake(secured.secure(client.clone()).await.unwrap()).await;
    assert_eq!(served(&connection).await, 1);

    let other = Authority::named("other");
    files.authority("other", &other);
    files.identity("another", &other, OURS, PRESENT);
    fs::copy(files.path("ca.pem"), files.path("before.pem")).unwrap();
    fs::rename(files.path("other.pem"), files.path("ca.pem")).unwrap();
    let notice = secured.notice().await;
    assert!(matches!(notice, Notice::Renewed { .. }), "{notice}");
    let connected = secured.secure(client).await;
    let refusal = secured.refusal().await;
    assert!(refusal.starts_with("invalid peer certificate: UnknownIssuer"), "{refusal}");
    drop(connected);
    let client = files.client("before", Some("another"));
    let connection = Connection::handshake(secured.secure(client).await.unwrap()).await;
    assert_eq!(served(&connection).await, 1);
}
