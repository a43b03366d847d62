//! Each test is named for its rule of a client.

mod scenarios;

use std::ffi::OsString;

use xds_transport::wire::{Locality, value::Kind};
use xdstp_uri::ResourceName;
use xdstp_uri::a47::{Target, client_listener_name, look_up_authority, server_listener_name};

use super::*;

/// A bootstrap around one server entry.
fn with_server(server: &str) -> String {
    format!("{{ \"xds_servers\": [{server}] }}")
}

/// A bootstrap with one server, and more.
fn with(more: &str) -> String {
    format!(r#"{{ "xds_servers": [{{ "server_uri": "a:1", "channel_creds": [{{ "type": "insecure" }}] }}], {more} }}"#)
}

fn server_with(more: &str) -> String {
    with_server(&format!(r#"{{ "server_uri": "a:1", "channel_creds": [{{ "type": "insecure" }}], {more} }}"#))
}

fn creds(creds: &str) -> Result<Bootstrap, BootstrapError> {
    Bootstrap::from_json(&with_server(&format!(r#"{{ "server_uri": "a:1", "channel_creds": {creds} }}"#)))
}

fn read(text: &str) -> Bootstrap {
    Bootstrap::from_json(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What is wrong, without the place.
fn reason(text: &str) -> String {
    match Bootstrap::from_json(text) {
        Err(BootstrapError::Wrong { wrong: Wrong { field, reason, .. }, .. }) => format!("{field}: {reason}"),
        other => panic!("{other:?}: {text}"),
    }
}

fn from_variables(variables: &[(&str, &str)]) -> Result<Bootstrap, BootstrapError> {
    let value = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value));
    environment::read(value)
}

#[test]
fn client_rule_01_the_file_goes_before_the_content_and_is_never_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bootstrap.json");
    fs::write(&file, server_with("\"x\": 1").replace("a:1", "file:1")).unwrap();
    let (file, inline) = (file.to_str().unwrap(), server_with("\"x\": 1"));
    let uri = |variables: &[_]| from_variables(variables).map(|bootstrap| bootstrap.servers()[0].uri().to_owned());

    assert_eq!(uri(&[(BOOTSTRAP, file), (BOOTSTRAP_CONFIG, &inline)]).unwrap(), "file:1");
    assert_eq!(uri(&[(BOOTSTRAP, ""), (BOOTSTRAP_CONFIG, &inline)]).unwrap(), "a:1");
    let missing = format!("{file}.not");
    let error = uri(&[(BOOTSTRAP, &missing), (BOOTSTRAP_CONFIG, &inline)]).unwrap_err();
    assert!(matches!(&error, BootstrapError::Unreadable { file, .. } if *file == Path::new(&missing)), "{error}");
    fs::write(file, "").unwrap();
    let error = uri(&[(BOOTSTRAP, file), (BOOTSTRAP_CONFIG, &inline)]).unwrap_err().to_string();
    assert_eq!(error, format!("{file}:1:1: EOF while parsing a value"));
    assert!(matches!(uri(&[]), Err(BootstrapError::NotConfigured)));
    let error = uri(&[(BOOTSTRAP_CONFIG, "{}")]).unwrap_err().to_string();
    assert_eq!(error, "GRPC_XDS_BOOTSTRAP_CONFIG:1:1: xds_servers is missing");
}

#[test]
fn client_rule_03_what_is_not_known_is_ignored_at_any_level() {
    let text = r#"{
        "xds_servers": [
            { "server_uri": "a:1", "channel_creds": [{ "type": "insecure", "new": 1 }], "new": {} }
        ],
        "node": { "id": "n", "new": [], "locality": { "new": 0 } },
        "authorities": { "x": { "new": null } },
        "certificate_providers": { "p": { "plugin_name": "new", "config": 3, "new": 1 } },
        "allowed_grpc_services": { "dns:///x": { "channel_creds": 7 } },
        "new": [[[]]]
    }"#;
    assert_eq!(read(text).node().id, "n");
}

#[test]
fn client_rule_04_servers_are_in_order_of_preference_and_there_is_one() {
    let server = |uri| format!(r#"{{ "server_uri": "{uri}", "channel_creds": [{{ "type": "insecure" }}] }}"#);
    let bootstrap = read(&with_server(&[server("b:1"), server("a:1"), server("b:1")].join(",")));
    let uris: Vec<_> = bootstrap.servers().iter().map(Server::uri).collect();
    assert_eq!(uris, ["b:1", "a:1", "b:1"]);
    assert_eq!(reason("{}"), ": xds_servers is missing");
    assert_eq!(reason(r#"{ "xds_servers": null }"#), ": xds_servers is missing");
    assert_eq!(reason(r#"{ "xds_servers": [] }"#), "xds_servers: it names no server");
    assert_eq!(reason(r#"{ "xds_servers": {} }"#), "xds_servers: expected an array, found an object");
    let only_of_authority = format!(r#"{{ "authorities": {{ "x": {{ "xds_servers": [{}] }} }} }}"#, server("a:1"));
    assert_eq!(reason(&only_of_authority), ": xds_servers is missing");
}

#[test]
fn client_rule_05_a_server_has_an_address() {
    let reason =
        |uri: &str| reason(&with_server(&format!(r#"{{ {uri} "channel_creds": [{{ "type": "insecure" }}] }}"#)));
    assert_eq!(reason(""), "xds_servers[0]: server_uri is missing");
    assert_eq!(reason(r#""server_uri": "","#), "xds_servers[0].server_uri: it must not be empty");
    assert_eq!(reason(r#""server_uri": 1,"#), "xds_servers[0].server_uri: expected a string, found a number");
    for uri in ["a:1", "dns:///a:1", "unix:///run/xds", "trafficdirector.googleapis.com:443"] {
        let text = with_server(&format!(r#"{{ "server_uri": "{uri}", "channel_creds": [{{ "type": "insecure" }}] }}"#));
        assert_eq!(read(&text).servers()[0].uri(), uri);
    }
}

#[test]
fn client_rule_06_the_first_supported_credentials_count_and_those_after_it_do_not() {
    let first = |list: &str| creds(list).unwrap().servers()[0].channel_creds().clone();
    let wrong_after = r#"[{ "type": "foo", "config": 7 }, { "type": "insecure" }, { "type": "tls", "config": 7 }]"#;
    assert_eq!(first(wrong_after), ChannelCreds::Insecure);
    assert_eq!(first(r#"[{ "type": "google_default" }, { "type": "insecure" }]"#), ChannelCreds::GoogleDefault);
    let reason = |list: &str| creds(list).unwrap_err().to_string();
    let place = "bootstrap:1:59: xds_servers[0].channel_creds: ";
    assert_eq!(reason("[]"), format!("{place}it names none"));
    let words = format!("{place}none of a, b is supported: insecure, tls and google_default are");
    assert_eq!(reason(r#"[{ "type": "a" }, { "type": "b" }]"#), words);
    assert!(reason(r#"[{ "type": "tls", "config": 7 }, { "type": "insecure" }]"#).contains("expected an object"));
    assert!(reason(r"[{}]").ends_with("xds_servers[0].channel_creds[0]: type is missing"));
}

#[test]
fn client_rule_07_tls_names_its_files() {
    let tls = |config: &str| creds(&format!(r#"[{{ "type": "tls", "config": {config} }}]"#));
    let files = |config: &str| match tls(config).unwrap().servers()[0].channel_creds() {
        ChannelCreds::Tls(files) => files.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(files("{}"), TlsFiles::default());
    assert_eq!(files("null").refresh.as_secs(), 600);
    let all = files(
        r#"{ "ca_certificate_file": "ca", "certificate_file": "c", "private_key_file": "k", "refresh_interval": "1.5s" }"#,
    );
    assert_eq!((all.ca_certificate, all.identity), (Some("ca".into()), Some(("c".into(), "k".into()))));
    assert_eq!(all.refresh.as_millis(), 1500);
    let reason = |config: &str| tls(config).unwrap_err().to_string();
    assert!(reason(r#"{ "certificate_file": "c" }"#).ends_with("private_key_file is missing"));
    assert!(reason(r#"{ "private_key_file": "k" }"#).ends_with("certificate_file is missing"));
    for wrong in ["600", "0s", "-1s", "1.s", ".5s", "1.0000000001s", "s", "1e3s", "99999999999999999999s", "1m", ""] {
        let words = reason(&format!(r#"{{ "refresh_interval": "{wrong}" }}"#));
        assert!(words.contains(&format!("refresh_interval: {wrong:?} is no duration")), "{words}");
    }
}

#[test]
fn client_rule_08_all_supported_call_credentials_count() {
    let calls = |list: &str| Bootstrap::from_json(&server_with(&format!(r#""call_creds": {list}"#)));
    let list = r#"[
        { "type": "other", "config": 7 },
        { "type": "jwt_token_file", "config": { "jwt_token_file": "a" } },
        { "type": "jwt_token_file", "config": { "jwt_token_file": "b" } }
    ]"#;
    let both = ["a", "b"].map(|file| CallCreds::JwtTokenFile(file.into()));
    assert_eq!(calls(list).unwrap().servers()[0].call_creds(), both);
    assert_eq!(calls("[]").unwrap().servers()[0].call_creds(), []);
    for wrong in [r#"{ "type": "jwt_token_file" }"#, r#"{ "type": "jwt_token_file", "config": {} }"#] {
        let words = calls(&format!("[{wrong}]")).unwrap_err().to_string();
        assert!(words.contains("xds_servers[0].call_creds[0]"), "{words}");
    }
}

#[test]
fn client_rules_10_and_11_features_that_are_not_understood_are_ignored_whatever_they_are() {
    let features = |list: &str| read(&server_with(&format!(r#""server_features": {list}"#))).servers()[0].features();
    assert_eq!(features(r#"["xds_v3", 3, null, {}, ["trusted_xds_server"], "new"]"#), Features::default());
    let all = features(
        r#"["ignore_resource_deletion", "trusted_xds_server", "fail_on_data_errors", "resource_timer_is_transient_error",
           "draft_dynamic_parameters"]"#,
    );
    assert_eq!(
        all,
        Features {
            ignore_resource_deletion: true,
            trusted_xds_server: true,
            fail_on_data_errors: true,
            resource_timer_is_transient_error: true,
            draft_dynamic_parameters: true,
        }
    );
    assert!(features(r#"["resource_timer_is_transient_failure"]"#).resource_timer_is_transient_error);
    assert!(reason(&server_with(r#""server_features": "xds_v3""#)).ends_with("expected an array, found a string"));
}

#[test]
fn client_rule_12_the_node_is_read_but_for_what_the_client_says_of_itself() {
    let text = with(
        r#""node": {
            "id": "i", "cluster": "c",
            "locality": { "region": "r", "zone": "z", "sub_zone": "s" },
            "metadata": { "a": { "b": [1, true, null, "x"] } },
            "user_agent_name": "not-this", "client_features": ["nor-this"], "build_version": "nor-this"
        }"#,
    );
    let bootstrap = read(&text);
    let node = bootstrap.node();
    assert_eq!((node.id.as_str(), node.cluster.as_str()), ("i", "c"));
    let locality = Locality { region: "r".into(), zone: "z".into(), sub_zone: "s".into() };
    assert_eq!(node.locality, Some(locality));
    assert_eq!((node.user_agent_name.as_str(), node.client_features.len()), ("", 0));
    let Some(Kind::StructValue(inner)) = &node.metadata.as_ref().unwrap().fields["a"].kind else { panic!("{node:?}") };
    let Some(Kind::ListValue(list)) = &inner.fields["b"].kind else { panic!("{node:?}") };
    assert_eq!(list.values.len(), 4);
    assert_eq!(*read(&with(r#""node": null"#)).node(), Node::default());
    assert_eq!(reason(&with(r#""node": { "id": 7 }"#)), "node.id: expected a string, found a number");
    assert_eq!(reason(&with(r#""node": { "metadata": [] }"#)), "node.metadata: expected an object");
}

#[test]
fn client_rule_14_a_provider_that_is_known_is_read_and_another_left_out() {
    let providers = |list: &str| with(&format!(r#""certificate_providers": {{ {list} }}"#));
    let text = providers(
        r#""other": { "plugin_name": "vault", "config": 7 },
           "mine": { "plugin_name": "file_watcher", "config": { "ca_certificate_file": "ca", "refresh_interval": "1s" } }"#,
    );
    let bootstrap = read(&text);
    assert_eq!(bootstrap.certificate_providers().keys().collect::<Vec<_>>(), ["mine"]);
    let CertificateProvider::FileWatcher(files) = &bootstrap.certificate_providers()["mine"];
    assert_eq!((files.tls.ca_certificate.as_deref(), files.tls.refresh.as_secs()), (Some(Path::new("ca")), 1));
    let field = r#"certificate_providers.p"#;
    for (wrong, words) in [
        (r#""p": 7"#, ": expected an object, found a number"),
        (r#""p": {}"#, ": plugin_name is missing"),
        (r#""p": { "plugin_name": "file_watcher" }"#, ": config is missing"),
        (
            r#""p": { "plugin_name": "file_watcher", "config": {} }"#,
            ".config: it names neither a certificate with its key nor a ca_certificate_file",
        ),
        (
            r#""p": { "plugin_name": "file_watcher", "config": { "certificate_file": "c" } }"#,
            ".config: certificate_file is there, and private_key_file is missing",
        ),
    ] {
        assert_eq!(reason(&providers(wrong)), format!("{field}{words}"));
    }
}

#[test]
fn client_rules_16_and_17_an_authority_has_its_own_template_and_servers_or_those_of_the_top() {
    let text = with(
        r#""authorities": {
            "": {},
            "a.com": {
                "client_listener_resource_name_template": "xdstp://a.com/envoy.config.listener.v3.Listener/x/%s",
                "xds_servers": [{ "server_uri": "own:1", "channel_creds": [{ "type": "insecure" }] }]
            },
            "b.com": { "xds_servers": [] }
        }"#,
    );
    let bootstrap = read(&text);
    let uri = |authority| bootstrap.servers_of(authority).map(|servers| servers[0].uri());
    assert_eq!(uri(Some("a.com")), Some("own:1"));
    assert_eq!(uri(Some("b.com")), Some("a:1"));
    assert_eq!(uri(Some("")), Some("a:1"));
    assert_eq!(uri(None), Some("a:1"));
    assert_eq!(uri(Some("c.com")), None);
    // What begins like it is another authority.
    let template = "xdstp://a.com.evil/envoy.config.listener.v3.Listener/%s";
    let wrong =
        with(&format!(r#""authorities": {{ "a.com": {{ "client_listener_resource_name_template": "{template}" }} }}"#));
    assert!(
        reason(&wrong).starts_with("authorities[\"a.com\"].client_listener_resource_name_template: "),
        "{}",
        reason(&wrong)
    );
}

/// gRFC A47, Examples: the last of them, with servers of an authority's own.
#[test]
fn client_rule_19_a47_names_are_made_and_looked_up() {
    let bootstrap = read(
        r#"{
          "client_default_listener_resource_name_template":
            "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/%s?project_id=1234",
          "server_listener_resource_name_template":
            "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/server/%s?project_id=1234",
          "xds_servers": [{ "server_uri": "xds-server.authority.com", "channel_creds": [{ "type": "google_default" }] }],
          "authorities": {
            "xds.authority.com": {
              "client_listener_resource_name_template":
                "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/%s?project_id=1234"
            },
            "xds.other.com": {
              "xds_servers": [{ "server_uri": "xds-server.other.com", "channel_creds": [{ "type": "google_default" }] }]
            }
          }
        }"#,
    );
    let listener = |target| client_listener_name(&bootstrap, &Target::parse(target).unwrap()).unwrap();
    let server = |name: &str| {
        let lookup = look_up_authority(&bootstrap, &ResourceName::parse(name).unwrap()).unwrap();
        bootstrap.servers_of(lookup.authority.as_deref()).unwrap()[0].uri().to_owned()
    };
    let name = listener("xds:server.example.com");
    let expected =
        "xdstp://xds.authority.com/envoy.config.listener.v3.Listener/grpc/client/server.example.com?project_id=1234";
    assert_eq!((name.as_str(), server(&name).as_str()), (expected, "xds-server.authority.com"));
    let name = listener("xds://xds.other.com/server.other.com");
    assert_eq!(name, "xdstp://xds.other.com/envoy.config.listener.v3.Listener/server.other.com");
    assert_eq!(server(&name), "xds-server.other.com");
    let name = server_listener_name(&bootstrap, "0.0.0.0:8080").unwrap();
    assert!(name.contains("/grpc/server/0.0.0.0:8080?"), "{name}");
}

#[test]
fn client_rule_24_equal_servers_are_one_whatever_is_not_known_of_them() {
    let server = |more: &str| read(&server_with(more)).servers()[0].clone();
    assert_eq!(server(r#""new": 1, "server_features": ["new"]"#), server(r#""server_features": []"#));
    assert_ne!(server(r#""server_features": ["trusted_xds_server"]"#), server(r#""server_features": []"#));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let text = "{\n  \"xds_servers\": [\n    { \"server_uri\": \"ä\", \"channel_creds\": {} }\n  ]\n}";
    let error = Bootstrap::from_json(text).unwrap_err().to_string();
    assert_eq!(error, "bootstrap:3:43: xds_servers[0].channel_creds: expected an array, found an object");
    let error = Bootstrap::from_json("{\n  \"ä\": x }").unwrap_err().to_string();
    assert_eq!(error, "bootstrap:2:8: expected value");
    for text in ["", "[]", "7", "{} {}", "{\"xds_servers\": [", "null", "\u{feff}{}"] {
        Bootstrap::from_json(text).unwrap_err();
    }
    // Of two members of a name the last counts, as in all of gRPC.
    let twice = with(r#""node": { "id": "a", "id": "b" }"#);
    assert_eq!(read(&twice).node().id, "b");
}

/// Whatever is nested, and however deep: an error, or ignored.
#[test]
fn depth_is_bounded() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    read(&with(&format!(r#""new": {}"#, deep("[", "]"))));
    let error = Bootstrap::from_json(&with(&format!(r#""node": {{ "metadata": {} }}"#, deep("{\"a\":", "1}"))));
    error.unwrap_err();
    Bootstrap::from_json(&deep("[", "]")).unwrap_err();
}

#[test]
fn client_rule_85_dynamic_parameters_are_those_of_old_style_names_or_of_an_authority() {
    let dpds = "xdstp://d/envoy.config.context_params.v3.DynamicContextParameters/my";
    let bootstrap = read(&with(&format!(
        r#""dynamic_parameters": {{ "env": "prod" }},
           "authorities": {{ "a": {{ "dynamic_parameters": {{ "env": "test", "zone": "" }} }},
                             "b": {{ "dpds_resource_name": "{dpds}" }}, "c": {{}} }}"#
    )));
    let pairs =
        |of: &BTreeMap<String, String>| of.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
    let of = |name: &str| &bootstrap.authorities()[name];
    assert_eq!(pairs(bootstrap.dynamic_parameters()), ["env=prod"]);
    assert_eq!(pairs(of("a").dynamic_parameters()), ["env=test", "zone="]);
    assert!(of("b").dynamic_parameters().is_empty() && of("c").dpds_resource_name().is_none());
    assert_eq!(of("b").dpds_resource_name().map(ToString::to_string).as_deref(), Some(dpds));

    let words = reason(&with(r#""dynamic_parameters": { "env": 1 }"#));
    assert_eq!(words, "dynamic_parameters.env: expected a string, found a number");
    let words =
        |name: &str| reason(&with(&format!(r#""authorities": {{ "a": {{ "dpds_resource_name": "{name}" }} }}"#)));
    assert!(
        words("xdstp://d/envoy.config.cluster.v3.Cluster/x")
            .contains("it is the name of a envoy.config.cluster.v3.Cluster")
    );
    assert!(words(&dpds.replace("my", "*")).ends_with("it is a collection, where one resource is expected"));
}
