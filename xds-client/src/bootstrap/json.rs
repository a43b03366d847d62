//! JSON whose every value knows where it stands, so that what is wrong with it can be said with its place.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::Wrong;

/// A value of a text, and the field that it is of: `xds_servers[0].server_uri`.
#[derive(Clone)]
pub(super) struct Json<'a> {
    text: &'a str,
    raw: &'a RawValue,
    field: String,
}

/// The members of an object.
pub(super) struct Object<'a> {
    of: Json<'a>,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Json<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Wrong> {
        let raw = serde_json::from_str(text).map_err(|error| {
            let place = format!(" at line {} column {}", error.line(), error.column());
            let words = error.to_string();
            Wrong::new(
                text,
                offset(text, error.line(), error.column()),
                "",
                words.strip_suffix(&place).unwrap_or(&words),
            )
        })?;
        Ok(Self { text, raw, field: String::new() })
    }

    /// Something is wrong with this value.
    pub(super) fn wrong(&self, reason: impl fmt::Display) -> Wrong {
        let start = self.raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        Wrong::new(self.text, start, &self.field, &reason.to_string())
    }

    pub(super) fn object(self) -> Result<Object<'a>, Wrong> {
        let Members(members) = self.read("an object")?;
        Ok(Object { of: self, members })
    }

    pub(super) fn array(&self) -> Result<impl Iterator<Item = Self> + use<'a>, Wrong> {
        let (text, field) = (self.text, self.field.clone());
        let items: Vec<&RawValue> = self.read("an array")?;
        let item = move |(index, raw)| Self { text, raw, field: format!("{field}[{index}]") };
        Ok(items.into_iter().enumerate().map(item))
    }

    pub(super) fn string(&self) -> Result<String, Wrong> {
        self.read("a string")
    }

    /// A string that is not empty.
    pub(super) fn text(&self) -> Result<String, Wrong> {
        let text = self.string()?;
        if text.is_empty() { Err(self.wrong("it must not be empty")) } else { Ok(text) }
    }

    /// Any value, as it is.
    pub(super) fn value(&self) -> Result<serde_json::Value, Wrong> {
        self.read("a value")
    }

    fn is_null(&self) -> bool {
        self.raw.get() == "null"
    }

    fn read<T: Deserialize<'a>>(&self, what: &str) -> Result<T, Wrong> {
        serde_json::from_str(self.raw.get()).map_err(|error| {
            if error.is_data() {
                return self.wrong(format_args!("expected {what}, found {}", kind(self.raw.get())));
            }
            self.wrong(error)
        })
    }
}

impl<'a> Object<'a> {
    /// Something is wrong with the object.
    pub(super) fn wrong(&self, reason: impl fmt::Display) -> Wrong {
        self.of.wrong(reason)
    }

    /// A member; one that is `null` is not there.
    pub(super) fn member(&self, name: &str) -> Option<Json<'a>> {
        self.iter().filter(|(key, _)| *key == name).last().map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// A member that must be there.
    pub(super) fn required(&self, name: &str) -> Result<Json<'a>, Wrong> {
        self.member(name).ok_or_else(|| self.wrong(format_args!("{name} is missing")))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Wrong> {
        self.member(name).map(|value| value.text()).transpose()
    }

    pub(super) fn string(&self, name: &str) -> Result<Option<String>, Wrong> {
        self.member(name).map(|value| value.string()).transpose()
    }

    /// All members, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Json<'a>)> {
        self.members.iter().map(|(key, raw)| {
            let mut field = self.of.field.clone();
            // What is no identifier is quoted: an authority has dots.
            let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            _ = match (plain, field.is_empty()) {
                (true, true) => write!(field, "{key}"),
                (true, false) => write!(field, ".{key}"),
                (false, _) => write!(field, "[{key:?}]"),
            };
            (&**key, Json { text: self.of.text, raw, field })
        })
    }
}

/// Every member, also those that have a name twice.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'a> Visitor<'a> for Reader {
            type Value = Members<'a>;

            fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
                words.write_str("an object")
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Key<'a>>()? {
                    members.push((key.0, map.next_value().map_err(M::Error::custom)?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// A `Cow` alone is read as one that is owned.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

fn kind(value: &str) -> &'static str {
    match value.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Where a line, and a column in bytes of it, both counted from one, begin.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column.saturating_sub(1)
}
