//! The draft's `DynamicParameterConstraints`: the same name and the same numbers, and another message.

use std::collections::BTreeMap;

use xds_matcher::ConstraintError;
use xds_matcher::draft::{Constraint, DynamicParameterConstraints, IntegerRangeList, KeyConstraints, Kind, Range};

use super::{CONSTRAINTS, Fault, Room, fields, not_of_its_type, put};
use crate::wire::shape;
use crate::wire::walk::{self, FieldValue};

/// `KeyConstraints.invert`: the draft's examples have it, its message does not. It is given the next number.
const INVERT: u32 = 3;

/// The message that means a constraint.
pub(super) fn raise(constraint: &xds_matcher::Constraint) -> Result<DynamicParameterConstraints, ConstraintError> {
    DynamicParameterConstraints::raise(constraint)
}

pub(super) fn decode(message: &[u8]) -> Result<DynamicParameterConstraints, Fault> {
    let mut room = Room::new();
    let mut key_constraints = BTreeMap::new();
    for field in fields(message) {
        match field? {
            (1, FieldValue::Bytes(entry)) => {
                let (key, constraints) = key_entry(entry, &mut room)?;
                key_constraints.insert(key, constraints);
            }
            (1, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(DynamicParameterConstraints { key_constraints })
}

fn key_entry(message: &[u8], room: &mut Room) -> Result<(String, KeyConstraints), Fault> {
    room.take()?;
    let (mut key, mut constraints) = (String::new(), KeyConstraints::default());
    for field in fields(message) {
        match field? {
            (1, FieldValue::Bytes(text)) => key = shape::text(CONSTRAINTS, text)?.to_owned(),
            (2, FieldValue::Bytes(value)) => constraints = of_key(value, room)?,
            (1 | 2, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok((key, constraints))
}

fn of_key(message: &[u8], room: &mut Room) -> Result<KeyConstraints, Fault> {
    let mut of_key = KeyConstraints::default();
    for field in fields(message) {
        match field? {
            (2, FieldValue::Bytes(value)) => of_key.constraints.push(constraint(value, room)?),
            (INVERT, FieldValue::Varint(value)) => of_key.invert = value != 0,
            (2 | INVERT, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(of_key)
}

fn constraint(message: &[u8], room: &mut Room) -> Result<Constraint, Fault> {
    room.take()?;
    let mut kind = None;
    for field in fields(message) {
        match field? {
            (1, FieldValue::Bytes(text)) => kind = Some(Kind::Value(shape::text(CONSTRAINTS, text)?.to_owned())),
            (2, FieldValue::Bytes(list)) => kind = Some(Kind::IntegerRangeList(ranges(list, room)?)),
            (1 | 2, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(Constraint { kind })
}

fn ranges(message: &[u8], room: &mut Room) -> Result<IntegerRangeList, Fault> {
    let mut list = IntegerRangeList::default();
    for field in fields(message) {
        match field? {
            (1, FieldValue::Bytes(value)) => {
                room.take()?;
                list.range.push(range(value)?);
            }
            (1, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(list)
}

fn range(message: &[u8]) -> Result<Range, Fault> {
    let mut range = Range::default();
    for field in fields(message) {
        match field? {
            (1, FieldValue::Varint(value)) => range.min_value = Some(value),
            (2, FieldValue::Varint(value)) => range.max_value = Some(value),
            (1 | 2, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(range)
}

pub(super) fn encode(message: &DynamicParameterConstraints) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (key, constraints) in &message.key_constraints {
        let mut entry = Vec::new();
        walk::put_bytes(&mut entry, 1, key.as_bytes());
        put(&mut entry, 2, &encode_key(constraints));
        put(&mut encoded, 1, &entry);
    }
    encoded
}

fn encode_key(of_key: &KeyConstraints) -> Vec<u8> {
    let mut encoded = Vec::new();
    for constraint in &of_key.constraints {
        let mut one = Vec::new();
        match &constraint.kind {
            Some(Kind::Value(value)) => put(&mut one, 1, value.as_bytes()),
            Some(Kind::IntegerRangeList(list)) => put(&mut one, 2, &encode_ranges(list)),
            None => {}
        }
        put(&mut encoded, 2, &one);
    }
    if of_key.invert {
        put_number(&mut encoded, INVERT, 1);
    }
    encoded
}

fn encode_ranges(list: &IntegerRangeList) -> Vec<u8> {
    let mut encoded = Vec::new();
    for Range { min_value, max_value } in &list.range {
        let mut range = Vec::new();
        // A bound of zero is said: left out it would be none.
        min_value.iter().for_each(|value| put_number(&mut range, 1, *value));
        max_value.iter().for_each(|value| put_number(&mut range, 2, *value));
        put(&mut encoded, 1, &range);
    }
    encoded
}

fn put_number(into: &mut Vec<u8>, number: u32, value: u64) {
    walk::put_varint(into, u64::from(number) << 3);
    walk::put_varint(into, value);
}
