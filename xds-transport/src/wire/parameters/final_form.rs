//! `envoy.service.discovery.v3.DynamicParameterConstraints` as it is today.

use xds_matcher::ConstraintError;
use xds_matcher::final_form::{
    ConstraintList, ConstraintType, DynamicParameterConstraints, Kind, Negated, SingleConstraint,
};

use super::{CONSTRAINTS, Fault, Room, fields, not_of_its_type, put};
use crate::wire::shape::{self, Undecodable};
use crate::wire::walk::{self, FieldValue};

/// As protobuf has it, the last member of a oneof counts.
pub(super) fn decode(message: &[u8]) -> Result<DynamicParameterConstraints, Fault> {
    constraints(message, xds_matcher::MAX_DEPTH, &mut Room::new())
}

/// The message that means a constraint.
pub(super) fn raise(constraint: &xds_matcher::Constraint) -> Result<DynamicParameterConstraints, ConstraintError> {
    DynamicParameterConstraints::raise(constraint)
}

fn constraints(message: &[u8], depth: usize, room: &mut Room) -> Result<DynamicParameterConstraints, Fault> {
    room.take()?;
    let mut kind = None;
    for field in fields(message) {
        let (number, value) = field?;
        let FieldValue::Bytes(value) = value else {
            if matches!(number, 1..=4) {
                return Err(not_of_its_type());
            }
            continue;
        };
        kind = match number {
            1 => Some(Kind::Constraint(single(value)?)),
            2 => Some(Kind::OrConstraints(list(value, deeper(depth)?, room)?)),
            3 => Some(Kind::AndConstraints(list(value, deeper(depth)?, room)?)),
            4 => Some(Kind::NotConstraints(Negated::new(constraints(value, deeper(depth)?, room)?)?)),
            _ => kind,
        };
    }
    Ok(DynamicParameterConstraints { kind })
}

fn deeper(depth: usize) -> Result<usize, Fault> {
    depth.checked_sub(1).ok_or(Fault::Undecodable(Undecodable::new(CONSTRAINTS, "nested too deep")))
}

fn list(message: &[u8], depth: usize, room: &mut Room) -> Result<ConstraintList, Fault> {
    let mut all = Vec::new();
    for field in fields(message) {
        match field? {
            (1, FieldValue::Bytes(value)) => all.push(constraints(value, depth, room)?),
            (1, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(ConstraintList::new(all)?)
}

fn single(message: &[u8]) -> Result<SingleConstraint, Fault> {
    let mut single = SingleConstraint::default();
    for field in fields(message) {
        match field? {
            (1, FieldValue::Bytes(key)) => single.key = shape::text(CONSTRAINTS, key)?.to_owned(),
            (2, FieldValue::Bytes(value)) => {
                single.constraint_type = Some(ConstraintType::Value(shape::text(CONSTRAINTS, value)?.to_owned()));
            }
            (3, FieldValue::Bytes(_)) => single.constraint_type = Some(ConstraintType::Exists),
            (1..=3, _) => return Err(not_of_its_type()),
            _ => {}
        }
    }
    Ok(single)
}

pub(super) fn encode(message: &DynamicParameterConstraints) -> Vec<u8> {
    let mut encoded = Vec::new();
    match &message.kind {
        None => {}
        Some(Kind::Constraint(single)) => put(&mut encoded, 1, &encode_single(single)),
        Some(Kind::OrConstraints(list)) => put(&mut encoded, 2, &encode_list(list)),
        Some(Kind::AndConstraints(list)) => put(&mut encoded, 3, &encode_list(list)),
        Some(Kind::NotConstraints(negated)) => put(&mut encoded, 4, &encode(negated.constraints())),
        Some(_) => {}
    }
    encoded
}

fn encode_list(list: &ConstraintList) -> Vec<u8> {
    let mut encoded = Vec::new();
    list.constraints().iter().for_each(|one| put(&mut encoded, 1, &encode(one)));
    encoded
}

fn encode_single(single: &SingleConstraint) -> Vec<u8> {
    let mut encoded = Vec::new();
    walk::put_bytes(&mut encoded, 1, single.key.as_bytes());
    match &single.constraint_type {
        Some(ConstraintType::Value(value)) => put(&mut encoded, 2, value.as_bytes()),
        Some(ConstraintType::Exists) => put(&mut encoded, 3, &[]),
        _ => {}
    }
    encoded
}
