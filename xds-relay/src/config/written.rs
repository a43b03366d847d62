//! A configuration within another: read from, and written to, whatever serde knows, with the fields that a file has.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use xds_transport::Dialect;

use super::limits::{Amount, LIMITS, Limit};
use super::listening::written_at;
use super::orders as order_taking;
use super::{
    Aggregation, Config, Etcd, KnownIn, Kubernetes, Limits, ListenTls, Node, NodeField, Origin, OriginKind, OriginTls,
    ReadyWhen, Rollout, Secrets, State, Statsd, Traces, Unknown, Unmatched, XdstpStreams, read, rollout,
};
use super::{clients, etcd, follow, kubernetes};
use crate::yaml::{self, Prefix};

/// By the fields that [a file](Config::parse) has, and held to the same. Relative paths start from where the program was
/// started, and errors name the field, as only who reads the text knows its place.
///
/// ```
/// use xds_relay::Config;
///
/// let config: Config = serde_json::from_str(r#"{ "origins": [{ "name": "a", "server": "127.0.0.1:1" }], "linger": "1m" }"#)?;
/// assert_eq!(config.linger.as_secs(), 60);
/// assert_eq!(serde_json::from_value::<Config>(serde_json::to_value(&config)?)?, config);
///
/// let error = serde_json::from_str::<Config>(r#"{ "origins": [{ "name": "a", "server": "x" }] }"#).unwrap_err();
/// assert!(error.to_string().starts_with("origins[0].server: `x`: expected HOST:PORT"));
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // JSON is YAML: there is one reader.
        let text = Value::deserialize(deserializer)?.to_string();
        let root = yaml::parse(&text).map(|root| root.unwrap_or_else(yaml::Node::empty));
        let config = root.and_then(|root| read::config(&root, Path::new("")));
        config.map_err(|error| D::Error::custom(format!("{}{}", Prefix(&error.path), error.reason)))
    }
}

/// Every field that has a value, as a file would have it. One with an embedded origin is not written: no file has such.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        value(self).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl Config {
    /// The same, as JSON.
    ///
    /// # Errors
    /// No file has such a configuration.
    pub(crate) fn to_value(&self) -> Result<Value, String> {
        value(self)
    }
}

/// Why a configuration cannot be written.
type Unwritten = String;

fn value(config: &Config) -> Result<Value, Unwritten> {
    let Config {
        listen,
        tls,
        clients,
        admin,
        admin_tls,
        admin_token,
        admin_write_token,
        admin_hosts,
        node,
        origins,
        default_origin,
        share_by,
        ..
    } = config;
    let Config {
        client_status,
        aggregation,
        state,
        rollout,
        orders,
        ready_when,
        dynamic_parameters,
        node_parameters,
        unknown,
        linger,
        drain_delay,
        drain,
        limits,
        drift,
        statsd,
        traces,
        log,
        ..
    } = config;
    let parts = share_by.as_ref().map(|parts| parts.iter().map(ToString::to_string).collect::<Vec<_>>());
    let admin_tls = admin_tls.as_ref().map(listen_tls).transpose()?;
    let [admin_token, write_token] = [admin_token, admin_write_token].map(|file| file.as_deref().map(path).transpose());
    let of_admin = [("tls", admin_tls), ("token", admin_token?), ("write_token", write_token?)];
    let orders_tls = orders.as_ref().and_then(|orders| orders.tls.as_ref()).map(listen_tls).transpose()?;
    let orders_token = orders.as_ref().and_then(|orders| orders.token.as_deref()).map(path).transpose()?;
    Ok(some([
        ("listen", Some(json!(listen.to_string()))),
        ("tls", tls.as_ref().map(listen_tls).transpose()?),
        ("clients", clients.as_ref().map(|rules| clients::written(rules, path)).transpose()?),
        ("admin", Some(written_at(admin.as_ref(), of_admin))),
        ("admin_hosts", Some(json!(admin_hosts))),
        ("client_status", Some(json!(client_status))),
        ("node", Some(relay_node(node))),
        ("origins", Some(origins.iter().map(origin).collect::<Result<_, _>>()?)),
        ("default_origin", Some(json!(default_origin))),
        ("share_by", parts.map(|parts| json!(parts))),
        ("aggregation", aggregation.as_ref().map(rules).transpose()?),
        ("state", state.as_ref().map(kept).transpose()?),
        ("rollout", rollouts(rollout)),
        ("orders", Some(order_taking::written(orders.as_ref(), orders_tls, orders_token))),
        (
            "ready_when",
            Some(json!(match ready_when {
                ReadyWhen::Started => "started",
                ReadyWhen::Origins => "origins",
                ReadyWhen::LastKnownGood => "last_known_good",
            })),
        ),
        ("dynamic_parameters", Some(dialect(*dynamic_parameters))),
        ("node_parameters", (!node_parameters.is_empty()).then(|| parts_by_key(node_parameters))),
        (
            "unknown",
            Some(json!(match unknown {
                Unknown::End => "end",
                Unknown::Wait => "wait",
            })),
        ),
        ("linger", Some(time(*linger))),
        ("drain_delay", Some(time(*drain_delay))),
        ("drain", Some(time(*drain))),
        ("limits", Some(bounds(limits))),
        ("drift", drift.map(|drift| json!({ "every": time(drift.every) }))),
        ("statsd", statsd.as_ref().map(sink)),
        ("traces", traces.as_ref().map(told).transpose()?),
        ("log", Some(json!(log.as_str()))),
    ]))
}

