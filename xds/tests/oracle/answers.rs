//! Any bytes, read as what an adapter of `xds conformance` answers.

#[path = "../../src/conformance/adapter/answer.rs"]
mod answer;

use bytes::Bytes;
use serde_json::{Map, Value};
use xds_transport::wire::walk::{FieldValue, Fields};

use self::answer::Failure;

/// A change was made if that is what the answer says, and nothing else.
pub(crate) fn adapter_answers(bytes: &[u8]) {
    let object = serde_json::from_slice::<Map<String, Value>>(bytes);
    if let Ok(said) = answer::of_line(bytes) {
        let object = object.unwrap();
        let says = |field: &str| object.get(field).filter(|value| !value.is_null());
        let expected = match (says("unsupported"), says("error")) {
            (Some(why), _) => Err(Failure::Unsupported(why.as_str().unwrap().to_owned())),
            (None, Some(why)) => Err(Failure::Broken(why.as_str().unwrap().to_owned())),
            (None, None) if says("ok") == Some(&Value::Bool(true)) => Ok(()),
            (None, None) => Err(Failure::Broken("it answered neither ok nor why not".into())),
        };
        assert_eq!(said, expected);
        assert_ne!(said, Err(Failure::None));
    }
    if let Ok(success) = answer::of_set_state(Bytes::copy_from_slice(bytes)) {
        let fields = Fields::of(bytes).flatten().filter(|field| field.number == 1);
        let last = fields.filter_map(|field| match field.value {
            FieldValue::Varint(value) => Some(value != 0),
            _ => None,
        });
        assert_eq!(success, last.last().unwrap_or_default());
    }
}
