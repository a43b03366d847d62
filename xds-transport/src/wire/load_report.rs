//! The messages of the load reporting service (LRS): what clients send where, and how that goes.

pub use super::envoy::config::core::v3::{Address, SocketAddress};
pub use super::envoy::config::endpoint::v3::cluster_stats::DroppedRequests;
pub use super::envoy::config::endpoint::v3::{
    ClusterStats, EndpointLoadMetricStats, UnnamedEndpointLoadMetricStats, UpstreamEndpointStats, UpstreamLocalityStats,
};
pub use super::envoy::service::load_stats::v3::{LoadStatsRequest, LoadStatsResponse};

/// `LoadReportingService/StreamLoadStats`: the only method of the service.
pub const METHOD: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
/// The feature of a client that reports all clusters to a server that does not say which.
pub const SEND_ALL_CLUSTERS: &str = "envoy.lrs.supports_send_all_clusters";
