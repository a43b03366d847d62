//! A mapping as protobuf's JSON reader takes it for a message: either spelling of a field, `null` for one that is not
//! there, no field twice, none that is unknown.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::{self, Visitor};

use crate::yaml::{Content, Error, Key, Node, Position};

/// The fields of a message that are there.
pub(crate) struct Message<'a> {
    position: Position,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    /// As the schema spells it.
    name: &'static str,
    key: &'a Key,
    value: &'a Node,
}

impl<'a> Message<'a> {
    /// Of the fields `known`, spelled `snake_case`.
    pub(crate) fn read(node: &'a Node, known: &[&'static str]) -> Result<Self, Error> {
        let mut message = Self { position: node.position, fields: Vec::new() };
        message.add(node, known)?;
        Ok(message)
    }

    /// The entries of a mapping, then those that it merges (`<<`) and does not have itself.
    fn add(&mut self, node: &'a Node, known: &[&'static str]) -> Result<(), Error> {
        let Content::Mapping(entries) = &node.content else { return node.refuse("expected fields") };
        let own = self.fields.len();
        for (key, value) in entries.iter().filter(|(key, _)| key.text != MERGE) {
            if self.fields.get(..own).unwrap_or_default().iter().any(|field| field.key.text == key.text) {
                continue;
            }
            let name = known.iter().find(|name| is_spelling_of(&key.text, name));
            let problem = match name {
                None => format!("unknown field \"{}\", expected one of {}", key.text, known.join(", ")),
                Some(name) if self.fields.iter().any(|field| field.name == *name) => {
                    format!("duplicate field \"{}\": it is there in another spelling", key.text)
                }
                Some(name) => {
                    self.fields.push(Field { name, key, value });
                    continue;
                }
            };
            return Err(Error::new(key.position, problem).under_key(&key.text));
        }
        for (key, value) in entries.iter().filter(|(key, _)| key.text == MERGE) {
            self.merge(value, known).map_err(|error| error.under_key(&key.text))?;
        }
        Ok(())
    }

    /// A mapping, or several, of which the first counts that has a field.
    fn merge(&mut self, value: &'a Node, known: &[&'static str]) -> Result<(), Error> {
        match &value.content {
            Content::Mapping(_) => self.add(value, known),
            Content::Sequence(_) => value.items(|item| self.add(item, known)).map(drop),
            _ => value.refuse("expected a mapping, or a list of mappings, to merge"),
        }
    }

    fn field(&self, name: &str) -> Option<&Field<'a>> {
        self.fields.iter().find(|field| field.name == name && !field.value.is_null())
    }

    /// What `read` makes of a field that is there.
    pub(crate) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Node) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let read = |field: &Field<'a>| read(field.value).map_err(|error| error.under_key(&field.key.text));
        self.field(name).map(read).transpose()
    }

    /// What `read` makes of a field that must be there.
    pub(crate) fn required<T>(&self, name: &str, read: impl FnOnce(&'a Node) -> Result<T, Error>) -> Result<T, Error> {
        let missing = || Error::new(self.position, "value is required").under_key(name);
        self.optional(name, read)?.ok_or_else(missing)
    }

    /// What `read` makes of the items of a list that must have some.
    pub(crate) fn list<T>(
        &self,
        name: &str,
        least: usize,
        read: impl FnMut(&Node) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let too_few = |position| Error::new(position, format!("value must contain at least {least} item(s)"));
        let items = self.optional(name, |list| {
            let items = list.items(read)?;
            if items.len() < least { Err(too_few(list.position)) } else { Ok(items) }
        })?;
        items.ok_or_else(|| too_few(self.position).under_key(name))
    }

    /// Which of these fields is there: exactly one must be.
    pub(crate) fn one_of(&self, names: &[&'static str]) -> Result<&'static str, Error> {
        let mut found = self.fields.iter().filter(|field| names.contains(&field.name) && !field.value.is_null());
        let Some(first) = found.next() else {
            return Err(Error::new(self.position, format!("value is required: one of {}", names.join(", "))));
        };
        match found.next() {
            None => Ok(first.name),
            Some(second) => {
                let reason = format!("only one of {}: {} is there already", names.join(", "), first.key.text);
                Err(Error::new(second.key.position, reason).under_key(&second.key.text))
            }
        }
    }

    /// Whether any of these fields is there.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.field(name).is_some())
    }
}

/// YAML 1.1's key for the entries of another mapping; what wrote such files read them with that.
const MERGE: &str = "<<";

/// `snake_case`, or the same in `lowerCamelCase`.
fn is_spelling_of(key: &str, name: &str) -> bool {
    key == name || key == lower_camel(name)
}

fn lower_camel(name: &str) -> Cow<'_, str> {
    let Some((first, rest)) = name.split_once('_') else { return name.into() };
    let capitalised = rest.split('_').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        first.to_ascii_uppercase() + rest
    });
    std::iter::once(first.to_owned()).chain(capitalised).collect::<String>().into()
}

