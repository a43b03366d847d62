//! A track: where what a release has is served.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use bytes::Bytes;
use xds_transport::TypeRules;
use xdstp_client::federation::{Held, Origin as _, Scope, ScopeKey, SnapshotOrigin, Speaker};

use crate::lock::lock;

/// Scopes of the same names as those of an origin, with the content of a release. They share its bodies.
pub(crate) struct Track {
    content: SnapshotOrigin,
    scopes: Mutex<BTreeMap<ScopeKey, Weak<Scope>>>,
    /// How many names are looked at under one hold of a scope's lock.
    slice: usize,
}

impl Track {
    /// Nothing is known of what is on it.
    pub(crate) fn new(rules: Arc<TypeRules>, slice: usize) -> Self {
        Self { content: SnapshotOrigin::new("releases", rules), scopes: Mutex::default(), slice }
    }

    /// It has this from now on: who is on it is told what is otherwise.
    pub(crate) fn set(&self, content: Vec<Held>, now: Instant) {
        self.content.set(content, now);
    }

    /// Where those are served on it who would be served from a scope of the origin.
    pub(crate) fn scope(&self, of: &Scope) -> Arc<Scope> {
        let (scope, is_new) = {
            let mut scopes = lock(&self.scopes);
            scopes.retain(|_, scope| scope.strong_count() > 0);
            match scopes.get(&of.key).and_then(Weak::upgrade) {
                Some(scope) => (scope, false),
                None => {
                    let scope = Arc::new(Scope::authoritative(of.key.clone(), of.origin(), self.slice));
                    scopes.insert(of.key.clone(), Arc::downgrade(&scope));
                    (scope, true)
                }
            }
        };
        if is_new {
            self.content.feed(&scope, &|| Speaker { label: String::new(), node: Bytes::new() });
        }
        scope
    }
}
