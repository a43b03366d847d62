//! An origin as one program is served by it.

use std::sync::Arc;

use xdstp_cache::Selector;

use crate::federation::{ByNode, Held, Origin, RequestRoom, Scope, ScopeKey, Speaker, Terms};

/// The same origin, on the terms of the program: and there is one node, the program's.
pub(super) struct OnTerms<T> {
    pub(super) origin: T,
    pub(super) terms: Terms,
}

impl<T: Origin> Origin for OnTerms<T> {
    fn kind(&self) -> &'static str {
        self.origin.kind()
    }

    fn by_node(&self) -> ByNode {
        ByNode::Nothing
    }

    fn is_authoritative(&self) -> bool {
        self.origin.is_authoritative()
    }

    fn is_sotw(&self) -> bool {
        self.origin.is_sotw()
    }

    fn terms(&self) -> Option<Terms> {
        Some(self.terms.clone())
    }

    fn selects(&self, selector: &Selector) -> Result<bool, String> {
        self.origin.selects(selector)
    }

    fn room(&self, scope: &ScopeKey) -> Option<Arc<RequestRoom>> {
        self.origin.room(scope)
    }

    fn mixed(&self) -> Vec<Arc<Scope>> {
        self.origin.mixed()
    }

    fn ready(&self) -> Result<(), String> {
        self.origin.ready()
    }

    fn content(&self) -> Option<Arc<Vec<Held>>> {
        self.origin.content()
    }

    fn feed(&self, scope: &Arc<Scope>, speaker: &dyn Fn() -> Speaker) {
        self.origin.feed(scope, speaker);
    }
}
