//! The messages by which nodes are picked.

pub(crate) use super::envoy::r#type::matcher::v3::{
    DoubleMatcher, NodeMatcher, StringMatcher, StructMatcher, ValueMatcher, double_matcher, list_matcher,
    string_matcher, struct_matcher, value_matcher,
};
#[cfg(test)]
pub(crate) use super::envoy::r#type::matcher::v3::{DoubleRange, ListMatcher, OrMatcher};
