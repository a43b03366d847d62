//! Proto JSON for the messages of both forms, and `serde` for the crate's own types. With the feature `serde` only.
//!
//! Field names are accepted as in the `.proto` (`or_constraints`) and in lower camel case (`orConstraints`), and written as in the
//! `.proto`; `null` is an unset field, 64-bit integers are numbers or strings and are written as strings.
//!
//! [`Constraint`](crate::Constraint) implements `Serialize` and `Deserialize` as its text form,
//! [`DynamicParameters`](crate::DynamicParameters) as a map of strings.

#[cfg(feature = "draft")]
mod draft;
mod fields;
mod final_form;
mod own_types;
