//! The protocol's wrapper around a resource: what may stand beside it in a file.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use xds_matcher::final_form::DynamicParameterConstraints;
use xds_matcher::{Constraint, ParseError};
use xdstp_cache::Variant;

use super::name;
use crate::proto_json::seconds;
use crate::yaml::{Error, Node};

/// Written without its `@type` it is recognised by its key `resource`.
pub(super) const TYPE: &str = "envoy.service.discovery.v3.Resource";
pub(super) const KEYS: &[&str] = &["@type", "name", "resource_name", "version", "ttl", "aliases", "resource"];
const RESOURCE_NAME_KEYS: &[&str] = &["name", "dynamic_parameter_constraints"];

/// What a wrapper says of its resource, but for the name.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) version: Option<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) variant: Option<Variant>,
    pub(super) aliases: Vec<String>,
}

impl Beside {
    pub(super) fn read(wrapper: &Node, message_type: &str) -> Result<Self, Error> {
        let alias = |node: &Node| {
            let alias = String::deserialize(node)?;
            name::canonical(&alias, message_type).or_else(|reason| node.refuse(reason))
        };
        let version = wrapper.field("version", |node| String::deserialize(node))?;
        Ok(Self {
            version: version.filter(|version| !version.is_empty()),
            ttl: wrapper.field("ttl", ttl)?,
            variant: wrapper.field("resource_name", |node| variant(node, wrapper))?.flatten(),
            aliases: wrapper.field("aliases", |list| list.items(alias))?.unwrap_or_default(),
        })
    }
}

/// What the name of a variant says of whom it is for.
fn variant(node: &Node, wrapper: &Node) -> Result<Option<Variant>, Error> {
    if wrapper.entry("name").is_some() {
        return node.refuse("a resource has a name or a resource_name, not both");
    }
    node.expect_fields(RESOURCE_NAME_KEYS)?;
    let constraint = node.field("dynamic_parameter_constraints", constraint)?;
    Ok(constraint.map(Variant::Constraints).filter(|variant| !variant.is_plain()))
}

/// As the protocol's JSON has constraints, or as text: `env=prod and not version=v1`.
fn constraint(node: &Node) -> Result<Constraint, Error> {
    if let Ok(text) = node.text() {
        return text.parse().or_else(|error: ParseError| node.refuse(format!("`{text}`: {error}")));
    }
    let json = Value::deserialize(node)?;
    let read = DynamicParameterConstraints::from_json(&json).and_then(|message| message.lower());
    read.map_err(|error| {
        let (path, words) = (error.path().to_owned(), error.to_string());
        let reason = words.strip_prefix(&format!("{path}: ")).unwrap_or(&words).to_owned();
        Error { position: Some(node.place_of(&path)), path, reason }
    })
}

/// A duration as protobuf's JSON has it. One of zero would be over before it is sent.
fn ttl(node: &Node) -> Result<Duration, Error> {
    let text = String::deserialize(node)?;
    match seconds(&text).filter(|ttl| !ttl.is_zero()) {
        Some(ttl) => Ok(ttl),
        None => node.refuse(format!("`{text}`: expected seconds, such as 60s or 0.5s")),
    }
}
