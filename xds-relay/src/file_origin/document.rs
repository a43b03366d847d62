//! One file: Envoy's form of a list of resources.

use std::sync::LazyLock;

use bytes::Bytes;
use prost_reflect::{DeserializeOptions, DynamicMessage, Kind, MessageDescriptor, ReflectMessage, Value};
use serde::Deserialize;
use xds_transport::TypeRules;

use super::descriptors::Descriptors;
use super::encode::{encode, unpack};
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
}

/// Reads the text of a file: each resource, or what is wrong with it. One that is not good says nothing of the others.
pub(super) fn read(text: &str, descriptors: &Descriptors) -> Result<Vec<Result<Placed, yaml::Error>>, yaml::Error> {
    read_list(&root(text, "the file is empty")?, descriptors)
}

/// Reads a text that is a resource as the list in a file has it, or such a list. Where there is no name in a resource that is all there
/// is, it is this one.
pub(super) fn read_value(
    text: &str,
    name: Option<&str>,
    descriptors: &Descriptors,
) -> Result<Vec<Placed>, yaml::Error> {
    let root = root(text, "empty")?;
    if root.entry("resources").is_some() {
        return read_list(&root, descriptors)?.into_iter().collect();
    }
    let resource = read_named(&root, descriptors, name)?;
    Ok(vec![Placed { resource, position: root.position, path: String::new() }])
}

fn root(text: &str, empty: &str) -> Result<Node, yaml::Error> {
    let root = yaml::parse(text).map_err(secrets::hide_in_syntax)?;
    root.ok_or_else(|| yaml::Error::new(Position::default(), empty))
}

fn read_list(root: &Node, descriptors: &Descriptors) -> Result<Vec<Result<Placed, yaml::Error>>, yaml::Error> {
    let resources =
        root.entry("resources").ok_or_else(|| yaml::Error::new(root.position, "there is no list `resources`"))?;
    allow_only(root, RESPONSE_KEYS)?;
    let each = |entry: &Node| Ok((read_entry(entry, descriptors), entry.position));
    let entries = resources.items(each).map_err(|error| error.under_key("resources"))?;
    let placed = |(index, (read, position)): (usize, (Result<FileResource, yaml::Error>, Position))| match read {
        Ok(resource) => Ok(Placed { resource, position, path: format!("resources[{index}]") }),
        Err(error) => Err(error.under_index(index).under_key("resources")),
    };
    Ok(entries.into_iter().enumerate().map(placed).collect())
}

/// One resource.
pub(super) fn read_entry(entry: &Node, descriptors: &Descriptors) -> Result<FileResource, yaml::Error> {
    read_named(entry, descriptors, None)
}

/// The same, which has this name where none is in it.
fn read_named(entry: &Node, descriptors: &Descriptors, otherwise: Option<&str>) -> Result<FileResource, yaml::Error> {
    let wrapped = match entry.entry("@type") {
        Some(node) => read_type(node)? == wrapper::TYPE,
        None => true,
    };
    if !wrapped {
        let mut message = read_message(entry, descriptors)?;
        let held = held_name(&mut message, entry, otherwise)?.or(otherwise.map(str::to_owned));
        return finish(message, held, Beside::default(), entry.position);
    }

    let body = entry
        .entry("resource")
        .ok_or_else(|| yaml::Error::new(entry.position, "neither `@type` nor `resource` is given"))?;
    allow_only(entry, wrapper::KEYS)?;
    let in_body = |error: yaml::Error| error.under_key("resource");
    let mut message = read_message(body, descriptors).map_err(in_body)?;
    let held = held_name(&mut message, body, None).map_err(in_body)?;
    let beside = Beside::read(entry, message.descriptor().full_name())?;
    let of_type = message.descriptor();
    let given = |of: &Node| of.field("name", |name| given_name(name, &of_type, held.as_deref()));
    let given = given(entry)?.map_or_else(|| entry.field("resource_name", given), |name| Ok(Some(Some(name))))?;
    finish(message, given.flatten().or(held.clone()).or(otherwise.map(str::to_owned)), beside, entry.position)
}

/// Whether a message is one of its type, whatever it is.
pub(super) fn check(message: &Node, descriptors: &Descriptors) -> Result<(), yaml::Error> {
    read_message(message, descriptors).map(drop)
}

fn read_type(node: &Node) -> Result<String, yaml::Error> {
    let type_url = String::deserialize(node).map_err(|error| error.under_key("@type"))?;
    Ok(type_url.rsplit_once('/').map_or(type_url.as_str(), |(_, name)| name).to_owned())
}

fn read_message(body: &Node, descriptors: &Descriptors) -> Result<DynamicMessage, yaml::Error> {
    let strict = DeserializeOptions::new().deny_unknown_fields(true);
    let any = DynamicMessage::deserialize_with_options(descriptors.any.clone(), body, &strict)
        .map_err(|error| secrets::hide_in(error, body))?;
    match unpack(&any) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(yaml::Error::new(body.position, "not a message of a known type")),
        Err(error) => Err(yaml::Error::new(body.position, error.to_string())),
    }
}

/// The name that the message itself holds, which is put into the form that is served: Envoy adds a resource by the
/// name inside and removes it by the name outside (rule 82). Where it is empty, it becomes this one, if there is one.
fn held_name(
    message: &mut DynamicMessage,
    body: &Node,
    otherwise: Option<&str>,
) -> Result<Option<String>, yaml::Error> {
    let message_type = message.descriptor();
    // Envoy's types have their names in a field of the message itself, or not in it.
    let [number] = *RULES.of(&type_url(&message_type).into()).name_path else { return Ok(None) };
    let Some(field) = message_type.get_field(number).filter(|field| field.kind() == Kind::String && !field.is_list())
    else {
        return Ok(None);
    };
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
