//! Running a relay: its sockets, its files, its end.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tonic::service::Routes;

use crate::admin::{self, Secured};
use crate::admin_access::AdminAccess;
use crate::bearers;
use crate::beside::Beside;
use crate::certificates::{Certificates, sections};
use crate::checks;
use crate::client_rules::ClientRules;
use crate::client_status;
use crate::config::{Address, Config};
use crate::connections::{Limited, OpenCalls, Serving};
use crate::descriptors::Bounds;
use crate::downstream;
use crate::drain::{self, Moments};
use crate::drift;
use crate::error::Error;
use crate::file_content::FileContent;
use crate::health::Health;
use crate::incoming::{Incoming, Next};
use crate::load_reports::{self, LoadReports};
use crate::orders::{OrderGuards, Orders};
use crate::origins::{Connections, Origins};
use crate::pages::Pages;
use crate::relay_core::RelayCore;
use crate::releaser::Releaser;
use crate::reload::{Reloader, Spoken};
use crate::socket::Listener;
use crate::state;
use crate::statsd;
use crate::tls;
use crate::traces::Traces;

const SWEEP: Duration = Duration::from_secs(1);
/// How long a connection has for what was said last, once nothing is left to say.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What calls go through, put around what they went through before.
pub(crate) type Layered = Box<dyn FnOnce(Router) -> Router + Send + Sync>;

/// A relay that has its addresses, and has read its files.
pub struct Relay {
    pub(crate) config: Config,
    pub(crate) listener: Listener,
    pub(crate) next: Next,
    pub(crate) guards: Guards,
    pub(crate) admin: Option<Listener>,
    pub(crate) orders: Option<Orders>,
    pub(crate) layers: Vec<Layered>,
    pub(crate) core: Arc<RelayCore>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) reloader: Reloader,
    pub(crate) connections: Connections,
    /// Keeps the files watched.
    pub(crate) _origins: Origins,
    /// Who is told of updates.
    pub(crate) traces: Traces,
}

/// Who is let in, and how they are spoken to.
pub(crate) struct Guards {
    pub(crate) tls: Option<Arc<tls::Downstream>>,
    pub(crate) rules: Arc<ClientRules>,
    pub(crate) admin_tls: Option<Arc<tls::Downstream>>,
    pub(crate) access: Arc<AdminAccess>,
    pub(crate) orders: Option<OrderGuards>,
    pub(crate) certificates: Arc<Certificates>,
}

impl Guards {
    /// Has files count anew that changed, and says in time that certificates expire, for as long as it is awaited.
    async fn follow(self, reloader: Reloader) {
        let follow = async |tls: Option<Arc<tls::Downstream>>| match tls {
            Some(tls) => tls.follow().await,
            None => std::future::pending().await,
        };
        let orders_tls = self.orders.as_ref().and_then(|orders| orders.tls.clone());
        let order_tokens = || self.orders.iter().flat_map(|orders| orders.access.tokens());
        let tokens = || self.rules.now().tokens().chain(self.access.tokens()).chain(order_tokens()).collect();
        let spoken = Spoken { clients: self.tls.clone(), admin: self.admin_tls.clone(), orders: orders_tls.clone() };
        let dating = self.certificates.clone().follow(move || sections(&spoken, &reloader.config()));
        let (clients, admin) = (follow(self.tls.clone()), follow(self.admin_tls.clone()));
        tokio::join!(clients, admin, follow(orders_tls), bearers::follow(tokens), dating);
    }
}

impl Relay {
    /// Where xDS is served.
    ///
    /// # Errors
    /// The system does not say.
    pub fn listen_address(&self) -> io::Result<Address> {
        self.listener.address()
    }

    /// Where the admin pages are, if anywhere.
    ///
    /// # Errors
    /// The system does not say.
    pub fn admin_address(&self) -> io::Result<Option<Address>> {
        self.admin.as_ref().map(Listener::address).transpose()
    }

