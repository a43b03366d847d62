//! A relay without I/O: a federation, the streams that it serves, and what only a relay decides. Who shares with whom is
//! [`NodeGrouping`]'s; sockets come in through [`Dial`] and [`RelayCore::open_stream`].

mod by_rules;
mod by_size;
mod client_look;
mod client_node;
mod client_parts;
mod client_status;
mod client_use;
mod clients_view;
mod configured;
mod core;
mod counts;
mod covered;
mod drift;
mod explained;
mod followed_origin;
#[cfg(feature = "file-origin")]
mod followed_servers;
mod following;
mod identity;
mod judging;
mod known_sharing;
mod leading;
mod lives;
mod loops;
mod node_group;
mod node_metadata;
mod node_parameters;
mod origin_names;
mod origins_view;
mod own_node;
mod quotas;
mod relay_path;
mod release_gauges;
mod release_orders;
mod releases_past;
mod releases_view;
mod resources_view;
mod rollout;
mod rollout_error;
mod rollouts;
mod served_client;
mod status_view;
mod stream_entry;
mod streams;
mod track;
mod view;

pub use self::by_rules::ByRules;
pub use self::client_node::ClientNode;
pub use self::client_use::ClientUse;
pub use self::core::RelayCore;
#[cfg(feature = "file-origin")]
pub(crate) use self::core::Trouble;
pub use self::drift::{Askable, DriftCheck, DriftError, DriftRounds};
#[cfg(feature = "file-origin")]
pub(crate) use self::followed_origin::ToRelease;
#[cfg(feature = "file-origin")]
pub(crate) use self::followed_servers::InRelease;
pub use self::following::{Following, Heard};
pub use self::identity::Identity;
pub use self::known_sharing::KnownSharing;
pub use self::lives::Lives;
pub use self::loops::{LoopError, Seen};
pub use self::node_group::{Covers, EveryNode, HasName, NodeGrouping, Rest, ShareBy};
pub use self::quotas::LimitError;
pub(crate) use self::quotas::line;
pub use self::resources_view::Found;
pub use self::rollout::{Checked, ReleaseStore};
pub use self::rollout_error::RolloutError;
pub use self::stream_entry::ServedStream;
pub use self::streams::{AdmitError, Admitted};
pub use crate::snapshot::Readiness;
pub use xdstp_client::federation::{
    ByNode, Dial, Dialed, Held, NodeGroup, Origin, Position, Routes, Scope, ScopeKey, Share, SnapshotOrigin, Speaker,
    Unreadable,
};
