//! What is said of rules of `clients` and of `admin` that cannot be followed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of these tests")]

use std::fs;

use xds_relay::{Config, Relay};

const CERTIFIED: &str = "tls: { certificate: Cargo.toml, key: Cargo.toml, client_ca: Cargo.toml }\n";

fn error(text: &str) -> String {
    let text = format!("origins: [{{ name: up, server: 'a:1' }}]\n{text}\n");
    match Config::parse("relay.yaml", &text) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{text}"),
    }
}

#[test]
fn a_rule_that_nobody_can_mean_is_refused_with_its_place() {
    for (rules, words) in [
        ("[]", "clients: empty: all would be refused"),
        ("{}", "clients: expected a list"),
        ("[{}]", "clients[0].match: missing; expected any of san"),
        ("[{ match: {} }]", "clients[0].match: empty; expected any of san"),
        ("[{ match: { any: false } }]", "clients[0].match.any: `false`: expected true"),
        ("[{ match: { any: yes } }]", "clients[0].match.any: `yes`: expected true or false"),
        ("[{ match: { any: true, cidr: [::1] } }]", "clients[0].match: any: true is all there is to say"),
        ("[{ match: { any: true } }, { match: { cidr: [] } }]", "clients[1].match.cidr: empty"),
        ("[{ match: { cidr: [10.0.0.0/33] } }]", "clients[0].match.cidr[0]: `10.0.0.0/33`: expected a range"),
        ("[{ match: { san: [a] } }]", "clients[0].match.san: no client shows a certificate; expected tls.client_ca"),
        ("[{ match: { spiffe: [a] } }]", "clients[0].match.spiffe: no client shows a certificate"),
        ("[{ match: { token: none } }]", "clients[0].match.token: no file none"),
        ("[{ match: { user: a } }]", "clients[0].match.user: unknown field `user`"),
        ("[{ match: { any: true }, nodes: [] }]", "clients[0].nodes: empty; expected at least one"),
        ("[{ match: { any: true }, nodes: ['a***'] }]", "clients[0].nodes[0]: `a***`: expected * or **"),
        ("[{ match: { any: true }, types: ['a b'] }]", "clients[0].types[0]: `a b`: expected a type URL"),
        ("[{ match: { any: true }, names: ['xdstp://a'] }]", "clients[0].names[0]: `xdstp://a`: expected xdstp://"),
        ("[{ match: { any: true }, names: ['xdstp://a/T/x?k=v'] }]", "clients[0].names[0]: "),
        ("[{ match: { any: true }, wildcard: maybe }]", "clients[0].wildcard: `maybe`: expected true or false"),
        ("[{ match: { any: true }, allow: all }]", "clients[0].allow: unknown field `allow`"),
    ] {
        let said = error(&format!("clients: {rules}"));
        let (place, said) = said.split_once(": ").unwrap();
        assert!(
            place.starts_with("relay.yaml:2:") && said.starts_with(words),
            "{rules}\n shown: {said}\nwanted: {words}"
        );
    }
    let said = error(&format!("{CERTIFIED}clients: [{{ match: {{ spiffe: ['https://a'] }} }}]"));
    assert!(said.contains("clients[0].match.spiffe[0]: `https://a`: expected a pattern of SPIFFE ids"), "{said}");
    let said = error("listen: 0.0.0.0:7\nclients: [{ match: { token: Cargo.toml } }]");
    assert!(said.contains("clients[0].match.token: a token goes over TLS, a unix socket or"), "{said}");
}

#[test]
fn admin_pages_that_others_reach_are_guarded_or_not_at_all() {
    const TLS: &str = "tls: { certificate: Cargo.toml, key: Cargo.toml }";
    let with_ca = TLS.replace(" }", ", client_ca: Cargo.toml }");
    for admin in [
        "0.0.0.0:7",
        "'[::]:7'",
        "10.1.2.3:7",
        "{ address: 0.0.0.0:7 }",
        "{ address: 0.0.0.0:7, token: Cargo.toml }",
        &format!("{{ address: 0.0.0.0:7, {TLS} }}"),
    ] {
        let said = error(&format!("admin: {admin}"));
        assert!(
            said.contains(": admin: `") && said.contains("other machines reach it; expected tls and a token"),
            "{said}"
        );
    }
    for admin in [
        "127.0.0.2:7",
        "'[::1]:7'",
        "'[::ffff:127.0.0.1]:7'",
        "{}",
        "{ token: Cargo.toml }",
        &format!("{{ address: 0.0.0.0:7, {with_ca} }}"),
        &format!("{{ address: 0.0.0.0:7, token: Cargo.toml, {TLS} }}"),
    ] {
        let text = format!("origins: [{{ name: up, server: 'a:1' }}]\nadmin: {admin}\n");
        Config::parse("relay.yaml", &text).unwrap();
    }
    let mut config = Config::parse("relay.yaml", "origins: [{ name: up, server: 'a:1' }]").unwrap();
    config.admin = Some("0.0.0.0:7".parse().unwrap());
    assert_eq!(config.validate().unwrap_err().field, "admin");
    // One for writing is none for who reads, and there is nothing to write where there are no pages.
    let said = error(&format!("admin: {{ address: 0.0.0.0:7, write_token: Cargo.toml, {TLS} }}"));
    assert!(said.contains("expected tls and a token"), "{said}");
    (config.admin, config.admin_write_token) = (None, Some("Cargo.toml".into()));
    assert!(config.validate().unwrap_err().to_string().contains("there are no admin pages"));
}

#[tokio::test]
async fn a_file_without_tokens_is_named_by_a_check_and_by_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    fs::write(&file, "short\n").unwrap();
    let place = file.display();
    for (text, field) in [
        (
            format!("admin: none\nclients: [{{ match: {{ any: true }} }}, {{ match: {{ token: '{place}' }} }}]"),
            "clients[1].match.token",
        ),
        (format!("admin: {{ address: 127.0.0.1:0, token: '{place}' }}"), "admin.token"),
        (format!("admin: {{ address: 127.0.0.1:0, write_token: '{place}' }}"), "admin.write_token"),
    ] {
        let text = format!("listen: 127.0.0.1:0\norigins: [{{ name: up, server: 'a:1' }}]\n{text}\n");
        let config = Config::parse("relay.yaml", &text).unwrap();
        let checked = xds_relay::check(&config).map(drop).unwrap_err().to_string();
        assert!(checked.starts_with(&format!("{field}: {place}: line 1: expected a token")), "{checked}");
        let Err(bound) = Relay::bind(config).await else { panic!("{text}") };
        assert_eq!(bound.to_string(), checked);
    }
}
