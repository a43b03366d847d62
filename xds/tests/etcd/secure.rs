//! TLS, and who may do what.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use xdstp_client::bootstrap::TlsFiles;
use xdstp_client::state::{Etcd, EtcdOptions};
use xdstp_client::tls::Tls;

use crate::cli::{Run, xds};
use crate::cluster::{Cluster, until_it_answers};
use crate::relays::{CLUSTER, PREFIX, Running, Watching, etcd};

fn certificates(directory: &Path) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(directory.join("ca.pem"), authority.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(directory.join("server.pem"), server.pem()).unwrap();
    fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}

/// One member with users as the book has them: relays read, and CI writes. The passwords are in files.
fn cluster() -> Cluster {
    let cluster = Cluster::start_secure(|directory| {
        certificates(directory);
        let file = |name: &str| directory.join(name).display().to_string();
        vec![format!("--cert-file={}", file("server.pem")), format!("--key-file={}", file("server.key"))]
    });
    let directory = cluster.directory.path();
    let mut files = TlsFiles::default();
    files.ca_certificate = Some(directory.join("ca.pem"));
    let options = EtcdOptions::new(cluster.endpoints(), PREFIX).unwrap().with_tls(Tls::from_files(files));
    until_it_answers(&Etcd::open(options).unwrap());
    for command in [
        &["user", "add", "root:boss"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "mesh-read"],
        &["role", "grant-permission", "mesh-read", "--prefix=true", "read", "mesh/"],
        &["role", "add", "mesh-write"],
        &["role", "grant-permission", "mesh-write", "--prefix=true", "readwrite", "mesh/res/"],
        &["user", "add", "relay:reads"],
        &["user", "grant-role", "relay", "mesh-read"],
        &["user", "add", "ci:writes"],
        &["user", "grant-role", "ci", "mesh-read"],
        &["user", "grant-role", "ci", "mesh-write"],
        &["auth", "enable"],
    ] {
        let trusted = format!("--cacert={}", directory.join("ca.pem").display());
        cluster.control(&[&[&*trusted], command].concat());
    }
    for (user, password) in [("relay", "reads\n"), ("ci", "writes\n"), ("wrong", "guessed")] {
        fs::write(directory.join(user), password).unwrap();
    }
    cluster
}

/// The tool, by a user whose password is in a file.
fn tool(cluster: &Cluster, command: &str, (user, file): (&str, &str), args: &[&str]) -> Run {
    let path = |name: &str| cluster.directory.path().join(name).display().to_string();
    let (endpoints, ca, password) = (cluster.endpoints().join(","), path("ca.pem"), path(file));
    let who = ["--ca", &*ca, "--user", user, "--password-file", &*password];
    xds(&[&[command, "--etcd", &endpoints, "--prefix", PREFIX], &who[..], args].concat(), "")
}

#[test]
fn relays_read_and_ci_writes_each_by_a_password_over_tls() {
    let cluster = cluster();
    let directory = cluster.directory.path();
    let mut of_relay = etcd(&cluster.endpoints()).with_user("relay", directory.join("relay"));
    of_relay.tls.as_mut().unwrap().ca = Some(directory.join("ca.pem"));
    let relay = Running::of(of_relay);
    let mut watch = Watching::of(&relay, "web");
    assert!(watch.next().contains("does not exist"));
    let file = directory.join("clusters.yaml");
    let text = format!("resources: [{{\"@type\": type.googleapis.com/{CLUSTER}, name: web, connect_timeout: 1s}}]");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    for (who, words) in [(("ci", "wrong"), "authentication failed"), (("relay", "relay"), "permission denied")] {
        let refused = tool(&cluster, "push", who, &[file]);
        assert_eq!((refused.code, refused.err.contains(words)), (1, true), "{}", refused.err);
    }
    let pushed = tool(&cluster, "push", ("ci", "ci"), &[file]);
    assert_eq!((pushed.code, pushed.out.contains("1 put, at revision ")), (0, true), "{}", pushed.err);
    assert_eq!(watch.next(), "web 1s");
    assert_eq!(tool(&cluster, "rm", ("ci", "ci"), &["cluster", "web"]).code, 0);
    assert!(watch.next().contains("does not exist"));
}

#[test]
fn a_relay_that_is_refused_says_why() {
    let cluster = cluster();
    let directory = cluster.directory.path();
    let mut of_relay = etcd(&cluster.endpoints()).with_user("relay", directory.join("wrong"));
    of_relay.tls.as_mut().unwrap().ca = Some(directory.join("ca.pem"));
    let relay = Running::of(of_relay);
    relay.until("/api/v1/status", |_, page| page.contains("authentication failed"));
    assert_eq!(relay.page("/readyz").0, 503);
}
