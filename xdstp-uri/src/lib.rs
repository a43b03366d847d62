#![doc = include_str!("../README.md")]
#![no_std]

extern crate alloc;

mod canonical;
mod error;
mod grammar;
mod name;
mod percent;

pub use error::{ParseError, ParseErrorKind};
pub use grammar::{MAX_ALT_DEPTH, MAX_LEN, Scheme};
pub use name::{GlobParent, NameKey, ResourceName};
