//! The configuration as editors know it: a JSON Schema. Its fields are those that are read, its defaults those of a configuration
//! that says nothing, and its words those of the README.

use serde_json::{Map, Value, json};

use super::fields::{
    ADMIN_FIELDS, AGGREGATION_FIELDS, CLIENT_FIELDS, CLIENT_LIMIT_FIELDS, DRIFT_FIELDS, ETCD_FIELDS, ETCD_USER_FIELDS,
    FIELDS, FOLLOW_FIELDS, HALT_FIELDS, KUBERNETES_FIELDS, LOCALITY_FIELDS, MATCH_FIELDS, NODE_FIELDS, ORDERS_FIELDS,
    ORIGIN_FIELDS, ORIGIN_TLS_FIELDS, ROLLOUT_FIELDS, STAGE_FIELDS, STATE_FIELDS, STATSD_FIELDS, TLS_FIELDS,
    TRACES_FIELDS,
};
use super::limits::{self, Field, LIMITS};
use super::{Config, Origin};

const README: &str = include_str!("../../README.md");
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

impl Config {
    /// A JSON Schema (draft 2020-12) of the file, for editors: what [`parse`](Self::parse) accepts it accepts, but it says nothing of
    /// what files there are, nor of what else goes together than an origin and what it is.
    ///
    /// ```
    /// let schema = xds_relay::Config::schema();
    /// assert_eq!(schema["properties"]["linger"]["default"], "30s");
    /// assert_eq!(schema["additionalProperties"], false);
    /// ```
    #[must_use]
    pub fn schema() -> Value {
        let schema = required(Schema::new().object("", FIELDS, of_root), &["origins"]);
        with(with(schema, "$schema", json!(DIALECT)), "title", json!("xds-relay"))
    }
}

struct Schema {
    /// By the path of a field.
    defaults: Value,
}

impl Schema {
    fn new() -> Self {
        // One that is listed; what is left out of it has no default.
        let server = "http://127.0.0.1:18010".parse().ok().map(|server| Origin::server("", server));
        let mut defaults = Config::new(server).to_value().unwrap_or_default();
        // They are what they are by others, or required.
        if let Some(fields) = defaults.as_object_mut() {
            fields.remove("default_origin");
        }
        if let Some(origin) = defaults.pointer_mut("/origins/0").and_then(Value::as_object_mut) {
            ["name", "server"].iter().for_each(|required| drop(origin.remove(*required)));
        }
        Self { defaults }
    }

    /// The fields of what is called so, such as `origins[].tls.`.
    fn object(&self, prefix: &str, fields: &[&str], of: fn(&Self, &str) -> Value) -> Value {
        let property = |field: &&str| {
            let path = format!("{prefix}{field}");
            let mut schema = of(self, field);
            if let Some(words) = words(&path) {
                schema = with(schema, "description", json!(words));
            }
            if let Some(default) = self.default(&path) {
                schema = with(schema, "default", default);
            }
            ((*field).to_owned(), schema)
        };
        let properties: Map<String, Value> = fields.iter().map(property).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }

    /// Of a field with one value.
    fn default(&self, path: &str) -> Option<Value> {
        let pointer = format!("/{}", path.replace("[]", "/0").replace('.', "/"));
        // What has fields of its own has its defaults there.
        self.defaults.pointer(&pointer).filter(|default| !default.is_object() && path != "origins").cloned()
    }
}

fn of_root(schema: &Schema, field: &str) -> Value {
    match field {
        "tls" => tls(schema, "tls."),
        "clients" => list(required(schema.object("clients[].", CLIENT_FIELDS, of_client), &["match"]), 1),
        "admin" => either(text(), schema.object("admin.", ADMIN_FIELDS, of_admin)),
        "admin_hosts" => list(text(), 0),
        "client_status" => flag(),
        "node" => schema.object("node.", NODE_FIELDS, of_node),
        "origins" => list(of_one_kind(required(schema.object("origins[].", ORIGIN_FIELDS, of_origin), &["name"])), 1),
        "share_by" => list(text(), 1),
        "aggregation" => {
            either(text(), required(schema.object("aggregation.", AGGREGATION_FIELDS, of_aggregation), &["rules"]))
        }
        "state" => required(schema.object("state.", STATE_FIELDS, of_state), &["path"]),
        "rollout" => list(required(schema.object("rollout[].", ROLLOUT_FIELDS, of_rollout), &["scope"]), 1),
        "orders" => either(text(), required(schema.object("orders.", ORDERS_FIELDS, of_orders), &["address"])),
        "drift" => required(schema.object("drift.", DRIFT_FIELDS, |_, _| duration()), DRIFT_FIELDS),
        "statsd" => required(schema.object("statsd.", STATSD_FIELDS, of_statsd), &["address"]),
        "traces" => required(schema.object("traces.", TRACES_FIELDS, of_traces), &["otlp"]),
        "ready_when" => one_of(&["started", "origins", "last_known_good"]),
        "dynamic_parameters" => one_of(&["final", "draft"]),
        "node_parameters" => json!({ "type": "object", "additionalProperties": text(), "minProperties": 1 }),
        "unknown" => one_of(&["end", "wait"]),
        "linger" | "drain_delay" | "drain" => duration(),
        "limits" => schema.object("limits.", &limits::keys(), of_limits),
        _ => text(),
    }
}

