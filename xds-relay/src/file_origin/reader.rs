//! One message of a document, and what of it breaks a rule.

use std::cell::Cell;

use prost_reflect::{DeserializeOptions, DynamicMessage, Kind, MessageDescriptor, ReflectMessage};

use super::descriptors::{ANY, Descriptors};
use super::encode::{type_of, unpack};
use super::environment::FilledIn;
use super::problems::Problems;
use super::secrets;
use super::validate::{Found, PathStep, Refusal};
use crate::yaml::{Content, Error, Node, Position};

/// How many values are told that break a rule. When there are as many, one is told of each further resource.
const MOST: usize = 1000;

/// What the messages of a document are read with.
pub(super) struct Reader<'a> {
    pub(super) descriptors: &'a Descriptors,
    pub(super) filled: &'a FilledIn,
    /// How many values that break a rule may still be told.
    left: Cell<usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(descriptors: &'a Descriptors, filled: &'a FilledIn) -> Self {
        Self { descriptors, filled, left: Cell::new(MOST) }
    }

    pub(super) fn message(&self, body: &Node) -> Result<DynamicMessage, Error> {
        self.message_of(body).map_err(|error| self.filled.conceal(error, body))
    }

    fn message_of(&self, body: &Node) -> Result<DynamicMessage, Error> {
        let strict = DeserializeOptions::new().deny_unknown_fields(true);
        let any = DynamicMessage::deserialize_with_options(self.descriptors.any.clone(), body, &strict)
            .map_err(|error| secrets::hide_in(self.with_type(error, body), body))?;
        match unpack(&any) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(Error::new(body.position, "not a message of a known type")),
            Err(error) => Err(Error::new(body.position, error.to_string())),
        }
    }

    /// The error with the type that has no such field, or where there may be more types.
    fn with_type(&self, error: Error, body: &Node) -> Error {
        if error.reason.starts_with("message '") && error.reason.ends_with("' not found") {
            return Error {
                reason: format!("{}: no type that is known; others come with `descriptors`", error.reason),
                ..error
            };
        }
        // What came from a variable may be such a type, and is not told.
        let is_of_key = error.reason.starts_with("unrecognized field name ") && self.filled.is_empty();
        let of = error.position.filter(|_| is_of_key).and_then(|at| type_with(body, at, &self.descriptors.any));
        match of {
            Some(of) => Error { reason: format!("{} in {}", error.reason, of.full_name()), ..error },
            None => error,
        }
    }

    /// What in a message breaks a rule, if rules are applied, in the order of the text. Where its name or its type is of a variable,
    /// that is told instead.
    pub(super) fn refusals(
        &self,
        message: &DynamicMessage,
        body: &Node,
        (name, variable): (Option<&str>, Option<&str>),
    ) -> Problems {
        let Some(validator) = &self.descriptors.validator else { return Problems::default() };
        let message_type = message.descriptor();
        let kind = message_type.name();
        let of = variable.map_or_else(|| whose(kind, name), |variable| format!("in what is named by `{variable}`"));
        let is_secret = xds_transport::is_secret(message_type.full_name());
        let told = |refusal| self.told(refusal, body, is_secret, &of);
        let refusals = validator.refusals(message);
        let most = self.left.get().max(1);
        self.left.set(self.left.get().saturating_sub(refusals.len()));
        refusals.into_iter().take(most).map(told).collect::<Problems>().in_order()
    }

    fn told(&self, Refusal { path, expected, found }: Refusal, body: &Node, is_secret: bool, of: &str) -> Error {
        let (node, is_there) = reached(body, &path);
        let error = at_path(Error::new(node.position, String::new()), path);
        let found = match found {
            Found::Untold => None,
            Found::Told(words) => Some(words),
            Found::Value(_) if is_secret || secrets::is_sensitive(&error.path) => None,
            Found::Value(value) => {
                let is_scalar = matches!(node.content, Content::Plain(_) | Content::Text(_));
                match self.filled.written_at(node.position) {
                    Some(written) if is_there => Some(format!("`{written}`")),
                    // It may be one that something was put into, if it is not found where it is looked for.
                    _ => Some(value).filter(|_| self.filled.is_empty() || (is_there && is_scalar)),
                }
            }
            Found::TypeUrl(_) if !self.filled.is_empty() => None,
            Found::TypeUrl(type_url) => Some(type_url),
        };
        let found = found.map_or_else(String::new, |found| format!(", found {found}"));
        Error { reason: format!("expected {expected}{found}; {of}"), ..error }
    }
}

/// The error seen from the message that has what it is in at a path.
pub(super) fn at_path(error: Error, path: Vec<PathStep>) -> Error {
    path.into_iter().rev().fold(error, |error, step| match step {
        PathStep::Field(name, _) => error.under_key(&name),
        PathStep::Index(index) => error.under_index(index),
        PathStep::Key(key) => error.under_key(&key),
    })
}

/// In which resource something is wrong.
pub(super) fn whose(kind: &str, name: Option<&str>) -> String {
    name.filter(|name| !name.is_empty())
        .map_or_else(|| format!("in a {kind} without a name"), |name| format!("in {kind} `{name}`"))
}

/// The type of the message that has a key at this place. A document nests no deeper than it may.
fn type_with(node: &Node, at: Position, of: &MessageDescriptor) -> Option<MessageDescriptor> {
    let of = match of.full_name() {
        ANY => type_of(of.parent_pool(), node.entry("@type")?.text().ok()?)?,
        _ => of.clone(),
    };
    if node.entries().iter().any(|(key, _)| key.position == at) {
        return Some(of);
    }
    node.entries().iter().find_map(|(key, value)| {
        let field = of.get_field_by_json_name(&key.text).or_else(|| of.get_field_by_name(&key.text))?;
        let Kind::Message(inner) = field.kind() else { return None };
        match &value.content {
            Content::Sequence(items) => items.iter().find_map(|item| type_with(item, at, &inner)),
            Content::Mapping(values) if field.is_map() => {
                let Kind::Message(inner) = inner.get_field_by_name("value")?.kind() else { return None };
                values.iter().find_map(|(_, value)| type_with(value, at, &inner))
            }
            _ => type_with(value, at, &inner),
        }
    })
}

/// The value at a path, or what is around it, where there is none; and whether it is that.
fn reached<'a>(body: &'a Node, path: &[PathStep]) -> (&'a Node, bool) {
    let mut node = body;
    for step in path {
        let inner = match (step, &node.content) {
            (PathStep::Index(index), Content::Sequence(items)) => items.get(*index),
            (PathStep::Key(key), _) => node.entry(key),
            (PathStep::Field(name, json_name), _) => {
                let of = |node: &'a Node| node.entry(name).or_else(|| node.entry(json_name));
                // What has a form of its own is within an `Any` its value.
                of(node).or_else(|| node.entry("value").and_then(of))
            }
            (PathStep::Index(_), _) => None,
        };
        let Some(inner) = inner else { return (node, false) };
        node = inner;
    }
    (node, true)
}
