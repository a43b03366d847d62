//! What a configuration may say, and how a bad one is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of these tests")]

use std::{fs, path::Path, time::Duration};

use xds_relay::{
    Config, ConfigError, ExampleMesh,
    config::{FileReading, Methods, NodeField, OriginKind, ReadyWhen, Secrets, Unknown, XdstpStreams},
};
use xds_transport::Protocol;

const ORIGINS: &str = "origins: [{ name: a, server: 127.0.0.1:18010 }]\n";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse("relay.yaml", text)
}

fn with_origins(text: &str) -> Config {
    parse(&format!("{ORIGINS}{text}")).unwrap()
}

#[test]
fn every_field_but_origins_has_a_default() {
    let config = parse(ORIGINS).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:18000");
    assert_eq!(config.admin.unwrap().to_string(), "127.0.0.1:18001");
    assert_eq!(config.admin_hosts, ["localhost"]);
    assert_eq!((config.node.id.as_str(), config.node.cluster.as_str()), ("xds-relay", "relays"));
    assert!(config.node.metadata.is_empty());
    assert_eq!(config.default_origin, "a");
    assert_eq!(config.share_by, None);
    assert_eq!(config.unknown, Unknown::End);
    assert_eq!((config.state, config.ready_when), (None, ReadyWhen::Started));
    assert_eq!(config.linger, Duration::from_secs(30));
    assert_eq!((config.drain_delay, config.drain), (Duration::ZERO, Duration::from_secs(10)));
    assert_eq!(config.limits.max_request_bytes, 16 << 20);
    assert_eq!(config.limits.max_response_bytes, 64 << 20);
    let [origin] = config.origins.as_slice() else { panic!("{:?}", config.origins) };
    assert!(origin.authorities.is_empty());
    assert_eq!((&origin.token, origin.methods), (&None, Methods::Ads));
    assert_eq!((origin.xdstp, origin.keepalive), (XdstpStreams::Shared, Duration::from_secs(300)));
    assert_eq!(origin.streams_per_connection.get(), 100);
    let OriginKind::Server { servers, protocol } = &origin.kind else { panic!("{origin:?}") };
    assert_eq!((servers[0].to_string().as_str(), *protocol), ("http://127.0.0.1:18010/", Protocol::Delta));
}

#[test]
fn every_field_can_be_given() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("resources")).unwrap();
    fs::write(directory.path().join("envoy.bin"), "").unwrap();
    let text = r#"
listen: "[::]:0"
admin: none
admin_hosts: [relay.example, relay_2]
node:
  id: relay-1
  cluster: edge
  locality: { region: r, zone: z, sub_zone: s }
  metadata: { tier: gold, weights: [1, 2.5], nested: { on: true } }
origins:
  - name: up
    server: "http://localhost:1"
    protocol: sotw
    methods: per_type
    xdstp: by_node
    keepalive: 30s
    streams_per_connection: 7
    authorities: [one, two]
  - { name: files, files: resources, descriptors: envoy.bin, authorities: [""] }
default_origin: files
share_by: [cluster, locality.zone, metadata.tier]
state: { path: kept, secrets: omit }
ready_when: last_known_good
unknown: wait
linger: 1m 30s
drain_delay: 5s
drain: 500ms
limits: { max_request_bytes: 4096, max_response_bytes: 1 GiB, connections: 10, max_upstream_request_bytes: 2 MiB, names_per_stream: 2, names: 3, types_per_stream: 10, parameter_sets_per_stream: 16,
          unfinished_request_bytes: 1 MiB, preface: 11s, first_request: 12s, stream_age: 13s, admin_idle: 14s,
          streams_per_connection: 15,
          authorities_per_stream: 4, authorities: 5, one_client: 40%, groups: 6, streams: 7, new_streams_per_second: 8, load_report_streams: 17,
          requests_per_second: 9, name_bytes: 1 KiB, node_bytes: 1 MiB }
