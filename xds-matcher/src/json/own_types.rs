use alloc::string::String;
use core::fmt;

use serde_core::de::{Error, MapAccess, Visitor};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::fields::{map, string};
use crate::{Constraint, ConstraintError, DynamicParameters};

impl DynamicParameters {
    /// Reads a JSON object of strings.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`](crate::ErrorKind::WrongType).
    pub fn from_json(value: &Value) -> Result<Self, ConstraintError> {
        map(value, string)
    }
}

impl Serialize for Constraint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Constraint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Constraint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a constraint such as `env=prod and not exists(version)`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Constraint, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for DynamicParameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for DynamicParameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = DynamicParameters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from keys to values, both strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DynamicParameters, A::Error> {
                let mut entries = alloc::vec::Vec::new();
                while let Some(entry) = map.next_entry::<String, String>()? {
                    entries.push(entry);
                }
                Ok(entries.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
