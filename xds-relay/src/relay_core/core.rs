//! What a relay is made of.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use xds_transport::RateLimit;
use xds_transport::server::Settings;
use xdstp_client::federation::{
    self, Authorities, Dial, Federation, Held, Interner, Origin, SnapshotOrigin, Unreadable,
};

use crate::api::short_time;
use crate::config::{Config, LIMITS, Limits, Unknown, Unmatched};
use crate::file_content::FileContent;
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::relay_core::client_use::ClientUses;
use crate::relay_core::configured::{Common, Configured};
use crate::relay_core::counts::Counts;
use crate::relay_core::drift::DriftSeen;
use crate::relay_core::followed_origin::FollowedOrigin;
use crate::relay_core::lives::Lives;
use crate::relay_core::loops::Relays;
use crate::relay_core::node_group::NodeGrouping;
use crate::relay_core::node_parameters::NodeParameters;
use crate::relay_core::origin_names::OriginNames;
use crate::relay_core::own_node::own_node;
use crate::relay_core::quotas::{self, Quotas};
use crate::relay_core::relay_path::Token;
use crate::relay_core::rollout::Releases;
use crate::relay_core::stream_entry::StreamEntry;
use xdstp_client::federation::LastKnownGood;
use xdstp_client::state::{Saved, State, StoreError};

/// How long a removal waits for the listener or route that its origin may tell of a moment later, and for the client to
/// ask for what it goes to.
const REMOVALS_WAIT: Duration = Duration::from_secs(1);

/// A relay: scopes, the origins that feed them, and the streams served from them.
pub struct RelayCore {
    pub(crate) federation: Arc<Federation>,
    pub(crate) names: OriginNames,
    /// Which origin is whose.
    pub(crate) authorities: Arc<Authorities>,
    /// What origins have that come later, too.
    pub(crate) common: Common,
    /// Servers that are followed, by position.
    pub(crate) followed: BTreeMap<usize, Arc<FollowedOrigin>>,
    /// What comes of each of them to the relay alone, and what that may use up.
    pub(crate) following: Mutex<Vec<(Arc<Federation>, federation::Limits)>>,
    /// Those of files, of etcd and of Kubernetes, by position: for whoever reads them.
    files: BTreeMap<usize, Arc<SnapshotOrigin>>,
    /// What is wrong with them, by position.
    pub(crate) troubles: Mutex<BTreeMap<usize, Trouble>>,
    pub(crate) grouping: Box<dyn NodeGrouping>,
    pub(crate) node_parameters: NodeParameters,
    unknown: Mutex<Unknown>,
    limits: Limits,
    /// How many node groups and streams of load reports there may be, whatever limits say.
    bounds: Mutex<(usize, usize)>,
    pub(crate) shared: federation::Limits,
    settings: Settings,
    pub(crate) relays: Arc<Relays>,
    pub(crate) quotas: Quotas,
    pub(crate) client_uses: Arc<ClientUses>,
    /// What else tells how much of it is used, and how much may be, by its limit.
    pub(crate) used_beside: Mutex<BTreeMap<&'static str, UsedBeside>>,
    pub(crate) streams: Mutex<BTreeMap<u64, Arc<StreamEntry>>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) counts: Counts,
    /// Who else is told how long things take.
    pub(crate) lives: OnceLock<Arc<dyn Lives>>,
    /// What was seen of drift, where it is looked for.
    pub(crate) drift_seen: Mutex<Option<DriftSeen>>,
    /// Of the scopes that have any.
    pub(crate) releases: Mutex<Vec<Arc<Releases>>>,
    /// Whether its streams are being ended.
    pub(crate) is_ending: AtomicBool,
    pub(crate) state: Option<Arc<State>>,
    /// Whether there is to be one.
    pub(crate) keeps: bool,
}

/// How much of something is used, and how much may be.
pub(crate) type UsedBeside = Box<dyn Fn() -> (usize, usize) + Send + Sync>;

/// What is wrong with an origin that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Whether it cannot be read.
    pub(crate) is_away: bool,
    pub(crate) words: String,
    /// The same for who may not see what is in the origin, nor where it is.
    pub(crate) in_brief: String,
    /// Since when it is refused what is, of which the words tell.
    pub(crate) refused_since: Option<Instant>,
}

impl Trouble {
    /// The words, as they are true at that moment.
    pub(crate) fn words_at(&self, now: Instant) -> String {
        match self.refused_since {
            None => self.words.clone(),
            Some(since) => {
                let seconds = now.saturating_duration_since(since).as_secs();
                format!("{} (refused for {})", self.words, short_time(seconds))
            }
        }
    }
}

impl RelayCore {
    /// A relay for a configuration. Nothing is dialed before somebody wants something.
    pub fn new(
        config: &Config,
        grouping: Box<dyn NodeGrouping>,
        dial: Box<dyn Dial>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Self::with_state(config, grouping, dial, metrics, None)
    }