"#;
    let file = directory.path().join("relay.yaml");
    fs::write(&file, text).unwrap();
    let config = Config::load(&file).unwrap();
    assert_eq!(config.listen.to_string(), "[::]:0");
    assert_eq!(config.admin, None);
    assert_eq!(config.admin_hosts, ["relay.example", "relay_2"]);
    assert_eq!(config.node.id, "relay-1");
    assert_eq!(config.node.locality.sub_zone, "s");
    assert_eq!(
        serde_json::Value::from(config.node.metadata.clone()),
        serde_json::json!({"tier": "gold", "weights": [1, 2.5], "nested": {"on": true}})
    );
    assert_eq!(config.default_origin, "files");
    assert_eq!(config.authorities().into_iter().collect::<Vec<_>>(), [("", "files"), ("one", "up"), ("two", "up")]);
    let up = config.origin("up").unwrap();
    let OriginKind::Server { protocol, .. } = up.kind else { panic!("a server") };
    assert_eq!((protocol, up.methods), (Protocol::Sotw, Methods::PerType));
    assert_eq!((up.xdstp, up.keepalive), (XdstpStreams::ByNode, Duration::from_secs(30)));
    assert_eq!(up.streams_per_connection.get(), 7);
    assert_eq!(
        config.origin("files").unwrap().kind,
        OriginKind::Files {
            directory: directory.path().join("resources"),
            descriptors: Some(directory.path().join("envoy.bin")),
            reading: FileReading::default(),
        },
        "relative paths start where the file is"
    );
    assert_eq!(
        config.share_by.unwrap(),
        [NodeField::Cluster, NodeField::Zone, NodeField::Metadata(vec!["tier".to_owned()])]
    );
    let state = config.state.unwrap();
    assert_eq!((state.path, state.secrets), (directory.path().join("kept"), Secrets::Omit));
    assert_eq!(config.ready_when, ReadyWhen::LastKnownGood);
    assert_eq!(config.unknown, Unknown::Wait);
    assert_eq!((config.linger, config.drain), (Duration::from_secs(90), Duration::from_millis(500)));
    assert_eq!(config.drain_delay, Duration::from_secs(5));
    let limits = config.limits;
    assert_eq!(limits.connections.map(std::num::NonZero::get), Some(10));
    assert_eq!((limits.max_request_bytes, limits.max_response_bytes), (4096, 1 << 30));
    assert_eq!(limits.max_upstream_request_bytes, 2 << 20);
    assert_eq!((limits.names_per_stream, limits.names, limits.authorities_per_stream), (2, 3, 4));
    assert_eq!(limits.parameter_sets_per_stream, 16);
    let times = [limits.preface, limits.first_request, limits.stream_age, limits.admin_idle];
    assert_eq!(times, [11, 12, 13, 14].map(Duration::from_secs));
    assert_eq!((limits.unfinished_request_bytes, limits.streams_per_connection), (1 << 20, 15));
    assert_eq!((limits.authorities, limits.one_client, limits.groups, limits.streams), (5, 40, 6, 7));
    assert_eq!(limits.load_report_streams, 17);
    assert_eq!((limits.name_bytes, limits.node_bytes), (1 << 10, 1 << 20));
    assert_eq!((limits.new_streams_per_second, limits.requests_per_second, limits.types_per_stream), (8, 9, 10));
}

#[test]
fn durations_are_written_with_their_unit() {
    for (text, duration) in [
        ("30s", Duration::from_secs(30)),
        ("500ms", Duration::from_millis(500)),
        ("2m", Duration::from_secs(120)),
        ("24h", Duration::from_secs(86_400)),
        ("0s", Duration::ZERO),
    ] {
        assert_eq!(with_origins(&format!("linger: {text}\n")).linger, duration, "{text}");
    }
}

