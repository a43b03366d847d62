//! The content of resources, decoded: by the same types as a relay's files.

use std::cell::OnceCell;

use prost::Message;
use serde_json::{Value, json};
use xds_relay::file_origin::{Descriptors, DescriptorsError};
use xds_transport::wire::Any;

/// The types that are known, decoded when the first is needed.
#[derive(Debug, Default)]
pub(crate) struct Content(OnceCell<Descriptors>);

impl Content {
    /// # Errors
    /// None in a sound build.
    pub(crate) fn descriptors(&self) -> Result<&Descriptors, DescriptorsError> {
        if let Some(descriptors) = self.0.get() {
            return Ok(descriptors);
        }
        let descriptors = Descriptors::built_in()?;
        Ok(self.0.get_or_init(|| descriptors))
    }

    /// What is in an encoded `Any`.
    ///
    /// # Errors
    /// None in a sound build.
    pub(crate) fn of(&self, any: &[u8]) -> Result<Value, DescriptorsError> {
        // The client has taken it apart before.
        let Ok(Any { type_url, value }) = Any::decode(any) else { return Ok(json!(null)) };
        Ok(self.descriptors()?.to_json(&type_url, &value))
    }
}