    /// The same, which knows what is kept, and [keeps](Self::save) what it hears.
    pub fn with_state(
        config: &Config,
        grouping: Box<dyn NodeGrouping>,
        dial: Box<dyn Dial>,
        metrics: Arc<Metrics>,
        state: Option<State>,
    ) -> Arc<Self> {
        Self::embedding(config, BTreeMap::new(), grouping, dial, metrics, state.map(Arc::new))
    }

    /// The same, with the origins that its configuration calls [embedded](crate::config::OriginKind::Embedded), by name.
    pub fn embedding(
        config: &Config,
        embedded: BTreeMap<String, Arc<dyn Origin>>,
        grouping: Box<dyn NodeGrouping>,
        dial: Box<dyn Dial>,
        metrics: Arc<Metrics>,
        state: Option<Arc<State>>,
    ) -> Arc<Self> {
        let settings = settings(config);
        LIMITS.iter().filter(|limit| limit.is_counted).for_each(|limit| metrics.declare_limit(limit.key));
        state.iter().for_each(|_| metrics.declare_state());
        config.clients.iter().for_each(|rules| metrics.declare_client_limits(rules));
        let rejects = config.aggregation.as_ref().is_some_and(|rules| rules.unmatched == Unmatched::Reject);
        if rejects || config.clients.is_some() || config.admin_token.is_some() || config.admin_write_token.is_some() {
            metrics.declare_denials();
        }
        let (relays, interner) = (Relays::new(Token::draw()), Arc::<Interner>::default());
        let common = Common {
            rules: settings.rules.clone(),
            relays: relays.clone(),
            interner: interner.clone(),
            metrics: metrics.clone(),
            dial: dial.into(),
            embedded,
        };
        let shared = quotas::of_streams(&config.limits);
        let Configured { all, files, followed, authorities } = Configured::of(config, &common);
        let federation = Federation::new(federation::Settings {
            origins: all,
            authorities: authorities.clone(),
            node: own_node(config),
            linger: config.linger,
            limits: shared.clone(),
            interner,
            last_known_good: state.clone().map(|state| state as Arc<dyn LastKnownGood>),
        });
        Arc::new(Self {
            federation,
            names: OriginNames::new(&config.origins),
            authorities,
            common,
            followed,
            following: Mutex::default(),
            files,
            troubles: Mutex::default(),
            grouping,
            node_parameters: NodeParameters::new(config.node_parameters.clone()),
            unknown: Mutex::new(config.unknown),
            limits: config.limits,
            bounds: Mutex::new((usize::MAX, usize::MAX)),
            shared,
            settings,
            relays,
            quotas: Quotas::new(&config.limits),
            client_uses: ClientUses::new(&config.limits),
            used_beside: Mutex::default(),
            streams: Mutex::default(),
            metrics,
            counts: Counts::default(),
            lives: OnceLock::new(),
            drift_seen: Mutex::default(),
            releases: Mutex::default(),
            is_ending: AtomicBool::new(false),
            keeps: config.state.is_some() || state.is_some(),
            state,
        })
    }

    /// The content of an origin of files, of etcd or of Kubernetes changed: every scope it feeds changes with it.
    pub fn set_files(&self, origin: usize, resources: Vec<Held>, now: Instant) {
        if let Some(files) = self.files.get(&origin) {
            files.set(resources, now);
        }
    }

    /// The same, but that of some names it is not known whether the origin has them: nobody is told that they are gone.
    pub fn set_files_but(&self, origin: usize, resources: Vec<Held>, unreadable: Vec<Unreadable>, now: Instant) {
        if let Some(files) = self.files.get(&origin) {
            files.set_but(resources, unreadable, now);
        }
    }

    /// Such an origin has these, from before a restart; of what else it has nothing is known before [that](Self::set_files) comes.
    pub fn remember_files(&self, origin: usize, resources: Vec<Held>, now: Instant) {
        if let Some(files) = self.files.get(&origin) {
            files.remember(resources, now);
        }
    }

    /// The first of the origins of which all that is known is from before a restart, or beside what cannot be read.
    pub(crate) fn remembered_origin(&self) -> Option<String> {
        let (position, _) = self.files.iter().find(|(_, files)| files.is_remembered())?;
        self.names.of(*position)
    }

    /// Whether it is known what such an origin has.
    #[cfg(feature = "file-origin")]
    pub(crate) fn has_content(&self, origin: usize) -> bool {
        self.files.get(&origin).is_some_and(|files| files.ready().is_ok())
    }

    /// Something is wrong with such an origin from now on, for people to see, or nothing.
    #[cfg(feature = "file-origin")]
    pub(crate) fn set_trouble(&self, origin: usize, trouble: Option<Trouble>) {
        let troubles = &mut *lock(&self.troubles);
        match trouble {
            Some(trouble) => _ = troubles.insert(origin, trouble),
            None => _ = troubles.remove(&origin),
        }
    }