/// A string; a number or a boolean that is not in quotes is none.
pub(crate) fn text(node: &Node) -> Result<String, Error> {
    String::deserialize(node)
}

/// A string that is not empty.
pub(crate) fn some_text(node: &Node) -> Result<String, Error> {
    match text(node)? {
        text if text.is_empty() => node.refuse("value length must be at least 1 runes"),
        text => Ok(text),
    }
}

/// A boolean, in the words of YAML 1.1, too: where nothing else may stand, they can mean nothing else.
pub(crate) fn boolean(node: &Node) -> Result<bool, Error> {
    match &node.content {
        Content::Plain(word) if YES.contains(&word.as_str()) => Ok(true),
        Content::Plain(word) if NO.contains(&word.as_str()) => Ok(false),
        _ => bool::deserialize(node),
    }
}

const YES: [&str; 8] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const NO: [&str; 8] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];

/// A boolean of which only `true` says anything.
pub(crate) fn constant_true(node: &Node) -> Result<(), Error> {
    if boolean(node)? { Ok(()) } else { node.refuse("value must equal true") }
}

/// An `int32`: a number without a fraction, or a string that is one in JSON.
pub(crate) fn int32(node: &Node) -> Result<i32, Error> {
    Ok(Int32::deserialize(node)?.0)
}

/// A duration: seconds, such as `60s` or `0.5s`, and none that is negative.
pub(crate) fn duration(node: &Node) -> Result<Duration, Error> {
    let text = text(node)?;
    match (seconds(&text), text.strip_prefix('-').and_then(seconds)) {
        (Some(duration), _) => Ok(duration),
        (None, Some(_)) => node.refuse(format!("`{text}`: value must be greater than or equal to 0s")),
        (None, None) => node.refuse(format!("`{text}`: expected seconds, such as 60s or 0.5s")),
    }
}

/// What a text of seconds says.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    /// What a `google.protobuf.Duration` holds.
    const MOST: u64 = 315_576_000_000;
    let number = text.strip_suffix('s')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole = whole.parse().ok().filter(|seconds| *seconds <= MOST)?;
    Some(Duration::new(whole, format!("{fraction:0<9}").parse().ok()?))
}

struct Int32(i32);

impl<'de> de::Deserialize<'de> for Int32 {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;

        impl Visitor<'_> for Numbers {
            type Value = Int32;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an int32")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Int32, E> {
                let refused = || E::invalid_value(de::Unexpected::Unsigned(number), &self);
                i32::try_from(number).map(Int32).map_err(|_| refused())
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Int32, E> {
                let refused = || E::invalid_value(de::Unexpected::Signed(number), &self);
                i32::try_from(number).map(Int32).map_err(|_| refused())
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Int32, E> {
                let whole = number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
                // Nothing of it is cut off.
                if whole {
                    Ok(Int32(number as i32))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(number), &self))
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Int32, E> {
                let is_trimmed = text.trim().len() == text.len();
                match serde_json::from_str::<f64>(text) {
                    Ok(number) if is_trimmed => self.visit_f64(number),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_seconds() {
        assert_eq!(seconds("60s"), Some(Duration::from_secs(60)));
        assert_eq!(seconds("0.5s"), Some(Duration::from_millis(500)));
        assert_eq!(seconds("1.000000001s"), Some(Duration::new(1, 1)));
        for text in ["", "s", "60", "-1s", "1.s", ".5s", "1.0000000001s", "315576000001s", "1e3s", "1m"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
