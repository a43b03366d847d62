//! The discovery messages and the walk over their encoded form.
//!
//! The messages are generated from `proto/`; field numbers are those of Envoy's
//! `envoy.service.discovery.v3`. Requests are decoded with prost. Responses are not: they
//! are [walked](walk), and their bodies stay slices of what arrived.

mod by_type;
pub mod client_status;
pub mod collection;
pub mod load_report;
pub mod matcher;
pub(crate) mod names;
pub mod parameters;
pub(crate) mod shape;
pub mod walk;
pub mod xdstp;

pub use by_type::SelectorsByType;
pub use envoy::config::core::v3::{ConfigSource, ControlPlane, Locality, Node, config_source};
pub use envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource, ResourceError,
    ResourceName as WireResourceName, resource,
};
pub use google::protobuf::{Any, Duration, ListValue, Struct, Timestamp, Value, value};
pub use google::rpc::Status;

/// `type.googleapis.com/envoy.service.discovery.v3.Resource`: the wrapper of a SotW resource.
pub const RESOURCE_TYPE_URL: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all, unused_qualifications)]
mod google {
    pub mod protobuf { include!("wire/generated/google.protobuf.rs"); }
    pub mod rpc { include!("wire/generated/google.rpc.rs"); }
}

#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all, unused_qualifications)]
mod envoy {
    pub mod admin { pub mod v3 { include!("wire/generated/envoy.admin.v3.rs"); } }
    pub mod config {
        pub mod core { pub mod v3 { include!("wire/generated/envoy.config.core.v3.rs"); } }
        pub mod endpoint { pub mod v3 { include!("wire/generated/envoy.config.endpoint.v3.rs"); } }
    }
    pub mod service {
        pub mod discovery { pub mod v3 { include!("wire/generated/envoy.service.discovery.v3.rs"); } }
        pub mod load_stats { pub mod v3 { include!("wire/generated/envoy.service.load_stats.v3.rs"); } }
        pub mod status { pub mod v3 { include!("wire/generated/envoy.service.status.v3.rs"); } }
    }
    pub mod r#type {
        pub mod matcher { pub mod v3 { include!("wire/generated/envoy.type.matcher.v3.rs"); } }
    }
}
