//! Serving xDS over gRPC: a body that pulls its stream when HTTP/2 asks for more, a task that reads
//! requests, and no queue between them.
//!
//! - [`ControlPlane`]: resources for everybody. [`NodeGroups`]: one for each group of nodes.
//! - [`Service`]: what is added to tonic's server, with limits. [`Streams`]: its streams, to count, end and drain.
//! - [`Events`] and [`Client`]: what clients do, and what they have.
//! - [`ClientStatusService`]: the same for who asks from elsewhere (CSDS).
//! - [`LoadReportingService`]: how many requests clients sent where, as they tell it (LRS).
//! - [`Accept`]: who decides what a stream is served from, where that is your own [`Source`](crate::server::Source).

mod accept;
mod age;
mod alarm;
mod apart;
mod body;
mod certificate;
mod change;
mod client;
mod client_config;
mod client_status;
mod control_plane;
mod events;
mod gate;
mod gzip;
mod handle;
mod lives;
mod load_reporting;
mod load_reports;
mod net;
mod node_groups;
mod node_matcher;
mod refusal;
mod requests;
mod served;
mod service;
mod shared;
mod state;
mod streams;
mod told;
mod turns;
mod unfinished;

pub use accept::{Accept, Accepted, Opened};
pub use alarm::Alarm;
pub use certificate::ClientCertificate;
pub use change::{Change, PutError};
pub use client::{Client, Held};
pub use client_config::{config_of_missing, config_of_resource};
pub use client_status::{ClientNumber, ClientStatus, ClientStatusService};
pub use control_plane::ControlPlane;
pub use events::{Event, Events, Missed, What};
pub use handle::{StreamHandle, Wake};
pub use load_reporting::{LoadReporting, LoadReportingService};
pub use load_reports::LoadReports;
pub use node_groups::{GroupSource, NodeGroups};
pub use service::Service;
pub use shared::{Shared, SharedSource};
pub use streams::Streams;