    /// Where orders are taken, if anywhere.
    ///
    /// # Errors
    /// The system does not say.
    pub fn orders_address(&self) -> io::Result<Option<Address>> {
        self.orders.as_ref().map(Orders::address).transpose()
    }

    /// What its origins of files hold.
    pub fn file_contents(&self) -> Vec<FileContent> {
        self.core.file_contents()
    }

    /// What has it go by another configuration while it runs.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// What has it release what its origins have by stages, while it runs.
    pub fn releaser(&self) -> Releaser {
        Releaser::new(self.core.clone())
    }

    /// Serves until `shutdown` resolves, then drains: the relay says that it is not ready, and serves as before, for
    /// [`drain_delay`](Config::drain_delay); then new streams are refused, and open ones are ended one after the other within
    /// [`drain`](Config::drain), so that their clients do not all move at once.
    ///
    /// # Errors
    /// A server fails.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let Self {
            config,
            listener,
            next,
            guards,
            admin,
            orders,
            layers,
            core,
            pages,
            reloader,
            connections,
            _origins,
            traces,
        } = self;
        let (stop_grpc, mut grpc_stopped) = watch::channel(false);
        let (stop_admin, mut admin_stopped) = watch::channel(false);
        let keeping = state::keep(&core);
        let health = Health::new();
        health.report(pages.is_ready()).await;
        let (end_reports, reports_end) = watch::channel(None);
        let rules = guards.rules.clone();
        let client_status = config.client_status.then(|| client_status::router(&core, rules.clone()));
        let health_router = health.router(Beside::new(core.clone(), rules.clone()));
        let routes =
            routes(&core, rules.clone(), load_reports(&config, &connections, &core, rules, reports_end), client_status);
        let incoming = Incoming::new(listener, next, Bounds::of(&config).connections(&config), core.clone());
        let open_calls = OpenCalls::default();
        let router =
            layers.into_iter().fold(routes.into_axum_router().merge(health_router), |router, layer| layer(router));
        let (limited, open) = (count_limited(&core), open_calls.clone());
        let serving = Serving { router, limits: config.limits, limited, open, tls: guards.tls.clone() };
        let grpc = serving.serve(incoming, async move { drop(grpc_stopped.wait_for(|stop| *stop).await) });
        let mut orders_stopped = admin_stopped.clone();
        let taking_orders = {
            let (pages, config) = (pages.clone(), config.clone());
            async move {
                let stopped = async move { drop(orders_stopped.wait_for(|stop| *stop).await) };
                match orders {
                    Some(orders) => orders.serve(pages, &config, stopped).await,
                    None => {
                        stopped.await;
                        Ok(())
                    }
                }
            }
        };
        let showing = {
            let (pages, access, tls) = (pages.clone(), guards.access.clone(), guards.admin_tls.clone());
            async move {
                match admin {
                    Some(listener) => {
                        let listener = Secured::new(listener, tls);
                        let stopped = async move { drop(admin_stopped.wait_for(|stop| *stop).await) };
                        admin::serve_to(access, listener, pages, config.limits.admin_idle, stopped).await
                    }
                    None => {
                        drop(admin_stopped.wait_for(|stop| *stop).await);
                        Ok(())
                    }
                }
            }
        };
        let admin = async { tokio::try_join!(showing, taking_orders).map(drop) };
        let sweeping = sweep(&core, &pages, &health);
        let following = guards.follow(reloader.clone());
        let reaching = async {
            pages.reach().await;
            std::future::pending::<()>().await;
        };
        let telling = async {
            match &config.statsd {
                Some(to) => statsd::send(to, &pages).await,
                None => std::future::pending().await,
            }
        };
        let telling = async { tokio::join!(telling, drift::look(&core, config.drift)) };
        let following = async { tokio::join!(following, checks::follow(&core)) };
        tokio::pin!(grpc, admin, sweeping, following, reaching, telling);
        tokio::select! {
            () = &mut grpc => return Ok(()),
            result = &mut admin => return Ok(result?),
            () = &mut sweeping => {}
            _ = &mut following => {}
            () = &mut reaching => {}
            _ = &mut telling => {}
            () = shutdown => {}
        }
        pages.drain();
        core.end_releases();
        health.report(false).await;
        let times = reloader.config();
        let streams = || core.streams();
        let draining = async {
            // Who has not noticed yet sends clients here, and they are served.
            sleep(times.drain_delay).await;
            let _ = stop_grpc.send(true);
            let ending = async {
                let _ = end_reports.send(Some(Moments::of(core.load_report_streams(), times.drain)));
                drain::end_streams(&streams, times.drain).await;
                health.end().await;
                // A connection without a call has nothing to wait for, whether its client listens or not.
                let mut open_calls = open_calls.subscribe();
                tokio::select! {
                    _ = open_calls.wait_for(|open| *open == 0) => {}
                    () = drain::end_late_streams(&streams) => {}
                }
                sleep(LAST_WORDS).await;
            };
            if timeout(times.drain, ending).await.is_err() {
                tracing::warn!("streams were still open when the time to drain was over");
            }
        };
        tokio::select! {
            () = &mut grpc => {}
            () = draining => {}
            result = &mut admin => result?,
            () = &mut sweeping => {}
            _ = &mut following => {}
            () = &mut reaching => {}
        }
        tracing::info!(streams = streams().len(), "the drain is over: so many streams are cut off");
        if core.has_releases() {
            let core = core.clone();
            // A disk may not answer.
            let _ = timeout(LAST_WORDS, spawn_blocking(move || core.flush_releases())).await;
        }
        if let Some(keeping) = keeping {
            keeping.end().await;
        }
        traces.end(LAST_WORDS / 4).await;
        let _ = stop_admin.send(true);
        // Whoever does not read his page: all is to be over a second after the drain.
        timeout(LAST_WORDS / 2, admin).await.unwrap_or(Ok(()))?;
        Ok(())
    }
}

