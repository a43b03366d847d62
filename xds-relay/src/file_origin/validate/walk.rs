//! Applying rules to a message and to all that is in it.

use std::borrow::Cow;
use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};

use super::compiled::{OfField, TypeRules, Values, nanoseconds};
use super::number::listed;
use super::refusal::{Found, Place, Refusals};
use super::rules::Time;
use super::text::count;
use crate::file_origin::descriptors::ANY;
use crate::file_origin::encode::{ANY_TYPE_URL, encode, unpack};

/// How deep messages may be within each other, and within an `Any` in one.
const MAX_DEPTH: usize = 100;

/// Checks a message. The rules of a type are asked for by a message of it.
pub(super) fn walk(
    message: &DynamicMessage,
    (place, depth): (Place<'_>, usize),
    rules: &dyn Fn(&DynamicMessage) -> std::sync::Arc<TypeRules>,
    refusals: &mut Refusals,
) {
    if refusals.is_full() {
        return;
    }
    if depth > MAX_DEPTH {
        return refusals.refuse(place, format!("no more than {MAX_DEPTH} messages within each other"), Found::Untold);
    }
    if message.descriptor().full_name() == ANY {
        // What is of no known type has no rules, and what is not of its type is refused where it is encoded.
        if let Ok(Some(inner)) = unpack(message) {
            walk(&inner, (place, depth + 1), rules, refusals);
        }
        return;
    }
    let of_type = rules(message);
    if of_type.is_skipped {
        return;
    }
    for (name, members) in &of_type.oneofs {
        if !members.iter().any(|member| message.has_field(member)) {
            let expected = format!("one of {}", listed(members.iter().map(FieldDescriptor::name)));
            refusals.refuse(place.oneof(name), expected, Found::Told("none".to_owned()));
        }
    }
    for field in &of_type.fields {
        of_field(field, message, place, refusals);
    }
    for (field, value) in message.fields() {
        if matches!(field.kind(), Kind::Message(_)) && !of_type.passed_over.contains(&field.number()) {
            let place = place.field(&field);
            let mut within = |message, place: Place<'_>| walk(message, (place, depth + 1), rules, refusals);
            match value {
                Value::Message(message) => within(message, place),
                Value::List(items) => {
                    for (index, message) in items.iter().enumerate() {
                        message.as_message().into_iter().for_each(|message| within(message, place.index(index)));
                    }
                }
                Value::Map(entries) => {
                    for (key, message) in in_order(entries) {
                        message.as_message().into_iter().for_each(|message| within(message, place.key(key)));
                    }
                }
                _ => {}
            }
        }
    }
}

/// As a hash map has them, they would be told in another order each time.
fn in_order(entries: &HashMap<MapKey, Value>) -> Vec<(&MapKey, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

fn of_field(
    OfField { field, is_required, values }: &OfField,
    message: &DynamicMessage,
    place: Place<'_>,
    refusals: &mut Refusals,
) {
    let (place, is_set) = (place.field(field), message.has_field(field));
    // Which member of a oneof is set is the rule of the oneof.
    let is_member = field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic());
    if *is_required && !is_set && !is_member {
        refusals.refuse(place, "a value", Found::Told("none".to_owned()));
    }
    // A scalar that has no presence is what it is by default, and all others are only where they are set.
    if let Some(values) = values.as_ref().filter(|_| is_set || !field.supports_presence()) {
        of_value(values, (&message.get_field(field), &of_items(field)), place, refusals);
    }
}

/// What the values of a field, the items of a list or the values of a map are.
fn of_items(field: &FieldDescriptor) -> Kind {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
        kind => kind,
    }
}

