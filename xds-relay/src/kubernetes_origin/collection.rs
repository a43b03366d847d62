//! What is asked for: the objects of one kind, in one namespace or in all, that a selector selects.

use super::object::{CONFIG_MAP, Kind, XDS_RESOURCE};
use crate::config::{Kubernetes, KubernetesKind};

/// What a `ConfigMap` is selected by where nothing is said of it: most of them are not a relay's.
const LABELLED: &str = "xds-relay.io/resources=true";

/// All objects that are listed and watched together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collection {
    pub(super) kind: Kind,
    /// All, if there is none.
    pub(super) namespace: Option<String>,
    selector: Option<String>,
}

impl Collection {
    /// Those of an origin: in these namespaces, or in all if there are none.
    pub(super) fn all(kubernetes: &Kubernetes, namespaces: &[String]) -> Vec<Self> {
        let places: Vec<_> = match namespaces {
            [] => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        };
        let selector = kubernetes.label_selector.as_deref();
        let of_kind = |kind: &KubernetesKind| match kind {
            KubernetesKind::ConfigMaps => (CONFIG_MAP, selector.or(Some(LABELLED))),
            KubernetesKind::XdsResources => (XDS_RESOURCE, selector),
        };
        let of = |(kind, selector): (Kind, Option<&str>)| {
            let selector = selector.map(str::to_owned);
            places.clone().into_iter().map(move |namespace| Self { kind, namespace, selector: selector.clone() })
        };
        kubernetes.kinds.iter().map(of_kind).flat_map(of).collect()
    }

    /// What the keys of its objects begin with.
    pub(super) fn part(&self) -> String {
        match &self.namespace {
            None => format!("{}/", self.kind.word),
            Some(namespace) => format!("{}/{namespace}/", self.kind.word),
        }
    }

    /// By which labels they are selected.
    pub(super) fn selector(&self) -> &str {
        self.selector.as_deref().unwrap_or_default()
    }

    /// A page of it: the first one, or one that goes on.
    pub(super) fn page(&self, limit: usize, more: Option<&str>) -> String {
        let limit = limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(more.map(|more| ("continue", more)));
        self.path(query)
    }

    /// What is done to it after a version, for so long.
    pub(super) fn watch(&self, version: &str, seconds: u64) -> String {
        let seconds = seconds.to_string();
        self.path(vec![
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", &seconds),
        ])
    }

    fn path<'a>(&'a self, mut query: Vec<(&'a str, &'a str)>) -> String {
        query.extend(self.selector.as_deref().map(|selector| ("labelSelector", selector)));
        let query: Vec<_> = query.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect();
        let namespace = self.namespace.as_ref().map(|namespace| format!("/namespaces/{}", escaped(namespace)));
        format!("{}{}/{}?{}", self.kind.api, namespace.unwrap_or_default(), self.kind.plural, query.join("&"))
    }
}

/// Whatever it is, it is one part of a path or of a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// What is in a file for who runs relays; in what was packed for the registry there is none.
    fn deployed(file: &str) -> Option<Vec<serde_json::Value>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes-origin").join(file);
        let text = fs::read_to_string(path).ok()?;
        Some(text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect())
    }

    #[test]
    fn what_is_asked_for_is_what_is_defined_and_what_relays_may_read() {
        let Some(defined) = deployed("xds-resources.yaml") else { return };
        let (spec, names) = (&defined[0]["spec"], &defined[0]["spec"]["names"]);
        let (group, version) = (spec["group"].as_str().unwrap(), spec["versions"][0]["name"].as_str().unwrap());
        assert_eq!(XDS_RESOURCE.api, format!("/apis/{group}/{version}"));
        assert_eq!((&names["kind"], &names["listKind"]), (&XDS_RESOURCE.name.into(), &XDS_RESOURCE.list.into()));
        assert_eq!(defined[0]["metadata"]["name"], format!("{}.{group}", XDS_RESOURCE.plural));
        let rules = deployed("reader.yaml").unwrap()[0]["rules"].clone();
        let rule = |group: &str, kind: Kind| serde_json::json!({ "apiGroups": [group], "resources": [kind.plural], "verbs": ["get", "list", "watch"] });
        assert_eq!(rules, serde_json::json!([rule("", CONFIG_MAP), rule(group, XDS_RESOURCE)]));
    }

    #[test]
    fn what_is_asked_for_is_in_the_path() {
        let kubernetes =
            Kubernetes::in_cluster().with_kinds([KubernetesKind::ConfigMaps, KubernetesKind::XdsResources]);
        let all = Collection::all(&kubernetes, &[]);
        assert_eq!(all.iter().map(Collection::part).collect::<Vec<_>>(), ["configmap/", "xdsresource/"]);
        assert_eq!(all[0].page(5, None), "/api/v1/configmaps?limit=5&labelSelector=xds-relay.io%2Fresources%3Dtrue");
        assert_eq!(all[1].page(5, Some("a&b=")), "/apis/xds-relay.io/v1alpha1/xdsresources?limit=5&continue=a%26b%3D");
        let kubernetes = Kubernetes { label_selector: Some("a in (b,c)".to_owned()), ..kubernetes };
        let some = Collection::all(&kubernetes, &["x".to_owned(), "y".to_owned()]);
        assert_eq!(
            some.iter().map(Collection::part).collect::<Vec<_>>(),
            ["configmap/x/", "configmap/y/", "xdsresource/x/", "xdsresource/y/"]
        );
        assert_eq!(
            some[3].watch("1 2", 60),
            "/apis/xds-relay.io/v1alpha1/namespaces/y/xdsresources?watch=true&allowWatchBookmarks=true\
             &resourceVersion=1%202&timeoutSeconds=60&labelSelector=a%20in%20%28b%2Cc%29"
        );
    }
}
