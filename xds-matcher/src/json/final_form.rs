use alloc::vec::Vec;

use serde_json::{Value, json};

use super::fields::{Fields, at_most_one, list, string};
use crate::final_form::{ConstraintList, ConstraintType, DynamicParameterConstraints, Kind, Negated, SingleConstraint};
use crate::{ConstraintError, ErrorKind, MAX_DEPTH};

impl DynamicParameterConstraints {
    /// Reads proto JSON.
    ///
    /// ```
    /// use xds_matcher::final_form::DynamicParameterConstraints;
    ///
    /// let json = serde_json::json!({"not_constraints": {"constraint": {"key": "version", "exists": {}}}});
    /// let message = DynamicParameterConstraints::from_json(&json)?;
    /// assert_eq!(message.lower()?.to_string(), "not exists(version)");
    /// assert_eq!(message.to_json(), json);
    /// # Ok::<(), xds_matcher::ConstraintError>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`], [`ErrorKind::UnknownField`], [`ErrorKind::OneofConflict`], [`ErrorKind::TooDeep`]. What else a message
    /// must be is checked by [`lower`](Self::lower).
    pub fn from_json(value: &Value) -> Result<Self, ConstraintError> {
        read(value, 0)
    }

    /// The message as proto JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        write(self)
    }
}

fn read(value: &Value, depth: usize) -> Result<DynamicParameterConstraints, ConstraintError> {
    bound(depth)?;
    let fields = Fields::of(value, &["constraint", "or_constraints", "and_constraints", "not_constraints"])?;
    let kind = at_most_one([
        fields.read("constraint", read_single)?.map(Kind::Constraint),
        fields.read("or_constraints", |list| read_list(list, depth))?.map(Kind::OrConstraints),
        fields.read("and_constraints", |list| read_list(list, depth))?.map(Kind::AndConstraints),
        fields
            .read("not_constraints", |inner| read(inner, depth + 1))?
            .map(Negated::new)
            .transpose()?
            .map(Kind::NotConstraints),
    ])?;
    Ok(DynamicParameterConstraints { kind })
}

fn read_list(value: &Value, depth: usize) -> Result<ConstraintList, ConstraintError> {
    let fields = Fields::of(value, &["constraints"])?;
    let constraints = fields.read("constraints", |constraints| list(constraints, |child| read(child, depth + 1)))?;
    ConstraintList::new(constraints.unwrap_or_else(Vec::new))
}

fn read_single(value: &Value) -> Result<SingleConstraint, ConstraintError> {
    let fields = Fields::of(value, &["key", "value", "exists"])?;
    let constraint_type = at_most_one([
        fields.read("value", string)?.map(ConstraintType::Value),
        fields.read("exists", |exists| Fields::of(exists, &[]).map(drop))?.map(|()| ConstraintType::Exists),
    ])?;
    Ok(SingleConstraint { key: fields.read("key", string)?.unwrap_or_default(), constraint_type })
}

fn write(message: &DynamicParameterConstraints) -> Value {
    let write_list =
        |list: &ConstraintList| json!({ "constraints": list.constraints().iter().map(write).collect::<Value>() });
    match &message.kind {
        None => json!({}),
        Some(Kind::Constraint(single)) => {
            let key = &single.key;
            let inner = match &single.constraint_type {
                None => json!({ "key": key }),
                Some(ConstraintType::Value(value)) => json!({ "key": key, "value": value }),
                Some(ConstraintType::Exists) => json!({ "key": key, "exists": {} }),
            };
            json!({ "constraint": inner })
        }
        Some(Kind::OrConstraints(list)) => json!({ "or_constraints": write_list(list) }),
        Some(Kind::AndConstraints(list)) => json!({ "and_constraints": write_list(list) }),
        Some(Kind::NotConstraints(negated)) => json!({ "not_constraints": write(negated.constraints()) }),
    }
}

fn bound(depth: usize) -> Result<(), ConstraintError> {
    if depth > MAX_DEPTH { Err(ConstraintError::new(ErrorKind::TooDeep)) } else { Ok(()) }
}
