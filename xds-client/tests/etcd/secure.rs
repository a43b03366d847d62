//! TLS, and who we are.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::state::{Etcd, EtcdOptions, Op, Store, StoreError};
use xdstp_client::tls::Tls;

use crate::cluster::{Cluster, PREFIX, until_it_answers};
use crate::suite::{entries, put, seen};

fn certificates(directory: &Path) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    fs::write(directory.join("ca.pem"), certificate.pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(directory.join("server.pem"), server.pem()).unwrap();
    fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}

/// One member that knows its users by their passwords.
fn cluster() -> Cluster {
    let cluster = Cluster::start_secure(|directory| {
        certificates(directory);
        let file = |name: &str| directory.join(name).display().to_string();
        vec![format!("--cert-file={}", file("server.pem")), format!("--key-file={}", file("server.key"))]
    });
    until_it_answers(&Etcd::open(options(&cluster)).unwrap());
    for command in [
        &["user", "add", "root:boss"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "relay:secret"],
        &["role", "add", "relays"],
        &["role", "grant-permission", "relays", "--prefix=true", "readwrite", PREFIX],
        &["user", "grant-role", "relay", "relays"],
        &["auth", "enable"],
    ] {
        let trusted = format!("--cacert={}", cluster.directory.path().join("ca.pem").display());
        cluster.control(&[&[&*trusted], command].concat());
    }
    cluster
}

fn options(cluster: &Cluster) -> EtcdOptions {
    let mut files = TlsFiles::default();
    files.ca_certificate = Some(cluster.directory.path().join("ca.pem"));
    EtcdOptions::new(cluster.endpoints(), PREFIX).unwrap().with_tls(Tls::from_files(files))
}

#[test]
fn a_password_is_asked_for_each_time_that_it_is_told() {
    let cluster = cluster();
    let said = Arc::new(Mutex::new(Err("not there yet".to_owned())));
    let asked = said.clone();
    let options = options(&cluster).with_user_of("relay", move || asked.lock().unwrap().clone()).unwrap();
    let store = Etcd::open(options).unwrap();
    let Err(StoreError::Away(why)) = store.list("") else { panic!("there is no password") };
    assert!(why.contains("the password of relay: not there yet"), "{why}");
    *said.lock().unwrap() = Ok("wrong".to_owned());
    assert!(matches!(store.list(""), Err(StoreError::Refused(_))));
    *said.lock().unwrap() = Ok("secret".to_owned());
    store.list("").unwrap();
}

fn user(cluster: &Cluster, password: &str) -> Etcd {
    Etcd::open(options(cluster).with_user("relay", password).unwrap()).unwrap()
}

#[test]
fn who_says_his_password_by_tls_has_his_keys_and_has_them_when_he_was_forgotten() {
    let mut cluster = cluster();
    let store = user(&cluster, "secret");
    let mut watch = store.watch("", put(&store, "a", "1")).unwrap();
    let lease = store.lease("pub", "1", crate::suite::LONG).unwrap().unwrap();
    put(&lease.store(), "b", "1");
    assert_eq!(seen(&mut watch, 2), [Op::put("pub", "1"), Op::put("b", "1")]);
    // What it gave out for passwords a member keeps in memory.
    cluster.kill(0);
    cluster.restart(0);
    until_it_answers(&store);
    put(&store, "c", "1");
    assert_eq!(seen(&mut watch, 1), [Op::put("c", "1")]);
    lease.release().unwrap();
    assert_eq!(entries(&store, "").len(), 3);
}

#[test]
fn who_is_not_known_is_refused_and_so_is_who_asks_for_what_is_not_his() {
    let cluster = cluster();
    let refused = |store: Etcd| match store.list("") {
        Err(StoreError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let why = refused(user(&cluster, "guessed"));
    assert!(why.contains("authentication failed"), "{why}");
    let why = refused(Etcd::open(options(&cluster)).unwrap());
    assert!(why.contains("user name is empty"), "{why}");
    let elsewhere = EtcdOptions::new(cluster.endpoints(), "elsewhere/").unwrap();
    let mut files = TlsFiles::default();
    files.ca_certificate = Some(cluster.directory.path().join("ca.pem"));
    let elsewhere = elsewhere.with_tls(Tls::from_files(files)).with_user("relay", "secret").unwrap();
    let why = refused(Etcd::open(elsewhere).unwrap());
    assert!(why.contains("permission denied"), "{why}");
}

#[test]
fn who_is_not_vouched_for_is_not_spoken_to() {
    let cluster = cluster();
    let stranger = EtcdOptions::new(cluster.endpoints(), PREFIX).unwrap().with_tls(Tls::default());
    match Etcd::open(stranger).unwrap().list("") {
        Err(StoreError::Away(why)) => assert!(why.contains("certificate") || why.contains("trust"), "{why}"),
        other => panic!("{other:?}"),
    }
}
