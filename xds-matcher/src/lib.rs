#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod admitted;
mod constraint;
mod error;
mod lint;
mod normal;
mod overlap;
mod parameters;
mod prefixed;
mod range;
mod ranges;
mod steps;
mod text;
mod values;
mod variants;

#[cfg(feature = "draft")]
#[cfg_attr(docsrs, doc(cfg(feature = "draft")))]
pub mod draft;
pub mod final_form;
#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
pub mod json;

pub use constraint::{Constraint, MAX_DEPTH, MAX_NODES};
pub use error::{ConstraintError, ErrorKind};
pub use lint::{LintOptions, LintReport};
pub use overlap::Overlap;
pub use parameters::{DynamicParameters, DynamicParametersIter};
pub use range::IntRange;
pub use text::ParseError;
#[cfg(feature = "draft")]
#[cfg_attr(docsrs, doc(cfg(feature = "draft")))]
pub use variants::{DraftVariants, DraftVariantsIter};
pub use variants::{FinalVariants, FinalVariantsIter, Selection};
