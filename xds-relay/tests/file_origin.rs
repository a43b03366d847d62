//! Files as an origin, as an application sees it.
#![cfg(feature = "file-origin")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::path::Path;
use std::time::Duration;

use xds_relay::config::EXAMPLE;
use xds_relay::file_origin::{Descriptors, FileResource, load, load_embedded};

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

fn descriptors() -> Descriptors {
    Descriptors::built_in().unwrap()
}

fn failure(text: &str) -> String {
    load_embedded(&[("a.yaml", text)], &descriptors()).unwrap_err().to_string()
}

fn one(text: &str) -> FileResource {
    let mut resources = load_embedded(&[("a.yaml", text)], &descriptors()).unwrap();
    assert_eq!(resources.len(), 1);
    resources.remove(0)
}

fn write(directory: &Path, file: &str, text: &str) {
    std::fs::write(directory.join(file), text).unwrap();
}

/// A listener whose HTTP connection manager has this further line, the twelfth of the file.
fn listener_with(line: &str) -> String {
    format!(
        r#"resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: front
  address:
    socket_address: {{address: 127.0.0.1, port_value: 10000}}
  filter_chains:
  - filters:
    - name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: front
        {line}
        http_filters: []
"#
    )
}

#[test]
fn the_example_has_both_meshes_under_both_kinds_of_names() {
    let resources = load_embedded(EXAMPLE, &descriptors()).unwrap();
    let names = |type_url: &str| -> Vec<&str> {
        resources.iter().filter(|it| it.type_url == type_url).map(|it| it.name.as_str()).collect()
    };
    assert_eq!(resources.len(), 16);
    assert_eq!(
        names(LISTENER),
        [
            "front",
            "greeter",
            "xdstp://xds.example.com/envoy.config.listener.v3.Listener/greeter",
            "xdstp://xds.example.com/envoy.config.listener.v3.Listener/mesh/front",
        ]
    );
    assert_eq!(names(CLUSTER).len(), 4);
}

#[test]
fn errors_name_file_line_column_and_field_also_inside_an_any() {
    const INSIDE: &str = "resources[0].filter_chains[0].filters[0].typed_config";
    const HCM: &str = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    for (line, expected) in [
        ("codec_type: BOGUS", format!("12:21: {INSIDE}.codec_type: unrecognized enum value 'BOGUS'")),
        ("codec_typ: AUTO", format!("12:9: {INSIDE}: unrecognized field name 'codec_typ' in {HCM}")),
        (
            "common_http_protocol_options: {idle: 5s}",
            format!(
                "12:40: {INSIDE}.common_http_protocol_options: unrecognized field name 'idle' in envoy.config.core.v3.HttpProtocolOptions"
            ),
        ),
        (
            "access_log: [{typed: {}}]",
            format!(
                "12:23: {INSIDE}.access_log[0]: unrecognized field name 'typed' in envoy.config.accesslog.v3.AccessLog"
            ),
        ),
        ("server_name: 7", format!("12:22: {INSIDE}.server_name: invalid type: integer `7`, expected a string")),
        (
            "server_name: no",
            format!(
                "12:22: {INSIDE}.server_name: unquoted `no` is a boolean in YAML 1.1 and a string in YAML 1.2: \
                 write \"no\", or true or false"
            ),
        ),
        (
            "common_http_protocol_options: {idle_timeout: 5 minutes}",
            format!("12:54: {INSIDE}.common_http_protocol_options.idle_timeout: "),
        ),
        (
            "access_log: [{typed_config: {\"@type\": type.googleapis.com/no.Such}}]",
            format!(
                "12:38: {INSIDE}.access_log[0].typed_config: message 'no.Such' not found: no type that is known; others come with `descriptors`"
            ),
        ),
        ("stat_prefix: again", format!("12:9: {INSIDE}: key `stat_prefix` occurs twice")),
        ("server_name: [", "13:".to_owned()),
    ] {
        let error = failure(&listener_with(line));
        assert!(error.starts_with(&format!("a.yaml:{expected}")), "{line}: {error}");
    }
}

#[test]
fn an_any_is_understood_wherever_its_type_is_written() {
    let first = listener_with("codec_type: HTTP2");
    let type_line = first.lines().nth(9).unwrap();
    let last = first.replace(&format!("{type_line}\n"), "") + type_line + "\n";
    assert_eq!(one(&first), one(&last));
    assert!(failure(&last.replace("HTTP2", "BOGUS")).starts_with("a.yaml:11:21: resources[0].filter_chains[0]"));
}

