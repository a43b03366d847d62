//! Documents of a server of HTTP that speaks TLS.
#![cfg(all(feature = "http", any(feature = "tls", feature = "tls-aws-lc")))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "it is for other tests, too")]
mod site;

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use xdstp_client::bootstrap::{Bootstrap, ChannelCreds, Server, TlsFiles};
use xdstp_client::test::Network;
use xdstp_client::tls::{Tls, provider};
use xdstp_client::{Client, DiscoveryResponse, Error, Event, Http};

use site::{Play, Site};

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A server of `localhost`, and the certificate of who vouches for it.
async fn secure(plays: impl IntoIterator<Item = Play>) -> (Site, String) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&key).unwrap().pem();
    let (issuer, key) = (Issuer::new(params, key), KeyPair::generate().unwrap());
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    // Who offers anything else is refused.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    (Site::serve(plays, Some(TlsAcceptor::from(Arc::new(config)))).await, ca)
}

/// What a program is told that trusts whom this certificate vouches for.
async fn heard(site: &Site, ca: &str) -> Option<Event> {
    let directory = tempfile::tempdir().unwrap();
    let mut files = TlsFiles::default();
    files.ca_certificate = Some(directory.path().join("ca.pem"));
    fs::write(directory.path().join("ca.pem"), ca).unwrap();
    let http = Http::of([site.server()], DiscoveryResponse::default()).unwrap();
    let http = http.with_tls(Tls::from_files(files)).by_hand();
    let bootstrap = Bootstrap::new(Server::new("xds:1", ChannelCreds::Insecure));
    let client = Client::builder(bootstrap).transport(Network::new(Instant::now())).http(http.clone()).build().unwrap();
    let at = format!("http://{}/envoy.config.cluster.v3.ClusterCollection/all", site.address());
    let mut watch = client.watch(CLUSTERS, &at);
    http.look(Instant::now()).await;
    watch.try_next()
}

#[tokio::test]
async fn a_server_is_asked_by_tls_where_the_program_says_so_and_who_vouches_for_it_counts() {
    // Field 4, the type of them all: there are none.
    let body = [&[0x22, u8::try_from(CLUSTERS.len()).unwrap()], CLUSTERS.as_bytes()].concat();
    let empty = Play::answer("200 OK", &[("content-type", "application/x-protobuf")], &body);
    let (site, ca) = secure([empty]).await;
    let (_, of_another) = secure([]).await;
    let error = match heard(&site, &of_another).await {
        Some(Event::Failed { error: Error::Unreachable { reason, .. }, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(error.starts_with("there is no TLS with it: ") && error.contains("certificate"), "{error}");
    assert!(site.asked().is_empty(), "it was told nothing");
    assert_eq!(heard(&site, &ca).await, Some(Event::Answered));
}
