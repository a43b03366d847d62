//! The file as written: every field optional, every value with its place, so that the checks can name it.

use std::{borrow::Cow, path::Path};

use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use serde_saphyr::{DefaultMessageFormatter, Error, Location, MessageFormatter, Spanned};

use super::{ConfigError, Locality, Protocol};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    #[serde(default, deserialize_with = "given")]
    pub(super) listen: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) admin: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) node: Option<NodeDocument>,
    #[serde(default, deserialize_with = "given")]
    pub(super) origins: Option<Spanned<Vec<Spanned<OriginDocument>>>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) default_origin: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) share_by: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) linger: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) drain: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) limits: Option<LimitsDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeDocument {
    #[serde(default, deserialize_with = "given")]
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) cluster: Option<String>,
    #[serde(default)]
    pub(super) locality: Locality,
    #[serde(default)]
    pub(super) metadata: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OriginDocument {
    #[serde(default, deserialize_with = "given")]
    pub(super) name: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) server: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) protocol: Option<Spanned<Protocol>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) files: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) descriptors: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) authorities: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsDocument {
    #[serde(default, deserialize_with = "given")]
    pub(super) max_request_bytes: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) max_response_bytes: Option<Spanned<String>>,
}

pub(super) fn parse(file: &Path, text: &str) -> Result<Document, ConfigError> {
    let mut field = String::new();
    serde_saphyr::with_deserializer_from_str(text, |deserializer| {
        serde_path_to_error::deserialize(deserializer).map_err(|error| {
            field = field_path(error.path());
            error.into_inner()
        })
    })
    .map_err(|error| {
        let place = error.location().unwrap_or(Location::UNKNOWN);
        ConfigError::Invalid {
            file: file.to_owned(),
            line: place.line().max(1),
            column: place.column().max(1),
            field,
            problem: problem(error.without_snippet()).into_owned(),
        }
    })
}

/// Present and not empty: `listen:` with nothing behind it is a slip, not a wish for the default.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// As in `origins[1].server`.
fn field_path(path: &serde_path_to_error::Path) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            // The field of `Spanned`, which is not of the file. No field of the configuration has this name.
            Segment::Map { key } if key == "value" => {}
            Segment::Map { key } if text.is_empty() => text.push_str(key),
            Segment::Map { key } => text.push_str(&format!(".{key}")),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    text
}

/// The parser's message in the words of someone who writes YAML.
fn problem(error: &Error) -> Cow<'_, str> {
    match error {
        Error::Unexpected { expected: "sequence start", .. } => "expected a list".into(),
        Error::Unexpected { expected: "mapping start", .. } => "expected fields".into(),
        Error::Unexpected { expected: "string scalar", .. } => "expected a single value".into(),
        Error::NullIntoString { .. } => "empty; expected a value, or no such field".into(),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is given twice").into(),
        other => DefaultMessageFormatter.format_message(other),
    }
}
