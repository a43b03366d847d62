//! Envoy's own files, made into files that the relay serves.

#![cfg(feature = "file-origin")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "the helpers of these tests")]

use std::fs;
use std::path::Path;

use xds_relay::file_origin::{Descriptors, Import, import, load_embedded};

#[path = "support/process.rs"]
#[allow(dead_code, reason = "other tests need the rest")]
mod process;

/// Listeners with routes and TLS, clusters with endpoints, secrets; a control plane and a local cluster.
const ENVOY: &str = r#"node: { id: a, cluster: b }
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 9901 } } }
cluster_manager: { local_cluster_name: local }
dynamic_resources:
  ads_config: { api_type: GRPC, transport_api_version: V3, grpc_services: [{ envoy_grpc: { cluster_name: xds } }] }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 0.0.0.0, port_value: 443 } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            name: web
            virtual_hosts:
            - { name: all, domains: ["*"], routes: [{ match: { prefix: / }, route: { cluster: "a/b" } }] }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context: { tls_certificate_sds_secret_configs: [{ name: cert }] }
  - address: { socket_address: { address: 0.0.0.0, port_value: 80 } }
  clusters:
  - name: a/b
    connect_timeout: 0.25s
    load_assignment:
      cluster_name: a/b
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } } }] }]
  - { name: A_b, connect_timeout: 1s }
  - { name: a_b, connect_timeout: 2s }
  - { name: xds, connect_timeout: 1s }
  - { name: local, connect_timeout: 1s }
  secrets:
  - name: cert
    tls_certificate: { certificate_chain: { filename: /c.pem }, private_key: { inline_string: "k3y: #1" } }
"#;

fn read(text: &str) -> Import {
    import("envoy.yaml", text, &Descriptors::built_in().unwrap()).unwrap()
}

