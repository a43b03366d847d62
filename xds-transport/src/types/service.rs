//! The gRPC methods of xDS: which protocol and which type each one means.

use crate::Protocol;

/// The service of one type, where that can be asked for apart from the others.
///
/// ```
/// use xds_transport::{Protocol, TypeService};
///
/// let service = TypeService::new("example.LimitDiscoveryService", "Limits");
/// assert_eq!(service.method(Protocol::Delta), "/example.LimitDiscoveryService/DeltaLimits");
/// assert_eq!(service.method(Protocol::Sotw), "/example.LimitDiscoveryService/StreamLimits");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeService {
    service: String,
    resources: String,
}

impl TypeService {
    /// A service, with its package, and what its methods call the resources: `StreamLimits` and `DeltaLimits` those of
    /// `Limits`.
    pub fn new(service: impl Into<String>, resources: impl Into<String>) -> Self {
        Self { service: service.into(), resources: resources.into() }
    }

    /// What its methods call the resources.
    #[must_use]
    pub fn resources(&self) -> &str {
        &self.resources
    }

    /// The path of its method of a protocol.
    #[must_use]
    pub fn method(&self, protocol: Protocol) -> String {
        let verb = match protocol {
            Protocol::Sotw => "Stream",
            Protocol::Delta => "Delta",
        };
        format!("/{}/{verb}{}", self.service, self.resources)
    }
}
