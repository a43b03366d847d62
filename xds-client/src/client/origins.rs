//! The servers of a client as origins of its federation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tonic::metadata::MetadataMap;
use xds_transport::{Dialect, Protocol, TypeRules};

use super::brought::Brought;
use super::on_terms::OnTerms;
use crate::bootstrap::{Features, Server};
use crate::federation::{
    Authorities, Behind, Dial, Federation, Interner, LastKnownGood, Limits, LoopGuard, Observer, OneServer, Origin,
    Position, Quota, Rules, ServerOrigin, ServerOriginSettings, ServerSettings, ServerTerms, Settings, Terms,
    Validators,
};

/// How long a name may be without an answer (gRFC A57).
const PATIENCE: Duration = Duration::from_secs(15);
/// The same where that is no absence (gRFC A88).
const LONG_PATIENCE: Duration = Duration::from_secs(30);
/// How many names are told to a server under one hold of a scope's lock.
const NAMES_PER_TURN: usize = 1024;

/// What the origins of a client have in common.
pub(super) struct Origins {
    pub(super) protocol: Protocol,
    pub(super) rules: Arc<TypeRules>,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) node: Bytes,
    pub(super) validators: Arc<Validators>,
    pub(super) authorities: Arc<Authorities>,
    /// Who counts what happens.
    pub(super) observer: Arc<dyn Observer>,
    /// What a request may have, in bytes.
    pub(super) max_request_bytes: usize,
    /// Where it is kept what they said, if anywhere.
    pub(super) last_known_good: Option<Arc<dyn LastKnownGood>>,
}

/// A server, as far as it is told from others.
pub(super) struct Known {
    /// What it is called.
    pub(super) name: String,
    pub(super) features: Features,
    /// The first of the positions that it is at: equal servers are one, in whatever lists they stand.
    pub(super) first: Position,
}

/// A program is no relay, and says nothing of any.
struct NoRelay;

impl Known {
    /// The servers of each list. Those of twins stand for themselves: a stream of theirs is nobody else's.
    pub(super) fn of_lists(lists: &[Vec<Server>], twins: usize) -> Vec<Vec<Self>> {
        let mut known = HashMap::new();
        let mut known_at = |server: &Server, at: Position| Self {
            name: server.uri().to_owned(),
            features: server.features(),
            first: if at.origin < twins { *known.entry(server.clone()).or_insert(at) } else { at },
        };
        let of_list = |(origin, servers): (usize, &Vec<Server>)| {
            let servers = servers.iter().enumerate();
            servers.map(|(at, server)| known_at(server, Position { origin, server: at })).collect()
        };
        lists.iter().enumerate().map(of_list).collect()
    }
}

impl Origins {
    /// Each of the servers of a list, in order of preference, after those that were brought.
    /// From `twins` on the lists are there for what sources say that stand beside names.
    pub(super) fn federation(self, brought: &Brought, lists: &[Vec<Known>], twins: usize) -> Arc<Federation> {
        let interner = Arc::<Interner>::default();
        let mut known: HashMap<Position, Arc<OneServer>> = HashMap::new();
        let servers = lists.iter().enumerate().skip(brought.count()).map(|(position, servers)| {
            // Whatever a source says to be there, is.
            let authorities = match position < twins {
                true => self.authorities.clone(),
                false => Arc::new(Authorities::new(HashMap::new(), position)),
            };
            let one = |server: &Known| {
                known.entry(server.first).or_insert_with(|| self.server(server, &authorities, &interner)).clone()
            };
            let all = servers.iter().map(one).collect();
            Arc::new(self.origin(servers, all)) as Arc<dyn Origin>
        });
        let origins = brought.origins(&self.validators).into_iter().chain(servers);
        let none = |what| Quota::new(what, what, usize::MAX);
        Federation::new(Settings {
            origins: origins.collect(),
            authorities: self.authorities.clone(),
            node: self.node.clone(),
            linger: Duration::ZERO,
            limits: Limits {
                groups: none("groups"),
                authorities: none("authorities"),
                names: none("names"),
                authorities_per_stream: usize::MAX,
                names_per_turn: NAMES_PER_TURN,
                lingering: none("lingering names"),
            },
            interner,
            last_known_good: self.last_known_good.clone(),
        })
    }

    /// A server, of whatever lists.
    fn server(&self, known: &Known, authorities: &Arc<Authorities>, interner: &Arc<Interner>) -> Arc<OneServer> {
        OneServer::new(ServerSettings {
            origin: known.name.clone(),
            name: known.name.clone(),
            position: known.first,
            protocol: self.protocol,
            rules: self.rules.clone(),
            authorities: authorities.clone(),
            max_request_bytes: self.max_request_bytes,
            silent_hint: "the server has a stream and requests, and does not answer",
            dial: self.dial.clone(),
            loops: Arc::new(NoRelay),
            observer: self.observer.clone(),
            interner: interner.clone(),
        })
    }

    fn origin(&self, servers: &[Known], all: Vec<Arc<OneServer>>) -> OnTerms<ServerOrigin> {
        let origin = ServerOrigin::new(ServerOriginSettings {
            name: servers.first().map(|first| first.name.clone()).unwrap_or_default(),
            servers: all,
            protocol: self.protocol,
            by_node: false,
            dialect: Dialect::Final,
        });
        let of_servers = servers.iter().map(terms).collect();
        OnTerms { origin, terms: Terms { of_servers, validators: self.validators.clone() } }
    }
}

fn terms(server: &Known) -> ServerTerms {
    let features = server.features;
    let rules = Rules {
        fail_on_data_errors: features.fail_on_data_errors,
        timer_is_transient: features.resource_timer_is_transient_error,
    };
    let trusted = features.trusted_xds_server;
    ServerTerms { name: server.name.as_str().into(), rules, patience: patience(features), trusted }
}

/// How long a server may be without an answer for a name.
pub(crate) fn patience(features: Features) -> Duration {
    if features.resource_timer_is_transient_error { LONG_PATIENCE } else { PATIENCE }
}

impl LoopGuard for NoRelay {
    fn instance(&self) -> String {
        String::new()
    }

    fn asks_for_ends(&self) -> bool {
        false
    }

    fn say(&self) -> MetadataMap {
        MetadataMap::new()
    }

    fn hear(&self, _: &MetadataMap) -> Result<Option<Box<dyn Behind>>, String> {
        Ok(None)
    }
}
