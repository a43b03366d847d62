//! Which scope a name belongs to, and which origin feeds it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::RwLock;
use xdstp_cache::{Selector, TypeUrl};
use xdstp_uri::Locator;

use crate::federation::demand::Linger;
use crate::federation::interner::Interner;
use crate::federation::last_known_good::LastKnownGood;
use crate::federation::lock::lock;
use crate::federation::node_group::{NodeGroup, towards_origin};
use crate::federation::origin::{ByNode, Origin, Speaker};
use crate::federation::place::Place;
use crate::federation::realm::Authorities;
use crate::federation::scope::Scope;
use crate::federation::scope_key::ScopeKey;
use crate::federation::share::{OverLimit, Quota};

/// How many scopes that nobody uses are kept for what they remember.
const MAX_RESTING: usize = 1024;

/// Scopes, made as names are asked for, and the origins that feed them.
pub struct Federation {
    /// By position: more may come, and none goes.
    origins: RwLock<Vec<Arc<dyn Origin>>>,
    authorities: Arc<Authorities>,
    /// Who it is where it does not speak for anybody, encoded.
    node: Bytes,
    /// How long a name that nobody wants any more stays subscribed upstream, and how many do.
    linger: Linger,
    pub(crate) limits: Limits,
    /// What is equal in different node groups, for as long as anybody holds it.
    interner: Arc<Interner>,
    last_known_good: Option<Arc<dyn LastKnownGood>>,
    scopes: Mutex<BTreeMap<ScopeKey, Arc<Scope>>>,
    /// How many routes there were.
    routes: AtomicU64,
}

/// What a federation is made of.
pub struct Settings {
    /// In the order that positions count.
    pub origins: Vec<Arc<dyn Origin>>,
    /// Which of them is whose.
    pub authorities: Arc<Authorities>,
    /// Who it is where it does not speak for anybody, encoded.
    pub node: Bytes,
    /// How long a name that nobody wants any more stays subscribed upstream.
    pub linger: Duration,
    /// What may be used up.
    pub limits: Limits,
    /// The one that its origins have.
    pub interner: Arc<Interner>,
    /// Where it is kept what scopes know.
    pub last_known_good: Option<Arc<dyn LastKnownGood>>,
}

/// What all that is served may use up.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Node groups that are asked for apart.
    pub groups: Arc<Quota>,
    /// Authorities of which something is asked for.
    pub authorities: Arc<Quota>,
    /// Names that are asked for, by their weight.
    pub names: Arc<Quota>,
    /// Authorities that one subscriber may ask for names of.
    pub authorities_per_stream: usize,
    /// How many names are looked at under one hold of a scope's lock.
    pub names_per_turn: usize,
    /// Names, globs and wildcards that nobody wants any more and that stay subscribed: beyond that, those are given up that
    /// would be first.
    pub lingering: Arc<Quota>,
}

impl Federation {
    /// Without a scope yet. Nothing is fed before somebody wants something.
    pub fn new(settings: Settings) -> Arc<Self> {
        let Settings { origins, authorities, node, linger, limits, interner, last_known_good } = settings;
        let (scopes, routes) = (Mutex::default(), AtomicU64::new(0));
        let linger = Linger { time: linger, room: limits.lingering.clone() };
        let origins = RwLock::new(origins);
        Arc::new(Self { origins, authorities, node, linger, limits, interner, last_known_good, scopes, routes })
    }

    /// By position.
    pub fn origins(&self) -> Vec<Arc<dyn Origin>> {
        self.origins.read().clone()
    }

    pub(super) fn origin(&self, position: usize) -> Option<Arc<dyn Origin>> {
        self.origins.read().get(position).cloned()
    }

    /// There are these, too, at the next positions.
    pub(super) fn add_origins(&self, new: Vec<Arc<dyn Origin>>) {
        self.origins.write().extend(new);
    }

    /// Which of them is whose.
    pub(super) fn authorities(&self) -> &Authorities {
        &self.authorities
    }