    /// Drops scopes that nobody uses and nothing is subscribed for, and ends streams that ask for too
    /// much, or that nothing can be said to: to be called every second or so.
    pub fn sweep(&self, now: Instant) {
        if *lock(&self.unknown) == Unknown::End {
            self.end_unknown_streams(now);
        }
        self.federation.make_room(now, &mut |room, type_url, lacking| self.end_largest(room, type_url, lacking));
        self.end_greedy_streams();
        self.federation.sweep(now);
        let following = lock(&self.following).clone();
        following.iter().for_each(|(federation, _)| federation.sweep(now));
        // After scopes went.
        self.client_uses.sweep(&self.federation, now);
        self.metrics.it_is(now);
        self.state.iter().for_each(|state| state.look(now));
    }

    /// Writes down what was heard since the last time, if it is kept anywhere: to be called every second or so. It may take as
    /// long as the store takes; nobody waits for it. `now` and `wall` are the same moment.
    ///
    /// # Errors
    /// It could not be written: it is the next time.
    pub fn save(&self, now: Instant, wall: SystemTime) -> Result<Saved, StoreError> {
        let Some(state) = &self.state else { return Ok(Saved::default()) };
        let saved = state.keep(&self.federation.scopes(), now, wall);
        if saved.as_ref().map_or(true, |saved| saved.keys > 0) {
            self.metrics.state_commit(saved.as_ref().ok().map(|saved| saved.keys));
        }
        saved
    }

    /// What is kept, if it is anywhere.
    pub fn state(&self) -> Option<&State> {
        self.state.as_deref()
    }

    /// What origins of files hold.
    pub fn file_contents(&self) -> Vec<FileContent> {
        let content = |(position, files): (&usize, &Arc<SnapshotOrigin>)| {
            let name = self.names.of(*position).unwrap_or_default();
            FileContent::new(&name, files.resources().iter().map(|(type_url, ..)| type_url.as_str()))
        };
        self.files.iter().filter(|(_, origin)| origin.kind() == "files").map(content).collect()
    }

    /// What this relay goes by among relays, for as long as it runs: 16 hex digits.
    pub fn instance(&self) -> String {
        self.relays.own().to_string()
    }

    /// What every stream of the relay shares.
    pub fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// What clients may use up.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// From now on counts what a configuration says that is looked at anew each time: what streams of which nothing is known
    /// are told, and how many streams, groups, authorities and names there may be, and which part of them is one client's. What there is
    /// stays.
    pub fn set_what_is_read_at_use(&self, config: &Config) {
        let mut limits = config.limits;
        let (groups, reports) = *lock(&self.bounds);
        (limits.groups, limits.load_report_streams) =
            (limits.groups.min(groups), limits.load_report_streams.min(reports));
        *lock(&self.unknown) = config.unknown;
        self.quotas.set(&limits);
        self.client_uses.set(&limits);
        let Limits { groups, authorities, names, .. } = limits;
        let following = lock(&self.following);
        for shared in following.iter().map(|(_, limits)| limits).chain([&self.shared]) {
            shared.groups.set_most(groups);
            shared.authorities.set_most(authorities);
            shared.names.set_most(names);
        }
    }

    /// There may be no more node groups and streams of load reports than these, whatever limits are
    /// [read](Self::set_what_is_read_at_use) from now on.
    pub fn bound(&self, groups: usize, load_report_streams: usize) {
        *lock(&self.bounds) = (groups, load_report_streams);
    }

    /// Has this asked how much is used of what a limit bounds that is not of the core, and how much may be, whenever somebody looks.
    pub fn tell_use(&self, limit: &'static str, used: impl Fn() -> (usize, usize) + Send + Sync + 'static) {
        lock(&self.used_beside).insert(limit, Box::new(used));
    }

    /// Has this told, too, what takes how long with clients that come from now on: the first who is, counts.
    pub fn tell_lives(&self, lives: Arc<dyn Lives>) {
        let _ = self.lives.set(lives);
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

fn settings(config: &Config) -> Settings {
    let mut settings = Settings::default();
    settings.identifier.clone_from(&config.node.id);
    settings.removals_wait = REMOVALS_WAIT;
    settings.dialect = config.dynamic_parameters;
    let Limits { types_per_stream, names_per_stream, name_bytes, node_bytes, .. } = config.limits;
    (settings.types_per_stream, settings.names_per_stream) = (types_per_stream, names_per_stream);
    settings.selectors_per_stream = config.limits.parameter_sets_per_stream;
    (settings.name_bytes, settings.node_bytes) = (name_bytes, node_bytes);
    let requests_per_second = config.limits.requests_per_second;
    let every = Duration::from_secs(1) / requests_per_second.max(1);
    settings.requests = Some(RateLimit { burst: requests_per_second, every });
    settings
}
