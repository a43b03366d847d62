//! A control plane that is followed: it is asked for what clients want, as any is, and what it has is known beside.

use std::sync::{Arc, Mutex};

use xdstp_cache::Selector;
use xdstp_client::federation::{ByNode, Held, Origin, RequestRoom, Scope, ScopeKey, Speaker, Terms};

use crate::config::Follow;
use crate::lock::lock;
use crate::releases::Types;

/// What there is to release.
#[derive(Clone)]
pub(crate) struct ToRelease {
    pub(crate) content: Arc<Vec<Held>>,
    /// Of something that it refers to, or that it is to have, nothing is known.
    pub(crate) may_lack: bool,
    /// Something in it is as the candidate has it alone, and the control plane says something else by now.
    pub(crate) has_candidates: bool,
}

/// A server, and what of it is released.
pub(crate) struct FollowedOrigin {
    server: Arc<dyn Origin>,
    follow: Follow,
    /// What was gathered, while it is known that this is what there is.
    content: Mutex<Option<ToRelease>>,
}

impl FollowedOrigin {
    pub(crate) fn new(server: Arc<dyn Origin>, follow: Follow) -> Self {
        Self { server, follow, content: Mutex::default() }
    }

    /// It has this; or it is not known what it has.
    #[cfg(feature = "file-origin")]
    pub(crate) fn set(&self, content: Option<ToRelease>) {
        *lock(&self.content) = content;
    }

    /// Whether more may be served the candidate: with what is in no release, such as the endpoints of a Cluster that is new, and with
    /// nothing that the control plane would not say any more.
    pub(crate) fn may_go_on(&self) -> bool {
        self.ready().is_ok() && lock(&self.content).as_ref().is_some_and(|of| !of.has_candidates)
    }

    /// Whether something may be lacking in this, which was gathered.
    pub(crate) fn may_lack(&self, content: &Arc<Vec<Held>>) -> bool {
        let is_it = |of: &ToRelease| Arc::ptr_eq(&of.content, content);
        lock(&self.content).as_ref().is_none_or(|of| of.may_lack || !is_it(of))
    }

    /// What is in releases of an authority, or of old-style names.
    pub(crate) fn types(&self, authority: Option<&str>) -> Types {
        self.follow.types(authority)
    }
}

/// But for what is gathered it is the server.
impl Origin for FollowedOrigin {
    fn kind(&self) -> &'static str {
        self.server.kind()
    }

    fn by_node(&self) -> ByNode {
        self.server.by_node()
    }

    fn is_authoritative(&self) -> bool {
        self.server.is_authoritative()
    }

    fn is_sotw(&self) -> bool {
        self.server.is_sotw()
    }

    fn terms(&self) -> Option<Terms> {
        self.server.terms()
    }

    fn selects(&self, selector: &Selector) -> Result<bool, String> {
        self.server.selects(selector)
    }

    fn room(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        self.server.room(scope)
    }

    fn mixed(&self) -> Vec<Arc<Scope>> {
        self.server.mixed()
    }

    fn ready(&self) -> Result<(), String> {
        match self.content() {
            Some(_) => self.server.ready(),
            None => Err("it is not known what there is to release".to_owned()),
        }
    }

    fn content(&self) -> Option<Arc<Vec<Held>>> {
        lock(&self.content).as_ref().map(|of| of.content.clone())
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        self.server.feed(scope, speaker);
    }
}