#[test]
fn fields_may_be_written_in_either_case_and_json_is_read() {
    let snake =
        one(r#"{"resources": [{"@type": "x/envoy.config.cluster.v3.Cluster", "name": "a", "connect_timeout": "1s"}]}"#);
    let camel = one(
        "{\n\t\"resources\": [\n\t\t{\"name\": \"a\", \"connectTimeout\": \"1.0s\",\n\t\t\"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\"}]}",
    );
    assert_eq!(snake, camel);
    assert_eq!(snake.type_url, CLUSTER);
    assert_eq!(snake.value.as_ref(), [0x0a, 1, b'a', 0x22, 2, 0x08, 1]);
}

#[test]
fn what_a_discovery_response_has_besides_is_allowed_and_anything_else_is_not() {
    let descriptors = descriptors();
    let text = "version_info: \"1\"\ntype_url: x\nresources: []\n";
    assert_eq!(load_embedded(&[("a.yaml", text)], &descriptors).unwrap(), []);
    assert!(failure("resources: []\nresource: []\n").starts_with("a.yaml:2:1: unrecognized field name 'resource'"));
    assert_eq!(failure("# nothing\n"), "a.yaml:1:1: the file is empty");
    assert_eq!(failure("listeners: []\n"), "a.yaml:1:1: there is no list `resources`");
    assert_eq!(failure("resources: {}\n"), "a.yaml:1:12: resources: expected a list");
}

#[test]
fn a_wrapper_names_a_message_that_has_no_name() {
    const NAME: &str = "xdstp://xds.example.com/envoy.config.listener.v3.ListenerCollection/all";
    let collection = one(&format!(
        r#"
resources:
- name: {NAME}
  resource:
    "@type": type.googleapis.com/envoy.config.listener.v3.ListenerCollection
    entries:
    - locator: {{authority: xds.example.com, resource_type: envoy.config.listener.v3.Listener, id: front}}
    - inline_entry:
        name: back
        version: "1"
        resource: {{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: back}}
"#
    ));
    assert_eq!(collection.name, NAME);
    assert_eq!(collection.type_url, "type.googleapis.com/envoy.config.listener.v3.ListenerCollection");

    let wrapper = "\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource";
    let endpoint = "\"@type\": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint";
    assert_eq!(one(&format!("resources: [{{{wrapper}, name: e1, resource: {{{endpoint}}}}}]")).name, "e1");
    assert_eq!(
        failure(&format!("resources:\n- {endpoint}\n")),
        "a.yaml:2:3: resources[0]: the resource has no name; a LbEndpoint without one in it is written \
         {name: …, resource: {\"@type\": …}}"
    );
    assert!(failure(&format!("resources:\n- name: e1\n  resource: {{{endpoint}, helth: 1}}\n")).starts_with(
        "a.yaml:3:80: resources[0].resource: unrecognized field name 'helth' in envoy.config.endpoint.v3.LbEndpoint"
    ));
    assert!(
        failure(&format!("resources:\n- name: e1\n  metadata: {{}}\n  resource: {{{endpoint}}}\n"))
            .starts_with("a.yaml:3:3: resources[0]: unrecognized field name 'metadata'")
    );
}

#[test]
fn a_wrapper_gives_version_ttl_and_aliases() {
    let wrapped = |beside: &str| {
        format!(
            "resources:\n- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n  name: a\n{beside}  \
             resource: {{\"@type\": {CLUSTER}, name: a}}\n"
        )
    };
    let plain = one(&wrapped(""));
    assert_eq!((plain.version, plain.ttl, plain.aliases.len()), (None, None, 0));
    let alias = "xdstp://a/envoy.config.cluster.v3.Cluster/x";
    let full = one(&wrapped(&format!("  version: v7\n  ttl: 60s\n  aliases: [b, \"{alias}?\"]\n")));
    assert_eq!((full.version.as_deref(), full.ttl), (Some("v7"), Some(Duration::from_secs(60))));
    assert_eq!(full.aliases, ["b", alias]);
    assert_eq!(full.value, plain.value);
    for (beside, message) in [
        ("  version: 7\n", "a.yaml:4:12: resources[0].version: invalid type: integer `7`, expected a string"),
        ("  ttl: 1m\n", "a.yaml:4:8: resources[0].ttl: `1m`: expected seconds, such as 60s or 0.5s"),
        ("  ttl: 0s\n", "a.yaml:4:8: resources[0].ttl: `0s`: expected seconds, such as 60s or 0.5s"),
        ("  aliases: b\n", "a.yaml:4:12: resources[0].aliases: expected a list"),
        ("  aliases: [b, '*']\n", "a.yaml:4:16: resources[0].aliases[1]: `*` cannot be the name of a resource"),
    ] {
        assert_eq!(failure(&wrapped(beside)), message);
    }
}

/// Whatever is wrong with a secret, the message does not have it.
#[test]
fn no_error_quotes_a_secret() {
    const SECRET: &str = "resources:\n- \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\n  \
                          name: s\n";
    let tls = |line: &str| format!("{SECRET}  tls_certificate:\n    private_key:\n      {line}\n");
    let listener = |value: &str| {
        format!(
            "resources:\n- \"@type\": {LISTENER}\n  name: l\n  filter_chains:\n  - transport_socket:\n      name: tls\n      \
             typed_config:\n        \"@type\": \
             type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext\n        \
             common_tls_context: {{tls_certificates: [{{private_key: {{inline_string: {value}}}}}]}}\n"
        )
    };
    for (text, secret) in [
        (tls("inline_string: 271828182845"), "271828182845"),
        (tls("inline_string: 0271828182845"), "271828182845"),
        (tls("inline_string: [hunter2]"), "hunter2"),
        (tls("inline_string: {hunter2: 1}"), "hunter2"),
        (tls("inline_string: !hunter2"), "hunter2"),
        (tls("inline_bytes: hunter2!"), "hunter2"),
        (tls("hunter2"), "hunter2"),
        (tls("hunter2: {}"), "hunter2"),
        (tls("inline_string: a: hunter2"), "hunter2"),
        (tls("inline_string: \"hunter2"), "hunter2"),
        (tls("inline_string: \"hunter2\\q\""), "hunter2"),
        (tls("inline_string: *hunter2"), "hunter2"),
        (tls("inline_string: @hunter2"), "hunter2"),
        (tls("{inline_string: hunter2, inline_string: hunter2}"), "hunter2"),
        (format!("{SECRET}  tls_certificate: hunter2\n"), "hunter2"),
        (format!("{SECRET}  generic_secret: {{secret: hunter2}}\n"), "hunter2"),
        (format!("{SECRET}  session_ticket_keys: {{keys: [hunter2]}}\n"), "hunter2"),
        (listener("271828182845"), "271828182845"),
        (listener("[hunter2]"), "hunter2"),
        (listener("!hunter2"), "hunter2"),
    ] {
        let message = failure(&text);
        assert!(!message.contains(secret), "{message}");
        assert!(message.starts_with("a.yaml:"), "{message}");
    }
    let place = "a.yaml:6:22: resources[0].tls_certificate.private_key.inline_string: ";
    assert!(failure(&tls("inline_string: 7")).starts_with(place), "{}", failure(&tls("inline_string: 7")));
}

#[test]
fn rule_082_the_name_outside_is_the_name_inside() {
    let wrapped = |name| format!("resources:\n- name: {name}\n  resource: {{\"@type\": {CLUSTER}, name: a}}\n");
    assert_eq!(one(&wrapped("a")).name, "a");
    assert_eq!(failure(&wrapped("b")), "a.yaml:2:9: resources[0].name: the resource inside is named `a`");
    // A virtual host has a name, but is asked for by another.
    let host = "{\"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: a, domains: [x]}";
    assert_eq!(one(&format!("resources:\n- name: routes/x\n  resource: {host}\n")).name, "routes/x");
}

#[test]
fn rule_096_a_name_inside_is_written_as_the_name_outside() {
    const CANONICAL: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/mesh/x?a=2&z=1";
    let text = |name: &str| format!("resources:\n- \"@type\": {CLUSTER}\n  name: {name}\n");
    let written = one(&text("xdstp://a/envoy.config.cluster.v3.Cluster/mesh/%78?z=1&a=2"));
    assert_eq!(written.name, CANONICAL);
    assert_eq!(written, one(&text(CANONICAL)));
    assert_eq!(
        failure(&text("xdstp://a/envoy.config.listener.v3.Listener/x")),
        "a.yaml:3:9: resources[0].name: `xdstp://a/envoy.config.listener.v3.Listener/x` is the name of a \
         envoy.config.listener.v3.Listener, not of a envoy.config.cluster.v3.Cluster"
    );
}

#[test]
fn a_directory_is_read_whole_and_sorted_by_type_and_name() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| format!("resources: [{{\"@type\": {CLUSTER}, name: {name}}}]\n");
    write(directory.path(), "1.yaml", &text("c"));
    write(directory.path(), "2.yml", &text("a"));
    write(
        directory.path(),
        "3.json",
        "{\"resources\": [{\"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\", \"name\": \"b\"}]}",
    );
    write(directory.path(), ".4.yaml", "not read");
    write(directory.path(), "5.yaml~", "not read");
    std::fs::create_dir(directory.path().join("6")).unwrap();
    let names: Vec<String> =
        load(directory.path(), &descriptors()).unwrap().into_iter().map(|resource| resource.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_resource_in_two_files_is_an_error_that_names_both() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("resources:\n- \"@type\": {CLUSTER}\n  name: same\n");
    write(directory.path(), "a.yaml", &text);
    write(directory.path(), "b.yaml", &text);
    let error = load(directory.path(), &descriptors()).unwrap_err();
    assert_eq!((error.file, error.line, error.column), (directory.path().join("b.yaml"), Some(2), Some(3)));
    assert_eq!(error.path, "resources[0]");
    assert_eq!(
        error.reason,
        format!("{CLUSTER} `same` is in {}:2:3 already", directory.path().join("a.yaml").display())
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent");
    assert_eq!(load(&absent, &descriptors()).unwrap_err().file, absent);
    std::fs::write(directory.path().join("latin1.yaml"), b"resources: [] # \xe9").unwrap();
    assert_eq!(load(directory.path(), &descriptors()).unwrap_err().file, directory.path().join("latin1.yaml"));
}

/// To open a FIFO is to wait for who writes it.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_an_error_and_nothing_to_wait_for() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    let make: [&dyn Fn(); 4] = [
        &|| std::fs::create_dir(&path).unwrap(),
        &|| assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
        &|| symlink("/dev/zero", &path).unwrap(),
        &|| symlink("nowhere", &path).unwrap(),
    ];
    for make in make {
        make();
        let error = load(directory.path(), &descriptors()).unwrap_err();
        assert_eq!(error.file, path);
        std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path)).unwrap();
    }
}