fn of_client(schema: &Schema, field: &str) -> Value {
    match field {
        "match" => schema.object("clients[].match.", MATCH_FIELDS, of_match),
        "limits" => schema.object("clients[].limits.", CLIENT_LIMIT_FIELDS, |_, _| number()),
        "wildcard" | "client_status" => flag(),
        _ => list(text(), 0),
    }
}

fn of_match(_: &Schema, field: &str) -> Value {
    match field {
        "unix" | "any" => flag(),
        "token" => text(),
        _ => list(text(), 0),
    }
}

fn of_admin(schema: &Schema, field: &str) -> Value {
    if field == "tls" { tls(schema, "admin.tls.") } else { text() }
}

fn of_orders(schema: &Schema, field: &str) -> Value {
    if field == "tls" { tls(schema, "orders.tls.") } else { text() }
}

fn of_node(schema: &Schema, field: &str) -> Value {
    match field {
        "locality" => schema.object("node.locality.", LOCALITY_FIELDS, |_, _| text()),
        "metadata" => json!({ "type": "object" }),
        _ => text(),
    }
}

fn of_origin(schema: &Schema, field: &str) -> Value {
    match field {
        "servers" => list(text(), 1),
        "authorities" => list(text(), 0),
        "tls" => schema.object("origins[].tls.", ORIGIN_TLS_FIELDS, |_, _| text()),
        "etcd" => {
            let etcd = schema
                .object("origins[].etcd.", ETCD_FIELDS, |schema, field| of_etcd(schema, field, "origins[].etcd."));
            required(etcd, &["endpoints", "prefix"])
        }
        "node_metadata" => json!({ "type": "object" }),
        "follow" => schema.object("origins[].follow.", FOLLOW_FIELDS, |_, _| list(text(), 1)),
        "kubernetes" => schema.object("origins[].kubernetes.", KUBERNETES_FIELDS, of_kubernetes),
        "protocol" => one_of(&["delta", "sotw"]),
        "methods" => one_of(&["ads", "per_type"]),
        "xdstp" => one_of(&["shared", "by_node"]),
        "dynamic_parameters" => one_of(&["final", "draft"]),
        "keepalive" => duration(),
        "streams_per_connection" => number(),
        "validate" | "environment" | "sub_directories" => flag(),
        _ => text(),
    }
}

fn of_aggregation(_: &Schema, field: &str) -> Value {
    match field {
        "legacy_all_matches" => flag(),
        "unmatched" => one_of(&["own_group", "pass", "reject"]),
        _ => text(),
    }
}

fn of_state(schema: &Schema, field: &str) -> Value {
    let encrypted = json!({
        "type": "object",
        "properties": { "encrypted": text() },
        "required": ["encrypted"],
        "additionalProperties": false,
    });
    match field {
        "secrets" => either(one_of(&["omit"]), encrypted),
        "etcd" => {
            let etcd = schema.object("state.etcd.", ETCD_FIELDS, |schema, field| of_etcd(schema, field, "state.etcd."));
            required(etcd, &["endpoints"])
        }
        "last_known_good" => one_of(&["own", "shared"]),
        _ => text(),
    }
}

fn of_etcd(schema: &Schema, field: &str, prefix: &str) -> Value {
    match field {
        "endpoints" => list(text(), 1),
        "tls" => schema.object(&format!("{prefix}tls."), ORIGIN_TLS_FIELDS, |_, _| text()),
        "user" => required(schema.object(&format!("{prefix}user."), ETCD_USER_FIELDS, |_, _| text()), ETCD_USER_FIELDS),
        _ => text(),
    }
}