fn some<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(there.collect::<Map<_, _>>())
}

fn kept(State { path: directory, secrets, etcd, last_known_good }: &State) -> Result<Value, Unwritten> {
    let secrets = match secrets {
        Secrets::Omit => json!("omit"),
        Secrets::Encrypted(file) => json!({ "encrypted": path(file)? }),
    };
    Ok(some([
        ("path", Some(path(directory)?)),
        ("secrets", Some(secrets)),
        ("etcd", etcd.as_ref().map(cluster).transpose()?),
        ("last_known_good", Some(json!(if *last_known_good == KnownIn::Shared { "shared" } else { "own" }))),
    ]))
}

fn cluster(etcd: &Etcd) -> Result<Value, Unwritten> {
    etcd::written(etcd, path, origin_tls)
}

fn objects(of: &Kubernetes) -> Result<Value, Unwritten> {
    kubernetes::written(of, path, origin_tls)
}

fn rollouts(all: &[Rollout]) -> Option<Value> {
    (!all.is_empty()).then(|| all.iter().map(|rollout| rollout::written(rollout, time)).collect())
}

fn sink(Statsd { address, prefix, interval }: &Statsd) -> Value {
    let prefix = (!prefix.is_empty()).then(|| json!(prefix));
    some([("address", Some(json!(address))), ("prefix", prefix), ("interval", Some(time(*interval)))])
}

fn told(Traces { otlp, tls, one_in }: &Traces) -> Result<Value, Unwritten> {
    let tls = tls.as_ref().map(origin_tls).transpose()?;
    Ok(some([("otlp", Some(json!(otlp))), ("tls", tls), ("one_in", Some(json!(one_in)))]))
}

fn dialect(dialect: Dialect) -> Value {
    json!(if dialect == Dialect::Draft { "draft" } else { "final" })
}

fn parts_by_key(parameters: &BTreeMap<String, NodeField>) -> Value {
    Value::Object(parameters.iter().map(|(key, field)| (key.clone(), json!(field.to_string()))).collect())
}

fn time(time: Duration) -> Value {
    json!(humantime::format_duration(time).to_string())
}

fn path(path: &Path) -> Result<Value, Unwritten> {
    path.to_str().map(|path| json!(path)).ok_or_else(|| format!("{} is no UTF-8", path.display()))
}

fn listen_tls(ListenTls { certificate, key, client_ca }: &ListenTls) -> Result<Value, Unwritten> {
    Ok(some([
        ("certificate", Some(path(certificate)?)),
        ("key", Some(path(key)?)),
        ("client_ca", client_ca.as_deref().map(path).transpose()?),
    ]))
}

fn relay_node(Node { id, cluster, locality, metadata }: &Node) -> Value {
    let locality = json!({ "region": locality.region, "zone": locality.zone, "sub_zone": locality.sub_zone });
    json!({ "id": id, "cluster": cluster, "locality": locality, "metadata": metadata })
}

