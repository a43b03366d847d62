//! Every field of a configuration that is read again counts at once, or is said to need a restart and stays as it was.

use std::path::Path;

use serde_json::{Map, Value, json};
use xds_relay::{Config, Relay, Reloaded, Reloader};

/// What has no effect before a restart is told; of all else this is the list, as the README has it.
const COUNT_AT_ONCE: &[&str] = &[
    "admin_hosts[0]",
    "clients",
    "drain",
    "drain_delay",
    "limits.authorities",
    "limits.groups",
    "limits.load_report_streams",
    "limits.names",
    "limits.new_streams_per_second",
    "limits.one_client",
    "limits.streams",
    "listen",
    "origins[0].keepalive",
    "origins[0].server",
    "origins[0].streams_per_connection",
    "origins[0].tls",
    "origins[0].token",
    "unknown",
];

fn running_with(directory: &Path) -> Value {
    json!({
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "drain": "1s",
        "origins": [
            { "name": "a", "server": "127.0.0.1:1" },
            { "name": "b", "server": "127.0.0.1:2" },
            { "name": "f", "files": directory.join("files"), "authorities": ["f"] },
        ],
        "default_origin": "a",
    })
}

/// Each field with something else, but for limits. What a field needs beside it, is with it.
fn others(directory: &Path) -> Vec<(&'static str, Value)> {
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let tokens = file("tokens", "one-0123456789abcdef");
    // It is good until 2100.
    let jwt = file("jwt", "e30.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln");
    let rules =
        file("rules", "fragments: [{ rules: [{ match: { any_match: true }, result: { string_fragment: a } }] }]");
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, private) = (file("pem", &key.cert.pem()), file("key", &key.signing_key.serialize_pem()));
    let tls = json!({ "certificate": certificate, "key": private });
    let state = json!({ "path": directory.join("state") });
    let rollout = json!([{ "scope": "xdstp://f" }]);
    let origin = |more: Value| {
        let mut origins = running_with(directory)["origins"].clone();
        let more = more.as_object().unwrap().clone();
        origins[0].as_object_mut().unwrap().extend(more);
        json!({ "origins": origins })
    };
    let field = |name: &str, value: Value| Value::Object(Map::from_iter([(name.to_owned(), value)]));
    let mut followed = origin(json!({ "follow": {} }));
    let of_it = json!({ "rollout": [{ "scope": "old-style" }], "state": state, "orders": "none" });
    followed.as_object_mut().unwrap().extend(of_it.as_object().unwrap().clone());
    vec![
        ("listen", field("listen", json!("127.0.0.2:0"))),
        ("tls", field("tls", tls.clone())),
        ("clients", field("clients", json!([{ "match": { "any": true } }]))),
        ("admin", field("admin", json!("127.0.0.2:0"))),
        ("admin", field("admin", json!({ "address": "127.0.0.1:0", "tls": tls, "token": tokens }))),
        ("admin_hosts", field("admin_hosts", json!(["relay.example"]))),
        ("client_status", field("client_status", json!(true))),
        ("node", field("node", json!({ "id": "other" }))),
        ("origins", origin(json!({ "protocol": "sotw" }))),
        ("origins", origin(json!({ "methods": "per_type" }))),
        ("origins", origin(json!({ "xdstp": "by_node" }))),
        ("origins", origin(json!({ "dynamic_parameters": "draft" }))),
        ("origins", origin(json!({ "node_metadata": { "a": 1 } }))),
        ("origins", followed),
        ("origins", origin(json!({ "keepalive": "1m" }))),
        ("origins", origin(json!({ "server": "127.0.0.1:3" }))),
        ("origins", origin(json!({ "streams_per_connection": 7 }))),
        ("origins", origin(json!({ "tls": {}, "token": jwt }))),
        ("default_origin", field("default_origin", json!("b"))),
        ("share_by", field("share_by", json!(["cluster"]))),
        ("aggregation", field("aggregation", json!(rules))),
        ("state", field("state", state.clone())),
        ("rollout", json!({ "rollout": rollout, "state": state, "orders": "none" })),
        ("orders", json!({ "rollout": rollout, "state": state })),
        ("ready_when", field("ready_when", json!("origins"))),
        ("dynamic_parameters", field("dynamic_parameters", json!("draft"))),
        ("node_parameters", field("node_parameters", json!({ "env": "cluster" }))),
        ("unknown", field("unknown", json!("wait"))),
        ("linger", field("linger", json!("1m"))),
        ("drain_delay", field("drain_delay", json!("1s"))),
        ("drain", field("drain", json!("2s"))),
        ("drift", field("drift", json!({ "every": "5m" }))),
        ("statsd", field("statsd", json!({ "address": "127.0.0.1:8125" }))),
        #[cfg(feature = "otlp")]
        ("traces", field("traces", json!({ "otlp": "http://127.0.0.1:4317" }))),
        // A program that does not say how, does not log otherwise.
        ("log", field("log", json!("debug"))),
    ]
}

