//! An origin whose content is there as a whole, for every node: files, or what a program makes up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use xds_transport::{Frame, TypeRules};
use xdstp_cache::{Resource, Selector, TypeUrl, Variant};
use xdstp_uri::ResourceName;

use crate::federation::lock::lock;
use crate::federation::origin::{ByNode, Held, Origin, Speaker, Unreadable};
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::turns::Turns;

/// An origin of snapshots: whoever has the content [sets](Self::set) it, as often as it changes, and every scope follows.
///
/// A name may have variants ([`Frame::of_variant`], TP2): who selects is served the one that is for it. What is not in a snapshot
/// does not exist, and who has it is told so. Before the first one is set nothing is known of anything, but for what it is
/// [remembered](Self::remember) to have: who asks waits.
///
/// ```
/// use std::time::Instant;
/// use xds_transport::{Frame, TypeRules};
/// use xdstp_client::federation::{Origin, SnapshotOrigin};
///
/// let origin = SnapshotOrigin::new("inventory", TypeRules::envoy().into());
/// assert!(origin.ready().is_err());
/// let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
/// // Field 1 of a cluster is its name.
/// let web = Frame::of_message(&type_url, b"\x0a\x03web").into_resource(None);
/// origin.set(vec![(type_url, "web".parse()?, web)], Instant::now());
/// assert!(origin.ready().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SnapshotOrigin {
    kind: &'static str,
    rules: Arc<TypeRules>,
    state: Mutex<State>,
    /// Who fills scopes.
    filling: Turns,
}

#[derive(Default)]
struct State {
    /// Its content, and since when; `None` until it was set.
    content: Option<(Arc<Vec<Held>>, Instant)>,
    /// What may be there beside that.
    unreadable: Arc<[Unreadable]>,
    /// What it is known to have before that.
    known: Option<(Arc<Vec<Held>>, Instant)>,
    /// The scopes that have it, and some that are gone.
    fed: Vec<Weak<Scope>>,
    /// Those of them that do not have what it is now.
    behind: Vec<Weak<Scope>>,
}

impl SnapshotOrigin {
    /// Without a snapshot yet. `kind` is what it is in a word for people; the rules say which types come first.
    pub fn new(kind: &'static str, rules: Arc<TypeRules>) -> Self {
        Self { kind, rules, state: Mutex::default(), filling: Turns::default() }
    }

    /// The content is this from now on: every scope that it feeds changes with it. While another thread is at that for what was
    /// set before, or this one is, this is done after that, by whoever is at it.
    pub fn set(&self, resources: Vec<Held>, now: Instant) {
        self.set_but(resources, Vec::new(), now);
    }

    /// The same, but that of some names it is not known whether they are there: nobody is told that they are gone.
    pub fn set_but(&self, mut resources: Vec<Held>, unreadable: Vec<Unreadable>, now: Instant) {
        // Rule 122: what is stored first may be sent first.
        resources.sort_by_key(|(type_url, ..)| self.rules.of(type_url).rank);
        {
            let State { content, unreadable: unread, known, fed, behind } = &mut *lock(&self.state);
            (*content, *known) = (Some((Arc::new(resources), now)), None);
            *unread = unreadable.into();
            fed.retain(|scope| scope.strong_count() > 0);
            behind.clone_from(fed);
        }
        self.fill();
    }

    /// It has these, from before a restart, and of what else it has nothing is known: clients are served them, as stale, and told of nothing
    /// that it is not there. Once it [was set](Self::set) this changes nothing.
    pub fn remember(&self, mut resources: Vec<Held>, now: Instant) {
        resources.sort_by_key(|(type_url, ..)| self.rules.of(type_url).rank);
        {
            let State { content, known, fed, behind, .. } = &mut *lock(&self.state);
            if content.is_some() {
                return;
            }
            *known = Some((Arc::new(resources), now));
            fed.retain(|scope| scope.strong_count() > 0);
            behind.clone_from(fed);
        }
        self.fill();
    }

    /// Whether all that is known of it was [remembered](Self::remember).
    pub fn is_remembered(&self) -> bool {
        lock(&self.state).known.is_some()
    }

