//! A running relay as who looks at it sees it: whether clients should come is said here, to all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use crate::admin::Inspect;
use crate::api::{
    Audit, AuditQuery, Client, ClientQuery, Clients, DiffQuery, DriftQuery, ExplainQuery, NameQuery, Named, OrderDone,
    Origins, ReleaseDiff, ReleaseOrder, Releases, ResourceQuery, Resources, Status,
};
use crate::certificates::Certificates;
use crate::config::{Address, Config, LogFilter, ReadyWhen};
use crate::content::Content;
use crate::logging::Logging;
use crate::metrics::{Gauges, Metrics};
use crate::reached::Reached;
use crate::relay_core::{DriftCheck, DriftError, Found, RelayCore, RolloutError};
use crate::releases::Fields;
use crate::reload::Reloads;
use crate::snapshot::{ConfigDump, Readiness};

pub(crate) struct Pages {
    core: Arc<RelayCore>,
    draining: AtomicBool,
    /// Somebody says so.
    sent_elsewhere: AtomicBool,
    ready_when: ReadyWhen,
    reached: Arc<Reached>,
    started: Instant,
    content: Content,
    fields: Fields,
    /// Where orders are taken.
    orders: Option<Address>,
    logging: Arc<Logging>,
    reloads: Arc<Reloads>,
    certificates: Arc<Certificates>,
}

impl Pages {
    pub(crate) fn new(
        config: &Config,
        core: Arc<RelayCore>,
        reached: Arc<Reached>,
        logging: Arc<Logging>,
        reloads: Arc<Reloads>,
        certificates: Arc<Certificates>,
        orders: Option<Address>,
    ) -> Self {
        let ready_when = config.ready_when;
        let (draining, sent_elsewhere, started) = (AtomicBool::new(false), AtomicBool::new(false), Instant::now());
        let (content, fields) = (Content::default(), Fields::default());
        Self {
            core,
            draining,
            sent_elsewhere,
            ready_when,
            reached,
            started,
            content,
            fields,
            orders,
            logging,
            reloads,
            certificates,
        }
    }

    /// Clients are to go elsewhere from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.ready(), Readiness::Ready)
    }

    /// Tries the origins that must take a connection before clients come, until they did.
    pub(crate) async fn reach(&self) {
        if self.waits_for().is_some() {
            self.reached.reach().await;
        }
    }

    fn ready_by(&self, of_core: fn(&RelayCore) -> Readiness) -> Readiness {
        if self.draining.load(Ordering::Relaxed) {
            return Readiness::NotReady("shutting down".to_owned());
        }
        if self.sent_elsewhere.load(Ordering::Relaxed) {
            return Readiness::NotReady("as was said on the admin pages; POST /ready/true takes it back".to_owned());
        }
        match self.waits_for() {
            Some(origins) => Readiness::NotReady(origins),
            None => of_core(&self.core),
        }
    }

    /// The origins that must take a connection before clients come, in words.
    fn waits_for(&self) -> Option<String> {
        match self.ready_when {
            ReadyWhen::Started => None,
            ReadyWhen::Origins => self.reached.missing(|_| false).or_else(|| {
                let origin = self.core.remembered_origin()?;
                Some(format!(
                    "origin {origin:?}: all that is known of it is from before a restart, or beside what cannot be read"
                ))
            }),
            ReadyWhen::LastKnownGood => {
                self.reached.missing(|origin| self.core.state().is_some_and(|state| state.has_read(origin)))
            }
        }
    }
}

impl Inspect for Pages {
    fn ready(&self) -> Readiness {
        self.ready_by(RelayCore::readiness)
    }

    fn ready_in_brief(&self) -> Readiness {
        self.ready_by(RelayCore::readiness_in_brief)
    }

    fn config_dump(&self) -> ConfigDump {
        self.core.config_dump(Instant::now())
    }

    fn status(&self) -> Status {
        let not_ready = match self.ready() {
            Readiness::Ready => None,
            Readiness::NotReady(reason) => Some(reason),
        };
        let (ready, uptime_seconds) = (not_ready.is_none(), self.started.elapsed().as_secs());
        let (config, log) = (self.reloads.state(), self.log().map(|log| log.to_string()));
        let certificates = self.certificates.state(SystemTime::now());
        Status { ready, not_ready, uptime_seconds, config, log, certificates, ..self.core.status(Instant::now()) }
    }

    fn origins(&self) -> Origins {
        self.core.origin_details(Instant::now())
    }

    fn clients(&self, query: &ClientQuery) -> Clients {
        self.core.clients(query, Instant::now())
    }

    fn client(&self, id: u64, query: &ExplainQuery) -> Option<Client> {
        self.core.client(id, query, Instant::now())
    }

    fn resources(&self, query: &ResourceQuery) -> Resources {
        self.core.resources(query, Instant::now())
    }

    fn resource(&self, query: &NameQuery) -> Named {
        let shown = |Found { mut held, body }: Found| {
            match body.map(|body| self.content.of(&body)) {
                Some(Ok(content)) => held.content = Some(content),
                Some(Err(reason)) => held.hidden = Some(reason),
                None => {}
            }
            held
        };
        Named { held: self.core.resource(query).into_iter().map(shown).collect() }
    }

    fn releases(&self) -> Releases {
        Releases { orders: self.orders.as_ref().map(told), ..self.core.released() }
    }

    fn release_diff(&self, query: &DiffQuery) -> Result<ReleaseDiff, RolloutError> {
        self.core.release_diff(query, &self.fields)
    }

    fn release_audit(&self, query: &AuditQuery) -> Result<Audit, RolloutError> {
        self.core.release_audit(query)
    }

    fn order_releases(
        &self,
        order: &ReleaseOrder,
        by: &str,
        mark: Option<&str>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<OrderDone, RolloutError> {
        self.core.order_releases(order, by, mark, is_wanted, (Instant::now(), SystemTime::now()))
    }

    fn log(&self) -> Option<LogFilter> {
        self.logging.now()
    }

    fn set_log(&self, filter: LogFilter) -> bool {
        self.logging.change(filter)
    }

    fn set_ready(&self, ready: bool) -> bool {
        self.sent_elsewhere.store(!ready, Ordering::Relaxed);
        true
    }

    fn check_drift(&self, query: &DriftQuery) -> Result<DriftCheck, DriftError> {
        self.core.check_drift(query, Instant::now())
    }

    fn metrics(&self) -> &Metrics {
        self.core.metrics()
    }

    fn gauges(&self) -> Gauges {
        let certificates = self.certificates.times(SystemTime::now());
        Gauges { ready: self.is_ready(), certificates, ..self.core.gauges() }
    }
}

/// As who is in another directory finds it.
fn told(address: &Address) -> String {
    let absolute = || match address {
        Address::Unix(unix) => unix.clone().within(&std::env::current_dir().ok()?).ok(),
        Address::Tcp(_) => None,
    };
    absolute().map_or_else(|| address.to_string(), |unix| Address::Unix(unix).to_string())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn where_orders_are_taken_is_told_as_who_is_in_another_directory_finds_it() {
        let at = |text: &str| told(&text.parse().unwrap());
        assert_eq!(at("unix:/run/orders"), "unix:/run/orders");
        assert_eq!(at("127.0.0.1:1"), "127.0.0.1:1");
        let directory = std::env::current_dir().unwrap();
        assert_eq!(at("unix:state/orders"), format!("unix:{}/state/orders", directory.display()));
    }
}
