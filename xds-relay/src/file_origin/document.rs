//! One file: Envoy's form of a list of resources.

use std::sync::LazyLock;

use bytes::Bytes;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value};
use serde::Deserialize;
use xds_transport::TypeRules;

use super::descriptors::Descriptors;
use super::encode::{encode, type_of};
use super::environment::{Environment, FilledIn};
use super::problems::Problems;
use super::reader::Reader;
use super::resource::FileResource;
use super::wrapper::{self, Beside};
use super::{name, secrets};
use crate::yaml::{self, Node, Position};

const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
/// What else a `DiscoveryResponse` in a file may hold. Envoy needs none of it from a file, nor does this.
const RESPONSE_KEYS: &[&str] = &["canary", "control_plane", "nonce", "resources", "type_url", "version_info"];

/// Which field of a message is the resource's name is known where resources are walked.
static RULES: LazyLock<TypeRules> = LazyLock::new(TypeRules::envoy);

/// A resource and where it was written.
pub(super) struct Placed {
    pub(super) resource: FileResource,
    pub(super) position: Position,
    pub(super) path: String,
    pub(super) taken: TakenIn,
}

/// Which variables are in a resource: what came from them is not told.
#[derive(Debug, Default)]
pub(super) struct TakenIn {
    /// In its name, its type, or what says for whom it is.
    pub(super) identity: Option<String>,
    /// Anywhere in it.
    pub(super) any: Option<String>,
}

/// Reads the text of a file: each resource, or what is wrong with it. One that is not good says nothing of the others.
pub(super) fn read(
    text: &str,
    descriptors: &Descriptors,
    environment: Option<&Environment>,
) -> Result<Vec<Result<Placed, Problems>>, Problems> {
    let (root, filled) = root(text, "the file is empty", environment)?;
    read_list(&root, &Reader::new(descriptors, &filled))
}

/// Reads a text that is a resource as the list in a file has it, or such a list. Where there is no name in a resource that is all there
/// is, it is this one.
pub(super) fn read_value(text: &str, name: Option<&str>, descriptors: &Descriptors) -> Result<Vec<Placed>, Problems> {
    let (root, filled) = root(text, "empty", None)?;
    let reader = Reader::new(descriptors, &filled);
    if root.entry("resources").is_some() {
        return read_list(&root, &reader)?.into_iter().collect();
    }
    let resource = read_named(&root, &reader, name)?;
    Ok(vec![Placed { resource, position: root.position, path: String::new(), taken: TakenIn::default() }])
}

/// One resource.
pub(super) fn read_entry(entry: &Node, descriptors: &Descriptors) -> Result<FileResource, Problems> {
    read_named(entry, &Reader::new(descriptors, &FilledIn::default()), None)
}

/// Whether a message is one of its type, whatever it is.
pub(super) fn check(message: &Node, descriptors: &Descriptors) -> Result<(), Problems> {
    let filled = FilledIn::default();
    let reader = Reader::new(descriptors, &filled);
    let refused = reader.refusals(&reader.message(message)?, message, (None, None));
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}

fn root(text: &str, empty: &str, environment: Option<&Environment>) -> Result<(Node, FilledIn), Problems> {
    let root = yaml::parse(text).map_err(secrets::hide_in_syntax)?;
    let mut root = root.ok_or_else(|| yaml::Error::new(Position::default(), empty))?;
    let filled = environment.map(|environment| environment.fill_in(&mut root)).transpose()?;
    Ok((root, filled.unwrap_or_default()))
}

