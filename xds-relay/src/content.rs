//! What is in a resource, for people: without what is secret.

use serde_json::Value;
#[cfg(feature = "file-origin")]
use {
    crate::file_origin::{Descriptors, without_secrets},
    prost::Message as _,
    std::sync::OnceLock,
    xds_transport::wire::Any,
};

/// The types that are known, decoded when somebody looks at the first resource.
#[derive(Debug, Default)]
pub(crate) struct Content {
    #[cfg(feature = "file-origin")]
    types: OnceLock<Option<Descriptors>>,
}

#[cfg(feature = "file-origin")]
impl Content {
    /// What an encoded `Any` holds.
    ///
    /// # Errors
    /// Why it is not shown.
    pub(crate) fn of(&self, any: &[u8]) -> Result<Value, String> {
        let Any { type_url, value } = Any::decode(any).map_err(|error| format!("it is no Any: {error}"))?;
        let types = self.types.get_or_init(|| Descriptors::built_in().ok());
        let types = types.as_ref().ok_or("the types that are built in cannot be read")?;
        without_secrets(types.to_json(&type_url, &value))
            .ok_or_else(|| "it is secret, or of a type that is not known".to_owned())
    }
}

#[cfg(not(feature = "file-origin"))]
impl Content {
    /// No type is known.
    ///
    /// # Errors
    /// Why it is not shown.
    pub(crate) fn of(&self, _: &[u8]) -> Result<Value, String> {
        Err("this program was built without the feature `file-origin`, which knows the types".to_owned())
    }
}
