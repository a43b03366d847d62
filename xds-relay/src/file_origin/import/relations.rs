//! What resources have to do with each other, and with the rest of Envoy's own file, that is otherwise over xDS.

use std::collections::BTreeSet;

use super::STATIC;
use crate::yaml::{Content, Node, Position};

/// Where Envoy says which control plane it asks.
const ASKS: [&str; 12] = [
    "ads_config",
    "adsConfig",
    "api_config_source",
    "apiConfigSource",
    "hds_config",
    "hdsConfig",
    "load_stats_config",
    "loadStatsConfig",
    "config_source",
    "configSource",
    "xdstp_config_sources",
    "default_config_source",
];

/// The clusters that must be in Envoy's own file.
#[derive(Default)]
pub(super) struct Stay {
    asked: BTreeSet<String>,
    local: Option<String>,
}

impl Stay {
    pub(super) fn reason(&self, cluster: &str) -> Option<&'static str> {
        if self.asked.contains(cluster) {
            return Some("Envoy asks a control plane there, so that it stays in Envoy's own file");
        }
        let is_local = self.local.as_deref() == Some(cluster);
        is_local.then_some("it is the local_cluster_name, so that it stays in Envoy's own file")
    }
}

pub(super) fn clusters_that_stay(root: &Node) -> Stay {
    let mut stay = Stay::default();
    visit(root, false, &mut stay.asked);
    let manager = either(root, ["cluster_manager", "clusterManager"]);
    let local = manager.and_then(|manager| either(manager, ["local_cluster_name", "localClusterName"]));
    stay.local = local.and_then(|name| name.text().ok()).map(str::to_owned);
    stay
}

fn either<'a>(node: &'a Node, names: [&str; 2]) -> Option<&'a Node> {
    names.iter().find_map(|name| node.entry(name))
}

/// As deep as a document nests, which is bounded.
fn visit(node: &Node, asks: bool, found: &mut BTreeSet<String>) {
    match &node.content {
        Content::Sequence(items) => items.iter().for_each(|item| visit(item, asks, found)),
        Content::Mapping(entries) => {
            for (key, value) in entries {
                match key.text.as_str() {
                    "envoy_grpc" | "envoyGrpc" if asks => {
                        let name = either(value, ["cluster_name", "clusterName"]);
                        found.extend(name.and_then(|name| name.text().ok()).map(str::to_owned));
                    }
                    // Of REST.
                    "cluster_names" | "clusterNames" if asks => {
                        let Content::Sequence(names) = &value.content else { continue };
                        found.extend(names.iter().filter_map(|name| name.text().ok()).map(str::to_owned));
                    }
                    key => visit(value, asks || ASKS.contains(&key), found),
                }
            }
        }
        Content::Plain(_) | Content::Text(_) => {}
    }
}

/// Tells of references to static secrets: they have no origin, so that nobody asks for them.
pub(super) fn of_secrets(root: &Node, told: &mut dyn FnMut(Position, &str, &str)) {
    let Some((key, resources)) = STATIC.iter().find_map(|key| Some((*key, root.entry(key)?))) else { return };
    let Some(secrets) = resources.entry("secrets") else { return };
    let Content::Sequence(secrets) = &secrets.content else { return };
    let names: BTreeSet<&str> =
        secrets.iter().filter_map(|secret| secret.entry("name").and_then(|name| name.text().ok())).collect();
    for list in ["listeners", "clusters"] {
        let Some(Content::Sequence(items)) = resources.entry(list).map(|list| &list.content) else { continue };
        for (index, item) in items.iter().enumerate() {
            references(item, &mut format!("{key}.{list}[{index}]"), &names, told);
        }
    }
}

fn references(node: &Node, path: &mut String, names: &BTreeSet<&str>, told: &mut dyn FnMut(Position, &str, &str)) {
    let length = path.len();
    match &node.content {
        Content::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                references(item, path, names, told);
                path.truncate(length);
            }
        }
        Content::Mapping(entries) => {
            if let Some(name) = is_static_reference(node, path).filter(|name| names.contains(name)) {
                let reason = format!(
                    "the secret `{name}` is looked for in Envoy's own file; \
                     `sds_config: {{ ads: {{}}, resource_api_version: V3 }}` beside the name has it asked for"
                );
                told(node.position, path, &reason);
                return;
            }
            for (key, value) in entries {
                path.push_str(&format!(".{}", key.text));
                references(value, path, names, told);
                path.truncate(length);
            }
        }
        Content::Plain(_) | Content::Text(_) => {}
    }
}

/// The name in a `SdsSecretConfig` that does not say who has it.
fn is_static_reference<'a>(node: &'a Node, path: &str) -> Option<&'a str> {
    let field = path.trim_end_matches(|c: char| c == ']' || c == '[' || c.is_ascii_digit());
    let field = field.rsplit('.').next().unwrap_or_default().replace('_', "").to_ascii_lowercase();
    let is_one = field.ends_with("secret") || field.ends_with("sdssecretconfig") || field.ends_with("sdssecretconfigs");
    let is_static = is_one && either(node, ["sds_config", "sdsConfig"]).is_none();
    node.entry("name").filter(|_| is_static).and_then(|name| name.text().ok())
}
