//! What is said of a configuration, or of what it names, that is not what it should be.
#![cfg(all(unix, feature = "file-origin"))]
#![allow(clippy::unwrap_used, reason = "the helpers of these tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Standard error of `--check`, which finds fault.
fn fault(config: &Path) -> String {
    let mut relay = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
    let output = relay.arg("--check").arg("--config").arg(config).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A FIFO that somebody is about to write an empty document into.
fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let path = path.to_owned();
    std::thread::spawn(move || fs::OpenOptions::new().write(true).open(path));
}

#[test]
fn what_is_no_text_file_is_named_with_what_it_is_and_never_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("directory")).unwrap();
    fifo(&path("fifo"));
    fs::write(path("binary"), b"listen: 127.0.0.1:1\nadmin: \xff\n").unwrap();
    let place = |name: &str| path(name).display().to_string();
    for (name, words) in [
        ("directory", ": a directory, not a file"),
        ("fifo", ": a FIFO, not a file"),
        ("binary", ":2:8: not UTF-8: the byte 0xff, at offset 27 of the file"),
    ] {
        assert_eq!(fault(&path(name)), format!("xds-relay: {}{words}\n", place(name)));
    }

    let config = path("relay.yaml");
    fs::write(&config, "listen: 127.0.0.1:0\nadmin: none\norigins: [{ name: mesh, files: mesh }]\n").unwrap();
    let resource = path("mesh").join("a.yaml");
    let made: [(&dyn Fn(), &str); 3] = [
        (&|| fs::create_dir(&resource).unwrap(), ": a directory, not a file"),
        (&|| fifo(&resource), ": a FIFO, not a file"),
        (
            &|| fs::write(&resource, b"resources:\n- \xc3(").unwrap(),
            ":2:3: not UTF-8: the byte 0xc3, at offset 13 of the file",
        ),
    ];
    for (make, words) in made {
        fs::create_dir(path("mesh")).unwrap();
        make();
        assert_eq!(fault(&config), format!("xds-relay: origin \"mesh\": {}{words}\n", resource.display()));
        fs::remove_dir_all(path("mesh")).unwrap();
    }

    fifo(&path("key"));
    for named in [
        "tls: { certificate: key, key: key }",
        "aggregation: { rules: key }",
        "admin: { address: '127.0.0.1:0', token: key }",
    ] {
        fs::write(&config, format!("listen: 127.0.0.1:0\n{named}\norigins: [{{ name: up, server: 'a:1' }}]\n"))
            .unwrap();
        let fault = fault(&config);
        assert!(fault.ends_with(&format!("{}: a FIFO, not a file\n", place("key"))), "{named}: {fault}");
    }
}

#[test]
fn servers_are_checked_one_by_one_and_what_is_wrong_is_named_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("relay.yaml");
    for (servers, place) in [
        ("servers: []", "2:31: origins[0].servers: empty; expected at least one server"),
        ("servers: a:1", "2:31: origins[0].servers: expected a list"),
        ("servers: [a:1, b]", "2:37: origins[0].servers[1]: `b`: expected HOST:PORT"),
        ("servers: [a:1, b:1, a:1]", "2:42: origins[0].servers[2]: `a:1` is servers[0] already"),
        ("servers: [a:1, 'https://b:1']", "2:37: origins[0].servers[1]: `b:1`: expected no https://"),
        (
            "servers: ['unix:/a', 'unix:/b', 'unix:///a']",
            "2:54: origins[0].servers[2]: `unix:/a` is servers[0] already",
        ),
        ("servers: [a:1, 'unix:']", "2:37: origins[0].servers[1]: unix:: expected unix:PATH"),
        ("servers: ['unix:/a'], token: .", "2:51: origins[0].token: a token goes over TLS only"),
        ("servers: ['https://a:1', b:1]", "2:47: origins[0].servers[1]: `b:1`: expected https://"),
        ("servers: [a:1, 'localhost:18000']", "2:37: origins[0].servers[1]: `localhost:18000`: where the relay itself"),
        ("server: a:1, servers: [b:1]", "2:44: origins[0].servers: an origin has a server or servers, not both"),
        ("servers: [a:1], files: .", "2:45: origins[0].files: an origin has a server or files, not both"),
    ] {
        fs::write(&config, format!("admin: none\norigins: [{{ name: a, {servers} }}]\n")).unwrap();
        let fault = fault(&config);
        assert!(fault.starts_with(&format!("xds-relay: {}:{place}", config.display())), "{fault}");
    }
    fs::write(&config, "admin: none\norigins: [{ name: a, servers: [b.example.com:1, c.example.com:1] }]\n").unwrap();
    let good =
        Command::new(env!("CARGO_BIN_EXE_xds-relay")).arg("--check").arg("--config").arg(&config).output().unwrap();
    assert!(good.status.success(), "{good:?}");
}

