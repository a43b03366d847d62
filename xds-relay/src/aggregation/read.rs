//! From the file as written to rules: fragments and what they match.

use std::collections::HashSet;

use super::model::{Fragment, Match, NodeField, Rule, StringMatch, ValueMatch};
use super::read_result::result;
use super::reader::{Reader, refuse_mixed};
use super::types::{self, Version2};
use crate::proto_json::{self, Message, boolean, constant_true, some_text, text};
use crate::yaml::{Error, Node};

/// All fragments of a file.
pub(super) fn fragments(reader: &mut Reader, root: &Node) -> Result<Vec<Fragment>, Error> {
    let file = Message::read(root, &["fragments"])?;
    file.list("fragments", 1, |node| fragment(reader, node))
}

fn fragment(reader: &mut Reader, node: &Node) -> Result<Fragment, Error> {
    let fragment = Message::read(node, &["rules"])?;
    Ok(Fragment { rules: fragment.list("rules", 1, |node| rule(reader, node))? })
}

fn rule(reader: &mut Reader, node: &Node) -> Result<Rule, Error> {
    let rule = Message::read(node, &["match", "result"])?;
    Ok(Rule {
        line: node.position.line,
        condition: rule.required("match", |node| condition(reader, node))?,
        result: rule.required("result", |node| result(reader, node))?,
    })
}

fn condition(reader: &mut Reader, node: &Node) -> Result<Match, Error> {
    const KINDS: &[&str] =
        &["and_match", "or_match", "not_match", "any_match", "request_type_match", "request_node_match"];
    let predicate = Message::read(node, KINDS)?;
    let kind = predicate.one_of(KINDS)?;
    predicate.required(kind, |node| match kind {
        "and_match" => several(reader, node).map(Match::All),
        "or_match" => several(reader, node).map(Match::Or),
        "not_match" => condition(reader, node).map(Box::new).map(Match::Not),
        "any_match" => constant_true(node).map(|()| Match::Any),
        "request_type_match" => types(reader, node),
        _ => node_match(reader, node),
    })
}

fn several(reader: &mut Reader, node: &Node) -> Result<Vec<Match>, Error> {
    Message::read(node, &["rules"])?.list("rules", 2, |node| condition(reader, node))
}

fn types(reader: &mut Reader, node: &Node) -> Result<Match, Error> {
    // Each with its twin, of those that have one.
    let mut twins = Vec::new();
    let types = Message::read(node, &["types"])?.list("types", 1, |node| {
        let type_url = text(node)?;
        match types::of_version_2(&type_url) {
            None => {}
            Some(Version2::Renamed(twin)) => twins.push((node.position, type_url.clone(), twin)),
            Some(Version2::Unknown) => {
                reader.warn(node.position, format!("`{type_url}` is no type that clients of xDS v2 ask for"));
            }
        }
        Ok(type_url)
    })?;
    let mut types: HashSet<_> = types.into_iter().collect();
    for (position, old, twin) in twins {
        if types.contains(&twin) {
            continue;
        }
        if reader.follows_the_original() {
            reader.warn(position, format!("`{old}` is xDS v2: no client asks for it any more, but for `{twin}`"));
        } else {
            reader.warn(position, format!("`{old}` is xDS v2: `{twin}` matches as well"));
            types.insert(twin);
        }
    }
    Ok(Match::Type(types))
}

