//! [`Node`] as a serde deserializer.

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::error::{Error, Position};
use super::scalar::{self, Plain};
use super::tree::{Content, Key, Node};

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.content {
            Content::Text(text) => visitor.visit_borrowed_str(text),
            Content::Plain(text) => match scalar::resolve(text) {
                Err(reason) => Err(Error::new(self.position, reason)),
                Ok(Plain::Null) => visitor.visit_unit(),
                Ok(Plain::Bool(value)) => visitor.visit_bool(value),
                Ok(Plain::Unsigned(value)) => visitor.visit_u64(value),
                Ok(Plain::Signed(value)) => visitor.visit_i64(value),
                Ok(Plain::Float(value)) => visitor.visit_f64(value),
                Ok(Plain::Text(text)) => visitor.visit_borrowed_str(text),
            },
            Content::Sequence(items) => visitor.visit_seq(Items { items: items.iter().enumerate() }),
            Content::Mapping(entries) => {
                let mut entries = Entries::new(entries);
                let outcome = visitor.visit_map(&mut entries);
                // What a visitor finds wrong with a mapping is wrong with the key it was at.
                return outcome.map_err(|error| error.or_at(entries.reached.unwrap_or(self.position)));
            }
        }
        .map_err(|error| error.or_at(self.position))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.content {
            Content::Plain(text) if scalar::resolve(text) == Ok(Plain::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.content {
            Content::Plain(text) | Content::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Content::Mapping(entries) => visitor.visit_enum(MapAccessDeserializer::new(Entries::new(entries))),
            Content::Sequence(_) => return self.deserialize_any(visitor),
        }
        .map_err(|error: Error| error.or_at(self.position))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        seed.deserialize(node).map(Some).map_err(|error| error.or_at(node.position).under_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'de> {
    entries: Vec<&'de (Key, Node)>,
    /// The entry whose key has been handed out and whose value has not.
    pending: Option<&'de (Key, Node)>,
    reached: Option<Position>,
}

impl<'de> Entries<'de> {
    /// `@type` comes first wherever it was written: who reads an `Any` needs it to understand the rest, and would
    /// otherwise have to set aside what comes before, and lose its positions.
    fn new(entries: &'de [(Key, Node)]) -> Self {
        let mut entries: Vec<_> = entries.iter().rev().collect();
        if let Some(index) = entries.iter().position(|(key, _)| key.text == "@type") {
            let first = entries.remove(index);
            entries.push(first);
        }
        Self { entries, pending: None, reached: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.entries.pop() else { return Ok(None) };
        let (key, _) = entry;
        self.pending = Some(entry);
        self.reached = Some(key.position);
        seed.deserialize(BorrowedStrDeserializer::new(&key.text))
            .map(Some)
            .map_err(|error: Error| error.or_at(key.position))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((key, node)) = self.pending.take() else {
            return Err(serde::de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(node).map_err(|error| error.or_at(node.position).under_key(&key.text))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::super::{Error, parse};

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        name: String,
        #[serde(default)]
        ports: Vec<u16>,
        mode: Option<Mode>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Fast,
        Limited { rate: f64 },
    }

    fn read(text: &str) -> Result<Settings, Error> {
        Settings::deserialize(&parse(text)?.unwrap())
    }

    #[test]
    fn a_derived_type_is_read() {
        let text = "name: \"no\"\nports: [80, 443]\nmode: {limited: {rate: 2}}\nlabels: {a.b: x}\n";
        let expected = Settings {
            name: "no".into(),
            ports: vec![80, 443],
            mode: Some(Mode::Limited { rate: 2.0 }),
            labels: BTreeMap::from([("a.b".into(), "x".into())]),
        };
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("{name: a, mode: fast}").unwrap().mode, Some(Mode::Fast));
        assert_eq!(read("{name: a, mode: ~}").unwrap().mode, None);
    }

    #[test]
    fn errors_have_position_and_path() {
        for (text, expected) in [
            ("name: a\nports:\n- 80\n- 70000\n", "4:3: ports[1]: invalid value: integer `70000`, expected u16"),
            ("name: 12\n", "1:7: name: invalid type: integer `12`, expected a string"),
            (
                "name: a\nlabels:\n  a.b: off\n",
                "3:8: labels[\"a.b\"]: unquoted `off` is a boolean in YAML 1.1 and a string in YAML 1.2: write \"off\", or true or false",
            ),
            ("name: a\nport: []\n", "2:1: unknown field `port`, expected one of `name`, `ports`, `mode`, `labels`"),
            ("name: a\nmode: slow\n", "2:7: mode: unknown variant `slow`, expected `fast` or `limited`"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected);
        }
    }
}
