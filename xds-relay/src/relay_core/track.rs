//! A track: where what a release has is served.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use bytes::Bytes;
use xds_transport::{Frame, TypeRules};
use xdstp_cache::Stored;
use xdstp_client::federation::{Held, NodeGroup, Origin as _, Scope, ScopeKey, SnapshotOrigin, Speaker};

use crate::lock::lock;

/// Scopes of the same names as those of an origin, with the content of a release. They share its bodies, and node groups share scopes.
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

    /// How many names are asked for on it, as such, that it does not have.
    pub(crate) fn denied(&self) -> usize {
        let scopes: Vec<_> = lock(&self.scopes).values().filter_map(Weak::upgrade).collect();
        let is_denied = |stored: Stored<'_, Frame>| stored.watchers > 0 && stored.resource.is_none();
        let mut denied = 0;
        scopes.iter().for_each(|scope| scope.visit_stored(is_denied, |is| denied += usize::from(is)));
        denied
    }

    /// Where those are served on it who would be served from a scope of the origin.
    pub(crate) fn scope(&self, of: &Scope) -> Arc<Scope> {
        let key = of_all_groups(&of.key);
        let (scope, is_new) = {
            let mut scopes = lock(&self.scopes);
            scopes.retain(|_, scope| scope.strong_count() > 0);
            match scopes.get(&key).and_then(Weak::upgrade) {
                Some(scope) => (scope, false),
                None => {
                    let scope = Arc::new(Scope::authoritative(key.clone(), of.origin(), self.slice));
                    scopes.insert(key, Arc::downgrade(&scope));
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

/// A release is the same for all nodes, also where its origin is asked for each of their groups.
fn of_all_groups(key: &ScopeKey) -> ScopeKey {
    match key {
        ScopeKey::Group(origin, _) => ScopeKey::Group(*origin, NodeGroup::new(ALL.to_vec(), "every node".to_owned())),
        ScopeKey::Selected(of, selector) => ScopeKey::Selected(Box::new(of_all_groups(of)), selector.clone()),
        _ => key.clone(),
    }
}

/// The key of the group in place of all: of no node group that there is.
const ALL: &[u8] = b"\xffreleases";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_node_groups_are_served_from_one_scope_and_each_origin_and_authority_from_its_own() {
        let track = Track::new(Arc::default(), 16);
        let group = |origin, name: &str| ScopeKey::Group(origin, NodeGroup::new(name.into(), name.to_owned()));
        let authority = |name: &str| ScopeKey::Authority(name.to_owned());
        let scopes = [group(0, "a"), group(0, "b"), group(1, "a"), authority("a"), authority("b")]
            .map(|key| track.scope(&Scope::authoritative(key, 0, 16)));
        let same = |one: usize, other: usize| Arc::ptr_eq(&scopes[one], &scopes[other]);
        assert!(same(0, 1) && !same(0, 2) && !same(3, 4));
        assert!(scopes[0].key != group(0, "a") && scopes[3].key == authority("a"));
    }
}
