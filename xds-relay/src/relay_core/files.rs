//! Files as an origin: content that is there as a whole, for every node.

use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use xds_transport::{Frame, TypeRules};
use xdstp_cache::{Resource, TypeUrl};
use xdstp_client::federation::{ByNode, Origin, Scope, ScopeKey, Speaker};
use xdstp_uri::ResourceName;

use crate::lock::lock;

/// A resource of an origin of files, ready to be served.
pub type FromFile = (TypeUrl, ResourceName, Resource<Frame>);

/// An origin of files: whoever reads them [sets](Self::set) what it has.
pub(crate) struct FileOrigin {
    name: String,
    rules: Arc<TypeRules>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Its content, and since when; `None` until it was read.
    content: Option<(Arc<Vec<FromFile>>, Instant)>,
    /// The scopes that have it, and some that are gone.
    fed: Vec<Weak<Scope>>,
}

impl FileOrigin {
    pub(crate) fn new(name: String, rules: Arc<TypeRules>) -> Self {
        Self { name, rules, state: Mutex::default() }
    }

    /// The content changed: every scope that it feeds changes with it.
    pub(crate) fn set(&self, mut resources: Vec<FromFile>, now: Instant) {
        // Rule 122: what is stored first may be sent first.
        resources.sort_by_key(|(type_url, ..)| self.rules.of(type_url).rank);
        let resources = Arc::new(resources);
        // A scope made after this is filled with the new content, one made before is replaced below.
        let fed: Vec<_> = {
            let State { content, fed } = &mut *lock(&self.state);
            *content = Some((resources.clone(), now));
            fed.iter().filter_map(Weak::upgrade).collect()
        };
        for scope in fed {
            scope.replace(&part_for(&scope.key, &resources), now);
        }
    }

    /// Everything it has.
    pub(crate) fn resources(&self) -> Arc<Vec<FromFile>> {
        lock(&self.state).content.as_ref().map(|(resources, _)| resources.clone()).unwrap_or_default()
    }
}

impl Origin for FileOrigin {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "files"
    }

    fn by_node(&self) -> ByNode {
        ByNode::Nothing
    }

    fn is_authoritative(&self) -> bool {
        true
    }

    fn ready(&self) -> Result<(), String> {
        match lock(&self.state).content {
            Some(_) => Ok(()),
            None => Err(format!("the files of origin {:?} were not read yet", self.name)),
        }
    }

    fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
        let State { content, fed } = &mut *lock(&self.state);
        if fed.len() == fed.capacity() {
            fed.retain(|scope| scope.strong_count() > 0);
        }
        fed.push(Arc::downgrade(scope));
        // Under the lock, or a change might come in between and be undone; nobody is served from the scope yet.
        if let Some((resources, read_at)) = content {
            scope.replace(&part_for(&scope.key, resources), *read_at);
        }
    }
}

/// What of an origin's files belongs to a scope.
fn part_for(key: &ScopeKey, resources: &[FromFile]) -> Vec<FromFile> {
    let belongs = |name: &ResourceName| match key {
        ScopeKey::Authority(authority) => name.authority() == Some(authority.as_str()),
        _ => name.is_opaque(),
    };
    resources.iter().filter(|(_, name, _)| belongs(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_that_are_gone_are_not_kept() {
        let origin = FileOrigin::new("files".to_owned(), Arc::new(TypeRules::envoy()));
        let feed = |authority: usize| {
            let scope = Arc::new(Scope::authoritative(ScopeKey::Authority(authority.to_string()), 0, 1));
            origin.feed(&scope, &|| Speaker { label: String::new(), node: Default::default() });
            scope
        };
        let kept: Vec<_> = (0..100).map(feed).collect();
        (100..10_000).map(feed).for_each(drop);
        let known = lock(&origin.state).fed.len();
        assert!(kept.len() <= known && known <= 4 * kept.len(), "{known}");
    }
}