fn of_kubernetes(schema: &Schema, field: &str) -> Value {
    match field {
        "tls" => schema.object("origins[].kubernetes.tls.", ORIGIN_TLS_FIELDS, |_, _| text()),
        "namespaces" => list(text(), 1),
        "kinds" => list(one_of(&["config_maps", "xds_resources"]), 1),
        _ => text(),
    }
}

fn of_rollout(schema: &Schema, field: &str) -> Value {
    match field {
        "settle" => duration(),
        "stages" => list(schema.object("rollout[].stages[].", STAGE_FIELDS, of_stage), 0),
        "halt" => schema.object("rollout[].halt.", HALT_FIELDS, |_, _| text()),
        "on_halt" => one_of(&["hold", "rollback"]),
        "all_types" => flag(),
        _ => text(),
    }
}

fn of_stage(_: &Schema, field: &str) -> Value {
    match field {
        "match" => json!({ "type": "object", "additionalProperties": scalar(), "minProperties": 1 }),
        "hold" => duration(),
        _ => text(),
    }
}

fn of_statsd(_: &Schema, field: &str) -> Value {
    if field == "interval" { duration() } else { text() }
}

fn of_traces(schema: &Schema, field: &str) -> Value {
    match field {
        "tls" => schema.object("traces.tls.", ORIGIN_TLS_FIELDS, |_, _| text()),
        "one_in" => number(),
        _ => text(),
    }
}

fn of_limits(_: &Schema, field: &str) -> Value {
    match LIMITS.iter().find(|limit| limit.key == field).map(|limit| &limit.field) {
        Some(Field::Time(_)) => duration(),
        Some(Field::Size(..)) => size(),
        Some(Field::Percent(_)) => percent(),
        Some(Field::Number(_) | Field::Rate(_) | Field::Count(_)) | None => number(),
    }
}

fn tls(schema: &Schema, prefix: &str) -> Value {
    required(schema.object(prefix, TLS_FIELDS, |_, _| text()), &["certificate", "key"])
}

fn text() -> Value {
    json!({ "type": ["string", "number"] })
}

/// A text, however it is written.
fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn list(of: Value, least: usize) -> Value {
    json!({ "type": "array", "items": of, "minItems": least })
}

fn required(object: Value, fields: &[&str]) -> Value {
    with(object, "required", json!(fields))
}

/// An origin is one of these.
fn of_one_kind(origin: Value) -> Value {
    let kinds = ["server", "servers", "files", "etcd", "kubernetes"].map(|kind| json!({ "required": [kind] }));
    with(origin, "oneOf", json!(kinds))
}

fn with(mut schema: Value, keyword: &str, says: Value) -> Value {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.insert(keyword.to_owned(), says);
    }
    schema
}

fn either(one: Value, other: Value) -> Value {
    json!({ "anyOf": [one, other] })
}

/// Or what the environment has.
fn or_variable(schema: Value) -> Value {
    either(schema, json!({ "type": "string", "pattern": "\\$\\{" }))
}

fn one_of(words: &[&str]) -> Value {
    or_variable(json!({ "enum": words }))
}

fn flag() -> Value {
    or_variable(json!({ "type": "boolean" }))
}

fn number() -> Value {
    or_variable(json!({ "type": "integer", "minimum": 1 }))
}

fn size() -> Value {
    or_variable(either(json!({ "type": "integer", "minimum": 1 }), json!({ "type": "string", "pattern": "^[0-9]" })))
}

fn percent() -> Value {
    or_variable(json!({ "type": "string", "pattern": "^[0-9]+ *%$" }))
}

fn duration() -> Value {
    or_variable(json!({ "type": "string", "pattern": "^[0-9]" }))
}

/// The cells of the row for a field: what it is where it is left out, and what it is for.
fn row(path: &str) -> Option<(&'static str, &'static str)> {
    let named = format!("`{}`", path.split_once(".locality.").map_or(path, |_| "node.locality"));
    README.lines().find_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix('|')?.splitn(3, " |");
        let (names, default, words) = (cells.next()?, cells.next()?, cells.next()?);
        names.split(", ").any(|name| name == named).then(|| (default.trim(), words.trim()))
    })
}

fn words(path: &str) -> Option<String> {
    row(path).map(|(_, words)| without_links(words)).filter(|words| !words.is_empty())
}

/// `[a](#b)` is `a`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((start, label)) = before.rsplit_once('[') else { break };
        plain.extend([start, label]);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests;
