//! What the streams to one server have in common, and how each of them is doing.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use xds_transport::{Protocol, TypeRules};

use crate::federation::alike::Alike;
use crate::federation::dial::Position;
use crate::federation::interner::Interner;
use crate::federation::loop_guard::{Behind, LoopGuard};
use crate::federation::observer::Observer;
use crate::federation::realm::Authorities;
use crate::federation::terms::Trouble;

/// What the streams to one server share.
pub(crate) struct Server {
    /// What lines and counts go by.
    pub(crate) origin: String,
    /// What it is called itself.
    pub(crate) name: String,
    /// Where it is dialed.
    pub(crate) position: Position,
    pub(crate) protocol: Protocol,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) authorities: Arc<Authorities>,
    pub(crate) loops: Arc<dyn LoopGuard>,
    pub(crate) interner: Arc<Interner>,
    pub(crate) alike: Alike,
    pub(crate) observer: Arc<dyn Observer>,
    /// What an operator should look at where it has a stream and requests, and says nothing for long.
    pub(crate) silent_hint: &'static str,
    /// It took the place of another one: versions of the two say nothing of each other.
    pub(crate) replaces: AtomicBool,
}

/// How a stream to a server is doing.
#[derive(Default)]
pub(crate) struct StreamState {
    /// The transport has a stream.
    pub(crate) open: bool,
    /// The origin answered on it (rule 156).
    pub(crate) answered: bool,
    /// There is none, and the last one had no response, or none came to be.
    pub(crate) fails: bool,
    /// The relay that the origin is, and those behind it.
    pub(crate) relays: Option<Box<dyn Behind>>,
    pub(crate) last_error: Option<String>,
    /// When it is tried again, while there is none.
    pub(crate) retry_at: Option<Instant>,
    /// What an operator should look at.
    pub(crate) hint: Option<&'static str>,
    /// Since when no stream was answered.
    pub(crate) lost_since: Option<Instant>,
    /// Why there is none, if the last one ended without an answer.
    pub(crate) trouble: Option<Arc<Trouble>>,
    /// Counts it as there.
    pub(crate) guard: Option<Box<dyn Any + Send + Sync>>,
}

impl StreamState {
    /// There is no stream, and there was one, or a try.
    pub(crate) fn is_lost(&self) -> bool {
        !self.open && self.lost_since.is_some()
    }
}
