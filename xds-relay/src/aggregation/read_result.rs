//! From the file as written to rules: what they come to.

use std::sync::Arc;

use super::model::{Action, NodeField, Outcome};
use super::read::{node_field, path};
use super::reader::{Reader, refuse_mixed};
use crate::proto_json::{Message, constant_true, int32, some_text, text};
use crate::yaml::{Error, Node};

pub(super) fn result(reader: &mut Reader, node: &Node) -> Result<Outcome, Error> {
    const KINDS: &[&str] = &["and_result", "request_node_fragment", "resource_names_fragment", "string_fragment"];
    let predicate = Message::read(node, KINDS)?;
    let kind = predicate.one_of(KINDS)?;
    predicate.required(kind, |node| match kind {
        "and_result" => Message::read(node, &["result_predicates"])?
            .list("result_predicates", 2, |node| result(reader, node))
            .map(Outcome::All),
        "request_node_fragment" => node_result(reader, node),
        "resource_names_fragment" => name_result(reader, node),
        _ => text(node).map(Outcome::Text),
    })
}

fn node_result(reader: &mut Reader, node: &Node) -> Result<Outcome, Error> {
    const KINDS: &[&str] = &["id_action", "cluster_action", "locality_action", "node_metadata_action"];
    const OLDER: &[&str] = &["field", "action"];
    let fragment = Message::read(node, &reader.with_older(KINDS, OLDER))?;
    if fragment.has_any(OLDER) {
        refuse_mixed(node, &fragment, KINDS, OLDER)?;
        let field = node_field(&fragment)?;
        return Ok(Outcome::Field(field, fragment.required("action", |node| action(reader, node))?));
    }
    let kind = fragment.one_of(KINDS)?;
    fragment.required(kind, |node| match kind {
        "id_action" => action(reader, node).map(|action| Outcome::Field(NodeField::Id, action)),
        "cluster_action" => action(reader, node).map(|action| Outcome::Field(NodeField::Cluster, action)),
        "locality_action" => {
            let locality = Message::read(node, &["region_action", "zone_action", "subzone_action"])?;
            let mut part = |name| locality.optional(name, |node| action(reader, node));
            Ok(Outcome::Locality([part("region_action")?, part("zone_action")?, part("subzone_action")?]))
        }
        _ => {
            let metadata = Message::read(node, &["path", "action"])?;
            let path = path(&metadata)?;
            Ok(Outcome::Metadata(path, metadata.required("action", |node| action(reader, node))?))
        }
    })
}

fn name_result(reader: &mut Reader, node: &Node) -> Result<Outcome, Error> {
    let fragment = Message::read(node, &["element", "action"])?;
    let element = fragment.optional("element", |node| {
        let least = || node.refuse("value must be greater than or equal to 0");
        usize::try_from(int32(node)?).or_else(|_| least())
    })?;
    let element = element.unwrap_or(0);
    let action = fragment.required("action", |node| action(reader, node))?;
    if let Err(why) = action.made_of_any_name(element) {
        let unshared = "what this is for is shared as what no rule is for, but with `unmatched: reject`";
        reader.warn(node.position, format!("not every resource name has a key by this ({why}): {unshared}"));
    }
    Ok(Outcome::Name(element, Arc::new(action)))
}

fn action(reader: &mut Reader, node: &Node) -> Result<Action, Error> {
    const KINDS: &[&str] = &["exact", "regex_action"];
    let action = Message::read(node, KINDS)?;
    match action.one_of(KINDS)? {
        "exact" => action.required("exact", constant_true).map(|()| Action::Exact),
        kind => action.required(kind, |node| {
            let replacement = Message::read(node, &["pattern", "replace"])?;
            let pattern = replacement.optional("pattern", |node| {
                let source = some_text(node)?;
                reader.pattern(node, &source)
            })?;
            let Some(pattern) = pattern else {
                let missing = Error::new(node.position, "value length must be at least 1 runes");
                return Err(missing.under_key("pattern"));
            };
            let replace = replacement.optional("replace", text)?.unwrap_or_default();
            let template = pattern.template(&replace);
            Ok(Action::Replace(pattern, template))
        }),
    }
}