    /// Gives the scopes that are behind what there is now. One at a time, or what is older might come last; and not under the
    /// lock, for those are woken who watch.
    fn fill(&self) {
        self.filling.take(|| {
            let (content, unreadable, behind) = {
                let State { content, unreadable, known, behind, .. } = &mut *lock(&self.state);
                let Some(there) = content.clone().or_else(|| known.clone()) else { return };
                (there, content.is_some().then(|| unreadable.clone()), std::mem::take(behind))
            };
            let (resources, set_at) = content;
            for scope in behind.iter().filter_map(Weak::upgrade) {
                let part = part_for(&scope.key, &resources);
                match &unreadable {
                    Some(unreadable) => scope.replace_but(&part, &own_of(&scope.key, unreadable), set_at),
                    None => scope.remember(&part, set_at),
                }
            }
        });
    }

    /// Everything it has.
    pub fn resources(&self) -> Arc<Vec<Held>> {
        lock(&self.state).content.as_ref().map(|(resources, _)| resources.clone()).unwrap_or_default()
    }
}

impl Origin for SnapshotOrigin {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn by_node(&self) -> ByNode {
        ByNode::Nothing
    }

    fn is_authoritative(&self) -> bool {
        true
    }

    fn ready(&self) -> Result<(), String> {
        match &*lock(&self.state) {
            State { content: Some(_), .. } | State { known: Some(_), .. } => Ok(()),
            _ => Err("its content has not come yet".to_owned()),
        }
    }

    /// Each has a scope of its own: there may be variants at any time.
    fn selects(&self, _: &Selector) -> Result<bool, String> {
        Ok(true)
    }

    /// Not what it had before a restart: that is not all, and what is made of it would lack the rest.
    fn content(&self) -> Option<Arc<Vec<Held>>> {
        (!self.is_remembered()).then(|| self.resources())
    }

    fn unreadable(&self) -> Arc<[Unreadable]> {
        lock(&self.state).unreadable.clone()
    }

    fn feed(&self, scope: &Arc<Scope>, _: &dyn Fn() -> Speaker) {
        {
            let State { fed, behind, .. } = &mut *lock(&self.state);
            for scopes in [fed, behind] {
                if scopes.len() == scopes.capacity() {
                    scopes.retain(|scope| scope.strong_count() > 0);
                }
                scopes.push(Arc::downgrade(scope));
            }
        }
        self.fill();
    }
}

/// Whether a name belongs to a scope.
fn belongs(key: &ScopeKey, name: &ResourceName) -> bool {
    match key.of_all() {
        ScopeKey::Authority(authority) => name.authority() == Some(authority.as_str()),
        _ => name.is_opaque(),
    }
}

/// What of what may be there belongs to a scope, whichever variants it has.
fn own_of(key: &ScopeKey, unreadable: &[Unreadable]) -> Vec<Unreadable> {
    unreadable.iter().filter(|of| belongs(key, &of.name)).cloned().collect()
}

/// What of a snapshot belongs to a scope: of each name the variant for who selects as it does, if there are any.
fn part_for(key: &ScopeKey, resources: &[Held]) -> Vec<Held> {
    let own = || resources.iter().filter(|(_, name, _)| belongs(key, name));
    // Of names that have variants: all that there are of each.
    let mut varied: HashMap<(&TypeUrl, &ResourceName), Vec<Arc<Variant>>> = HashMap::new();
    for (type_url, name, _) in own().filter(|(.., resource)| resource.value.variant().is_some()) {
        varied.entry((type_url, name)).or_default();
    }
    if varied.is_empty() {
        return own().cloned().collect();
    }
    let variant = |resource: &Resource<Frame>| {
        resource.value.variant().cloned().unwrap_or_else(|| Arc::new(Variant::plain().clone()))
    };
    for (type_url, name, resource) in own() {
        if let Some(variants) = varied.get_mut(&(type_url, name)) {
            variants.push(variant(resource));
        }
    }
    let selector = key.selector().map_or_else(Selector::default, |selector| (**selector).clone());
    let chosen: HashMap<_, _> = varied.iter().map(|(of, variants)| (*of, selector.choose(variants))).collect();
    let is_chosen = |(type_url, name, resource): &&Held| match chosen.get(&(type_url, name)) {
        Some(chosen) => chosen.as_ref() == Some(&variant(resource)),
        None => true,
    };
    own().filter(is_chosen).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_that_are_gone_are_not_kept() {
        let origin = SnapshotOrigin::new("test", Arc::new(TypeRules::envoy()));
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
