//! What an origin says, sorted by scope.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_transport::client::Changed;
use xdstp_cache::{Interest, ResourceError, Version};
use xdstp_uri::ResourceName;

/// What came from an origin for one scope, of one type.
#[derive(Default)]
pub(crate) struct Changes {
    /// Which of the scope's servers says so.
    pub(crate) server: usize,
    /// How often the scope had been led to another origin when that was asked.
    pub(crate) leads: usize,
    pub(crate) changed: Vec<Changed>,
    /// What of that another scope of the stream asks for: it says nothing of the wildcard.
    pub(crate) asked_elsewhere: BTreeSet<ResourceName>,
    /// What changed may be asked for by its aliases: they are a matter of delta (rule 105).
    pub(crate) by_alias: bool,
    pub(crate) removed: Vec<ResourceName>,
    /// Names that no response brought: gone, unless somebody brought them along (rule 150).
    pub(crate) missing: Vec<ResourceName>,
    /// Names that a full state does not have: gone, if anybody gave them.
    pub(crate) lacking: Vec<ResourceName>,
    /// No server said so: what lived until now, or was not answered in time.
    pub(crate) unsaid: bool,
    /// Why something is not sent (TP3).
    pub(crate) errors: Vec<(ResourceName, ResourceError)>,
    /// What lives on for a time: clients are told so by their own sessions (rule 148).
    pub(crate) refreshed: Vec<(ResourceName, Duration)>,
    /// Collections that the server does not send, as far as is known: what comes of others ends that one did not.
    pub(crate) refused: BTreeSet<Interest>,
    /// Collections of which what there is may be shown.
    pub(crate) begun: Vec<Interest>,
    /// Collections that are complete with this.
    pub(crate) complete: Vec<Interest>,
    /// The version a SotW origin gave to the type.
    pub(crate) version: Option<Version>,
    /// What a delta origin said beside all of this, for people.
    pub(crate) system_version: Option<Version>,
}

impl Changes {
    /// Nothing yet, of the scope's server at this place.
    pub(crate) fn of((leads, server): (usize, usize)) -> Self {
        Self { leads, server, ..Self::default() }
    }

    /// Whether there is nothing to store: what is said for people alone is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { changed, removed, missing, lacking, errors, refreshed, begun, complete, version, .. } = self;
        let names = removed.is_empty() && missing.is_empty() && lacking.is_empty();
        let names = names && errors.is_empty() && refreshed.is_empty();
        changed.is_empty() && names && begun.is_empty() && complete.is_empty() && version.is_none()
    }
}
