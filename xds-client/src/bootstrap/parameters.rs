//! Dynamic parameters (TP2), as gRFC A67 has them in a bootstrap.

use std::collections::BTreeMap;

use super::error::Wrong;
use super::json::Json;

pub(super) fn read(json: Json<'_>) -> Result<BTreeMap<String, String>, Wrong> {
    json.object()?.iter().map(|(key, value)| Ok((key.to_owned(), value.string()?))).collect()
}
