//! Why an origin does not send what is subscribed: TP3.

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::type_rules;
use crate::wire::ResourceError;

/// A subscribed resource that the origin does not send, and why.
///
/// It is said once, and holds until the resource comes or another error does (rule 118).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceFailure {
    /// The resource, or a glob as a whole; `*` for a type that the protocol does not have.
    pub name: ResourceName,
    /// A code of `google.rpc.Code`.
    pub code: i32,
    /// The origin's words, or why it was not asked.
    pub message: String,
}

impl ResourceFailure {
    /// The error of a response, if it names a resource.
    pub(crate) fn read(error: ResourceError) -> Option<Self> {
        let name = ResourceName::parse(&error.resource_name?.name).ok().filter(|name| name.as_str() != "*")?;
        let status = error.error_detail.unwrap_or_default();
        Some(Self { name, code: status.code, message: status.message })
    }

    /// That the type is delta only, and the origin is asked over SotW.
    pub(crate) fn without_sotw(type_url: &TypeUrl, interest: &Interest) -> Option<Self> {
        let name = ResourceName::parse(interest.as_str()).ok()?;
        let xdstp_cache::ResourceError { code, message, .. } = type_rules::no_sotw(type_url);
        Some(Self { name, code, message: message.to_string() })
    }

    /// That one request cannot name this too: over SotW every request names all that is wanted of a type, so that what one
    /// cannot hold cannot be asked for.
    pub(crate) fn without_room(type_url: &TypeUrl, interest: &Interest, max_request_size: usize) -> Option<Self> {
        let name = ResourceName::parse(interest.as_str()).ok()?;
        let message = format!("one request for {type_url}, of at most {max_request_size} bytes, cannot name this too");
        Some(Self { name, code: RESOURCE_EXHAUSTED, message })
    }

    /// Whether it is about the resource itself: `NOT_FOUND` or `PERMISSION_DENIED`. Such a resource is gone, as if it
    /// were removed. Every other code is a trouble of the origin that passes: what is held of the resource stays in
    /// use.
    pub fn is_data_error(&self) -> bool {
        use xdstp_cache::ResourceError;
        matches!(self.code, ResourceError::NOT_FOUND | ResourceError::PERMISSION_DENIED)
    }
}

/// Of `google.rpc.Code`.
const RESOURCE_EXHAUSTED: i32 = 8;
