//! `deploy/kustomize`, as far as relays have a word in it; `ci/manifests` says whether its parts fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{expression, of_repository, told};

/// All files of a name in a directory and those below it.
fn named(name: &str, directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            named(name, &path, found);
        } else if path.file_name().is_some_and(|file| file == name) {
            found.push(path);
        }
    }
}

/// What is mounted where pods have it: secrets as whoever applies the manifests makes them, and a volume.
fn mounted() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["xds-relay".to_owned()]).unwrap().self_signed(&key).unwrap();
    for secret in ["tls", "admin", "etcd"].map(|secret| directory.path().join(format!("etc/xds-relay-{secret}"))) {
        fs::create_dir_all(&secret).unwrap();
        for (file, content) in [
            ("tls.crt", certificate.pem()),
            ("ca.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
            ("tokens", "0123456789abcdef".to_owned()),
        ] {
            fs::write(secret.join(file), content).unwrap();
        }
    }
    fs::create_dir_all(directory.path().join("var/lib/xds-relay")).unwrap();
    let mesh = directory.path().join("etc/xds-relay-mesh");
    fs::create_dir_all(&mesh).unwrap();
    if let Some(resources) = of_repository("deploy/kustomize/overlays/replicas/mesh.yaml") {
        fs::write(mesh.join("mesh.yaml"), resources).unwrap();
    }
    directory
}

#[test]
fn a_relay_takes_each_configuration_that_pods_are_given() {
    let (mut files, mounted) = (Vec::new(), mounted());
    named("relay.yaml", Path::new("../deploy/kustomize"), &mut files);
    // In what was packed for the registry there is none.
    assert!(files.is_empty() || files.len() == 5, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let config = mounted.path().join("relay.yaml");
        let root = mounted.path().display();
        let placed = text.replace(" /etc/", &format!(" {root}/etc/")).replace(" /var/", &format!(" {root}/var/"));
        fs::write(&config, placed).unwrap();
        let mut relay = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
        let output = relay.arg("--check").arg("--config").arg(&config).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", file.display());
    }
}

#[test]
fn what_relays_are_scaled_by_is_what_they_tell() {
    let Some(autoscaler) = of_repository("deploy/kustomize/components/scaled/autoscaler.yaml") else { return };
    let told = told();
    let names: Vec<_> = expression::selected(&autoscaler).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.iter().filter(|name| told.contains_key(*name)).count(), 1, "{names:?}");
}
