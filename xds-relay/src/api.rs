//! What `/api/v1/…` of the admin pages answers, for who writes it and for who reads it. Fields may be added; none of these
//! changes. Lists that may be long come in pages: `next` is what to ask `after`.

mod certificates;
mod clients;
mod drift;
mod orders;
mod origins;
mod release_diff;
mod releases;
mod resources;
mod types;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::certificates::{CertificateState, CertificateStatus};
pub use self::clients::{
    Client, ClientCounts, ClientLimitUse, ClientQuery, ClientRow, ClientState, ClientType, ClientUses, Clients,
    ExplainQuery, Explained, Rejection, RuleExplained,
};
pub use self::drift::{Drift, DriftQuery, Drifts, ScopeDrift};
pub use self::orders::{Audit, AuditEntry, AuditQuery, OrderDone, Ordered, ReleaseOrder};
pub use self::origins::{OriginDetail, OriginState, OriginStatus, Origins};
pub use self::release_diff::{ChangedResource, DiffQuery, ReleaseDiff, ReleasedResource};
pub use self::releases::{
    CandidateState, CandidateStatus, KeptRelease, NotTakenRelease, ReleasedScope, Releases, SaidOf, ServedCounts,
    StageStatus,
};
pub use self::resources::{HeldResource, NameQuery, Named, ResourceQuery, ResourceRow, Resources, Wanting};
pub use self::types::{NoType, short_types, type_url};
pub(crate) use self::types::{any_of, is_type};
pub use self::words::{query, short_time, short_type};
pub use crate::snapshot::{ServerDump, UpstreamDump};

/// The longest page.
pub const LONGEST_PAGE: usize = 1000;
/// Of how many authorities and node groups at most an origin is asked anew for one comparison.
pub const MOST_SCOPES: usize = 16;
/// How long a page is where nobody says.
pub const PAGE: usize = 100;

/// How the relay is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Of the program.
    pub version: String,
    /// What the relay goes by among relays.
    pub instance: String,
    /// How long it runs.
    pub uptime_seconds: u64,
    /// Whether clients should come.
    pub ready: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// In the order of the configuration.
    pub origins: Vec<OriginStatus>,
    /// How many clients there are.
    pub clients: ClientCounts,
    /// Type URL → resources held.
    pub resources: BTreeMap<String, u64>,
    /// Whether what is known is kept over a restart, if it is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_kept: Option<bool>,
    /// What became of the configuration that was read last, where that is not all that counts.
    #[serde(skip_serializing_if = "ConfigState::is_all")]
    pub config: ConfigState,
    /// What is logged, if it is the relay that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The certificates that it goes by, of each file the one that expires first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateStatus>,
}

/// What became of a configuration that was read while the relay runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigState {
    /// Why the one that was read last does not count, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The fields of the last good one that stay as they were until the relay is started again.
    pub needs_restart: Vec<String>,
}

impl ConfigState {
    /// Whether all that was read counts.
    fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The length of a page.
pub(crate) fn page(limit: Option<usize>) -> usize {
    limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE)
}
