//! One stream to an origin, and the scopes it feeds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use xds_transport::client::{Command, Update, Verdict};
use xdstp_cache::{Interest, ResourceError, Version};
use xdstp_client::upstream::{Connection, Consumer};
use xdstp_uri::ResourceName;

use crate::config::Protocol;
use crate::metrics::{Metrics, StreamGuard};
use crate::relay_core::scope::{Changes, Scope, ScopeKey, Scopes};
use crate::relay_core::settling::Settling;

/// How much of an origin's words about a resource is kept, and told to every client, in characters.
const MAX_MESSAGE: usize = 1024;

/// Opens streams to origins. The relay decides which, and for whom; how, is not its business.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream to the origin at this position of the configuration, as `node`, and keeps it
    /// open until the result is dropped.
    fn dial(&self, origin: usize, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed>;
}

/// A stream that [`Dial`] keeps open; dropping it ends the stream.
pub trait Dialed: Send + Sync {
    /// The consumer has commands.
    fn nudge(&self);
}

pub(crate) struct Upstream {
    /// The node group it speaks for, or `xdstp`.
    pub(crate) label: String,
    pub(crate) scopes: Arc<Scopes>,
    state: Arc<Mutex<UpstreamState>>,
    dialed: OnceLock<Box<dyn Dialed>>,
}

/// How a stream to an origin is doing.
#[derive(Default)]
pub(crate) struct UpstreamState {
    pub(crate) connected: bool,
    pub(crate) last_error: Option<String>,
    guard: Option<StreamGuard>,
}

/// What the streams of one origin share.
pub(crate) struct OriginInfo {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) metrics: Arc<Metrics>,
}

impl Upstream {
    pub(crate) fn dial(
        dial: &dyn Dial,
        origin: usize,
        info: Arc<OriginInfo>,
        label: String,
        node: Bytes,
        first: &Arc<Scope>,
    ) -> Arc<Self> {
        let scopes = Arc::new(Scopes::default());
        scopes.insert(first);
        let state = Arc::new(Mutex::new(UpstreamState::default()));
        let settling = Settling::default();
        let feed = Feed { label: label.clone(), info, scopes: scopes.clone(), state: state.clone(), settling };
        let upstream = Self { label, scopes, state, dialed: OnceLock::new() };
        let _ = upstream.dialed.set(dial.dial(origin, node, Box::new(feed)));
        Arc::new(upstream)
    }

    pub(crate) fn nudge(&self) {
        if let Some(dialed) = self.dialed.get() {
            dialed.nudge();
        }
    }

    pub(crate) fn status(&self) -> (bool, Option<String>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.connected, state.last_error.clone())
    }
}

/// Takes what an origin sends to the scopes it belongs to, and what they want to the origin.
struct Feed {
    label: String,
    info: Arc<OriginInfo>,
    scopes: Arc<Scopes>,
    state: Arc<Mutex<UpstreamState>>,
    settling: Settling,
}

impl Feed {
    fn connected(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).connected
    }
}

impl Consumer for Feed {
    fn commands(&mut self, now: Instant, apply: &mut dyn FnMut(Command)) {
        let connected = self.connected();
        for scope in self.scopes.all() {
            scope.take_asks(now, connected, &mut |command| {
                if let Command::Unsubscribe(type_url, interest) = &command {
                    self.settling.forget(type_url, interest);
                }
                apply(command);
            });
        }
    }

