//! A message that is encoded already, and what of it breaks a rule.

use std::path::Path;

use prost::Message as _;
use prost_reflect::DynamicMessage;
use xds_transport::wire::Any;

use super::descriptors::Descriptors;
use super::encode::type_of;
use super::error::FileError;
use super::reader::{at_path, whose};
use super::secrets;
use super::validate::{Found, Refusal};
use crate::yaml;

/// Whether an encoded `Any` is a message of its type and keeps the rules of it, if they are applied. Nothing is known of a type that
/// the descriptors lack.
///
/// # Errors
/// What is wrong with the resource of this name, in a place that is called so, without what may be secret.
pub(crate) fn check_encoded(place: &str, any: &[u8], name: &str, types: &Descriptors) -> Result<(), FileError> {
    let place = Path::new(place);
    let Ok(Any { type_url, value }) = Any::decode(any) else { return Err(FileError::of_file(place, "it is no Any")) };
    let Some(known) = type_of(&types.pool, &type_url) else { return Ok(()) };
    let Ok(message) = DynamicMessage::decode(known.clone(), value) else {
        return Err(FileError::of_file(place, format!("what is in it is no {}", known.full_name())));
    };
    let Some(validator) = &types.validator else { return Ok(()) };
    let is_secret = xds_transport::is_secret(known.full_name());
    let of = whose(known.name(), Some(name));
    let told = |Refusal { path, expected, found }| {
        let error = at_path(yaml::Error { position: None, path: String::new(), reason: String::new() }, path);
        let found = match found {
            Found::Told(words) => Some(words),
            Found::Value(value) if !is_secret && !secrets::is_sensitive(&error.path) => Some(value),
            Found::TypeUrl(type_url) => Some(type_url),
            Found::Untold | Found::Value(_) => None,
        };
        let found = found.map_or_else(String::new, |found| format!(", found {found}"));
        yaml::Error { reason: format!("expected {expected}{found}; {of}"), ..error }
    };
    match validator.refusals(&message) {
        refusals if refusals.is_empty() => Ok(()),
        refusals => Err(FileError::of_document(place, refusals.into_iter().map(told))),
    }
}