/// Text, then the whole message; `ORIGINS` stands in the first line of those that need it.
#[test]
fn an_error_names_file_line_column_field_and_what_was_expected() {
    let expected_origins = "expected a list of at least one origin, each with a name and a server or files";
    for (text, message) in [
        // not the form at all
        ("", format!("1:1: origins: missing; {expected_origins}")),
        ("# nothing\n", format!("1:1: origins: missing; {expected_origins}")),
        ("- a\n", "1:1: expected fields".to_owned()),
        ("origins: [\n", "1:10: origins: `[` is never closed".to_owned()),
        ("listne: 127.0.0.1:1\n", "1:1: listne: unknown field `listne`".to_owned()),
        ("linger: 1s\nlinger: 2s\n", "2:1: key `linger` occurs twice".to_owned()),
        ("linger:\n", "1:7: linger: empty; expected a value".to_owned()),
        ("linger: [1]\n", "1:9: linger: expected a single value".to_owned()),
        ("node: { locality: { country: x } }\n", "1:21: node.locality.country: unknown field `country`".to_owned()),
        ("node: { metadata: { a: no } }\n", "1:24: node.metadata.a: unquoted `no` is a boolean in YAML 1.1".to_owned()),
        ("node: { id: !env ID }\n", "1:13: node.id: tag `!env` is not supported".to_owned()),
        ("listen: a\n---\nlisten: b\n", "2:1: a second document: a file holds one".to_owned()),
        // addresses
        ("listen: localhost\n", "1:9: listen: `localhost`: expected IP:PORT".to_owned()),
        ("listen: 127.0.0.1:65536\n", "1:9: listen: `127.0.0.1:65536`: expected IP:PORT".to_owned()),
        ("admin: off\n", "1:8: admin: `off`: expected IP:PORT, such as 127.0.0.1:18001, unix:PATH, or none".to_owned()),
        (
            "admin_hosts: [a, b:1]\n",
            "1:18: admin_hosts[1]: `b:1`: expected the name of a host without a port".to_owned(),
        ),
        ("listen: 127.0.0.1:1\nadmin: 127.0.0.1:1\n", "2:8: admin: the same address as listen".to_owned()),
        // origins
        ("origins: []\n", format!("1:10: origins: empty; {expected_origins}")),
        ("origins: 3\n", "1:10: origins: expected a list".to_owned()),
        ("origins:\n  - server: a:1\n", "2:5: origins[0].name: missing".to_owned()),
        ("origins:\n  - name: a b\n", "2:11: origins[0].name: `a b`: expected up to 64 letters".to_owned()),
        ("origins:\n  - name: a\n", "2:5: origins[0]: expected server: HOST:PORT, servers: [HOST:PORT, …] or files: DIRECTORY".to_owned()),
        (
            "origins:\n  - name: a\n    server: a:1\n  - name: a\n    server: b:1\n",
            "4:11: origins[1].name: `a` is the name of origins[0] already".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a\n",
            "3:13: origins[0].server: `a`: expected HOST:PORT or http://HOST:PORT".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    tls: { ca: none.pem }\n",
            "4:16: origins[0].tls.ca: no file none.pem".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    tls: { key: Cargo.toml }\n",
            "4:10: origins[0].tls: a key without a certificate; expected both or neither".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    tls: { server_name: 'a b' }\n",
            "4:25: origins[0].tls.server_name: `a b`: expected the name of a host or an address".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    files: .\n    tls: {}\n",
            "4:10: origins[0].tls: only an origin with a server has a connection".to_owned(),
        ),
        ("tls: {}\n", "1:6: tls.certificate: missing".to_owned()),
        ("tls: { certificate: Cargo.toml }\n", "1:6: tls.key: missing".to_owned()),
        ("tls: { ca: Cargo.toml }\n", "1:8: tls.ca: unknown field `ca`, expected one of certificate, key".to_owned()),
        (
            "origins:\n  - name: a\n    server: a:1\n    protocol: dleta\n",
            "4:15: origins[0].protocol: `dleta`: expected delta or sotw".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    sever: a:1\n",
            "3:5: origins[0].sever: unknown field `sever`, expected one of name, server".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    files: .\n",
            "4:12: origins[0].files: an origin has a server or files, not both".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    files: no/such/directory\n",
            "3:12: origins[0].files: no directory no/such/directory".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    files: .\n    protocol: sotw\n",
            "4:15: origins[0].protocol: only an origin with a server".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    xdstp: mine\n",
            "4:12: origins[0].xdstp: `mine`: expected shared or by_node".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    files: .\n    xdstp: by_node\n",
            "4:12: origins[0].xdstp: only an origin with a server".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    keepalive: 9s\n",
            "4:16: origins[0].keepalive: `9s`: expected at least 10s".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    streams_per_connection: 0\n",
            "4:29: origins[0].streams_per_connection: `0`: expected a number from 1 to 1000000".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    files: .\n    streams_per_connection: 1\n",
            "4:29: origins[0].streams_per_connection: only an origin with a server".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    files: .\n    keepalive: 5m\n",
            "4:16: origins[0].keepalive: only an origin with a server".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: localhost:18000\n",
            "3:13: origins[0].server: `localhost:18000`: where the relay itself listens (127.0.0.1:18000)".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: '[::1]:7'\nlisten: 0.0.0.0:7\n",
            "3:13: origins[0].server: `[::1]:7`: where the relay itself listens (0.0.0.0:7)".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: localhost:18001\n",
            "3:13: origins[0].server: `localhost:18001`: where the relay itself has its admin pages (127.0.0.1:18001); \
             expected another server"
                .to_owned(),
        ),
        (
            "admin: { address: 0.0.0.0:7, token: Cargo.toml, tls: { certificate: Cargo.toml, key: Cargo.toml } }\n\
             origins:\n  - name: a\n    server: '[::1]:7'\n",
            "4:13: origins[0].server: `[::1]:7`: where the relay itself has its admin pages (0.0.0.0:7)".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    descriptors: d\n",
            "4:18: origins[0].descriptors: only an origin with files".to_owned(),
        ),
        (
            "origins:\n  - name: a\n    server: a:1\n    authorities: [x, xdstp://y]\n",
            "4:22: origins[0].authorities[1]: `xdstp://y`: expected an authority alone".to_owned(),
        ),
        (
            "origins:\n  - { name: a, server: a:1, authorities: [x] }\n  - { name: b, server: b:1, authorities: [x] }\n",
            "3:43: origins[1].authorities[0]: `x` is listed by origin `a` already".to_owned(),
        ),
        (
            "origins:\n  - { name: a, server: a:1, authorities: [x, x] }\n",
            "2:46: origins[0].authorities[1]: `x` is listed by origin `a` already".to_owned(),
        ),
        (
            "default_origin: b\norigins: [{ name: a, server: a:1 }]\n",
            "1:17: default_origin: no origin `b`; expected one of a".to_owned(),
        ),
    ] {
        refused(text, &message);
    }
    for (text, message) in [
        ("share_by: []", "2:11: share_by: empty"),
        ("share_by: [cluster, locality.country]", "2:21: share_by[1]: `locality.country`: expected id, cluster"),
        ("share_by: [metadata.]", "2:12: share_by[0]: `metadata.`: expected id, cluster"),
        ("share_by: [id, id]", "2:16: share_by[1]: `id`: listed twice"),
        ("state: here", "2:8: state: expected fields"),
        ("state: {}", "2:8: state.path: missing; expected a directory for what is known, such as /var/lib/xds-relay"),
        ("state: { path: /dev/null }", "2:16: state.path: /dev/null is no directory"),
        ("state: { path: /none/there }", "2:16: state.path: no directory /none to make it in"),
        ("state: { path: ., secrets: keep }", "2:28: state.secrets: `keep`: expected omit, or encrypted: FILE"),
        ("state: { paht: . }", "2:10: state.paht: unknown field `paht`, expected one of path, secrets"),
        ("ready_when: now", "2:13: ready_when: `now`: expected started, origins or last_known_good"),
        ("unknown: stay", "2:10: unknown: `stay`: expected end or wait"),
        ("linger: 30", "2:9: linger: `30`: expected a duration, such as 500ms, 30s or 2m"),
        ("linger: -1s", "2:9: linger: `-1s`: expected a duration"),
        ("linger: 99999999999999999999s", "2:9: linger: `99999999999999999999s`: expected a duration"),
        ("drain: 25h", "2:8: drain: `25h`: expected at most 24h"),
        (
            "limits: { max_request_bytes: 1 }",
            "2:30: limits.max_request_bytes: `1`: expected 4 KiB to 2 GiB, such as 16777216 or 16 MiB",
        ),
        ("limits: { max_response_bytes: 2 GiB }", "2:31: limits.max_response_bytes: `2 GiB`: expected 4 KiB"),
        (
            "limits: { max_upstream_request_bytes: 512 KiB }",
            "2:39: limits.max_upstream_request_bytes: `512 KiB`: expected 1024 KiB",
        ),
        ("limits: { max_response_bytes: lots }", "2:31: limits.max_response_bytes: `lots`: expected 4 KiB"),
        (
            "limits: { name_bytes: 65 KiB }",
            "2:23: limits.name_bytes: `65 KiB`: expected 1 KiB to 64 KiB, such as 4096 or 4 KiB",
        ),
        ("limits: { node_bytes: 1023 }", "2:23: limits.node_bytes: `1023`: expected 1 KiB to 1024 KiB"),
        ("limits: { connections: 0 }", "2:24: limits.connections: `0`: expected a number from 1 to 1000000"),
        ("limits: { one_client: 101% }", "2:23: limits.one_client: `101%`: expected a part, 1% to 100%"),
        ("limits: { one_client: 50 }", "2:23: limits.one_client: `50`: expected a part, 1% to 100%"),
        ("limits: { names: 0 }", "2:18: limits.names: `0`: expected a number, 1 to 1000000000"),
        ("limits: { preface: 0s }", "2:20: limits.preface: expected some time"),
        ("limits: { streams: many }", "2:20: limits.streams: `many`: expected a number, 1 to 1000000000"),
        (
            "limits: { requests_per_second: -1 }",
            "2:32: limits.requests_per_second: `-1`: expected a number, 1 to 1000000",
        ),
        ("limits: { max_responses: 1 }", "2:11: limits.max_responses: unknown field `max_responses`"),
    ] {
        refused(&format!("{ORIGINS}{text}\n"), message);
    }
}

