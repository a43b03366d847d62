//! A configuration that counts anew while a relay runs: what can, and of the rest it is said that it needs a restart.

mod differences;
mod listening;
mod origins;
mod otherwise;
mod read_once;

use std::error::Error as StdError;
use std::sync::{Arc, Mutex};

use self::differences::differences;
pub(crate) use self::listening::Listening;
use self::origins::with_other_origins;
pub(crate) use self::otherwise::Spoken;
use self::otherwise::{Otherwise, reached_otherwise};
pub use self::read_once::ReadOnce;
use xdstp_client::Endpoint;

use crate::admin_access::{AdminAccess, LetIn};
use crate::api::ConfigState;
use crate::causes::with_causes;
use crate::check::check_named;
use crate::client_rules::{ClientRules, Rules};
use crate::config::Config;
use crate::descriptors::Bounds;
use crate::error::Error;
use crate::lock::lock;
use crate::logging::Logging;
use crate::origins::{Connections, endpoints};
use crate::reached::Reached;
use crate::relay_core::RelayCore;

/// Has a running relay go by another configuration, as far as it can: see [`Reloader::apply`].
///
/// ```
/// use xds_relay::config::Origin;
/// use xds_relay::{Config, Relay};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut config = Config::new([Origin::server("control-plane", "http://127.0.0.1:18010".parse()?)]);
/// (config.listen, config.admin) = ("127.0.0.1:0".parse()?, None);
/// let relay = Relay::bind(config.clone()).await?;
/// let reloader = relay.reloader();
/// tokio::spawn(relay.run(std::future::pending()));
///
/// config.limits.streams = 10;
/// config.linger *= 2;
/// let reloaded = reloader.apply(config)?;
/// assert_eq!(reloaded.applied, ["limits.streams"]);
/// assert_eq!(reloaded.needs_restart, ["linger"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Reloader(Arc<Inner>);

/// What became of another configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The fields that count now, as a file calls them.
    pub applied: Vec<String>,
    /// Those that stay as they were until the relay is started again.
    pub needs_restart: Vec<String>,
}

struct Inner {
    /// As the relay runs.
    running: Mutex<Config>,
    parts: Parts,
}

/// What goes by the configuration, and by another when there is one.
pub(crate) struct Parts {
    pub(crate) core: Arc<RelayCore>,
    pub(crate) rules: Arc<ClientRules>,
    pub(crate) access: Arc<AdminAccess>,
    /// Of where orders are taken.
    pub(crate) orders: Option<Arc<AdminAccess>>,
    pub(crate) spoken: Spoken,
    /// Where clients are served, unless it is the program's.
    pub(crate) listening: Option<Listening>,
    pub(crate) connections: Connections,
    pub(crate) reached: Arc<Reached>,
    pub(crate) logging: Arc<Logging>,
    pub(crate) reloads: Arc<Reloads>,
    pub(crate) read_once: ReadOnce,
}

/// What became of the last one that was read.
#[derive(Default)]
pub(crate) struct Reloads(Mutex<ConfigState>);

impl Reloads {
    pub(crate) fn state(&self) -> ConfigState {
        lock(&self.0).clone()
    }
}

impl Reloader {
    pub(crate) fn new(running: Config, parts: Parts) -> Self {
        Self(Arc::new(Inner { running: Mutex::new(running), parts }))
    }

    /// The configuration as the relay runs: without what needs a restart of one that was applied.
    #[must_use]
    pub fn config(&self) -> Config {
        lock(&self.0.running).clone()
    }

