#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

pub mod a47;
mod canonical;
mod collection;
mod context_params;
mod directive;
mod error;
mod grammar;
mod locator;
mod name;
mod name_key;
mod percent;
#[cfg(feature = "serde")]
mod serde;
mod text;
mod urn;

pub use collection::{CollectionError, collection_type, member_type};
pub use context_params::{ContextParams, ContextParamsIter, ReservedParam};
pub use directive::Directive;
pub use error::{ParseError, ParseErrorKind};
pub use grammar::{MAX_ALT_DEPTH, MAX_LEN, Scheme};
pub use locator::Locator;
pub use name::ResourceName;
pub use name_key::{CanonicalText, GlobParent, NameKey};
pub use urn::Urn;
