//! One stream to an origin: who it speaks for, and how it is doing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use xds_transport::{Protocol, TypeRules};
use xdstp_client::upstream::Consumer;
use xdstp_uri::ResourceName;

use crate::metrics::{Metrics, StreamGuard};
use crate::federation::alike::Alike;
use crate::federation::feed::Feed;
use crate::federation::interner::Interner;
use crate::federation::lock::lock;
use crate::relay_core::loops::{Relays, Seen};
use crate::federation::mixed::Mixed;
use crate::federation::scope_key::ScopeKey;
use crate::federation::scopes::{Scopes, Seat};

/// Opens streams to origins. The relay decides which, and for whom; how, is not its business.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream to the origin at this position of the configuration, as `node` unless the consumer names
    /// [another](Consumer::node), and keeps it open until the result is dropped.
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
    pub(crate) speakers: Arc<Mutex<Speakers>>,
    state: Arc<Mutex<UpstreamState>>,
    dialed: OnceLock<Box<dyn Dialed>>,
}

/// How a stream to an origin is doing.
#[derive(Default)]
pub(crate) struct UpstreamState {
    /// The transport has a stream.
    pub(crate) open: bool,
    /// The origin answered on it (rule 156).
    pub(crate) answered: bool,
    /// The relay that the origin is, and those behind it.
    pub(crate) relays: Option<Seen>,
    pub(crate) last_error: Option<String>,
    /// What an operator should look at.
    pub(crate) hint: Option<&'static str>,
    /// Since when no stream was answered.
    pub(crate) lost_since: Option<Instant>,
    pub(crate) guard: Option<StreamGuard>,
}

/// What the streams of one origin share.
pub(crate) struct OriginInfo {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) realm: Realm,
    pub(crate) relays: Arc<Relays>,
    pub(crate) mixed: Mixed,
    pub(crate) interner: Arc<Interner>,
    pub(crate) alike: Alike,
    pub(crate) metrics: Arc<Metrics>,
}

/// Which names an origin may set: those of its authorities, and if it is the default one, those that no other origin is
/// configured for (rule 153).
pub(crate) struct Realm {
    pub(crate) origin: usize,
    pub(crate) default_origin: usize,
    pub(crate) authorities: Arc<HashMap<String, usize>>,
}

impl Realm {
    pub(crate) fn holds(&self, name: &ResourceName) -> bool {
        let of = name.authority().and_then(|authority| self.authorities.get(authority));
        of.copied().unwrap_or(self.default_origin) == self.origin
    }
}

/// The members of a node group, of whom one speaks for all.
#[derive(Default)]
pub(crate) struct Speakers {
    /// By stream, as the origin is told of them.
    members: BTreeMap<u64, Bytes>,
    speaks: Option<u64>,
}

impl Speakers {
    pub(crate) fn join(&mut self, stream: u64, node: Bytes) {
        self.members.insert(stream, node);
    }

    pub(crate) fn leave(&mut self, stream: u64) {
        self.members.remove(&stream);
    }

    /// A living member: the same one as long as it is there. None when the last of them has left.
    pub(crate) fn speaker(&mut self) -> Option<Bytes> {
        let speaks = self.speaks.filter(|stream| self.members.contains_key(stream));
        self.speaks = speaks.or_else(|| self.members.keys().next().copied());
        self.members.get(&self.speaks?).cloned()
    }
}

impl Upstream {
    pub(crate) fn dial(
        dial: &dyn Dial,
        info: Arc<OriginInfo>,
        label: String,
        node: Bytes,
        key: &ScopeKey,
    ) -> Arc<Self> {
        let origin = info.realm.origin;
        let scopes = Arc::new(Scopes::default());
        let state = Arc::<Mutex<UpstreamState>>::default();
        let speakers = Arc::<Mutex<Speakers>>::default();
        let by_node = matches!(key, ScopeKey::Group(..));
        let feed = Feed::new(label.clone(), by_node, info, scopes.clone(), state.clone(), speakers.clone());
        let upstream = Self { label, scopes, speakers, state, dialed: OnceLock::new() };
        let _ = upstream.dialed.set(dial.dial(origin, node, Box::new(feed)));
        Arc::new(upstream)
    }

    /// A scope of it has something to tell the origin.
    pub(crate) fn ask(&self, seat: Seat) {
        self.scopes.ask(seat);
        if let Some(dialed) = self.dialed.get() {
            dialed.nudge();
        }
    }

    /// Looks at how the stream is doing.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&UpstreamState) -> T) -> T {
        look(&lock(&self.state))
    }

    /// Why the origin cannot be reached, if it cannot since before `since`.
    pub(crate) fn unreachable_since(&self, since: Instant) -> Option<String> {
        self.inspect(|state| {
            let lost = !state.open && state.lost_since.is_some_and(|lost| lost <= since);
            lost.then(|| state.last_error.clone().unwrap_or_else(|| "it ended the stream".into()))
        })
    }
}