fn read_list(root: &Node, reader: &Reader<'_>) -> Result<Vec<Result<Placed, Problems>>, Problems> {
    let resources =
        root.entry("resources").ok_or_else(|| yaml::Error::new(root.position, "there is no list `resources`"))?;
    allow_only(root, RESPONSE_KEYS)?;
    let entries = resources.items(Ok).map_err(|error| error.under_key("resources"))?;
    let placed = |(index, entry): (usize, &Node)| match read_named(entry, reader, None) {
        Ok(resource) => {
            let taken = TakenIn {
                identity: identity(entry, reader).map(str::to_owned),
                any: reader.filled.first_in(entry).map(str::to_owned),
            };
            Ok(Placed { resource, position: entry.position, path: format!("resources[{index}]"), taken })
        }
        Err(problems) => Err(problems.under_index(index).under_key("resources")),
    };
    Ok(entries.into_iter().enumerate().map(placed).collect())
}

/// A resource, which has this name where none is in it.
fn read_named(entry: &Node, reader: &Reader<'_>, otherwise: Option<&str>) -> Result<FileResource, Problems> {
    let wrapped = match entry.entry("@type") {
        Some(node) => read_type(node).map_err(|error| reader.filled.conceal(error, entry))? == wrapper::TYPE,
        None => true,
    };
    let variable = identity(entry, reader);
    let of_name = |error: yaml::Error| reader.filled.conceal_as(error, variable);
    if !wrapped {
        let mut message = reader.message(entry)?;
        let held = held_name(&mut message, entry, otherwise).map_err(of_name)?;
        let refused = reader.refusals(&message, entry, (held.as_deref(), variable));
        let message_type = message.descriptor();
        let name = held.or(otherwise.map(str::to_owned));
        return unless(
            refused,
            &message_type,
            finish(message, name, Beside::default(), entry.position).map_err(of_name),
        );
    }

    let body = entry
        .entry("resource")
        .ok_or_else(|| yaml::Error::new(entry.position, "neither `@type` nor `resource` is given"))?;
    allow_only(entry, wrapper::KEYS)?;
    let in_body = |error: yaml::Error| error.under_key("resource");
    let mut message = reader.message(body).map_err(in_body)?;
    let held = held_name(&mut message, body, None).map_err(of_name).map_err(in_body)?;
    let message_type = message.descriptor();
    let given = |of: &Node| of.field("name", |name| given_name(name, &message_type, held.as_deref()));
    let given = given(entry)
        .and_then(|name| name.map_or_else(|| entry.field("resource_name", given), |name| Ok(Some(Some(name)))))
        .map(|name| name.flatten().or(held.clone()).or(otherwise.map(str::to_owned)))
        .map_err(of_name);
    let name = given.as_ref().ok().and_then(Option::as_deref);
    // What need not be said need not be said inside either.
    if held.is_none() && otherwise.is_some() && name == otherwise {
        held_name(&mut message, body, otherwise).map_err(of_name).map_err(in_body)?;
    }
    let refused = reader.refusals(&message, body, (name, variable)).under_key("resource");
    let beside = Beside::read(entry, message_type.full_name()).map_err(|error| reader.filled.conceal(error, entry));
    let finished = given.and_then(|name| finish(message, name, beside?, entry.position).map_err(of_name));
    unless(refused, &message_type, finished)
}

/// The resource, unless something in it is refused. What else is wrong is told too, but for a name that is refused as there is none.
fn unless(
    mut refused: Problems,
    message_type: &MessageDescriptor,
    finished: Result<FileResource, yaml::Error>,
) -> Result<FileResource, Problems> {
    match finished {
        _ if refused.is_empty() => Ok(finished?),
        Ok(_) => Err(refused),
        Err(error) => {
            let name = name_field(message_type).map(|field| field.name().to_owned());
            let is_of_name = |refused: &yaml::Error| refused.path.rsplit('.').next() == name.as_deref();
            if error.path.is_empty() && refused.iter().any(is_of_name) {
                return Err(refused);
            }
            refused.push(error);
            Err(refused)
        }
    }
}

fn read_type(node: &Node) -> Result<String, yaml::Error> {
    let type_url = String::deserialize(node).map_err(|error| error.under_key("@type"))?;
    Ok(type_url.rsplit_once('/').map_or(type_url.as_str(), |(_, name)| name).to_owned())
}

