//! What a resource has otherwise than it had, field by field, for people: without what is secret.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::Content;

#[cfg(test)]
mod tests;

/// How many fields are told of one resource.
const MOST: usize = 500;
/// How deep is looked: what is deeper is told as a whole.
const DEEP: usize = 100;

/// The types whose fields are known.
///
/// ```
/// # #[cfg(feature = "file-origin")] {
/// use xds_relay::releases::Fields;
/// use xds_transport::Frame;
///
/// let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// let cluster = |name: &[u8]| Frame::of_message(&type_url, &[&[10, 1], name].concat()).any().clone();
/// let difference = Fields::default().between(&cluster(b"a"), &cluster(b"b"))?;
/// assert_eq!(difference.fields[0].to_string(), r#"name: "a" → "b""#);
/// # }
/// # Ok::<(), xds_relay::releases::NotShown>(())
/// ```
#[derive(Debug, Default)]
pub struct Fields {
    content: Content,
}

/// The fields that are otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldDifference {
    /// In the order of their paths.
    pub fields: Vec<FieldChange>,
    /// How many others are, too.
    pub more: usize,
    /// Whether there is a difference and no field of it is shown: it is secret, or of a type that is not known.
    pub is_hidden: bool,
}

/// A field that is otherwise, as JSON of protobuf has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// Where it is: `filter_chains[0].filters[router].typed_config.start_child_span`. Items of a list that all have names are told
    /// by those.
    pub path: String,
    /// What it was; none if it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is; none if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Why the fields of a resource are not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotShown(String);

impl Fields {
    /// What one encoded `Any` has otherwise than another.
    ///
    /// # Errors
    /// Why that is not shown: all of it is secret, or its type is not known.
    pub fn between(&self, before: &[u8], after: &[u8]) -> Result<FieldDifference, NotShown> {
        let [old, new] = [before, after].map(|any| self.content.of(any).map_err(NotShown));
        let mut found = FieldDifference::default();
        found.compare("", Some(&old?), Some(&new?), 0);
        found.is_hidden = found.fields.is_empty() && before != after;
        Ok(found)
    }
}

impl FieldDifference {
    fn compare(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>, depth: usize) {
        match (before, after) {
            _ if before == after => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) if depth < DEEP => {
                self.compare_objects(path, old, new, depth + 1);
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) if depth < DEEP => {
                self.compare_lists(path, old, new, depth + 1);
            }
            _ => self.add(path.to_owned(), before.cloned(), after.cloned()),
        }
    }

    fn compare_objects(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>, depth: usize) {
        for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.compare(&path, old.get(name), new.get(name), depth);
        }
    }

    fn compare_lists(&mut self, path: &str, old: &[Value], new: &[Value], depth: usize) {
        let (Some(old_names), Some(new_names)) = (names(old), names(new)) else {
            for at in 0..old.len().max(new.len()) {
                self.compare(&format!("{path}[{at}]"), old.get(at), new.get(at), depth);
            }
            return;
        };
        for name in old_names.keys().chain(new_names.keys()).collect::<BTreeSet<_>>() {
            let item = |names: &BTreeMap<&str, usize>, items: &'_ [Value]| items.get(*names.get(name)?).cloned();
            let (old, new) = (item(&old_names, old), item(&new_names, new));
            self.compare(&format!("{path}[{name}]"), old.as_ref(), new.as_ref(), depth);
        }
        let common = |items: &[Value], others: &BTreeMap<&str, usize>| {
            let names = items.iter().filter_map(name_of).filter(|name| others.contains_key(name));
            Value::from(names.collect::<Vec<_>>())
        };
        // Filters are gone through in their order.
        let (before, after) = (common(old, &new_names), common(new, &old_names));
        if before != after {
            self.add(format!("{path} (order)"), Some(before), Some(after));
        }
    }

    fn add(&mut self, path: String, before: Option<Value>, after: Option<Value>) {
        if self.fields.len() < MOST {
            self.fields.push(FieldChange { path, before, after });
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, before, after } = self;
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "{path}: {before} → {after}"),
            (Some(before), None) => write!(f, "{path}: {before} → nothing"),
            (None, Some(after)) => write!(f, "{path}: nothing → {after}"),
            (None, None) => f.write_str(path),
        }
    }
}

/// Where each item of a list is, by its name; none if not all have one of their own.
fn names(items: &[Value]) -> Option<BTreeMap<&str, usize>> {
    let names: BTreeMap<_, _> =
        items.iter().enumerate().map(|(at, item)| Some((name_of(item)?, at))).collect::<Option<_>>()?;
    (names.len() == items.len()).then_some(names)
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}
