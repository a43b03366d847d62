//! What a client says that it understands: `client_features` of its node, as far as responses depend on them.

use crate::dialect::Dialect;
use crate::wire::walk::{FieldValue, Fields};

/// The `client_features` entry by which a relay says that others hold what it does not: a full state that is no more than a
/// piece of the answer would take it from them (rule 151).
pub const ASKS_FOR_OTHERS: &str = "xds.config.asks-for-others";

/// What the client said it understands (rule 110).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) wrapped: bool,
    pub(crate) ttl: bool,
    /// It is a relay: see [`ASKS_FOR_OTHERS`](crate::server::ASKS_FOR_OTHERS).
    pub(crate) for_others: bool,
    /// Not of the node: what TP2's fields mean.
    pub(crate) dialect: Dialect,
}

impl Features {
    /// Those of an encoded node, in field 10, of a client that speaks a dialect.
    pub(crate) fn of(node: &[u8], dialect: Dialect) -> Self {
        let mut found = Self { dialect, ..Self::default() };
        for field in Fields::of(node).flatten() {
            let (10, FieldValue::Bytes(feature)) = (field.number, field.value) else { continue };
            match feature {
                b"xds.config.resource-in-sotw" | b"xds.config.supports-resource-in-sotw" => found.wrapped = true,
                b"xds.config.supports-resource-ttl" => found.ttl = true,
                feature if feature == ASKS_FOR_OTHERS.as_bytes() => found.for_others = true,
                _ => {}
            }
        }
        found
    }
}