fn refused(text: &str, message: &str) {
    let error = parse(text).expect_err(text);
    let (shown, start) = (error.to_string(), format!("relay.yaml:{message}"));
    assert!(shown.starts_with(&start), "{text}\n shown: {shown}\nwanted: {start}");
    assert!(!shown.contains('\n'), "one line: {shown}");
    assert_eq!(error.file(), Path::new("relay.yaml"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::load("no/such/relay.yaml").unwrap_err();
    assert!(matches!(error, ConfigError::Unreadable { .. }));
    assert!(error.to_string().starts_with("no/such/relay.yaml: "), "{error}");
}

#[test]
fn deep_nesting_is_refused_not_followed() {
    let text = format!("node: {{ metadata: {{ a: {} }} }}\n{ORIGINS}", "[".repeat(10_000));
    assert!(matches!(parse(&text), Err(ConfigError::Invalid { line: 1, .. })));
}

#[test]
fn a_tree_of_aliases_is_refused_not_expanded() {
    let mut text = String::from("node:\n  metadata:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..20 {
        let references = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("    a{i}: &a{i} [{references}]\n"));
    }
    text.push_str(ORIGINS);
    assert!(matches!(parse(&text), Err(ConfigError::Invalid { .. })));
}

#[test]
fn the_example_mesh_is_a_good_configuration_and_leaves_nothing_behind() {
    let mesh = ExampleMesh::unpack().unwrap();
    let directory = mesh.directory().to_owned();
    let config = mesh.config().unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:18000");
    assert_eq!(config.admin.unwrap().to_string(), "127.0.0.1:18001");
    let OriginKind::Files { directory: files, .. } = &config.origins[0].kind else { panic!("files") };
    for name in ["front.yaml", "front-xdstp.yaml", "greeter.yaml", "greeter-xdstp.yaml"] {
        let text = fs::read_to_string(files.join(name)).unwrap();
        for kind in ["Listener", "RouteConfiguration", "Cluster", "ClusterLoadAssignment"] {
            assert!(text.contains(&format!("v3.{kind}\n")), "{name} has a {kind}");
        }
    }
    drop(mesh);
    assert!(!directory.exists());
}

#[cfg(unix)]
#[test]
fn a_unix_socket_has_a_directory_and_a_name_that_the_system_takes() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let parse = |text: &str| Config::parse(directory.path().join("relay.yaml"), &format!("{ORIGINS}{text}"));
    let config = parse("listen: unix:a.sock\nadmin: unix:///run/../b.sock\n").unwrap();
    assert_eq!(config.listen.to_string(), format!("unix:{}", directory.path().join("a.sock").display()));
    assert_eq!(config.admin.unwrap().to_string(), "unix:/run/../b.sock");
    let config = "origins: [{ name: a, server: unix:a.sock }, { name: b, server: 'unix:///a' }]";
    let config = Config::parse(directory.path().join("relay.yaml"), config).unwrap();
    let at = |origin: &str| match &config.origin(origin).unwrap().kind {
        OriginKind::Server { servers, .. } => servers[0].to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(at("a"), format!("unix:{}", directory.path().join("a.sock").display()));
    assert_eq!(at("b"), "unix:/a");
    let shown = format!("{}/", directory.path().display());
    for (text, words) in [
        ("listen: unix:none/a.sock", "2:9: listen: no directory $none to make it in"),
        ("listen: unix:file", "2:9: listen: $file is there and no socket"),
        ("listen: 'unix:'", "2:9: listen: unix:: expected unix:PATH or unix-abstract:NAME"),
        ("listen: unix://host/a", "2:9: listen: unix://host/a: expected unix:PATH, unix:///PATH or unix-abstract:NAME"),
        ("listen: unix:a\nadmin: unix:a", "3:8: admin: the same address as listen; expected another one"),
        ("listen: unix:a\ndefault_origin: x", "3:17: default_origin: no origin `x`; expected one of a"),
    ] {
        let said = parse(text).unwrap_err().to_string().replace(&shown, "$");
        assert_eq!(said, format!("$relay.yaml:{words}"));
    }
    let own = "listen: unix:a\norigins:\n- { name: a, server: unix:a }";
    let said = Config::parse(directory.path().join("relay.yaml"), own).unwrap_err().to_string();
    assert!(said.contains("origins[0].server: `unix:a`: where the relay itself listens (unix:"), "{said}");
}
