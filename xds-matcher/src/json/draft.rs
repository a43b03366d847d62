use alloc::string::ToString;

use serde_json::{Map, Value, json};

use super::fields::{Fields, at_most_one, list, map, string, wrong_type};
use crate::draft::{
    Constraint, DynamicParameterConstraints, DynamicParameterConstraintsMap, IntegerRangeList, KeyConstraints, Kind,
    Range,
};
use crate::range::integer;
use crate::{ConstraintError, ErrorKind};

impl DynamicParameterConstraints {
    /// Reads proto JSON.
    ///
    /// ```
    /// use xds_matcher::draft::DynamicParameterConstraints;
    ///
    /// let ranges = serde_json::json!({"range": [{"min_value": "0", "max_value": "5"}]});
    /// let json = serde_json::json!({"key_constraints": {"shard": {"constraints": [{"integer_range_list": ranges}]}}});
    /// let message = DynamicParameterConstraints::from_json(&json)?;
    /// assert_eq!(message.to_json(), json);
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`], [`ErrorKind::UnknownField`], [`ErrorKind::OneofConflict`], [`ErrorKind::BadRange`] for a bound that is no
    /// `u64`. What else a message must be is checked by [`lower`](Self::lower).
    pub fn from_json(value: &Value) -> Result<Self, ConstraintError> {
        let fields = Fields::of(value, &["key_constraints"])?;
        let key_constraints = fields.read("key_constraints", |keys| map(keys, read_key))?.unwrap_or_default();
        Ok(Self { key_constraints })
    }

    /// The message as proto JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let keys: Map<_, _> = self.key_constraints.iter().map(|(key, rule)| (key.clone(), write_key(rule))).collect();
        if keys.is_empty() { json!({}) } else { json!({ "key_constraints": keys }) }
    }
}

impl DynamicParameterConstraintsMap {
    /// Reads proto JSON.
    ///
    /// # Errors
    /// Those of [`DynamicParameterConstraints::from_json`]. What else a message must be is checked by [`check`](Self::check).
    pub fn from_json(value: &Value) -> Result<Self, ConstraintError> {
        let fields = Fields::of(value, &["resource_type_constraints"])?;
        let entries =
            fields.read("resource_type_constraints", |types| map(types, DynamicParameterConstraints::from_json))?;
        Ok(Self { resource_type_constraints: entries.unwrap_or_default() })
    }
}

fn read_key(value: &Value) -> Result<KeyConstraints, ConstraintError> {
    let fields = Fields::of(value, &["constraints", "invert"])?;
    let constraints = fields.read("constraints", |constraints| list(constraints, read_constraint))?.unwrap_or_default();
    let invert = fields.read("invert", |invert| invert.as_bool().ok_or_else(wrong_type))?.unwrap_or_default();
    Ok(KeyConstraints { constraints, invert })
}

fn read_constraint(value: &Value) -> Result<Constraint, ConstraintError> {
    let fields = Fields::of(value, &["value", "integer_range_list"])?;
    let kind = at_most_one([
        fields.read("value", string)?.map(Kind::Value),
        fields.read("integer_range_list", read_ranges)?.map(Kind::IntegerRangeList),
    ])?;
    Ok(Constraint { kind })
}

fn read_ranges(value: &Value) -> Result<IntegerRangeList, ConstraintError> {
    let fields = Fields::of(value, &["range"])?;
    Ok(IntegerRangeList { range: fields.read("range", |ranges| list(ranges, read_range))?.unwrap_or_default() })
}

fn read_range(value: &Value) -> Result<Range, ConstraintError> {
    let fields = Fields::of(value, &["min_value", "max_value"])?;
    Ok(Range { min_value: fields.read("min_value", read_bound)?, max_value: fields.read("max_value", read_bound)? })
}

fn read_bound(value: &Value) -> Result<u64, ConstraintError> {
    let bound = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => integer(text),
        _ => return Err(wrong_type()),
    };
    bound.ok_or_else(|| ConstraintError::new(ErrorKind::BadRange))
}

fn write_key(key: &KeyConstraints) -> Value {
    let constraints: Value = key.constraints.iter().map(write_constraint).collect();
    if key.invert {
        json!({ "constraints": constraints, "invert": true })
    } else {
        json!({ "constraints": constraints })
    }
}

fn write_constraint(constraint: &Constraint) -> Value {
    match &constraint.kind {
        None => json!({}),
        Some(Kind::Value(value)) => json!({ "value": value }),
        Some(Kind::IntegerRangeList(list)) => {
            let ranges: Value = list.range.iter().map(write_range).collect();
            json!({ "integer_range_list": { "range": ranges } })
        }
    }
}

fn write_range(range: &Range) -> Value {
    let bounds = [("min_value", range.min_value), ("max_value", range.max_value)];
    bounds.into_iter().filter_map(|(name, bound)| Some((name, bound?.to_string()))).collect()
}
