//! All that a configuration may say, by the name of each field: an example or a document that lacks one is noticed. Those of
//! limits are in their own table.

pub(super) const FIELDS: &[&str] = &[
    "listen",
    "tls",
    "clients",
    "admin",
    "admin_hosts",
    "client_status",
    "node",
    "origins",
    "default_origin",
    "share_by",
    "aggregation",
    "state",
    "rollout",
    "orders",
    "ready_when",
    "dynamic_parameters",
    "node_parameters",
    "unknown",
    "linger",
    "drain_delay",
    "drain",
    "limits",
    "drift",
    "statsd",
    "traces",
    "log",
];
pub(super) const ADMIN_FIELDS: &[&str] = &["address", "token", "write_token", "tls"];
pub(super) const ORDERS_FIELDS: &[&str] = &["address", "token", "tls"];
pub(super) const CLIENT_FIELDS: &[&str] =
    &["match", "nodes", "clusters", "types", "names", "wildcard", "client_status", "limits"];
pub(super) const CLIENT_LIMIT_FIELDS: &[&str] =
    &["streams", "new_streams_per_second", "load_report_streams", "groups", "authorities", "names"];
pub(super) const MATCH_FIELDS: &[&str] = &["san", "spiffe", "cidr", "token", "unix", "any"];
pub(super) const AGGREGATION_FIELDS: &[&str] = &["rules", "legacy_all_matches", "unmatched"];
pub(super) const STATE_FIELDS: &[&str] = &["path", "secrets", "etcd", "last_known_good"];
pub(super) const ETCD_FIELDS: &[&str] = &["endpoints", "prefix", "tls", "user"];
pub(super) const ETCD_USER_FIELDS: &[&str] = &["name", "password_file"];
pub(super) const KUBERNETES_FIELDS: &[&str] = &["server", "tls", "token_file", "namespaces", "kinds", "label_selector"];
pub(super) const ROLLOUT_FIELDS: &[&str] = &["scope", "settle", "stages", "halt", "on_halt", "all_types"];
pub(super) const STAGE_FIELDS: &[&str] = &["match", "percent", "hold"];
pub(super) const HALT_FIELDS: &[&str] = &["rejected", "silent", "lost", "check"];
pub(super) const DRIFT_FIELDS: &[&str] = &["every"];
pub(super) const STATSD_FIELDS: &[&str] = &["address", "prefix", "interval"];
pub(super) const TRACES_FIELDS: &[&str] = &["otlp", "tls", "one_in"];
pub(super) const TLS_FIELDS: &[&str] = &["certificate", "key", "client_ca"];
pub(super) const NODE_FIELDS: &[&str] = &["id", "cluster", "locality", "metadata"];
pub(super) const LOCALITY_FIELDS: &[&str] = &["region", "zone", "sub_zone"];
pub(super) const ORIGIN_FIELDS: &[&str] = &[
    "name",
    "server",
    "servers",
    "tls",
    "token",
    "protocol",
    "methods",
    "xdstp",
    "dynamic_parameters",
    "keepalive",
    "streams_per_connection",
    "node_metadata",
    "follow",
    "files",
    "etcd",
    "kubernetes",
    "descriptors",
    "validate",
    "environment",
    "sub_directories",
    "authorities",
];
pub(super) const FOLLOW_FIELDS: &[&str] = &["collections"];
pub(super) const ORIGIN_TLS_FIELDS: &[&str] = &["ca", "certificate", "key", "server_name"];

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::path::Path;

    use serde::Deserialize as _;
    use serde_json::Value;

    use super::super::limits;
    use super::*;
    use crate::Config;
    use crate::yaml::{self, Node};

    const EXAMPLE: &str = "../examples/relay.yaml";
    const README: &str = include_str!("../../README.md");

    /// `None` in what was packed for the registry, which has the crate alone.
    pub(in crate::config) fn example() -> Option<String> {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLE)).ok()
    }

    /// With what is commented out: fields, and the items of lists, behind `# `. All other comments begin otherwise.
    pub(in crate::config) fn uncommented(text: &str) -> String {
        let field = |text: &str| {
            let name = text.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default();
            text.contains(':') && !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        };
        let line = |line: &str| match line.split_once("# ") {
            Some((indent, rest)) if indent.trim().is_empty() && field(rest) => format!("{indent}{rest}\n"),
            _ => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn the_example_has_every_field_and_what_is_commented_out_is_good_too() {
        let Some(text) = example() else { return };
        let text = uncommented(&text);
        let root = yaml::parse(&text).unwrap().unwrap();
        let has = |nodes: &[&Node], fields: &[&str]| {
            for field in fields {
                assert!(nodes.iter().any(|node| node.entry(field).is_some()), "{field} is not in {EXAMPLE}");
            }
        };
        let at = |path: &[&str]| path.iter().fold(&root, |node, key| node.entry(key).unwrap());
        has(&[&root], FIELDS);
        has(&[at(&["tls"])], TLS_FIELDS);
        has(&[at(&["admin"])], ADMIN_FIELDS);
        has(&[at(&["admin", "tls"])], TLS_FIELDS);
        has(&[at(&["orders"])], ORDERS_FIELDS);
        has(&[at(&["orders", "tls"])], TLS_FIELDS);
        let yaml::Content::Sequence(clients) = &at(&["clients"]).content else { panic!("a list") };
        has(&clients.iter().collect::<Vec<_>>(), CLIENT_FIELDS);
        has(&clients.iter().filter_map(|rule| rule.entry("match")).collect::<Vec<_>>(), MATCH_FIELDS);
        has(&clients.iter().filter_map(|rule| rule.entry("limits")).collect::<Vec<_>>(), CLIENT_LIMIT_FIELDS);
        has(&[at(&["aggregation"])], AGGREGATION_FIELDS);
        has(&[at(&["state"])], STATE_FIELDS);
        has(&[at(&["state", "etcd"])], ETCD_FIELDS);
        has(&[at(&["state", "etcd", "tls"])], ORIGIN_TLS_FIELDS);
        has(&[at(&["state", "etcd", "user"])], ETCD_USER_FIELDS);
        let yaml::Content::Sequence(rollouts) = &at(&["rollout"]).content else { panic!("a list") };
        has(&rollouts.iter().collect::<Vec<_>>(), ROLLOUT_FIELDS);
        let yaml::Content::Sequence(stages) = &rollouts[0].entry("stages").unwrap().content else { panic!("a list") };
        has(&stages.iter().collect::<Vec<_>>(), STAGE_FIELDS);
        has(&[rollouts[0].entry("halt").unwrap()], HALT_FIELDS);
        has(&[at(&["drift"])], DRIFT_FIELDS);
        has(&[at(&["statsd"])], STATSD_FIELDS);
        has(&[at(&["traces"])], TRACES_FIELDS);
        has(&[at(&["traces", "tls"])], ORIGIN_TLS_FIELDS);
        has(&[at(&["node"])], NODE_FIELDS);
        has(&[at(&["node", "locality"])], LOCALITY_FIELDS);
        let yaml::Content::Sequence(origins) = &at(&["origins"]).content else { panic!("a list") };
        has(&origins.iter().collect::<Vec<_>>(), ORIGIN_FIELDS);
        has(&origins.iter().filter_map(|origin| origin.entry("tls")).collect::<Vec<_>>(), ORIGIN_TLS_FIELDS);
        let etcd = origins.iter().find_map(|origin| origin.entry("etcd")).unwrap();
        has(&[etcd], ETCD_FIELDS);
        has(&[etcd.entry("tls").unwrap()], ORIGIN_TLS_FIELDS);
        has(&[etcd.entry("user").unwrap()], ETCD_USER_FIELDS);
        let kubernetes = origins.iter().find_map(|origin| origin.entry("kubernetes")).unwrap();
        has(&[kubernetes], KUBERNETES_FIELDS);
        has(&[kubernetes.entry("tls").unwrap()], ORIGIN_TLS_FIELDS);
        has(&[origins.iter().find_map(|origin| origin.entry("follow")).unwrap()], FOLLOW_FIELDS);
        has(&[at(&["limits"])], &limits::keys());

        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("resources")).unwrap();
        for file in [
            "types.binpb",
            "relay.pem",
            "relay.key",
            "clients.pem",
            "origin-ca.pem",
            "rules.yaml",
            "token",
            "admin-tokens",
            "admin-write-tokens",
            "ci-tokens",
            "etcd-ca.pem",
            "etcd-password",
            "kubernetes-ca.pem",
            "kubernetes-token",
            "collector-ca.pem",
        ] {
            fs::write(directory.path().join(file), "").unwrap();
        }
        let config = Config::parse(directory.path().join("relay.yaml"), &text).unwrap();
        assert_eq!(config.origins.len(), 5);
        let written = config.to_value().unwrap();
        assert_eq!(lacking(&Value::deserialize(&root).unwrap(), &written, ""), None, "it is not in written.rs");
        assert_eq!(serde_json::from_value::<Config>(written).unwrap(), config);
    }

    /// A field that one has and the other has not.
    fn lacking(file: &Value, written: &Value, path: &str) -> Option<String> {
        match (file, written) {
            (Value::Object(file), Value::Object(_)) => file.iter().find_map(|(key, of)| {
                let path = format!("{path}.{key}");
                written.get(key).map_or(Some(path.clone()), |written| lacking(of, written, &path))
            }),
            (Value::Array(file), Value::Array(written)) => {
                file.iter().zip(written).find_map(|(file, written)| lacking(file, written, &format!("{path}[]")))
            }
            _ => None,
        }
    }

    #[test]
    fn the_example_as_it_is_shows_the_defaults() {
        let Some(text) = example() else { return };
        let shortest = "origins: [{ name: control-plane, server: 127.0.0.1:18010, authorities: [example.com] }]\n";
        assert_eq!(Config::parse(EXAMPLE, &text).unwrap(), Config::parse(EXAMPLE, shortest).unwrap());
    }

    #[test]
    fn the_readme_lists_every_field() {
        let defaults = Config::new([]).to_value().unwrap();
        let row = |name: &str| {
            let listed = README.lines().any(|line| {
                // What it is called, by default, and for: other tables name it, too.
                let cells: Vec<_> = line.strip_prefix("| ").into_iter().flat_map(|row| row.split(" |")).collect();
                cells.len() > 3 && cells.first().is_some_and(|names| names.contains(&format!("`{name}`")))
            });
            let default = defaults.pointer(&format!("/{}", name.replace('.', "/"))).map(ToString::to_string);
            let default = default.map_or_else(String::new, |text| format!("`{}`", text.trim_matches('"')));
            assert!(listed, "README.md lacks a row: | `{name}` | {default} | what it is for |");
        };
        for (prefix, fields) in [
            ("tls.", TLS_FIELDS),
            ("admin.", ADMIN_FIELDS),
            ("admin.tls.", TLS_FIELDS),
            ("orders.", ORDERS_FIELDS),
            ("orders.tls.", TLS_FIELDS),
            ("clients[].", CLIENT_FIELDS),
            ("clients[].match.", MATCH_FIELDS),
            ("clients[].limits.", CLIENT_LIMIT_FIELDS),
            ("aggregation.", AGGREGATION_FIELDS),
            ("state.", STATE_FIELDS),
            ("state.etcd.", ETCD_FIELDS),
            ("state.etcd.tls.", ORIGIN_TLS_FIELDS),
            ("state.etcd.user.", ETCD_USER_FIELDS),
            ("rollout[].", ROLLOUT_FIELDS),
            ("rollout[].stages[].", STAGE_FIELDS),
            ("rollout[].halt.", HALT_FIELDS),
            ("drift.", DRIFT_FIELDS),
            ("statsd.", STATSD_FIELDS),
            ("traces.", TRACES_FIELDS),
            ("traces.tls.", ORIGIN_TLS_FIELDS),
            ("node.", NODE_FIELDS),
            ("origins[].", ORIGIN_FIELDS),
            ("origins[].tls.", ORIGIN_TLS_FIELDS),
            ("origins[].follow.", FOLLOW_FIELDS),
            ("origins[].etcd.", ETCD_FIELDS),
            ("origins[].etcd.tls.", ORIGIN_TLS_FIELDS),
            ("origins[].etcd.user.", ETCD_USER_FIELDS),
            ("origins[].kubernetes.", KUBERNETES_FIELDS),
            ("origins[].kubernetes.tls.", ORIGIN_TLS_FIELDS),
            ("limits.", &limits::keys()),
            ("", FIELDS),
        ] {
            // What has fields of its own is listed by these.
            let parts = [
                "tls",
                "node",
                "limits",
                "aggregation",
                "state",
                "drift",
                "statsd",
                "traces",
                "match",
                "halt",
                "follow",
                "etcd",
                "kubernetes",
                "user",
            ];
            for field in fields.iter().filter(|field| !parts.contains(field)) {
                row(&format!("{prefix}{field}"));
            }
        }
        let locality = README.lines().find(|line| line.starts_with("| `node.locality` |")).unwrap();
        LOCALITY_FIELDS.iter().for_each(|field| assert!(locality.contains(&format!("`{field}`")), "{field}"));
    }
}