    /// Goes by another configuration where a relay that runs can, all at once: `listen`, unless a program brought its listener, or the
    /// port stays and one of the addresses is any; `clients`, where `listen` is so, and `tls` is as it runs;
    /// the files of `tls` and `admin.tls`, where there were some, and `client_ca` where there was one; of origins that are otherwise as
    /// they run `tls`, `token`, `keepalive` and `streams_per_connection`, and a `server` in place of another; which `origins` there are, with
    /// their `authorities`, if those that names come from or go to are one server each that is asked over delta, alike for every node, and of which nothing else needs a restart, unless
    /// what origins said is kept over a restart; `admin.token` and `admin.write_token`, where `admin` and `admin.tls` are; `admin_hosts`, `unknown`, `drain_delay`, `drain`, `log`, and of `limits` how many
    /// `streams`, `new_streams_per_second`, `load_report_streams`, `groups`, `authorities` and `names` there may be, and which part of them is one client's (`one_client`). All else needs a restart, and stays as it was:
    /// so does what is in the files of `aggregation.rules`, `state.secrets` and `descriptors` by now.
    ///
    /// Streams that are open go on, but for those of clients that may not be there any more, which are ended as denied. Of what else is
    /// decided otherwise now clients are told on their streams, as if they asked for it now.
    ///
    /// It reads files, and looks at all streams: it may block.
    ///
    /// # Errors
    /// It cannot be run, or a file is not good: nothing changes. Whoever is to be told is told by [`refuse`](Self::refuse).
    pub fn apply(&self, config: Config) -> Result<Reloaded, Error> {
        // One at a time.
        let mut running = lock(&self.0.running);
        let reloaded = self.0.parts.apply(&mut running, &config);
        drop(running);
        let (reloaded, aggregation) = (reloaded?, config.aggregation);
        // Whoever reads the log finds it on the pages.
        self.0.parts.tell(ConfigState { error: None, needs_restart: reloaded.needs_restart.clone() });
        reloaded.log();
        // Of those that it started with it was said then.
        if reloaded.needs_restart.iter().any(|field| field.starts_with("aggregation"))
            && let Some(Ok(rules)) = aggregation.map(|aggregation| aggregation.load())
        {
            rules.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        Ok(reloaded)
    }

    /// Another configuration is not good: that is logged, counted and told on the admin pages, once for the same reason, and nothing
    /// changes.
    pub fn refuse(&self, error: &(dyn StdError + 'static)) {
        self.say_refused(error, false);
    }

    /// As [`refuse`](Self::refuse), of one that somebody asked to have read: they are answered, whatever was said before.
    pub fn refuse_asked(&self, error: &(dyn StdError + 'static)) {
        self.say_refused(error, true);
    }

    fn say_refused(&self, error: &(dyn StdError + 'static), asked: bool) {
        let before = self.0.parts.reloads.state();
        let error = Some(with_causes(error));
        if asked || before.error != error {
            self.0.parts.tell(ConfigState { error: error.clone(), ..before });
            let words = error.as_deref().unwrap_or_default();
            tracing::error!("the configuration is not good, and all stays as it was: {words}");
        }
    }
}

impl Reloaded {
    fn log(&self) {
        let Self { applied, needs_restart } = self;
        match applied.as_slice() {
            [] => tracing::info!("the configuration is read again: nothing that can count at once is new"),
            applied => tracing::info!("the configuration is read again: {} count now", applied.join(", ")),
        }
        if !needs_restart.is_empty() {
            tracing::warn!("these need a restart, and stay as they were: {}", needs_restart.join(", "));
        }
    }
}

impl Parts {
    fn apply(&self, running: &mut Config, config: &Config) -> Result<Reloaded, Error> {
        config.validate()?;
        check_named(config)?;
        // All that can fail is before what changes anything.
        let (rules, let_in) = (Rules::load(config)?, LetIn::to_admin(config)?);
        let before = running.clone();
        let files = self.spoken.read(running, config)?;
        let led = with_other_origins(running, config, self.core.keeps);
        let new = led.iter().flat_map(|led| &led.origins).filter(|origin| running.origin(&origin.name).is_none());
        let new = new.map(|origin| endpoints(config, origin)).collect::<Result<Vec<_>, Error>>()?;
        let with = led.as_ref().unwrap_or(running);
        let moved = reached_otherwise(with, config);
        let moved = moved.into_iter().map(|otherwise| Ok((endpoints(config, otherwise.origin)?, otherwise)));
        let moved = moved.collect::<Result<Vec<_>, Error>>()?;
        let listening = self.listening.as_ref().and_then(|listening| listening.bind(running, config).transpose());
        let listening = listening.transpose()?;
        // From here on nothing fails.
        if let Some(bound) = listening {
            bound.accept();
            running.listen.clone_from(&config.listen);
        }
        self.spoken.replace(files, running, config);
        // Who is given names next is asked for them where it is by then: who it was says that they are not there.
        self.lead_to(&moved);
        if let Some(led) = led.clone() {
            self.lead(new, running, &led);
            *running = led;
        }
        for (_, Otherwise { at, origin, .. }) in moved {
            running.origins.iter_mut().skip(at).take(1).for_each(|running| running.clone_from(origin));
        }
        // Rules go by how clients come: by certificates that are not asked for yet, all would be refused.
        if running.listen == config.listen && running.tls == config.tls && running.clients != config.clients {
            running.clients.clone_from(&config.clients);
            self.rules.replace(rules);
            self.core.metrics().declare_denials();
            config.clients.iter().for_each(|rules| self.core.metrics().declare_client_limits(rules));
            self.core.judge_streams();
        }
        // Without a token, pages that others reach would be open to them.
        let as_guarded = running.admin == config.admin && running.admin_tls == config.admin_tls;
        let tokens = |of: &Config| (of.admin_token.clone(), of.admin_write_token.clone());
        if as_guarded && tokens(running) != tokens(config) {
            (running.admin_token, running.admin_write_token) = tokens(config);
            self.access.let_in_only(let_in);
            self.core.metrics().declare_denials();
        }
        running.admin_hosts.clone_from(&config.admin_hosts);
        for access in [Some(&self.access), self.orders.as_ref()].into_iter().flatten() {
            access.set_hosts(config.admin_hosts.clone());
        }
        if running.log != config.log && self.logging.change(config.log.clone()) {
            running.log.clone_from(&config.log);
        }
        running.unknown = config.unknown;
        (running.drain_delay, running.drain) = (config.drain_delay, config.drain);
        let (limits, new) = (&mut running.limits, &config.limits);
        (limits.streams, limits.new_streams_per_second) = (new.streams, new.new_streams_per_second);
        limits.load_report_streams = new.load_report_streams;
        (limits.groups, limits.authorities, limits.names) = (new.groups, new.authorities, new.names);
        limits.one_client = new.one_client;
        // Origins may bear more streams on a connection, or be others.
        let bounds = Bounds::of(running);
        self.connections.bound(bounds.upward);
        self.core.bound(bounds.groups, bounds.load_report_streams);
        self.core.set_what_is_read_at_use(running);
        let mut needs_restart = differences(running, config);
        needs_restart.extend(self.read_once.differ(config));
        needs_restart.sort();
        Ok(Reloaded { applied: differences(&before, running), needs_restart })
    }

    /// Has each of these be reached there.
    fn lead_to(&self, moved: &[(Vec<Endpoint>, Otherwise<'_>)]) {
        for (endpoints, Otherwise { origin, elsewhere, .. }) in moved {
            let Some(position) = self.core.position_of(&origin.name) else { continue };
            // Before anything is heard of another server.
            self.core.state().filter(|_| *elsewhere).iter().for_each(|state| state.lead_elsewhere(position));
            self.connections.lead_to(position, endpoints, *elsewhere);
            self.reached.lead_to(position, origin.kind.servers().unwrap_or_default());
        }
    }

    /// Those that are new are reached at these.
    fn lead(&self, new: Vec<Vec<Endpoint>>, running: &Config, led: &Config) {
        let gone = running.origins.iter().filter(|origin| led.origin(&origin.name).is_none());
        for position in gone.filter_map(|origin| self.core.position_of(&origin.name)) {
            self.reached.forget(position);
        }
        // Before anybody dials them.
        new.into_iter().for_each(|endpoints| self.connections.add(endpoints));
        self.core.lead(led);
    }

    fn tell(&self, state: ConfigState) {
        self.core.metrics().config_reload(state.error.is_none(), state.needs_restart.len());
        *lock(&self.reloads.0) = state;
    }
}

#[cfg(test)]
mod tests;
