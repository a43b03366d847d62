//! Why an origin does not send what is subscribed: TP3.

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use super::wanted::Wanted;
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
    pub(super) fn read(error: ResourceError) -> Option<Self> {
        let name = ResourceName::parse(&error.resource_name?.name).ok().filter(|name| name.as_str() != "*")?;
        let status = error.error_detail.unwrap_or_default();
        Some(Self { name, code: status.code, message: status.message })
    }

    /// That the type is delta only, and the origin is asked over SotW.
    pub(super) fn without_sotw(type_url: &TypeUrl, interest: &Interest) -> Option<Self> {
        let name = ResourceName::parse(interest.as_str()).ok()?;
        let xdstp_cache::ResourceError { code, message, .. } = type_rules::no_sotw(type_url);
        Some(Self { name, code, message: message.to_string() })
    }

    /// Whether it is about a resource that is there, and that was asked for by a name or glob which is left meanwhile: to
    /// the wildcard that still covers it, the resource is one like others. What is gone is told as removed beside.
    pub(super) fn crossed(&self, wanted: &Wanted) -> bool {
        self.code == xdstp_cache::ResourceError::PERMISSION_DENIED && !wanted.hears_errors(&self.name)
    }

    /// Whether it is about the resource itself: `NOT_FOUND` or `PERMISSION_DENIED`. Such a resource is gone, as if it
    /// were removed. Every other code is a trouble of the origin that passes: what is held of the resource stays in
    /// use.
    pub fn is_data_error(&self) -> bool {
        use xdstp_cache::ResourceError;
        matches!(self.code, ResourceError::NOT_FOUND | ResourceError::PERMISSION_DENIED)
    }
}
