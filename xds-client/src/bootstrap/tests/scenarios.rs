//! What a bootstrap says and what is none: S109 to S114. Nothing of it is on a wire.

use std::cell::RefCell;

use super::*;

const SERVER: &str = r#"{ "server_uri": "a:1", "channel_creds": [{ "type": "insecure" }] }"#;

#[test]
fn s109_the_file_of_the_environment_goes_before_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let good = file("good", &with_server(&SERVER.replace("a:1", "file:1")));
    let bad = file("bad", "{");
    let content = with_server(SERVER);
    let of = |file: Option<&str>, content: Option<&str>| {
        let set = [(BOOTSTRAP, file), (BOOTSTRAP_CONFIG, content)];
        let set: Vec<_> = set.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        from_variables(&set).map(|bootstrap| bootstrap.servers()[0].uri().to_owned())
    };
    assert_eq!(of(Some(&good), Some(&content)).unwrap(), "file:1");
    assert_eq!(of(Some(&good), Some("{")).unwrap(), "file:1");
    assert_eq!(of(Some(&good), None).unwrap(), "file:1");
    assert_eq!(of(None, Some(&content)).unwrap(), "a:1");
    let error = of(Some(&bad), Some(&content)).unwrap_err().to_string();
    assert!(error.starts_with(&bad), "the content does not stand in for a bad file: {error}");
    assert!(matches!(of(None, None), Err(BootstrapError::NotConfigured)));
}