/// The name that the message itself holds, which is put into the form that is served: Envoy adds a resource by the
/// name inside and removes it by the name outside (rule 82). Where it is empty, it becomes this one, if there is one.
fn held_name(
    message: &mut DynamicMessage,
    body: &Node,
    otherwise: Option<&str>,
) -> Result<Option<String>, yaml::Error> {
    let message_type = message.descriptor();
    let Some(field) = name_field(&message_type) else { return Ok(None) };
    let written = match (message.get_field(&field).as_str(), otherwise) {
        (None | Some(""), None) => return Ok(None),
        (None | Some(""), Some(name)) | (Some(name), _) => name.to_owned(),
    };
    let served = name::canonical(&written, message_type.full_name()).map_err(|reason| {
        let node = body.entry(field.name()).or_else(|| body.entry(field.json_name()));
        yaml::Error::new(node.unwrap_or(body).position, reason).under_key(field.name())
    })?;
    message.set_field(&field, Value::String(served.clone()));
    Ok(Some(served))
}

/// The variable that the name of a resource is of, or its type, or what says for whom it is.
fn identity<'a>(entry: &Node, reader: &Reader<'a>) -> Option<&'a str> {
    if reader.filled.is_empty() {
        return None;
    }
    let body = entry.entry("resource").unwrap_or(entry);
    let message_type = body.entry("@type").and_then(|node| type_of(&reader.descriptors.pool, node.text().ok()?));
    let name = message_type.as_ref().and_then(name_field);
    let held = name.and_then(|name| body.entry(name.name()).or_else(|| body.entry(name.json_name())));
    let beside = ["@type", "name", "resource_name"].map(|key| entry.entry(key));
    let parts = beside.into_iter().chain([body.entry("@type"), held]).flatten();
    let filled = reader.filled;
    parts.into_iter().find_map(|node| filled.first_in(node))
}

/// Envoy's types have their names in a field of the message itself, or not in it.
fn name_field(message_type: &MessageDescriptor) -> Option<FieldDescriptor> {
    let [number] = *RULES.of(&type_url(message_type).into()).name_path else { return None };
    message_type.get_field(number).filter(|field| field.kind() == Kind::String && !field.is_list())
}

/// The name that the wrapper gives.
fn given_name(node: &Node, message_type: &MessageDescriptor, held: Option<&str>) -> Result<String, yaml::Error> {
    let written = String::deserialize(node)?;
    let given = name::canonical(&written, message_type.full_name())
        .map_err(|reason| yaml::Error::new(node.position, reason))?;
    match held {
        Some(held) if held != given => {
            Err(yaml::Error::new(node.position, format!("the resource inside is named `{held}`")))
        }
        _ => Ok(given),
    }
}

fn finish(
    message: DynamicMessage,
    name: Option<String>,
    beside: Beside,
    position: Position,
) -> Result<FileResource, yaml::Error> {
    let message_type = message.descriptor();
    let name = name.ok_or_else(|| {
        let reason = format!(
            "the resource has no name; a {} without one in it is written {{name: …, resource: {{\"@type\": …}}}}",
            message_type.name()
        );
        yaml::Error::new(position, reason)
    })?;
    let type_url = type_url(&message_type);
    let value = encode(message).map_err(|error| yaml::Error::new(position, error.to_string()))?;
    let Beside { version, ttl, variant, aliases } = beside;
    Ok(FileResource { name, type_url, value: Bytes::from(value), version, ttl, variant, aliases })
}

fn type_url(message_type: &MessageDescriptor) -> String {
    format!("{TYPE_URL_PREFIX}{}", message_type.full_name())
}

fn allow_only(mapping: &Node, keys: &[&str]) -> Result<(), yaml::Error> {
    match mapping.unknown_key(keys) {
        None => Ok(()),
        Some(key) => Err(yaml::Error::new(
            key.position,
            format!("unrecognized field name '{}': expected one of {}", key.text, keys.join(", ")),
        )),
    }
}