fn node_match(reader: &mut Reader, node: &Node) -> Result<Match, Error> {
    const KINDS: &[&str] = &["id_match", "cluster_match", "locality_match", "node_metadata_match"];
    const OLDER: &[&str] = &["field", "exact_match", "regex_match"];
    let predicate = Message::read(node, &reader.with_older(KINDS, OLDER))?;
    if predicate.has_any(OLDER) {
        refuse_mixed(node, &predicate, KINDS, OLDER)?;
        let field = node_field(&predicate)?;
        return Ok(Match::Field(field, string_kind(reader, &predicate)?));
    }
    let kind = predicate.one_of(KINDS)?;
    predicate.required(kind, |node| match kind {
        "id_match" => string_match(reader, node).map(|of| Match::Field(NodeField::Id, of)),
        "cluster_match" => string_match(reader, node).map(|of| Match::Field(NodeField::Cluster, of)),
        "locality_match" => {
            let locality = Message::read(node, &["region", "zone", "sub_zone"])?;
            let mut part = |name| locality.optional(name, |node| string_match(reader, node));
            Ok(Match::Locality([part("region")?, part("zone")?, part("sub_zone")?]))
        }
        _ => metadata_match(reader, node),
    })
}

fn metadata_match(reader: &mut Reader, node: &Node) -> Result<Match, Error> {
    let predicate = Message::read(node, &["path", "match"])?;
    let path = path(&predicate)?;
    let of = predicate.required("match", |node| {
        const KINDS: &[&str] = &["string_match", "bool_match"];
        let value = Message::read(node, KINDS)?;
        match value.one_of(KINDS)? {
            "string_match" => value.required("string_match", |node| string_match(reader, node)).map(ValueMatch::Text),
            kind => value.required(kind, |node| {
                let flag = Message::read(node, &["value_match"])?.optional("value_match", boolean)?;
                Ok(ValueMatch::Bool(flag.unwrap_or_default()))
            }),
        }
    })?;
    Ok(Match::Metadata(path, of))
}

/// The keys that lead to a value of the metadata.
pub(super) fn path(message: &Message<'_>) -> Result<Vec<String>, Error> {
    message.list("path", 1, |node| {
        let missing = "value length must be at least 1 runes";
        let segment = Message::read(node, &["key"])?;
        let key = segment.optional("key", some_text)?;
        key.map_or_else(|| Err(Error::new(node.position, missing).under_key("key")), Ok)
    })
}

/// Which field of the node the older form speaks of, by the number or the name of an enum; the first is the default.
pub(super) fn node_field(message: &Message<'_>) -> Result<NodeField, Error> {
    const FIELDS: [(&str, NodeField); 5] = [
        ("NODE_ID", NodeField::Id),
        ("NODE_CLUSTER", NodeField::Cluster),
        ("NODE_LOCALITY_REGION", NodeField::Region),
        ("NODE_LOCALITY_ZONE", NodeField::Zone),
        ("NODE_LOCALITY_SUBZONE", NodeField::SubZone),
    ];
    let field = message.optional("field", |node| {
        let by_name = text(node).ok();
        let found = match &by_name {
            Some(name) => FIELDS.iter().find(|(known, _)| known == name),
            None => usize::try_from(proto_json::int32(node)?).ok().and_then(|number| FIELDS.get(number)),
        };
        let names: Vec<String> =
            FIELDS.iter().enumerate().map(|(number, (name, _))| format!("{number} ({name})")).collect();
        let expected = || format!("value must be one of the defined enum values: {}", names.join(", "));
        found.map_or_else(|| node.refuse(expected()), |(_, field)| Ok(*field))
    })?;
    Ok(field.unwrap_or(NodeField::Id))
}

fn string_match(reader: &mut Reader, node: &Node) -> Result<StringMatch, Error> {
    string_kind(reader, &Message::read(node, &["exact_match", "regex_match"])?)
}

fn string_kind(reader: &mut Reader, message: &Message<'_>) -> Result<StringMatch, Error> {
    let kind = message.one_of(&["exact_match", "regex_match"])?;
    message.required(kind, |node| {
        let wanted = text(node)?;
        if wanted.is_empty() {
            reader.warn(node.position, "it is empty and matches nothing, not even an empty text".to_owned());
            return Ok(StringMatch::Exact(wanted));
        }
        match kind {
            "exact_match" => Ok(StringMatch::Exact(wanted)),
            _ => reader.pattern(node, &wanted).map(StringMatch::Regex),
        }
    })
}
