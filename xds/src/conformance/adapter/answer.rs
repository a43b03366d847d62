//! What adapters answer.

use bytes::Bytes;
use prost::{DecodeError, Message};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no adapter.
    None,
    /// It cannot do that.
    Unsupported(String),
    Broken(String),
}

/// What became of a change, as a line of JSON has it.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    ok: bool,
    unsupported: Option<String>,
    error: Option<String>,
}

/// `adapter.SetStateResponse` of CNCF's harness.
#[derive(Clone, Copy, PartialEq, Message)]
struct SetStateResponse {
    #[prost(bool, tag = "1")]
    success: bool,
}

/// What a line says of a change.
///
/// # Errors
/// It is no answer, so that nobody knows what further lines are for.
pub(crate) fn of_line(line: &[u8]) -> Result<Result<(), Failure>, String> {
    let not_understood = |error| format!("its answer is not to be understood: {error}");
    // By itself a list of three would do as well.
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(not_understood)?;
    let answer = serde_json::from_value(Value::Object(object)).map_err(not_understood)?;
    Ok(match answer {
        Answer { unsupported: Some(why), .. } => Err(Failure::Unsupported(why)),
        Answer { error: Some(why), .. } => Err(Failure::Broken(why)),
        Answer { ok: true, .. } => Ok(()),
        Answer { .. } => Err(Failure::Broken("it answered neither ok nor why not".into())),
    })
}

/// Whether a `SetStateResponse` says that it is so.
///
/// # Errors
/// It is none.
pub(crate) fn of_set_state(message: Bytes) -> Result<bool, DecodeError> {
    SetStateResponse::decode(message).map(|response| response.success)
}
