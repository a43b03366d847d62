//! The command line, as a process.

#![allow(clippy::unwrap_used, reason = "the helpers of these tests")]

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

#[path = "support/process.rs"]
mod process;

use process::{PATIENCE, Running, answer, connect, file, lines, relay};

const ORIGIN: &str = "origins: [{ name: up, server: 127.0.0.1:1, authorities: [example.com] }]\n";

fn check(file: &Path) -> Output {
    relay().arg("--config").arg(file).arg("--check").output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn check_of_a_good_file_says_what_it_found() {
    let (_directory, file) = file(ORIGIN);
    let output = check(&file);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "good: listen 127.0.0.1:18000, admin 127.0.0.1:18001, origins up\n");
    assert!(output.stderr.is_empty());
}

#[test]
fn a_bad_file_is_one_line_and_exit_code_2_checked_or_run() {
    let (_directory, file) = file("origins:\n  - name: a\n    server: a:1\n    protocol: dleta\n");
    let run = relay().arg("--config").arg(&file).output().unwrap();
    for output in [check(&file), run] {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
        assert_eq!(
            text(&output.stderr),
            format!("xds-relay: {}:4:15: origins[0].protocol: `dleta`: expected delta or sotw\n", file.display())
        );
    }
}

#[cfg(feature = "file-origin")]
#[test]
fn resource_files_are_read_by_a_check_and_a_bad_one_is_exit_code_2_checked_or_run() {
    let (directory, file) = file("listen: 127.0.0.1:0\nadmin: none\norigins: [{ name: mesh, files: mesh }]\n");
    let resources = directory.path().join("mesh");
    fs::create_dir(&resources).unwrap();
    let cluster = "resources:\n- \"@type\": x/envoy.config.cluster.v3.Cluster\n  name: a\n";
    fs::write(resources.join("a.yaml"), cluster).unwrap();
    let output = check(&file);
    assert_eq!(text(&output.stdout), "good: listen 127.0.0.1:0, admin none, origins mesh (1 Cluster)\n", "{output:?}");

    fs::write(resources.join("a.yaml"), format!("{cluster}  nmae: b\n")).unwrap();
    let run = relay().arg("--config").arg(&file).output().unwrap();
    for output in [check(&file), run] {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
        let place = format!("xds-relay: origin \"mesh\": {}:4:3: resources[0]: ", resources.join("a.yaml").display());
        assert!(text(&output.stderr).contains(&place), "{output:?}");
    }
}

#[cfg(feature = "file-origin")]
#[test]
fn a_check_notes_what_resources_refer_to_and_no_file_has() {
    let (directory, file) = file("listen: 127.0.0.1:0\nadmin: none\norigins: [{ name: mesh, files: mesh }]\n");
    let resources = directory.path().join("mesh");
    fs::create_dir(&resources).unwrap();
    let cluster = "resources:\n- {\"@type\": x/envoy.config.cluster.v3.Cluster, name: a, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}\n";
    fs::write(resources.join("a.yaml"), cluster).unwrap();
    let output = check(&file);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let place = resources.join("a.yaml").display().to_string();
    let words = "Cluster `a` refers to ClusterLoadAssignment `a`, which no file has";
    assert_eq!(text(&output.stderr), format!("xds-relay: note: {place}:2:3: {words}\n"));
}