#[test]
fn deep_values_are_an_error_and_no_crash() {
    let nested = |depth: usize| {
        let value = format!("{}1{}", "{a: ".repeat(depth), "}".repeat(depth));
        format!(
            "resources:\n- name: x\n  resource:\n    \"@type\": type.googleapis.com/google.protobuf.Struct\n    value: {{a: {value}}}\n"
        )
    };
    assert_eq!(one(&nested(20)).name, "x");
    assert!(failure(&nested(60)).contains("recursion limit"), "{}", failure(&nested(60)));
    assert!(failure(&nested(100)).contains("nest deeper than"), "{}", failure(&nested(100)));
}

#[tokio::test]
async fn a_relay_says_what_its_files_hold() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "a.yaml", &format!(r#"{{ resources: [{{ "@type": {CLUSTER}, name: a }}] }}"#));
    let origins = format!("[{{ name: mesh, files: '{}' }}]", directory.path().display());
    let text = format!("listen: 127.0.0.1:0\nadmin: none\norigins: {origins}\n");
    let relay = xds_relay::Relay::bind(xds_relay::Config::parse("relay.yaml", &text).unwrap()).await.unwrap();
    let [content] = &relay.file_contents()[..] else { panic!("one origin of files") };
    assert_eq!((content.origin.as_str(), content.resources[CLUSTER]), ("mesh", 1));
}