/// The words of `--check` for a configuration with this text, without the name of its file.
fn fault_of(directory: &Path, text: &str) -> String {
    let config = directory.join("relay.yaml");
    fs::write(&config, text).unwrap();
    let said = fault(&config);
    let start = format!("xds-relay: {}:", config.display());
    assert!(said.starts_with(&start), "{said}");
    said.replacen(&start, "", 1).replace(&format!("{}/", directory.display()), "")
}

#[test]
fn whatever_a_field_names_is_said_with_the_place_of_the_field() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["empty.pem", "set"] {
        fs::write(directory.path().join(name), "").unwrap();
    }
    fs::write(directory.path().join("set"), b"\xff").unwrap();
    fs::create_dir(directory.path().join("mesh")).unwrap();
    let origins = "origins:\n- name: up\n  server: a:1\n";
    for (text, words) in [
        (
            format!("{origins}tls:\n  certificate: empty.pem\n  key: empty.pem\n"),
            "6:8: tls.key: empty.pem: there is no certificate in it; expected PEM\n",
        ),
        (
            format!("{origins}  tls: {{ ca: empty.pem }}\n"),
            "4:14: origins[0].tls.ca: empty.pem: there is no certificate in it; expected PEM\n",
        ),
        (
            "origins:\n- { name: mesh, files: mesh, descriptors: set }\n".to_owned(),
            "2:43: origins[0].descriptors: set: not a usable descriptor set: ",
        ),
        (
            format!("{origins}state: {{ path: kept, secrets: {{ encrypted: empty.pem }} }}\n"),
            "4:44: state.secrets.encrypted: empty.pem:1: no key; expected one in each line",
        ),
        (
            "origins:\n- { name: up, servers: ['https://a:1', 'unix:/b'], token: empty.pem }\n".to_owned(),
            "2:59: origins[0].token: empty.pem: ",
        ),
        (format!("{origins}state:\n  path: /proc/foo\n"), "5:9: state.path: nothing can be kept in /proc/foo: "),
        (
            format!("listen: 127.0.0.1:18001\n{origins}"),
            "1:9: listen: `127.0.0.1:18001`: where the admin pages are if nothing is said of them; ",
        ),
        (format!("listen: 0.0.0.0:7\nadmin: 127.0.0.1:7\n{origins}"), "2:8: admin: the same address as listen; "),
    ] {
        let said = fault_of(directory.path(), &text);
        assert!(said.starts_with(words), "{said}");
    }
}

#[test]
fn a_directory_for_the_state_is_tried_and_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("relay.yaml");
    fs::write(&config, "state: { path: kept }\norigins: [{ name: up, server: a:1 }]\n").unwrap();
    let check = || Command::new(env!("CARGO_BIN_EXE_xds-relay")).arg("--check").arg("--config").arg(&config).output();
    for there in [false, true] {
        let kept = directory.path().join("kept");
        assert_eq!(check().unwrap().status.code(), Some(0));
        let found = fs::read_dir(&kept).map(Iterator::count);
        assert_eq!((kept.is_dir(), found.unwrap_or_default()), (there, 0));
        let _ = fs::create_dir(kept);
    }
}