/// It would be held, and served to nobody.
#[cfg(feature = "file-origin")]
#[test]
fn a_resource_file_with_names_of_another_origin_is_an_error_with_its_place() {
    let (directory, file) = file(
        "listen: 127.0.0.1:0\nadmin: none\norigins:\n- { name: up, server: 127.0.0.1:1, authorities: [theirs] }\n\
         - { name: mesh, files: mesh, authorities: [\"ours:1\"] }\n",
    );
    let resources = directory.path().join("mesh");
    fs::create_dir(&resources).unwrap();
    let cluster = |name: &str| {
        let text = format!("resources:\n- {{\"@type\": x/envoy.config.cluster.v3.Cluster, name: \"{name}\"}}\n");
        fs::write(resources.join("a.yaml"), text).unwrap();
    };
    cluster("xdstp://ours:1/envoy.config.cluster.v3.Cluster/a");
    assert_eq!(check(&file).status.code(), Some(0));
    for (name, reason) in [
        ("xdstp://theirs/envoy.config.cluster.v3.Cluster/a", "`theirs` comes from origin `up`"),
        ("xdstp://nobody/envoy.config.cluster.v3.Cluster/a", "`nobody` comes from origin `up`"),
        ("a", "names without an authority come from origin `up`"),
    ] {
        cluster(name);
        let output = check(&file);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let place = format!(
            "origin \"mesh\": {}:2:3: resources[0]: `{name}` is served to nobody: {reason}\n",
            resources.join("a.yaml").display()
        );
        assert!(text(&output.stderr).ends_with(&place), "{output:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_exit_code_2() {
    let output = check(Path::new("no/such/relay.yaml"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("xds-relay: no/such/relay.yaml: "), "{output:?}");
}

#[test]
fn an_address_that_is_taken_is_exit_code_1_and_names_its_field() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (_directory, file) = file(&format!("listen: 127.0.0.1:0\nadmin: {address}\n{ORIGIN}"));
    let output = relay().arg("--config").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let start = format!("xds-relay: cannot listen on {address} (admin): ");
    assert!(text(&output.stderr).contains(&start), "{output:?}");
    assert!(output.stdout.is_empty(), "nothing is said to be served");
}

#[test]
fn help_has_an_example_and_the_variable() {
    let output = relay().arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("xds-relay --config relay.yaml --check"));
    assert!(text(&output.stdout).contains("XDS_RELAY_LOG"));
    let version = relay().arg("--version").output().unwrap();
    assert_eq!(text(&version.stdout), format!("xds-relay {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_bad_log_filter_and_a_check_of_nothing_are_refused() {
    for (arguments, words) in [
        (["--log", "xds_relay=lots"].as_slice(), "character 11: \"lots\": expected off, error, "),
        (&["--log", "inof"], "character 1: \"inof\": expected off, error, "),
        (&["--log", "info,xds_rely=debug"], "character 6: \"xds_rely\" is no part of the program"),
        (&["--check"], "--config"),
    ] {
        let output = relay().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {output:?}");
        assert!(text(&output.stderr).contains(words), "{output:?}");
    }
}

/// Whatever is configured, there are fewer connections than descriptors, and who comes last is let in.
#[cfg(unix)]
#[test]
fn a_flood_of_connections_harms_neither_who_comes_after_it_nor_the_admin_pages() {
    for limits in ["", "limits: { connections: 1000 }"] {
        let (_directory, file) = file(&format!("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n{limits}\n{ORIGIN}"));
        let mut command = Command::new("sh");
        command.env_remove("XDS_RELAY_LOG").stdin(Stdio::null());
        command.args(["-c", "ulimit -n 80 && exec \"$0\" --config \"$1\"", env!("CARGO_BIN_EXE_xds-relay")]);
        command.arg(&file);
        let mut running = Running::start(command, "/config_dump\n");
        let said = lines(running.child.stderr.take().unwrap());
        let listen = running.address_after("xDS      ");
        let admin = running.address_after("admin    http://").trim_end_matches('/');

        let mut flood: Vec<_> = (0..120).map(|_| connect(listen)).collect();
        assert!(answer(flood.last_mut().unwrap(), "/").starts_with("HTTP/1.1 "));
        let metrics = answer(&mut connect(admin), "/metrics");
        let count = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok());
        // Of 80 descriptors 32 are for everything else, and who comes from here may have the others.
        assert_eq!(count("xds_relay_idle_connections_closed_total"), Some(120 - 48), "{metrics}");
        assert_eq!(count("xds_relay_downstream_refused_total{limit=\"connections\"}"), Some(0), "{metrics}");
        drop(flood);
        assert!(answer(&mut connect(admin), "/healthz").starts_with("HTTP/1.1 200 "));
        assert!(answer(&mut connect(listen), "/").starts_with("HTTP/1.1 "));
        drop(running);
        let words = "limits.connections is 1000, and descriptors allow 48 (ulimit -n)";
        assert_eq!(said.iter().any(|line| line.contains(words)), !limits.is_empty());
    }
}

#[cfg(unix)]
#[test]
fn that_the_state_of_another_process_is_waited_for_is_said() {
    let (_directory, file) = file(&format!("listen: 127.0.0.1:0\nadmin: none\nstate: {{ path: kept }}\n{ORIGIN}"));
    let start = || {
        let mut command = relay();
        command.arg("--config").arg(&file);
        command
    };
    let first = Running::start(start(), "origin   up");
    let mut second = start().stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let said = lines(second.stderr.take().unwrap());
    let waits = std::iter::from_fn(|| said.recv_timeout(PATIENCE).ok()).find(|line| line.contains("it is waited for"));
    second.kill().unwrap();
    second.wait().unwrap();
    drop(first);
    let waits = waits.unwrap();
    assert!(waits.contains("kept/state.redb") && waits.contains("at most 5 s"), "{waits}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_relay_that_serves_its_admin_pages() {
    for signal in ["TERM", "INT"] {
        let (_directory, file) = file(&format!("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n{ORIGIN}"));
        let mut command = relay();
        command.arg("--config").arg(&file);
        let mut running = Running::start(command, "/config_dump\n");
        assert!(running.greeting.contains("origin   up (127.0.0.1:1, delta): xdstp://example.com/…, everything else"));

        let admin = running.address_after("admin    http://").trim_end_matches('/');
        let answer = answer(&mut connect(admin), "/healthz");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

        let said = lines(running.child.stderr.take().unwrap());
        running.signal(signal);
        assert_eq!(running.child.wait().unwrap().code(), Some(0));
        let last = said.iter().last().unwrap();
        assert!(last.contains("the drain is over") && last.contains("streams=0"), "{last}");
    }
}

/// By which words somebody comes to the pages who has only these.
#[test]
fn how_the_admin_pages_are_reached_is_said_as_it_is() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (more, page) in [
        ("", "curl http://ADMIN/config_dump"),
        (", token: tokens", "curl --header 'authorization: Bearer TOKEN' http://ADMIN/config_dump"),
        (", tls: { certificate: a.pem, key: a.key }", "curl --cacert CA https://ADMIN/config_dump"),
        (
            ", token: tokens, tls: { certificate: a.pem, key: a.key, client_ca: a.pem }",
            "curl --cacert CA --cert CERTIFICATE --key KEY --header 'authorization: Bearer TOKEN' https://ADMIN/config_dump",
        ),
    ] {
        let (directory, file) =
            file(&format!("listen: 127.0.0.1:0\nadmin: {{ address: '127.0.0.1:0'{more} }}\n{ORIGIN}"));
        for (name, text) in [
            ("a.pem", certified.cert.pem()),
            ("a.key", certified.signing_key.serialize_pem()),
            ("tokens", "one-0123456789abcdef\n".to_owned()),
        ] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let mut command = relay();
        command.arg("--config").arg(&file);
        let running = Running::start(command, "/config_dump\n");
        let scheme = if more.contains("tls") { "https://" } else { "http://" };
        let admin = running.address_after("admin    ").strip_prefix(scheme).unwrap().trim_end_matches('/');
        let page = page.replace("ADMIN", admin);
        assert!(running.greeting.lines().any(|line| line.trim() == page), "{page}: {}", running.greeting);
    }
}

#[cfg(unix)]
#[test]
fn a_check_warns_of_keys_that_everybody_may_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, file) = file(&format!("{ORIGIN}state: {{ path: kept, secrets: {{ encrypted: keys }} }}\n"));
    let keys = directory.path().join("keys");
    fs::write(&keys, format!("{}\n", "ab".repeat(32))).unwrap();
    for (mode, warns) in [(0o644, true), (0o640, false), (0o600, false)] {
        fs::set_permissions(&keys, fs::Permissions::from_mode(mode)).unwrap();
        let output = check(&file);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = text(&output.stderr);
        assert_eq!(said.contains("everybody may read the keys of what is kept"), warns, "{mode:o}: {said}");
    }
}