/// What is said of this text where rules are applied, a line for each.
fn refused(text: &str) -> Vec<String> {
    let error = load_embedded(&[("a.yaml", text)], &descriptors().with_validation()).unwrap_err();
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn what_envoy_would_refuse_for_its_values_is_told_at_once_with_places() {
    let text = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  virtual_hosts:
  - name: ""
    domains: []
    retry_policy: { num_retries: 1, retry_back_off: { base_interval: 0s } }
  - name: b
    domains: ["*"]
    routes:
    - { route: { cluster: c } }
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: front
  address: { socketAddress: { address: 127.0.0.1, portValue: 99999 } }
  filter_chains:
  - filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        codec_type: 77
        stat_prefix: ""
        rds: { route_config_name: routes }
- name: wrapped
  resource:
    "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    connect_timeout: 0s
    typed_extension_protocol_options:
      a.b: { "@type": type.googleapis.com/envoy.config.core.v3.HeaderValue, key: "" }
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: good
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: unreadable
  type: BOGUS
"#;
    let told = [
        "5:11: resources[0].virtual_hosts[0].name: expected at least 1 character, found none; in RouteConfiguration `routes`",
        "6:14: resources[0].virtual_hosts[0].domains: expected at least 1 item, found none; in RouteConfiguration `routes`",
        "7:70: resources[0].virtual_hosts[0].retry_policy.retry_back_off.base_interval: expected more than 0s, found 0s; \
         in RouteConfiguration `routes`",
        "11:7: resources[0].virtual_hosts[1].routes[0].match: expected a value, found none; in RouteConfiguration `routes`",
        "14:62: resources[1].address.socket_address.port_value: expected at most 65535, found 99999; in Listener `front`",
        "20:21: resources[1].filter_chains[0].filters[0].typed_config.codec_type: expected a value of CodecType, found 77; \
         in Listener `front`",
        "21:22: resources[1].filter_chains[0].filters[0].typed_config.stat_prefix: expected at least 1 character, found none; \
         in Listener `front`",
        "25:5: resources[2].resource.name: expected at least 1 character, found none; in Cluster `wrapped`",
        "26:22: resources[2].resource.connect_timeout: expected more than 0s, found 0s; in Cluster `wrapped`",
        "28:82: resources[2].resource.typed_extension_protocol_options[\"a.b\"].key: expected at least 1 character, found none; \
         in Cluster `wrapped`",
    ];
    let refused = refused(text);
    assert_eq!(refused[..10], told.map(|line| format!("a.yaml:{line}")));
    assert!(refused[10].starts_with("a.yaml:33:9: resources[4].type: unrecognized enum value 'BOGUS'"), "{refused:?}");
    assert_eq!(refused.len(), 11);
}

#[test]
fn a_name_that_is_not_there_is_told_once() {
    let cluster = "resources:\n- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster}\n";
    let told = "a.yaml:2:3: resources[0].name: expected at least 1 character, found none; in a Cluster without a name";
    assert_eq!(refused(cluster), [told]);
    let any = "resources:\n- resource: {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint, load_balancing_weight: 0}\n";
    let both = refused(any);
    assert!(both.len() == 2 && both[1].contains("the resource has no name"), "{both:?}");
}

#[test]
fn nothing_secret_is_told_of_a_value_that_is_refused() {
    let text = r#"resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: s
  validation_context: { trust_chain_verification: 77 }
"#;
    let told = refused(text);
    assert!(
        told.len() == 1 && told[0].contains("expected a value of TrustChainVerification; in Secret `s`"),
        "{told:?}"
    );
    let text = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: a
  health_checks:
  - timeout: 1s
    interval: 1s
    unhealthy_threshold: 1
    healthy_threshold: 1
    http_health_check:
      path: "/"
      request_headers_to_add: [{ header: { key: authorization, value: "Bearer sesame\n" } }]
"#;
    let told = refused(text);
    assert!(
        told.len() == 1 && told[0].contains("header.value: expected no NUL") && !told[0].contains("sesame"),
        "{told:?}"
    );
}

#[test]
fn the_examples_keep_the_rules_and_are_the_same_resources() {
    let validating = descriptors().with_validation();
    assert_eq!(load_embedded(EXAMPLE, &validating).unwrap(), load_embedded(EXAMPLE, &descriptors()).unwrap());
    // What was packed for the registry has the crate alone.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in ["deploy/kustomize/overlays/replicas/mesh.yaml", "xds-relay/example/mesh/front.yaml"] {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let read = load_embedded(&[(file, &text)], &validating).unwrap_or_else(|error| panic!("{error}"));
        assert!(!read.is_empty(), "{file}");
    }
}

#[test]
fn a_million_errors_take_no_more_than_their_bound() {
    let entry = "{ name: \"\", domains: [] }";
    let hosts = vec![entry; 20_000].join(", ");
    let route = format!(
        "- {{ \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, virtual_hosts: [{hosts}] }}\n"
    );
    let text = format!("resources:\n{}", route.repeat(11));
    let error = load_embedded(&[("a.yaml", &text)], &descriptors().with_validation()).unwrap_err();
    assert_eq!(error.others.len(), 999);
    assert_eq!(error.to_string().lines().last(), Some("and at least 980 others"));
}