    /// Which of them has the names of an authority, or without it old-style names: its position.
    pub fn origin_of(&self, authority: Option<&str>) -> usize {
        self.authorities.origin_of(authority)
    }

    /// The scopes that are shared.
    pub fn scopes(&self) -> Vec<Arc<Scope>> {
        lock(&self.scopes).values().cloned().collect()
    }

    /// The scope of a key, if there is one that is shared.
    pub fn scope_of(&self, key: &ScopeKey) -> Option<Arc<Scope>> {
        lock(&self.scopes).get(key).cloned()
    }

    /// Whether it is of an authority that the configuration gives to an origin: there are as many of these as that says, and no
    /// stranger is to take their places.
    pub fn lists(&self, key: &ScopeKey) -> bool {
        match key.of_all() {
            ScopeKey::Authority(authority) => key.selector().is_none() && self.authorities().lists(authority),
            _ => false,
        }
    }

    /// How many bodies are held for node groups, equal ones once.
    pub fn bodies(&self) -> usize {
        self.interner.bodies()
    }

    /// What routes go by here that are about to be made: no others ever did.
    pub fn number_routes(&self) -> u64 {
        self.routes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Drops scopes that nobody uses and nothing is subscribed for: to be called every second or so.
    pub fn sweep(&self, now: Instant) {
        let mut scopes = lock(&self.scopes);
        // Streams get scopes under this lock only: whoever is counted once is the map itself.
        let unused = scopes.iter().filter(|(_, scope)| Arc::strong_count(scope) == 1 && scope.is_idle());
        let mut supplies = Vec::new();
        let unused: Vec<_> = unused
            .map(|(key, scope)| {
                supplies.extend(scope.disconnect());
                (scope.rest(now), key.clone())
            })
            .collect();
        let (mut gone, mut resting): (Vec<_>, Vec<_>) = unused.into_iter().partition(|(since, _)| since.is_none());
        // Of too many, those that have rested longest go.
        resting.sort_unstable();
        resting.truncate(resting.len().saturating_sub(MAX_RESTING));
        gone.append(&mut resting);
        let dropped: Vec<_> = gone.iter().filter_map(|(_, key)| scopes.remove(key)).collect();
        // Before another scope of the same key can be made: what that notes is newer.
        if let Some(kept) = &self.last_known_good {
            dropped.iter().for_each(|scope| kept.dropped(scope.clone()));
        }
        drop(scopes);
        // Not under the lock. Streams end by it: how, is anybody's code, which may want a scope. Seats are left while their scopes
        // are there.
        drop(supplies);
        drop(dropped);
        self.interner.sweep();
    }

    /// The scope in which a program of one node finds names of an authority, or without it old-style names, at an origin,
    /// by what it selects; because a source beside them says so, if that is it.
    pub(crate) fn watched_scope(
        &self,
        authority: Option<&str>,
        (origin, is_adjacent): (usize, bool),
        selector: Option<&Arc<Selector>>,
    ) -> Result<Arc<Scope>, OverLimit> {
        let key = authority.map_or(ScopeKey::EveryNode, |authority| ScopeKey::Authority(authority.to_owned()));
        let key = if is_adjacent { ScopeKey::Adjacent(Box::new(key), origin) } else { key };
        let speaker = || Speaker { label: labeled("xds", selector), node: self.node.clone() };
        self.scope(key.selected(selector), origin, &speaker)
    }

    /// The scope in which a program finds what a document of an origin has of a type.
    pub(crate) fn document_scope(
        &self,
        type_url: &TypeUrl,
        locator: &Locator<'_>,
        origin: usize,
    ) -> Result<Arc<Scope>, OverLimit> {
        let key = ScopeKey::Document(type_url.clone(), locator.without_directives().to_canonical().into_owned());
        self.scope(key, origin, &|| Speaker { label: "documents".to_owned(), node: Bytes::new() })
    }

    /// The program has a use for the resources of a type from now on: it reads what came before from who does not send it again.
    pub(crate) fn reread(&self, type_url: &TypeUrl) {
        self.scopes().iter().filter(|scope| scope.is_watched()).for_each(|scope| scope.reread(type_url));
    }

    /// Whether nothing is left that [`sweep`](Self::sweep) could take.
    pub(crate) fn is_swept(&self) -> bool {
        lock(&self.scopes).values().all(|scope| !scope.has_supply() || scope.subscriber_count() > 0)
    }

    /// Whether an origin speaks SotW.
    pub(crate) fn is_sotw(&self, origin: usize) -> bool {
        self.origin(origin).is_some_and(|origin| origin.is_sotw())
    }

    /// The scopes of authorities of an origin that may have names of others.
    pub(crate) fn mixed(&self, origin: usize) -> Vec<Arc<Scope>> {
        self.origin(origin).map(|origin| origin.mixed()).unwrap_or_default()
    }

    /// Where names of an authority, or without it old-style names, are served from.
    pub(crate) fn place<'a>(&self, authority: Option<&'a str>) -> Place<'a> {
        let origin = self.authorities.origin_of(authority);
        let Some(authority) = authority else { return Place::Group { origin } };
        if self.is_by_node(origin) { Place::Group { origin } } else { Place::Authority { authority, origin } }
    }

    /// Whether all that an origin has is each node group's own.
    pub(crate) fn is_by_node(&self, origin: usize) -> bool {
        self.origin(origin).is_some_and(|origin| origin.by_node() == ByNode::Everything)
    }

    /// Whether an origin has the same for every node.
    pub(crate) fn is_alike(&self, origin: usize) -> bool {
        self.origin(origin).is_some_and(|origin| origin.by_node() == ByNode::Nothing)
    }

    /// Whether an origin is asked apart for a selector.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn selects(&self, origin: usize, selector: &Selector) -> Result<bool, String> {
        self.origin(origin).map_or(Ok(false), |origin| origin.selects(selector))
    }

    pub(crate) fn authority_scope(
        &self,
        authority: &str,
        origin: usize,
        selector: Option<&Arc<Selector>>,
    ) -> Result<Arc<Scope>, OverLimit> {
        let scope = self.scope(ScopeKey::Authority(authority.to_owned()).selected(selector), origin, &|| {
            self.own_speaker(selector)
        })?;
        // Its names may have become another origin's meanwhile.
        self.follow(&scope);
        Ok(scope)
    }

    /// Itself, where it does not speak for anybody.
    pub(super) fn own_speaker(&self, selector: Option<&Arc<Selector>>) -> Speaker {
        Speaker { label: labeled("xdstp", selector), node: self.node.clone() }
    }

    /// Of which key the scope of a group at an origin is.
    pub(crate) fn group_key(&self, origin: usize, group: &NodeGroup, selector: Option<&Arc<Selector>>) -> ScopeKey {
        let key = if self.is_alike(origin) { ScopeKey::EveryNode } else { ScopeKey::Group(origin, group.clone()) };
        key.selected(selector)
    }

    /// The scope of a group at an origin; the node of the routes may speak for it from now on.
    pub(crate) fn group_scope(
        &self,
        origin: usize,
        group: &NodeGroup,
        selector: Option<&Arc<Selector>>,
        (node, routes): (&Bytes, u64),
    ) -> Result<Arc<Scope>, OverLimit> {
        let key = self.group_key(origin, group, selector);
        if *key.of_all() == ScopeKey::EveryNode {
            let speaker = || Speaker { label: labeled("", selector), node: Bytes::new() };
            return self.scope(key, origin, &speaker);
        }
        let (label, node) = (labeled(group.label(), selector), towards_origin(node));
        let speaker = || Speaker { label: label.clone(), node: node.clone() };
        let scope = self.scope(key, origin, &speaker)?;
        scope.join(routes, node);
        Ok(scope)
    }

    /// A scope that these routes do not share. Of those there may be one for each set of parameters: these count as the
    /// groups do, which have a stream upstream as well.
    pub(crate) fn private_scope(
        &self,
        routes: u64,
        origin: usize,
        selector: Option<&Arc<Selector>>,
        node: &Bytes,
    ) -> Result<Arc<Scope>, OverLimit> {
        let share = selector.map(|_| self.limits.groups.take()).transpose()?;
        let key = ScopeKey::Private(routes).selected(selector);
        let of = self.origin(origin);
        let room = of.as_ref().and_then(|origin| origin.room(&key));
        let scope = Scope::streamed(key, origin, Duration::ZERO, room, self.limits.names_per_turn);
        let scope = Arc::new(scope.counted(share));
        let speaker = || Speaker { label: format!("stream {routes}"), node: towards_origin(node) };
        of.into_iter().for_each(|origin| origin.feed(&scope, &speaker));
        Ok(scope)
    }

    /// The scope of a key, made and fed if there is none; `speaker` is who speaks for it upstream. While it is being fed, by an
    /// origin that may want scopes for that, too, others have it as it is.
    fn scope(&self, key: ScopeKey, position: usize, speaker: &dyn Fn() -> Speaker) -> Result<Arc<Scope>, OverLimit> {
        let origin = self.origin(position);
        let known = lock(&self.scopes).get(&key).cloned();
        let (scope, is_new) = match known {
            Some(scope) => (scope, false),
            None => self.new_scope(key, position)?,
        };
        if origin.is_some_and(|origin| is_new || !origin.is_authoritative()) {
            self.feed(&scope, speaker);
        }
        Ok(scope)
    }

    /// The scope of a key, made if there is none still; and whether it was.
    fn new_scope(&self, key: ScopeKey, position: usize) -> Result<(Arc<Scope>, bool), OverLimit> {
        // Not under the lock: an origin is anybody's code.
        let origin = self.origin(position);
        let is_authoritative = origin.as_ref().is_some_and(Origin::is_authoritative);
        let terms = origin.as_ref().and_then(Origin::terms);
        let room = origin.filter(|_| !is_authoritative).and_then(|origin| origin.room(&key));
        let mut scopes = lock(&self.scopes);
        if let Some(scope) = scopes.get(&key) {
            return Ok((scope.clone(), false));
        }
        let share = match key.of_all() {
            _ if self.lists(&key) => None,
            ScopeKey::Authority(_) => Some(self.limits.authorities.take()?),
            ScopeKey::Group(..) => Some(self.limits.groups.take()?),
            // Each set of parameters is one more, and clients have as many as they like.
            ScopeKey::EveryNode if key.selector().is_some() => Some(self.limits.groups.take()?),
            ScopeKey::EveryNode
            | ScopeKey::Private(_)
            | ScopeKey::Document(..)
            | ScopeKey::Adjacent(..)
            | ScopeKey::Selected(..) => None,
        };
        let slice = self.limits.names_per_turn;
        let scope = match (is_authoritative, terms) {
            (true, None) => Scope::authoritative(key.clone(), position, slice),
            (true, Some(terms)) => Scope::authoritative(key.clone(), position, slice).on(terms),
            (false, Some(terms)) => Scope::watched(key.clone(), position, room, slice, terms),
            (false, None) => Scope::streamed(key.clone(), position, self.linger.clone(), room, slice),
        };
        let kept = self.last_known_good.as_ref().filter(|_| !is_authoritative);
        let scope = match kept.and_then(|kept| kept.load(&key, position)) {
            Some(kept) => scope.keeps(kept),
            None => scope,
        };
        let scope = Arc::new(scope.counted(share));
        scopes.insert(key, scope.clone());
        Ok((scope, true))
    }
}

/// Whom an origin is asked for, for people.
fn labeled(label: &str, selector: Option<&Arc<Selector>>) -> String {
    match selector {
        Some(selector) => format!("{label} {selector}").trim_start().to_owned(),
        None => label.to_owned(),
    }
}