#[test]
fn s110_what_is_no_bootstrap_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(matches!(Bootstrap::from_file(&missing), Err(BootstrapError::Unreadable { file, .. }) if file == missing));
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let error = Bootstrap::from_file(&empty).unwrap_err().to_string();
    assert_eq!(error, format!("{}:1:1: EOF while parsing a value", empty.display()));
    for (text, words) in [
        ("{ not json", "key must be a string"),
        (r#"{ "node": { "id": "me" } }"#, "xds_servers is missing"),
        (r#"{ "xds_servers": [] }"#, "xds_servers: it names no server"),
        (r#"{ "xds_servers": [{ "server_uri": "a:1" }] }"#, "xds_servers[0]: channel_creds is missing"),
        (
            r#"{ "xds_servers": [{ "server_uri": "a:1", "channel_creds": [{ "type": "new" }] }] }"#,
            "xds_servers[0].channel_creds: none of new is supported",
        ),
        (
            r#"{ "xds_servers": [{ "channel_creds": [{ "type": "insecure" }] }] }"#,
            "xds_servers[0]: server_uri is missing",
        ),
    ] {
        let error = Bootstrap::from_json(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn s111_certificate_providers_that_are_known_are_read_and_others_left_out() {
    let of = |list: &str| Bootstrap::from_json(&with(&format!(r#""certificate_providers": {list}"#)));
    let good = r#"{ "plugin_name": "file_watcher", "config": { "certificate_file": "c", "private_key_file": "k" } }"#;
    let all = of(&format!(r#"{{ "good": {good}, "new": {{ "plugin_name": "new", "config": 7 }} }}"#)).unwrap();
    let CertificateProvider::FileWatcher(files) = &all.certificate_providers()["good"];
    assert_eq!(files.tls.identity, Some(("c".into(), "k".into())));
    assert_eq!(all.certificate_providers().len(), 1);
    for (list, words) in [
        ("[]", "certificate_providers: expected an object"),
        ("{", "EOF"),
        (r#"{ "bad": { "plugin_name": "file_watcher", "config": 7 } }"#, r"certificate_providers.bad"),
        (
            r#"{ "bad": { "plugin_name": "file_watcher", "config": { "private_key_file": "k" } } }"#,
            r"certificate_providers.bad.config",
        ),
    ] {
        let error = of(list).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn s112_templates_are_text_and_have_defaults() {
    let target = Target::parse("xds:///web").unwrap();
    let default = read(&with(r#""node": {}"#));
    assert_eq!(client_listener_name(&default, &target).unwrap(), "web");
    assert!(server_listener_name(&default, "1.2.3.4:80").is_err(), "there is no default");
    let own = read(&with(
        r#""client_default_listener_resource_name_template": "c/%s", "server_listener_resource_name_template": "s/%s""#,
    ));
    assert_eq!(client_listener_name(&own, &target).unwrap(), "c/web");
    assert_eq!(server_listener_name(&own, "1.2.3.4:80").unwrap(), "s/1.2.3.4:80");
    for field in ["client_default_listener_resource_name_template", "server_listener_resource_name_template"] {
        let words = reason(&with(&format!(r#""{field}": 7"#)));
        assert_eq!(words, format!("{field}: expected a string, found a number"));
    }
}

#[test]
fn s113_the_template_of_an_authority_is_of_that_and_its_servers_are_its_own_or_those_of_the_top() {
    let of = |a: &str| Bootstrap::from_json(&with(&format!(r#""authorities": {{ "a.com": {a} }}"#)));
    for wrong in ["%s", "xdstp://a.com", "xdstp://b.com/T/%s", "xdstp://a.com-x/T/%s", "xdstp:///T/%s"] {
        let error =
            of(&format!(r#"{{ "client_listener_resource_name_template": "{wrong}" }}"#)).unwrap_err().to_string();
        assert!(error.contains("authorities[\"a.com\"].client_listener_resource_name_template"), "{wrong:?}: {error}");
    }
    let target = Target::parse("xds://a.com/web").unwrap();
    let default = of("{}").unwrap();
    let name = client_listener_name(&default, &target).unwrap();
    assert_eq!(name, "xdstp://a.com/envoy.config.listener.v3.Listener/web");
    assert_eq!(default.servers_of(Some("a.com")), Some(default.servers()));
    let own = of(&format!(r#"{{ "xds_servers": [{}] }}"#, SERVER.replace("a:1", "own:1"))).unwrap();
    assert_eq!(own.servers_of(Some("a.com")).map(|servers| servers[0].uri()), Some("own:1"));
    assert_eq!(own.servers()[0].uri(), "a:1");
    let error = of(r#"{ "xds_servers": [{}] }"#).unwrap_err().to_string();
    assert!(error.contains("authorities[\"a.com\"].xds_servers[0]"), "{error}");
}

#[test]
fn s114_call_credentials_are_none_one_or_several_whatever_the_environment_says() {
    let file = |name: &str| format!(r#"{{ "type": "jwt_token_file", "config": {{ "jwt_token_file": "{name}" }} }}"#);
    let text = |list: &str| server_with(&format!(r#""call_creds": {list}"#));
    let of = |list: &str| read(&text(list)).servers()[0].call_creds().to_vec();
    let creds = |names: &[&str]| names.iter().map(|name| CallCreds::JwtTokenFile((*name).into())).collect::<Vec<_>>();
    assert_eq!(of(&format!("[{}]", file("a"))), creds(&["a"]));
    assert_eq!(of(&format!(r#"[{}, {{ "type": "new" }}, {}]"#, file("a"), file("b"))), creds(&["a", "b"]));
    assert_eq!(of("[]"), creds(&[]));
    assert_eq!(read(&with_server(SERVER)).servers()[0].call_creds(), []);
    // gRPC has a variable that guards them. Here nothing but the two that name the bootstrap is looked at.
    let looked_at = RefCell::new(Vec::new());
    let content = text(&format!("[{}]", file("a")));
    let bootstrap = environment::read(|name| {
        looked_at.borrow_mut().push(name.to_owned());
        (name == BOOTSTRAP_CONFIG).then(|| content.clone().into())
    });
    assert_eq!(bootstrap.unwrap().servers()[0].call_creds(), creds(&["a"]));
    assert_eq!(looked_at.into_inner(), [BOOTSTRAP, BOOTSTRAP_CONFIG]);
}
