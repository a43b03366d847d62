//! Objects of Kubernetes, as its API writes them in JSON.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api::Status;
use super::failure::Failure;
use crate::keyed_origin::{Change, shown};

/// Of an object that does not say since when it is there: after all that do.
const NEW: &str = "~";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    /// It tells two states apart, and is nothing but that.
    resource_version: String,
    creation_timestamp: Option<String>,
    /// Of a list: what the next page is asked for by.
    #[serde(rename = "continue")]
    more: Option<String>,
}

/// One object: it has either `data` or `spec`.
#[derive(Debug, Deserialize)]
pub(super) struct Object {
    #[serde(default)]
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct List {
    kind: String,
    metadata: Metadata,
    items: Option<Vec<Object>>,
}

/// A part of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) objects: Vec<Object>,
    /// Of all parts.
    pub(super) version: String,
    /// What the next part is asked for by, if this is not the last one.
    pub(super) more: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Line {
    r#type: String,
    object: Box<RawValue>,
}

/// What is told in a watch.
#[derive(Debug)]
pub(super) enum Told {
    /// It is so from now on.
    Put(Object),
    /// It is gone.
    Deleted(Object),
    /// Nothing was done up to this version.
    Bookmark(String),
}

/// What kind of object is looked for, and how its keys begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) list: &'static str,
    /// In keys.
    pub(super) word: &'static str,
    /// Where its API is.
    pub(super) api: &'static str,
    /// In paths.
    pub(super) plural: &'static str,
}

pub(super) const CONFIG_MAP: Kind =
    Kind { name: "ConfigMap", list: "ConfigMapList", word: "configmap", api: "/api/v1", plural: "configmaps" };

pub(super) const XDS_RESOURCE: Kind = Kind {
    name: "XdsResource",
    list: "XdsResourceList",
    word: "xdsresource",
    api: "/apis/xds-relay.io/v1alpha1",
    plural: "xdsresources",
};

impl Object {
    /// The one version that is known once it is told.
    pub(super) fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// What all its keys begin with, and no other's.
    pub(super) fn prefix(&self, kind: Kind) -> String {
        format!("{}/{}/{}/", kind.word, self.metadata.namespace, self.metadata.name)
    }

    /// All its values.
    pub(super) fn values(self, kind: Kind) -> Vec<Change> {
        let prefix = self.prefix(kind);
        let rank = self.metadata.creation_timestamp.unwrap_or_else(|| NEW.to_owned());
        let put = |key: &str, value: Bytes| Change::Put { key: format!("{prefix}{key}"), rank: rank.clone(), value };
        match kind {
            XDS_RESOURCE => {
                let spec = self.spec.map(|spec| Bytes::from(spec.get().to_owned()));
                vec![put("spec", spec.unwrap_or_default())]
            }
            _ => self.data.unwrap_or_default().into_iter().map(|(key, text)| put(&key, text.into())).collect(),
        }
    }

    /// As one that was asked for: in a namespace, if there is only one.
    fn checked(self, kind: Kind, namespace: Option<&str>) -> Result<Self, Failure> {
        let Metadata { name, namespace: own, .. } = &self.metadata;
        let is_part = |part: &str| !part.is_empty() && !part.contains('/');
        let is_of_kind = self.kind.is_empty() || self.kind == kind.name;
        if is_of_kind && is_part(name) && is_part(own) && namespace.is_none_or(|namespace| own == namespace) {
            return Ok(self);
        }
        let what = format!("{} `{name}` in `{own}`, which was not asked for", self.kind);
        Err(Failure::Bad(shown(&what)))
    }
}

/// Reads a part of a list.
pub(super) fn page(bytes: &[u8], kind: Kind, namespace: Option<&str>) -> Result<Page, Failure> {
    let List { kind: named, metadata, items } = serde_json::from_slice(bytes).map_err(bad)?;
    if named != kind.list || metadata.resource_version.is_empty() {
        return Err(Failure::Bad(shown(&format!("a `{named}`, and not a {} of a version", kind.list))));
    }
    let objects = items.unwrap_or_default().into_iter().map(|object| object.checked(kind, namespace));
    let more = metadata.more.filter(|more| !more.is_empty());
    Ok(Page { objects: objects.collect::<Result<_, _>>()?, version: metadata.resource_version, more })
}

/// Reads a line of a watch.
pub(super) fn line(bytes: &[u8], kind: Kind, namespace: Option<&str>) -> Result<Told, Failure> {
    let Line { r#type, object } = serde_json::from_slice(bytes).map_err(bad)?;
    if r#type == "ERROR" {
        return Err(serde_json::from_str::<Status>(object.get()).map_or_else(bad, Status::failure));
    }
    let object: Object = serde_json::from_str(object.get()).map_err(bad)?;
    if object.version().is_empty() {
        return Err(Failure::Bad("an event without a version".to_owned()));
    }
    match r#type.as_str() {
        "ADDED" | "MODIFIED" => object.checked(kind, namespace).map(Told::Put),
        "DELETED" => object.checked(kind, namespace).map(Told::Deleted),
        "BOOKMARK" => Ok(Told::Bookmark(object.metadata.resource_version)),
        other => Err(Failure::Bad(shown(&format!("an event of type `{other}`")))),
    }
}

fn bad(error: serde_json::Error) -> Failure {
    // It may quote what is in an object.
    Failure::Bad(shown(&error.to_string()))
}