fn of_value(values: &Values, (value, kind): (&Value, &Kind), place: Place<'_>, refusals: &mut Refusals) {
    let inner = value.as_message().filter(|_| values.are_of_scalars()).map(|wrapper| wrapper.get_field_by_number(1));
    let value = inner.flatten().unwrap_or(Cow::Borrowed(value));
    let mut refuse = |expected: String, found: Found| refusals.refuse(place, expected, found);
    match (values, &*value) {
        (Values::Float(rules), Value::F32(value)) => rules.check(*value, &|value| value.to_string(), &mut refuse),
        (Values::Double(rules), Value::F64(value)) => rules.check(*value, &|value| value.to_string(), &mut refuse),
        (Values::Signed(rules), Value::I32(value)) => {
            rules.check(i64::from(*value), &|value| value.to_string(), &mut refuse);
        }
        (Values::Signed(rules), Value::I64(value)) => rules.check(*value, &|value| value.to_string(), &mut refuse),
        (Values::Unsigned(rules), Value::U32(value)) => {
            rules.check(u64::from(*value), &|value| value.to_string(), &mut refuse);
        }
        (Values::Unsigned(rules), Value::U64(value)) => rules.check(*value, &|value| value.to_string(), &mut refuse),
        (Values::Bool(constant), Value::Bool(value)) if constant != value => {
            refuse(constant.to_string(), Found::Value(value.to_string()));
        }
        (Values::String(rules), Value::String(value)) => rules.check(value, &mut refuse),
        (Values::Bytes(rules), Value::Bytes(value)) => rules.check(value, &mut refuse),
        (Values::Enum { numbers, is_defined }, Value::EnumNumber(number)) => {
            let Kind::Enum(of) = kind else { return };
            let text =
                |number| of.get_value(number).map_or_else(|| number.to_string(), |value| value.name().to_owned());
            if *is_defined && of.get_value(*number).is_none() {
                refuse(format!("a value of {}", of.name()), Found::Value(number.to_string()));
            }
            numbers.check(*number, &text, &mut refuse);
        }
        (Values::List { .. }, Value::List(items)) => of_list(values, (items, kind), place, refusals),
        (Values::Map { .. }, Value::Map(entries)) => of_map(values, (entries, kind), place, refusals),
        (Values::Any { one_of, none_of }, Value::Message(any)) => {
            let type_url = any.get_field_by_number(ANY_TYPE_URL);
            let type_url = type_url.as_deref().and_then(Value::as_str).unwrap_or_default();
            let found = || Found::TypeUrl(type_url.to_owned());
            if !one_of.is_empty() && !one_of.iter().any(|one| one == type_url) {
                refuse(format!("one of {}", listed(one_of.iter())), found());
            }
            if none_of.iter().any(|one| one == type_url) {
                refuse(format!("none of {}", listed(none_of.iter())), found());
            }
        }
        (Values::Duration(rules) | Values::Timestamp(rules), Value::Message(message)) => {
            let Some(time) = time(message) else { return };
            rules.check(time, &seconds, &mut refuse);
        }
        (Values::Unusable(reason), _) => {
            refuse(format!("nothing that is known: the rule of the field cannot be used, {reason}"), Found::Untold);
        }
        _ => {}
    }
}

fn of_list(values: &Values, (items, kind): (&[Value], &Kind), place: Place<'_>, refusals: &mut Refusals) {
    let Values::List { items: range, are_unique, of_items, ignores_empty } = values else { return };
    if *ignores_empty && items.is_empty() {
        return;
    }
    count(range, items.len() as u64, "item", &mut |expected, found| refusals.refuse(place, expected, found));
    let mut seen = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        if refusals.is_full() {
            return;
        }
        if let Some(first) = are_unique.then(|| seen.insert(identity(item), index)).flatten() {
            refusals.refuse(place.index(index), "items that differ", Found::Told(format!("the same as [{first}]")));
        }
        if let Some(of_items) = of_items {
            of_value(of_items, (item, kind), place.index(index), refusals);
        }
    }
}

fn of_map(
    values: &Values,
    (entries, kind): (&HashMap<MapKey, Value>, &Kind),
    place: Place<'_>,
    refusals: &mut Refusals,
) {
    let Values::Map { pairs, of_keys, of_values, ignores_empty } = values else { return };
    if *ignores_empty && entries.is_empty() {
        return;
    }
    count(pairs, entries.len() as u64, "entry", &mut |expected, found| {
        refusals.refuse(place, expected.replace("entrys", "entries"), found);
    });
    if of_keys.is_none() && of_values.is_none() {
        return;
    }
    for (key, value) in in_order(entries) {
        if refusals.is_full() {
            return;
        }
        if let Some(of_keys) = of_keys {
            // A key is no enum.
            of_value(of_keys, (&Value::from(key.clone()), &Kind::String), place.key(key), refusals);
        }
        if let Some(of_values) = of_values {
            of_value(of_values, (value, kind), place.key(key), refusals);
        }
    }
}

/// What is the same of two values that are equal.
fn identity(value: &Value) -> Vec<u8> {
    match value {
        Value::Message(message) => encode(message.clone()).unwrap_or_default(),
        Value::Bytes(bytes) => bytes.to_vec(),
        value => format!("{value:?}").into_bytes(),
    }
}

impl Values {
    /// Whether a message that they are asked of is a wrapper around what they are of.
    fn are_of_scalars(&self) -> bool {
        !matches!(self, Self::Any { .. } | Self::Duration(_) | Self::Timestamp(_) | Self::Unusable(_))
    }
}

fn time(message: &DynamicMessage) -> Option<i128> {
    let seconds = message.get_field_by_number(1)?.as_i64()?;
    let nanos = message.get_field_by_number(2)?.as_i32()?;
    Some(nanoseconds(Time { seconds, nanos }))
}

/// As JSON has a duration.
fn seconds(nanoseconds: i128) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (whole, rest) = (nanoseconds.unsigned_abs() / 1_000_000_000, nanoseconds.unsigned_abs() % 1_000_000_000);
    let fraction = format!(".{rest:09}");
    format!("{sign}{whole}{}s", fraction.trim_end_matches('0').trim_end_matches('.'))
}