async fn sweep(core: &Arc<RelayCore>, pages: &Pages, health: &Health) {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut releasing = None;
    loop {
        ticks.tick().await;
        core.sweep(Instant::now());
        // A store takes its time, and nothing else waits for it.
        if core.has_releases() && releasing.as_ref().is_none_or(JoinHandle::is_finished) {
            let core = core.clone();
            releasing = Some(spawn_blocking(move || core.release(Instant::now(), SystemTime::now())));
        }
        health.report(pages.is_ready()).await;
    }
}

/// Counts the connections that a limit ends, and those that are full.
fn count_limited(core: &Arc<RelayCore>) -> Limited {
    let core = core.clone();
    Arc::new(move |limit| {
        tracing::debug!("a connection has reached its {limit}");
        core.metrics().downstream_refused(limit);
    })
}

/// Discovery, and beside it load reports and what else there is.
fn routes(core: &Arc<RelayCore>, rules: Arc<ClientRules>, load_reports: LoadReports, others: Option<Router>) -> Routes {
    let service = downstream::service(core.clone(), rules);
    let (unfinished, most) = (service.unfinished_bytes(), core.limits().unfinished_request_bytes);
    core.tell_use("unfinished_request_bytes", move || (unfinished(), most));
    let discovery = service.into_routes().into_axum_router();
    discovery.route_service(load_reports::METHOD, load_reports).merge(others.unwrap_or_default()).into()
}

/// Reports go to the origin of old-style names, which is where clients would have sent them.
fn load_reports(
    config: &Config,
    connections: &Connections,
    core: &Arc<RelayCore>,
    rules: Arc<ClientRules>,
    end: load_reports::End,
) -> LoadReports {
    LoadReports::new(config.default_origin.clone(), connections.reports(), core.clone(), rules, end)
}
