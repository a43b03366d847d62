//! The messages by which nodes are picked, in a question for the status of clients.

pub use super::envoy::r#type::matcher::v3::{
    DoubleMatcher, DoubleRange, ListMatcher, NodeMatcher, OrMatcher, StringMatcher, StructMatcher, ValueMatcher,
    double_matcher, list_matcher, string_matcher, struct_matcher, value_matcher,
};