    fn update(&mut self, now: Instant, mut update: Update) -> Verdict {
        let metrics = self.info.metrics.upstream(&self.info.name, update.type_url.as_str());
        metrics.responses.inc();
        metrics.resources.add(update.changed.len() as u64);
        if !update.rejected.is_empty() {
            metrics.nacks.inc();
            for rejected in &update.rejected {
                tracing::warn!(origin = %self.info.name, stream = %self.label, name = %rejected.name, "rejected: {}", rejected.reason);
            }
        }
        let answered = self.settling.hold_back(now, &mut update, self.info.protocol);
        let scopes = self.scopes.all();
        let mut parts: BTreeMap<usize, Changes> = BTreeMap::new();
        let index = Index::of(&scopes);
        for changed in update.changed {
            if let Some(part) = index.of_name(&changed.name) {
                parts.entry(part).or_default().changed.push(changed);
            }
        }
        for name in update.removed {
            if let Some(part) = index.of_name(&name) {
                parts.entry(part).or_default().removed.push(name);
            }
        }
        for failure in update.errors {
            if let Some(part) = index.of_name(&failure.name) {
                let message: String = failure.message.chars().take(MAX_MESSAGE).collect();
                tracing::warn!(origin = %self.info.name, stream = %self.label, name = %failure.name, "not sent: {message}");
                let error = ResourceError::new(failure.code, message);
                parts.entry(part).or_default().errors.push((failure.name, error));
            }
        }
        for (name, ttl) in update.refreshed {
            if let Some(part) = index.of_name(&name) {
                parts.entry(part).or_default().refreshed.push((name, ttl));
            }
        }
        for interest in answered {
            if let Some(part) = index.of_interest(&interest) {
                parts.entry(part).or_default().answered.push(interest);
            }
        }
        let version = Some(update.version.as_str())
            .filter(|version| self.info.protocol == Protocol::Sotw && !version.is_empty())
            .map(Version::from);
        for (index, scope) in scopes.iter().enumerate() {
            let changes = parts.remove(&index);
            if changes.is_none() && version.is_none() {
                continue;
            }
            let mut changes = changes.unwrap_or_default();
            changes.version.clone_from(&version);
            scope.store(&update.type_url, changes, now);
        }
        // Rule 145: what could be read is accepted; a downstream NACK stays downstream.
        Verdict::Accept
    }

    fn connection(&mut self, _: Instant, connection: Connection) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match connection {
            Connection::Connected => {
                tracing::info!(origin = %self.info.name, stream = %self.label, "connected");
                state.guard = Some(self.info.metrics.upstream_connected(&self.info.name));
                state.connected = true;
            }
            Connection::Disconnected { error, .. } => {
                self.settling.pause();
                match &error {
                    Some(error) => {
                        tracing::warn!(origin = %self.info.name, stream = %self.label, "disconnected: {error}");
                    }
                    None => {
                        tracing::info!(origin = %self.info.name, stream = %self.label, "the origin ended the stream");
                    }
                }
                state.guard = None;
                state.connected = false;
                state.last_error = error.or(state.last_error.take());
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let lingering = self.scopes.all().iter().filter_map(|scope| scope.poll_timeout()).min();
        [lingering, self.settling.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        // What lingers is looked at with the commands.
        let scopes = self.scopes.all();
        let index = Index::of(&scopes);
        for (type_url, interest) in self.settling.settled(now) {
            if let Some(scope) = index.of_interest(&interest).and_then(|at| scopes.get(at)) {
                let changes = Changes { answered: vec![interest], ..Changes::default() };
                scope.store(&type_url, changes, now);
            }
        }
    }
}

/// Which of the scopes of a stream a name belongs to: by authority on the stream of `xdstp:` names;
/// a node group's own stream feeds just its scope.
struct Index<'a> {
    authorities: HashMap<&'a str, usize>,
    own: Option<usize>,
}

impl<'a> Index<'a> {
    fn of(scopes: &'a [Arc<Scope>]) -> Self {
        let authority = |(at, scope): (usize, &'a Arc<Scope>)| match &scope.key {
            ScopeKey::Authority(authority) => Some((authority.as_str(), at)),
            _ => None,
        };
        let own = scopes.iter().position(|scope| scope.key.has_own_stream());
        Self { authorities: scopes.iter().enumerate().filter_map(authority).collect(), own }
    }

    fn of_name(&self, name: &ResourceName) -> Option<usize> {
        self.own.or_else(|| self.authorities.get(name.authority()?).copied())
    }

    fn of_interest(&self, interest: &Interest) -> Option<usize> {
        match interest {
            Interest::Name(name) => self.of_name(name),
            Interest::Wildcard => self.own,
        }
    }
}