/// Goes by this, and by nothing else that was there: what became of it.
async fn apply(directory: &Path, reloader: &Reloader, more: &Value) -> Reloaded {
    let mut config = running_with(directory);
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config: Config = serde_json::from_value(config).unwrap();
    let reloader = reloader.clone();
    tokio::task::spawn_blocking(move || reloader.apply(config)).await.unwrap().unwrap()
}

fn written(reloader: &Reloader) -> Value {
    serde_json::to_value(reloader.config()).unwrap()
}

/// Where a field is, by its name in a file.
fn at<'a>(config: &'a Value, field: &str) -> &'a Value {
    let pointer = field.replace('[', "/").replace(']', "").replace('.', "/");
    config.pointer(&format!("/{pointer}")).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn every_field_counts_at_once_or_is_said_to_need_a_restart_and_stays_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("files")).unwrap();
    let relay = Relay::bind(serde_json::from_value(running_with(directory.path())).unwrap()).await.unwrap();
    let reloader = relay.reloader();
    let before = written(&reloader);
    let mut all = others(directory.path());
    let limits = before["limits"].as_object().unwrap().clone();
    // This one is left out where it follows the system.
    let limits = limits.into_iter().chain([("connections".to_owned(), json!(1000))]);
    for (name, value) in limits {
        let other = match value.as_u64() {
            Some(number) => json!(number - 1),
            None if name == "one_client" => json!("11%"),
            None => json!("11s"),
        };
        all.push(("limits", json!({ "limits": { name: other } })));
    }
    let schema = Config::schema();
    for field in schema["properties"].as_object().unwrap().keys() {
        let is_left_out = cfg!(not(feature = "otlp")) && field == "traces";
        assert!(is_left_out || all.iter().any(|(of, _)| of == field), "{field} is not looked at");
    }
    let mut seen_to_count = Vec::new();
    for (name, more) in &all {
        let reloaded = apply(directory.path(), &reloader, more).await;
        let after = written(&reloader);
        let told: Vec<_> = reloaded.applied.iter().chain(&reloaded.needs_restart).collect();
        assert!(told.iter().any(|field| field.starts_with(name)), "{more}: {reloaded:?}");
        for field in &reloaded.needs_restart {
            assert_eq!(at(&after, field), at(&before, field), "{field} stays as it was");
        }
        for field in &reloaded.applied {
            assert_ne!(at(&after, field), at(&before, field), "{field} counts");
            assert!(COUNT_AT_ONCE.contains(&field.as_str()), "{field}");
        }
        seen_to_count.extend(reloaded.applied);
        let back = apply(directory.path(), &reloader, &json!({})).await;
        assert_eq!((back.needs_restart, written(&reloader)), (vec![], before.clone()), "and back: {more}");
    }
    for field in COUNT_AT_ONCE {
        assert!(seen_to_count.iter().any(|seen| seen == field), "{field} does not count at once");
    }
}
