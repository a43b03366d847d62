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
    use super::*;

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
