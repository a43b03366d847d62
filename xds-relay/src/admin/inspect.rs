//! A relay as the pages see it.

use crate::api::{
    Audit, AuditQuery, Client, ClientQuery, Clients, DiffQuery, DriftQuery, ExplainQuery, NameQuery, Named, OrderDone,
    Origins, ReleaseDiff, ReleaseOrder, Releases, ResourceQuery, Resources, Status,
};
use crate::config::LogFilter;
use crate::metrics::{Gauges, Metrics};
use crate::relay_core::{Askable, DriftCheck, DriftError, RolloutError};
use crate::snapshot::{ConfigDump, Readiness};

/// What the pages ask of a relay. But for the first two, they are called on threads that may block.
pub trait Inspect: Send + Sync + 'static {
    /// Whether subscribers should come here.
    fn ready(&self) -> Readiness;

    /// The same for who carries no token where one is wanted: without what is in the origins.
    fn ready_in_brief(&self) -> Readiness {
        self.ready()
    }

    /// Everything the relay holds, of whom, and for whom.
    fn config_dump(&self) -> ConfigDump;

    /// How the relay is.
    fn status(&self) -> Status;

    /// Its origins, with the streams to them.
    fn origins(&self) -> Origins;

    /// Some of its clients.
    fn clients(&self, query: &ClientQuery) -> Clients;

    /// One of them, if it is there, and why it has what it has of a name.
    fn client(&self, id: u64, query: &ExplainQuery) -> Option<Client>;

    /// Some of the resources.
    fn resources(&self, query: &ResourceQuery) -> Resources;

    /// One name, wherever it is held, without what is secret.
    fn resource(&self, query: &NameQuery) -> Named;

    /// What is released of which scopes.
    fn releases(&self) -> Releases {
        Releases::default()
    }

    /// What one release has otherwise than another.
    ///
    /// # Errors
    /// There are no such releases, or they cannot be read.
    fn release_diff(&self, query: &DiffQuery) -> Result<ReleaseDiff, RolloutError> {
        Err(no_releases(query.scope.as_ref()))
    }

    /// What was done with releases.
    ///
    /// # Errors
    /// There are no such releases, or what was done cannot be read.
    fn release_audit(&self, query: &AuditQuery) -> Result<Audit, RolloutError> {
        query.scope.as_ref().map_or(Ok(Audit::default()), |scope| Err(no_releases(Some(scope))))
    }

    /// Does what somebody orders of releases, who is called so: if somebody wants it still when it is its turn, and if all is as a mark
    /// says, where there is one.
    ///
    /// # Errors
    /// Why it is not done.
    fn order_releases(
        &self,
        order: &ReleaseOrder,
        _by: &str,
        _mark: Option<&str>,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<OrderDone, RolloutError> {
        Err(no_releases(order.scope.as_ref()))
    }

    /// What is logged, if it is the relay that says so.
    fn log(&self) -> Option<LogFilter> {
        None
    }

    /// Has this logged from now on: false where it is not the relay that says so.
    fn set_log(&self, _filter: LogFilter) -> bool {
        false
    }

    /// Has it said from now on that clients should go elsewhere, or no more: false where that cannot be said. No stream ends by it.
    fn set_ready(&self, _ready: bool) -> bool {
        false
    }

    /// Has an origin asked once more, beside what is served of it: see [`Drifts`](crate::api::Drifts).
    ///
    /// # Errors
    /// There is no origin of that name that can be.
    fn check_drift(&self, query: &DriftQuery) -> Result<DriftCheck, DriftError> {
        Err(DriftError::NoOrigin { name: query.origin.clone(), askable: Askable::default() })
    }

    /// The counters.
    fn metrics(&self) -> &Metrics;

    /// Numbers that change too often to be counted along.
    fn gauges(&self) -> Gauges;
}

fn no_releases(scope: Option<&String>) -> RolloutError {
    RolloutError::NoReleases(scope.map_or_else(|| "any scope".to_owned(), Clone::clone))
}