fn origin(origin: &Origin) -> Result<Value, Unwritten> {
    let Origin { name, authorities, kind, tls, token, xdstp, .. } = origin;
    let Origin {
        methods, dynamic_parameters, keepalive, streams_per_connection, node_metadata, follow: of_follow, ..
    } = origin;
    let (name, authorities) = (("name", Some(json!(name))), ("authorities", Some(json!(authorities))));
    match kind {
        OriginKind::Server { servers, protocol } => Ok(some([
            name,
            match servers.as_slice() {
                [one] => ("server", Some(json!(one.to_string()))),
                all => ("servers", Some(json!(all.iter().map(ToString::to_string).collect::<Vec<_>>()))),
            },
            ("tls", tls.as_ref().map(origin_tls).transpose()?),
            ("token", token.as_deref().map(path).transpose()?),
            ("protocol", Some(json!(protocol.as_str()))),
            ("methods", Some(methods.to_value())),
            (
                "xdstp",
                Some(json!(match xdstp {
                    XdstpStreams::Shared => "shared",
                    XdstpStreams::ByNode => "by_node",
                })),
            ),
            ("dynamic_parameters", Some(dialect(*dynamic_parameters))),
            ("keepalive", Some(time(*keepalive))),
            ("streams_per_connection", Some(json!(streams_per_connection))),
            ("node_metadata", (!node_metadata.is_empty()).then(|| json!(node_metadata))),
            ("follow", of_follow.as_ref().map(follow::written)),
            authorities,
        ])),
        OriginKind::Files { directory, descriptors, reading } => Ok(some([
            name,
            ("files", Some(path(directory)?)),
            ("descriptors", descriptors.as_deref().map(path).transpose()?),
            ("validate", Some(json!(reading.validate))),
            ("environment", Some(json!(reading.environment))),
            ("sub_directories", Some(json!(reading.sub_directories))),
            authorities,
        ])),
        OriginKind::Etcd { etcd, descriptors, validate } => Ok(some([
            name,
            ("etcd", Some(cluster(etcd)?)),
            ("descriptors", descriptors.as_deref().map(path).transpose()?),
            ("validate", Some(json!(validate))),
            authorities,
        ])),
        OriginKind::Kubernetes { kubernetes, descriptors, validate } => Ok(some([
            name,
            ("kubernetes", Some(objects(kubernetes)?)),
            ("descriptors", descriptors.as_deref().map(path).transpose()?),
            ("validate", Some(json!(validate))),
            authorities,
        ])),
        OriginKind::Embedded => Err(format!("origin `{}` is embedded, and no file has such an origin", origin.name)),
    }
}

fn origin_tls(OriginTls { ca, identity, server_name }: &OriginTls) -> Result<Value, Unwritten> {
    let (certificate, key) = identity.as_ref().map(|(certificate, key)| (certificate, key)).unzip();
    let file = |file: Option<&std::path::PathBuf>| file.map(|file| path(file)).transpose();
    Ok(some([
        ("ca", file(ca.as_ref())?),
        ("certificate", file(certificate)?),
        ("key", file(key)?),
        ("server_name", server_name.as_ref().map(|name| json!(name))),
    ]))
}

fn rules(Aggregation { rules, legacy_all_matches, unmatched }: &Aggregation) -> Result<Value, Unwritten> {
    let unmatched = match unmatched {
        Unmatched::OwnGroup => "own_group",
        Unmatched::Pass => "pass",
        Unmatched::Reject => "reject",
    };
    Ok(json!({ "rules": path(rules)?, "legacy_all_matches": legacy_all_matches, "unmatched": unmatched }))
}