/// A limit of the size of files, as `ulimit -f` sets it, is an error of what is written there, and the end of nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_not_grow_does_not_end_the_relay() {
    let (directory, file) =
        file(&format!("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstate: {{ path: kept }}\n{ORIGIN}"));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 2; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_xds-relay"), "--config"]).arg(&file);
    let relay = Running::start(limited, "/config_dump");
    let mut admin = connect(relay.address_after("http://").trim_end_matches('/'));
    assert!(answer(&mut admin, "/config_dump").contains("\"kept\": false"));
    assert!(directory.path().join("kept").is_dir());
}

#[test]
fn the_schema_is_json_for_editors() {
    let output = relay().arg("schema").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["linger"]["default"], "30s");
}

/// As its command line was: `-c`, `-a`, `-l`, `-m`; and what it is converted to.
#[test]
fn the_files_and_options_of_envoyproxys_relay_are_taken() {
    let (directory, bootstrap) = file(
        "server: { address: { address: 127.0.0.1, port_value: 9991 } }\n\
         origin_server: { address: { address: 127.0.0.1, port_value: 18000 } }\n\
         logging: { level: DEBUG }\ncache: { ttl: 600s, max_entries: 1000 }\n\
         admin: { address: { address: 127.0.0.1, port_value: 6070 } }\n\
         metrics_sink: { statsd: { address: { address: 12.34.56.78, port_value: 9012 }, root_prefix: x, flush_interval: 1s } }\n",
    );
    let rules = directory.path().join("rules.yaml");
    fs::write(&rules, "fragments: [{ rules: [{ match: { any_match: true }, result: { string_fragment: a } }] }]")
        .unwrap();
    let run = |arguments: &[&str]| relay().args(arguments).output().unwrap();
    let (from, by) = (bootstrap.to_str().unwrap(), rules.to_str().unwrap());
    let good = "good: listen 127.0.0.1:9991, admin 127.0.0.1:6070, origins origin\n";
    for arguments in [
        &["-c", from, "-a", by, "-l", "INFO", "-m", "validate"][..],
        &["--config-file", from, "--aggregation-rules", by, "--log-level", "debug", "--mode", "validate"],
        &["-c", from, "--check"],
    ] {
        let output = run(arguments);
        assert_eq!(text(&output.stdout), good, "{output:?}");
        assert!(text(&output.stderr).contains(":6:25: metrics_sink.statsd: "), "{output:?}");
    }

    // What is odd in the rules is said wherever they are looked at.
    let good_rules = fs::read_to_string(&rules).unwrap();
    fs::write(
        &rules,
        good_rules.replace("any_match: true", "request_node_match: { id_match: { regex_match: 'a**' } }"),
    )
    .unwrap();
    let native = directory.path().join("native.yaml");
    fs::write(&native, "admin: none\norigins: [{ name: origin, server: 'a:1' }]\naggregation: rules.yaml\n").unwrap();
    for arguments in [
        &["-c", from, "-a", by, "-m", "validate"][..],
        &["convert", from, "--aggregation", by],
        &["-c", native.to_str().unwrap(), "--check"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let odd = format!("xds-relay: note: {by}:1:81: error parsing regexp: invalid nested repetition operator: `**`");
        assert_eq!(text(&output.stderr).matches(&odd).count(), 1, "{output:?}");
    }
    fs::write(&rules, good_rules).unwrap();

    let converted = run(&["convert", from, "--aggregation", by]);
    assert_eq!(converted.status.code(), Some(0), "{converted:?}");
    assert!(text(&converted.stderr).contains("note: "), "{converted:?}");
    let elsewhere = tempfile::tempdir().unwrap();
    let config = elsewhere.path().join("relay.yaml");
    fs::write(&config, &converted.stdout).unwrap();
    assert_eq!(text(&check(&config).stdout), good);

    fs::write(&bootstrap, "origin_server: { address: 1 }\n").unwrap();
    for arguments in [&["convert", from][..], &["-c", from, "-m", "validate"], &["-c", from, "-a", by]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let place = format!("xds-relay: {from}:1:1: server: value is required\n");
        assert_eq!(text(&output.stderr), place);
    }
    let output = run(&["-c", from, "-m", "foo"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("invalid value 'foo' for '--mode <MODE>'"), "{output:?}");
    let output = run(&["convert", "no/such.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).starts_with("xds-relay: no/such.yaml: "), "{output:?}");
}
