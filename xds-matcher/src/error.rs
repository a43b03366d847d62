use alloc::format;
use alloc::string::String;
use core::fmt;

/// Why a message, a JSON value or an expression could not be converted, and where in it.
///
/// ```
/// use xds_matcher::{ErrorKind, final_form::{ConstraintList, DynamicParameterConstraints, Kind, SingleConstraint}};
///
/// let key_alone = SingleConstraint { key: "env".into(), constraint_type: None };
/// let list = ConstraintList::new([Kind::Constraint(key_alone).into()]).unwrap();
/// let message = DynamicParameterConstraints::from(Kind::OrConstraints(list));
/// let error = message.lower().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::MissingConstraintType);
/// assert_eq!(error.path(), "or_constraints.constraints[0].constraint");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintError {
    kind: ErrorKind,
    path: String,
}

impl ConstraintError {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self { kind, path: String::new() }
    }

    /// The same error seen from one level further out.
    pub(crate) fn inside(mut self, field: impl fmt::Display) -> Self {
        self.path = match self.path.as_str() {
            "" => format!("{field}"),
            path if path.starts_with('[') => format!("{field}{path}"),
            path => format!("{field}.{path}"),
        };
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where: field names from the outermost message inwards, empty for that message itself.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for ConstraintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(match self.kind {
            ErrorKind::MissingConstraintType => "no member of the required oneof is set",
            ErrorKind::OneofConflict => "two members of one oneof are set",
            ErrorKind::UnknownField => "no such field",
            ErrorKind::WrongType => "not the JSON type of this field",
            ErrorKind::EmptyRange => "an integer constraint needs a range, and a range a bound",
            ErrorKind::BadRange => "a bound is an unsigned 64-bit integer, and the smaller one comes first",
            ErrorKind::TooDeep => "more than 100 and/or/not around a leaf",
            ErrorKind::TooLarge => "more than 65536 nodes in one constraint",
            ErrorKind::InvertNotRepresentable => "an inverted constraint has no exact value to send as a parameter",
            ErrorKind::RangeNotRepresentable => "integer ranges exist in the draft form only",
            ErrorKind::MultiValueNotRepresentable => "a parameter has one value, this key is constrained to several",
            ErrorKind::NotRepresentable => "the draft form has only keys that match when absent, joined by `and`",
        })
    }
}

impl core::error::Error for ConstraintError {}

/// What is wrong with a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A leaf without its condition: neither `value` nor `exists` (final), neither `value` nor `integer_range_list` (draft).
    MissingConstraintType,
    /// Two members of a oneof (JSON only: a decoded message cannot say it).
    OneofConflict,
    /// A field the message does not have (JSON only).
    UnknownField,
    /// A JSON value of another type than the field's.
    WrongType,
    /// An integer range list without a range, or a range without a bound.
    EmptyRange,
    /// A bound that is no `u64`, or a minimum above its maximum.
    BadRange,
    /// More than [`MAX_DEPTH`](crate::MAX_DEPTH) levels.
    TooDeep,
    /// More than [`MAX_NODES`](crate::MAX_NODES) nodes.
    TooLarge,
    /// An inverted draft constraint where parameters are wanted.
    InvertNotRepresentable,
    /// An integer range where the final form or parameters are wanted.
    RangeNotRepresentable,
    /// One key with several different exact values where parameters are wanted.
    MultiValueNotRepresentable,
    /// An expression the draft form has no words for.
    NotRepresentable,
}

impl ErrorKind {
    /// The kind as a stable word for logs and machine-readable output, such as `too_deep`.
    ///
    /// ```
    /// assert_eq!(xds_matcher::ErrorKind::BadRange.as_str(), "bad_range");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingConstraintType => "missing_constraint_type",
            Self::OneofConflict => "oneof_conflict",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::EmptyRange => "empty_range",
            Self::BadRange => "bad_range",
            Self::TooDeep => "too_deep",
            Self::TooLarge => "too_large",
            Self::InvertNotRepresentable => "invert_not_representable",
            Self::RangeNotRepresentable => "range_not_representable",
            Self::MultiValueNotRepresentable => "multi_value_not_representable",
            Self::NotRepresentable => "not_representable",
        }
    }
}