fn bounds(limits: &Limits) -> Value {
    let amount = |limit: &Limit| match limit.amount(*limits)? {
        Amount::Number(number) => Some((limit.key.to_owned(), json!(number))),
        Amount::Time(length) => Some((limit.key.to_owned(), time(length))),
        Amount::Percent(part) => Some((limit.key.to_owned(), json!(format!("{part}%")))),
    };
    Value::Object(LIMITS.iter().filter_map(amount).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::limits::keys;

    fn again(value: &Value) -> Value {
        let config: Config = serde_json::from_value(value.clone()).unwrap();
        serde_json::to_value(config).unwrap()
    }

    #[test]
    fn every_limit_is_written_as_it_is_read() {
        let config = Config::new([Origin::server("a", "http://a:1".parse().unwrap())]);
        let mut value = serde_json::to_value(config).unwrap();
        value["limits"]["connections"] = json!(100);
        for (index, key) in keys().into_iter().enumerate() {
            let limit = &mut value["limits"][key];
            // No two are equal, nor as they were.
            *limit = match limit.as_u64() {
                Some(number) => json!(number - 1 - index as u64),
                None if limit.as_str().is_some_and(|text| text.ends_with('%')) => json!(format!("{}%", index + 1)),
                None => json!(format!("{}s", index + 1)),
            };
        }
        assert_eq!(again(&value), value);
    }

    #[test]
    fn all_else_is_written_as_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        for origin in [
            json!({ "server": "https://b:1/", "tls": {}, "token": file, "protocol": "sotw", "xdstp": "by_node" }),
            json!({ "server": "http://b:1/", "tls": { "ca": file, "certificate": file, "key": file, "server_name": "b" } }),
            json!({ "servers": ["http://b:1/", "http://c:1/"], "node_metadata": { "a": [1, true, null, "x"] } }),
            json!({ "servers": ["http://b:1/", "http://c:1/"], "methods": "per_type" }),
            json!({ "files": directory.path(), "descriptors": file }),
            json!({ "files": directory.path(), "validate": false, "environment": true, "sub_directories": true }),
            json!({ "etcd": { "endpoints": ["http://b:1/"], "prefix": "x/" }, "descriptors": file, "validate": false }),
            json!({ "etcd": {
                "endpoints": ["https://b:1/", "https://c:1/"], "prefix": "x/", "tls": { "server_name": "b" },
                "user": { "name": "me", "password_file": file },
            } }),
            json!({ "kubernetes": {}, "descriptors": file, "validate": false }),
            json!({ "kubernetes": {
                "server": "https://b:1/", "tls": { "ca": file }, "token_file": file, "namespaces": ["a", "b"],
                "kinds": ["xds_resources", "config_maps"], "label_selector": "a=b",
            } }),
            #[cfg(unix)]
            json!({ "server": format!("unix:{}", directory.path().join("socket").display()) }),
            #[cfg(unix)]
            json!({ "servers": ["https://b:1/", "unix:/b", "unix:/c"], "tls": {}, "token": file }),
        ] {
            let mut origins = vec![json!({ "name": "a", "server": "a:1" }), origin];
            origins[1]["name"] = json!("b");
            origins[1]["authorities"] = json!(["x", ""]);
            let config: Config = serde_json::from_value(json!({
                "listen": "[::1]:1", "admin": "none", "admin_hosts": ["x"], "unknown": "wait", "linger": "1m 30s",
                "tls": { "certificate": file, "key": file, "client_ca": file },
                "clients": [
                    { "match": { "san": ["*.x"], "spiffe": ["spiffe://x/**"], "cidr": ["::/0"], "token": file, "unix": true },
                      "nodes": ["a*"], "clusters": ["b"], "types": ["Cluster"], "names": ["x", "xdstp://a/T/*"], "wildcard": true },
                    { "match": { "any": true }, "names": [], "limits": { "streams": 1, "names": 2 } },
                    { "match": { "any": true } },
                ],
                "node": { "id": "i", "cluster": "c", "locality": { "zone": "z" }, "metadata": { "a": [1, true, null, "x"] } },
                "origins": origins, "default_origin": "b", "share_by": ["id", "metadata.\"a.b\".c"],
                "drift": { "every": "10m" },
                "statsd": { "address": "[::1]:8125", "prefix": "a.b", "interval": "1s" },
                "traces": { "otlp": "https://[::1]:4317", "tls": { "ca": file, "server_name": "b" }, "one_in": 7 },
                "node_parameters": { "a.b": "metadata.\"a.b\".c", "env": "cluster" },
                "state": { "path": directory.path(), "secrets": { "encrypted": file }, "etcd": {
                    "endpoints": ["https://a:1/", "https://b:1/"], "prefix": "x/", "tls": { "ca": file },
                    "user": { "name": "me", "password_file": file },
                }, "last_known_good": "shared" },
                "aggregation": { "rules": file, "legacy_all_matches": true, "unmatched": "pass" }
            }))
            .unwrap();
            assert_eq!(serde_json::from_value::<Config>(serde_json::to_value(&config).unwrap()).unwrap(), config);
        }
    }

    #[test]
    fn what_no_file_has_is_not_written() {
        let error = serde_json::to_value(Config::new([Origin::embedded("a")])).unwrap_err();
        assert_eq!(error.to_string(), "origin `a` is embedded, and no file has such an origin");
    }
}
