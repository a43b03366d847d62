//! The messages of the client status discovery service (CSDS, gRFC A40): what clients have, and how it fares there.

pub use super::envoy::admin::v3::{ClientResourceStatus, UpdateFailureState};
pub use super::envoy::service::status::v3::client_config::GenericXdsConfig;
pub use super::envoy::service::status::v3::{ClientConfig, ClientStatusRequest, ClientStatusResponse, ConfigStatus};

/// `ClientStatusDiscoveryService/FetchClientStatus`: one answer to one request.
pub const FETCH_METHOD: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
/// `ClientStatusDiscoveryService/StreamClientStatus`: an answer to each request of a stream.
pub const STREAM_METHOD: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus";
