//! Who a client is, beyond its address: what it proves by TLS, and the token that it brings.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject as _};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use xds_relay::{Config, Relay};
use xds_transport::grpc::server::ClientCertificate;
use xdstp_client::tls::provider;

use super::Running;
use super::tls::{Authority, Files, endpoint, version_of, watch, why_not};

/// Takes whoever has a SPIFFE id of our domain, whoever vouches for it.
#[derive(Debug)]
struct OfOurDomain;

impl ClientCertVerifier for OfOurDomain {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let shown = ClientCertificate::new([certificate.to_vec()]);
        match shown.as_ref().and_then(ClientCertificate::spiffe_id) {
            Some(id) if id.starts_with("spiffe://ours/") => Ok(ClientCertVerified::assertion()),
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

#[tokio::test]
async fn a_verifier_of_ones_own_decides_and_calls_know_what_a_client_showed() {
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    let (certificate, key) = ca.vouches_for("127.0.0.1", None);
    files.identity("ours", ca.vouches_for_uri("spiffe://ours/client"));
    files.identity("theirs", ca.vouches_for_uri("spiffe://theirs/client"));
    let tls = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(Arc::new(OfOurDomain))
        .with_single_cert(
            CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect(),
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let seeing = seen.clone();
    let layer = from_fn(move |request: Request, next: Next| {
        let shown = request.extensions().get::<ClientCertificate>().and_then(ClientCertificate::spiffe_id);
        seeing.lock().unwrap().push(shown.unwrap_or_default().to_owned());
        next.run(request)
    });
    let origins = format!("[{{ name: files, files: {} }}]", files.path("resources").display());
    let config = Config::parse("relay.yaml", &format!("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\norigins: {origins}\n"));
    let relay = Running::run(Relay::builder(config.unwrap()).tls(tls).layer(layer).bind().await.unwrap());

    let mut clusters = watch(relay.address, files.tls("ca.pem", Some("ours")));
    version_of(&mut clusters).await;
    assert_eq!(*seen.lock().unwrap(), ["spiffe://ours/client"]);
    assert!(crate::loops::page(&relay, "/config_dump").await.contains(" spiffe://ours/client\""));
    drop(clusters);
    why_not(endpoint(relay.address).with_tls(files.tls("ca.pem", Some("theirs")))).await;
    assert_eq!(seen.lock().unwrap().len(), 1);
}

fn token(good_for: Duration, name: &str) -> String {
    let until = SystemTime::now() + good_for;
    let until = until.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{until},"sub":"{name}"}}"#)))
}

#[tokio::test]
async fn an_origin_is_shown_the_token_of_a_file_as_it_is_when_a_stream_begins() {
    const HOUR: Duration = Duration::from_secs(3600);
    let (files, ca) = (Files::new(), Authority::new("ours"));
    files.write("ca.pem", &ca.pem);
    files.identity("far", ca.vouches_for("127.0.0.1", None));
    let brought = Arc::<Mutex<Vec<String>>>::default();
    let seeing = brought.clone();
    let layer = from_fn(move |request: Request, next: Next| {
        let tokens = request.headers().get_all("authorization").iter().map(|token| token.to_str().unwrap().to_owned());
        seeing.lock().unwrap().push(tokens.collect::<Vec<_>>().join(" and "));
        next.run(request)
    });
    let text = files.filled("listen: 127.0.0.1:0\nadmin: none\ntls: { certificate: $far.pem, key: $far.key }\norigins: [{ name: files, files: $resources }]\n");
    let far = Relay::builder(Config::parse("relay.yaml", &text).unwrap()).layer(layer).bind().await.unwrap();
    let far = Running::run(far);

    // One that has expired may be replaced by the time it is needed.
    files.write("token", &token(Duration::ZERO, "late"));
    let origin = files.filled("tls: { ca: $ca.pem }, token: $token");
    let near = Running::start(&format!("[{{ name: far, server: '{}', {origin} }}]", far.address)).await;
    let clear = |address| xdstp_client::Client::connect(endpoint(address));
    let first = clear(near.address);
    let mut clusters = first.watch(super::tls::CDS, "a");
    let good = token(HOUR, "good");
    files.write("token", &good);
    version_of(&mut clusters).await;
    assert_eq!(*brought.lock().unwrap(), [format!("Bearer {good}")]);
    let dump = crate::loops::page(&near, "/config_dump").await;
    assert!(!dump.contains(&good), "{dump}");
}

#[tokio::test]
async fn a_token_goes_over_tls_only_and_one_that_is_none_is_said_at_the_start() {
    let files = Files::new();
    files.write("token", "none");
    let parse = |text: &str| Config::parse("relay.yaml", &files.filled(text));
    let error = parse("origins:\n- name: up\n  server: a:1\n  token: $token\n").unwrap_err().to_string();
    let words = "a token goes over TLS only; expected tls, or https://HOST:PORT";
    assert_eq!(error, format!("relay.yaml:4:10: origins[0].token: {words}"));
    let error = parse("origins: [{ name: up, server: 'https://a:1', token: $nowhere }]").unwrap_err().to_string();
    assert!(error.contains("origins[0].token: no file "), "{error}");
    let config = parse("origins: [{ name: up, server: 'https://a:1', token: $token }]").unwrap();
    let error = xds_relay::check(&config).unwrap_err().to_string();
    assert!(error.ends_with("token: there is no JWT in it; expected HEADER.CLAIMS.SIGNATURE"), "{error}");
    fs::remove_file(files.path("token")).unwrap();
    assert!(xds_relay::check(&config).unwrap_err().to_string().contains("No such file"));
}