#[test]
fn each_resource_is_a_file_that_is_served_as_it_was() {
    let imported = read(ENVOY);
    let names: Vec<&str> = imported.files.iter().map(|file| file.name.as_str()).collect();
    let expected = [
        "listener-web.yaml",
        "listener-listener-1.yaml",
        "cluster-a_b.yaml",
        "cluster-A_b-2.yaml",
        "cluster-a_b-3.yaml",
        "secret-cert.yaml",
    ];
    assert_eq!(names, expected);
    let secret: Vec<bool> = imported.files.iter().map(|file| file.is_secret).collect();
    assert_eq!(secret, [false, false, false, false, false, true]);
    let texts: Vec<(&str, &str)> = imported.files.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
    let resources = load_embedded(&texts, &Descriptors::built_in().unwrap()).unwrap();
    let served: Vec<(&str, &str)> = resources
        .iter()
        .map(|resource| (resource.type_url.rsplit('.').next().unwrap(), resource.name.as_str()))
        .collect();
    let expected = [
        ("Cluster", "A_b"),
        ("Cluster", "a/b"),
        ("Cluster", "a_b"),
        ("Listener", "listener-1"),
        ("Listener", "web"),
        ("Secret", "cert"),
    ];
    assert_eq!(served, expected);
    assert!(imported.files[5].text.contains(r##"inline_string: "k3y: #1""##), "{}", imported.files[5].text);
}

#[test]
fn what_is_otherwise_over_xds_is_told_with_its_place() {
    for (place, words) in [
        ("28:5: static_resources.listeners[1]: ", "is called `listener-1`"),
        ("37:5: static_resources.clusters[3]: ", "`xds` is not taken: Envoy asks a control plane there"),
        ("38:5: static_resources.clusters[4]: ", "`local` is not taken: it is the local_cluster_name"),
        (
            "27:70: static_resources.listeners[0].filter_chains[0].transport_socket.",
            "the secret `cert` is looked for in Envoy's own file",
        ),
        ("1:1: ", "not taken, as it is no resource: node, admin, cluster_manager, dynamic_resources"),
    ] {
        let notes = read(ENVOY).notes;
        let start = format!("envoy.yaml:{place}");
        assert!(
            notes.iter().any(|note| note.starts_with(&start) && note.contains(words)),
            "{start}{words}: {notes:#?}"
        );
    }
    let json = r#"{"staticResources": {"clusters": [{"name": "a", "connectTimeout": "1s"}]}}"#;
    let imported = read(json);
    assert_eq!((imported.files.len(), imported.notes), (1, Vec::new()));
}

#[test]
fn a_bad_file_is_an_error_with_its_place() {
    let descriptors = Descriptors::built_in().unwrap();
    for (text, expected) in [
        ("", "1:1: the file is empty"),
        ("admin: {}", "1:1: there are no static_resources: nothing to import"),
        ("static_resources: {}", "1:19: static_resources: there is no listener, cluster or secret to import"),
        (
            "static_resources: { clusters: [{ connect_timeout: 1s }] }",
            "1:32: static_resources.clusters[0]: the resource has no name",
        ),
        (
            "static_resources: { clusters: [{ name: a }, { name: a }] }",
            "1:45: static_resources.clusters[1]: there is a cluster `a` already",
        ),
        ("static_resources: { clusters: [{ name: a, nmae: b }] }", "1:43: static_resources.clusters[0]"),
        ("static_resources: { clusters: {} }", "static_resources.clusters"),
        ("static_resources: { clusters: [{ name: no }] }", "unquoted `no` is a boolean"),
        ("statistics: 1", "1:1: "),
        ("[", "1:1: "),
    ] {
        let error = import("envoy.yaml", text, &descriptors).unwrap_err().to_string();
        let starts = error.starts_with(&format!("envoy.yaml:{expected}"));
        assert!(starts || !expected.starts_with('1') && error.contains(expected), "{text}: {error}");
    }
    // What is wrong with a secret is said without it.
    let text = ENVOY.replace("inline_string: \"k3y: #1\"", "inline_string: [k3y]");
    let error = import("envoy.yaml", &text, &descriptors).unwrap_err().to_string();
    assert!(!error.contains("k3y"), "{error}");
}

#[test]
fn a_directory_is_written_that_is_good_and_nothing_is_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let envoy = directory.path().join("envoy.yaml");
    let to = directory.path().join("made/mesh");
    fs::write(&envoy, ENVOY).unwrap();
    let run = |arguments: &[&str]| {
        process::relay().arg("import").arg(&envoy).arg("--to").arg(&to).args(arguments).output().unwrap()
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("origins envoy (3 Cluster, 2 Listener, 1 Secret)\n"), "{said}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("note: "));
    let check = process::relay().arg("--config").arg(to.join("relay.yaml")).arg("--check").output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let secret = to.join("resources/secret-cert.yaml");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    }

    fs::write(&secret, "mine").unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("resources is there: --force writes over it"));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "mine");
    assert_eq!(run(&["--force"]).status.code(), Some(0));
    assert_ne!(fs::read_to_string(&secret).unwrap(), "mine");

    fs::write(&envoy, "static_resources: 1").unwrap();
    let output = run(&["--force"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(Path::new(&secret).exists());
}

#[test]
fn nobody_need_say_where_to_and_what_is_there_stays() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("envoy.yaml"), ENVOY).unwrap();
    let run = |more: &[&str]| {
        let mut command = process::relay();
        command.current_dir(directory.path()).args(["import", "envoy.yaml"]).args(more).output().unwrap()
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("mesh/relay.yaml: "));
    let mesh = directory.path().join("mesh");
    assert!(mesh.join("resources/secret-cert.yaml").exists());

    // Whatever is in it.
    fs::remove_dir_all(&mesh).unwrap();
    fs::create_dir(&mesh).unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`mesh` is there") && said.contains("--to DIRECTORY"), "{said}");
    assert_eq!(fs::read_dir(&mesh).unwrap().count(), 0);
    assert_eq!(run(&["--force"]).status.code(), Some(0));
    assert!(mesh.join("relay.yaml").exists());
}

#[test]
fn what_envoy_refuses_is_told_with_its_place_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (envoy, to) = (directory.path().join("envoy.yaml"), directory.path().join("mesh"));
    let run = || process::relay().arg("import").arg(&envoy).arg("--to").arg(&to).output().unwrap();
    fs::write(&envoy, ENVOY.replace("port_value: 443", "port_value: 99999")).unwrap();
    let output = run();
    let said = String::from_utf8(output.stderr).unwrap();
    let words = "envoy.yaml:9:64: static_resources.listeners[0].address.socket_address.port_value: expected at most 65535, found 99999";
    assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    assert!(!to.exists());
    fs::write(&envoy, ENVOY).unwrap();
    assert_eq!(run().status.code(), Some(0));
}
