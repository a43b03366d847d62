use alloc::string::String;

use serde_json::{Map, Value};

use crate::{ConstraintError, ErrorKind};

/// The fields of a JSON object that stands for a message.
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// An object with no other fields than `known`, which are named as in the `.proto`.
    pub(super) fn of(value: &'a Value, known: &[&str]) -> Result<Self, ConstraintError> {
        let map = object(value)?;
        match map.keys().find(|name| !known.iter().any(|known| is_named(name, known))) {
            Some(unknown) => Err(ConstraintError::new(ErrorKind::UnknownField).inside(unknown)),
            None => Ok(Self(map)),
        }
    }

    /// The value of a field, read by `read`; `None` if it is unset.
    pub(super) fn read<T>(
        &self,
        field: &str,
        read: impl FnOnce(&'a Value) -> Result<T, ConstraintError>,
    ) -> Result<Option<T>, ConstraintError> {
        let mut named = self.0.iter().filter(|(name, value)| is_named(name, field) && !value.is_null());
        let value = named.next().map(|(_, value)| read(value).map_err(|e| e.inside(field))).transpose()?;
        // Both spellings at once: one of them is not the field.
        match named.next() {
            Some((name, _)) => Err(ConstraintError::new(ErrorKind::UnknownField).inside(name)),
            None => Ok(value),
        }
    }
}

pub(super) fn object(value: &Value) -> Result<&Map<String, Value>, ConstraintError> {
    value.as_object().ok_or_else(wrong_type)
}

pub(super) fn string(value: &Value) -> Result<String, ConstraintError> {
    value.as_str().map(String::from).ok_or_else(wrong_type)
}

/// A repeated field.
pub(super) fn list<T, C: FromIterator<T>>(
    value: &Value,
    mut read: impl FnMut(&Value) -> Result<T, ConstraintError>,
) -> Result<C, ConstraintError> {
    let items = value.as_array().ok_or_else(wrong_type)?.iter().enumerate();
    items.map(|(i, item)| read(item).map_err(|e| e.inside(format_args!("[{i}]")))).collect()
}

/// A map field; it has strings as keys and no unset values.
pub(super) fn map<T, C: FromIterator<(String, T)>>(
    value: &Value,
    mut read: impl FnMut(&Value) -> Result<T, ConstraintError>,
) -> Result<C, ConstraintError> {
    let entries = object(value)?.iter();
    entries
        .map(|(key, value)| Ok((key.clone(), read(value).map_err(|e| e.inside(format_args!("[{key:?}]")))?)))
        .collect()
}

/// The one member of a oneof that is set.
pub(super) fn at_most_one<T, const N: usize>(members: [Option<T>; N]) -> Result<Option<T>, ConstraintError> {
    let mut set = members.into_iter().flatten();
    let first = set.next();
    if set.next().is_some() { Err(ConstraintError::new(ErrorKind::OneofConflict)) } else { Ok(first) }
}

pub(super) fn wrong_type() -> ConstraintError {
    ConstraintError::new(ErrorKind::WrongType)
}

/// Whether `name` is `field` or its lower camel case.
fn is_named(name: &str, field: &str) -> bool {
    let mut rest = name.chars();
    let mut upper = false;
    let camel = field.chars().all(|c| match c {
        '_' => {
            upper = true;
            true
        }
        c => {
            let expected = if core::mem::take(&mut upper) { c.to_ascii_uppercase() } else { c };
            rest.next() == Some(expected)
        }
    });
    name == field || (camel && rest.next().is_none())
}
