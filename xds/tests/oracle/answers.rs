//! Any bytes, read as what an adapter of `xds conformance` answers.

#[path = "../../src/conformance/adapter/answer.rs"]
mod answer;

use bytes::Bytes;
use serde_json::{Map, Value};
use xds_transport::wire::walk::{FieldValue, Fields};

use self::answer::Failure;

/// A wire type.
const START_OF_A_GROUP: u8 = 3;

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
        let fields: Vec<_> = match Fields::of(bytes).collect() {
            Ok(fields) => fields,
            // A walk ends at a group, which the decoder skips; at nothing else that the decoder takes.
            Err(error) => {
                let wire_type = bytes.iter().nth_back(error.remaining() - 1).map(|key| key & 7);
                return assert_eq!(wire_type, Some(START_OF_A_GROUP));
            }
        };
        let last = fields.iter().rfind(|field| field.number == 1);
        assert_eq!(success, last.is_some_and(|field| matches!(field.value, FieldValue::Varint(value) if value != 0)));
    }
}