#[test]
fn files_are_held_to_rules_filled_in_and_looked_for_as_their_origin_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("mesh/below")).unwrap();
    let cluster = |name: &str, more: &str| {
        let cluster = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster";
        format!("resources: [{{ {cluster}, name: '{name}'{more} }}]\n")
    };
    fs::write(path("mesh/below/bad.yaml"), cluster("b", ", connect_timeout: 0s")).unwrap();
    fs::write(path("mesh/a.yaml"), cluster("${THERE}", "")).unwrap();
    let check = |fields: &str| {
        let config = path("relay.yaml");
        fs::write(&config, format!("admin: none\norigins: [{{ name: a, files: mesh{fields} }}]\n")).unwrap();
        let mut relay = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
        relay.arg("--check").arg("--config").arg(&config).env("THERE", "here").env_remove("ABSENT");
        let output = relay.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap().replace(&format!("{}/", directory.path().display()), "");
        (output.status.code(), said, String::from_utf8(output.stdout).unwrap())
    };
    let (code, said, found) = check("");
    assert!(code == Some(0) && said.is_empty() && found.contains("1 Cluster"), "{said}{found}");
    let told = "xds-relay: origin \"a\": mesh/below/bad.yaml:1:105: resources[0].connect_timeout: expected more than 0s, \
                found 0s; in Cluster `b`\n";
    assert_eq!(check(", sub_directories: true").1, told);
    let (code, said, found) = check(", sub_directories: true, validate: false, environment: true");
    assert!(code == Some(0) && found.contains("2 Cluster"), "{said}{found}");
    fs::write(path("mesh/a.yaml"), cluster("${ABSENT}", "")).unwrap();
    let (code, said, _) = check(", environment: true");
    let told =
        "mesh/a.yaml:1:83: resources[0].name: `${ABSENT}`: the environment has no ABSENT, and there is no default\n";
    assert_eq!((code, said), (Some(2), format!("xds-relay: origin \"a\": {told}")));
    for (field, words) in [
        ("validate", "only an origin with files, or in etcd or kubernetes, is read as texts"),
        ("environment", "only an origin with files reads files"),
        ("sub_directories", "only an origin with files reads files"),
    ] {
        let config = format!("origins: [{{ name: a, server: 'a:1', {field}: true }}]");
        let said = fault_of(directory.path(), &config);
        assert!(said.contains(&format!("origins[0].{field}: {words}")), "{said}");
    }
}

#[test]
fn a_type_that_nobody_knows_is_warned_of_and_good() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("relay.yaml");
    let types = "[Listner, Listener, ListenerCollection, envoy.config.cluster.v3.Cluster, tener, example.Limit]";
    fs::write(
        &config,
        format!("admin: none\norigins: [{{ name: a, server: 'a:1' }}]\nclients: [{{ match: {{ any: true }}, types: {types} }}]\n"),
    )
    .unwrap();
    let mut relay = Command::new(env!("CARGO_BIN_EXE_xds-relay"));
    let output = relay.arg("--check").arg("--config").arg(&config).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let told: Vec<_> =
        said.lines().filter_map(|line| line.split_once("clients[0].types[")?.1.split(']').next()).collect();
    assert_eq!(told, ["0", "4", "5"], "{said}");
}

#[test]
fn how_rules_are_understood_is_said_within_aggregation() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rules.yaml"), "").unwrap();
    for (field, value) in [("legacy_all_matches", "true"), ("unmatched", "reject")] {
        let text = format!("origins: [{{ name: a, server: 'a:1' }}]\naggregation: rules.yaml\n{field}: {value}\n");
        let place = 3 + field.len();
        let words = format!(
            "3:{place}: {field}: it is a field of aggregation; expected aggregation: {{ rules: FILE, {field}: {value} }}\n"
        );
        assert_eq!(fault_of(directory.path(), &text), words);
    }
}
