//! Which scope is which, over restarts and changes of the configuration: versions mean nothing to another origin than the one
//! that gave them, nor has a group of nodes anything of another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::federation::{ScopeKey, lock};
use crate::state::format::ScopeId;

/// What tells the scopes of a program from those of another that kept something in the same place.
#[derive(Clone, Debug)]
pub struct Identities {
    /// By position: none of what is not kept.
    origins: Vec<Option<String>>,
    /// What tells whoever says now what an origin has from who said it before, by position: nothing where `origins` do.
    servers: Vec<Option<String>>,
    /// Origins that others speak for than these servers, since the program began.
    moved: Arc<Mutex<BTreeSet<usize>>>,
    /// How nodes are grouped: without it, groups of the same key may be others.
    grouping: Option<String>,
    /// Who asks.
    node: String,
    /// What is asked for with dynamic parameters is kept, by these.
    keeps_selections: bool,
}

impl Identities {
    /// Of origins, by position, each by what tells it from every other; nothing is kept of those without. Of groups of nodes
    /// nothing is kept without a `grouping`, which says how they are made. `node` is who asks for everything else.
    pub fn new(origins: Vec<Option<String>>, grouping: Option<String>, node: String) -> Self {
        let (servers, moved) = (Vec::new(), Arc::default());
        Self { origins, servers, moved, grouping, node, keeps_selections: false }
    }

    /// Tells by position who speaks for an origin now: what others said in its name is served, and asked for anew, for their versions
    /// mean nothing to these. Without that, versions are those of whoever has the same identity.
    #[must_use]
    pub fn with_servers(self, servers: Vec<Option<String>>) -> Self {
        Self { servers, ..self }
    }

    /// Keeps what is asked for with dynamic parameters, too (TP2): for whoever chooses these himself, as a program does. The clients of a
    /// relay may choose any.
    #[must_use]
    pub fn with_selections(self) -> Self {
        Self { keeps_selections: true, ..self }
    }

    /// Others speak for an origin from now on.
    pub(crate) fn moves(&self, position: usize) {
        lock(&self.moved).insert(position);
    }

    /// Whether others speak for it than when the program began.
    pub(crate) fn has_moved(&self, position: usize) -> bool {
        lock(&self.moved).contains(&position)
    }

    /// Who says what an origin has, where that is told: none if it was not always the same who did.
    pub(crate) fn said_by(&self, position: usize) -> Option<&str> {
        self.servers.get(position)?.as_deref().filter(|_| !self.has_moved(position))
    }

    /// Whether somebody else said it than who would now.
    pub(crate) fn is_of_another(&self, position: usize, said_by: &str) -> bool {
        self.servers.get(position).is_some_and(Option::is_some) && self.said_by(position) != Some(said_by)
    }

    /// Which origin's a scope is, of which nothing else is said: none if it is not kept.
    pub(crate) fn whose(&self, key: &ScopeKey, position: usize) -> Option<String> {
        let origin = self.origins.get(position)?.as_ref()?;
        match key {
            ScopeKey::Authority(_) | ScopeKey::EveryNode => Some(self.of_authorities(origin)),
            ScopeKey::Group(..) => self.of_groups(origin),
            ScopeKey::Selected(of, _) if self.keeps_selections => self.whose(of, position),
            ScopeKey::Private(_) | ScopeKey::Document(..) | ScopeKey::Adjacent(..) | ScopeKey::Selected(..) => None,
        }
    }

    /// All that there may be, and the positions of the origins.
    pub(crate) fn whose_all(&self) -> BTreeMap<String, usize> {
        let origins =
            self.origins.iter().enumerate().filter_map(|(position, origin)| Some((position, origin.as_ref()?)));
        let all = origins.flat_map(|(position, origin)| {
            let whose = [Some(self.of_authorities(origin)), self.of_groups(origin)];
            whose.into_iter().flatten().map(move |whose| (whose, position))
        });
        all.collect()
    }

    fn of_authorities(&self, origin: &str) -> String {
        ScopeId::of(&[b"authorities", origin.as_bytes(), self.node.as_bytes()]).into_text()
    }

    fn of_groups(&self, origin: &str) -> Option<String> {
        let grouping = self.grouping.as_ref()?;
        Some(ScopeId::of(&[b"groups", origin.as_bytes(), grouping.as_bytes()]).into_text())
    }

    /// What a scope is kept as, if it is.
    pub(crate) fn of(&self, key: &ScopeKey, position: usize) -> Option<ScopeId> {
        let origin = self.origins.get(position)?.as_ref()?.as_bytes();
        match key {
            ScopeKey::Authority(authority) => {
                Some(ScopeId::of(&[b"authority", origin, self.node.as_bytes(), authority.as_bytes()]))
            }
            ScopeKey::Group(_, group) => {
                let grouping = self.grouping.as_ref()?.as_bytes();
                Some(ScopeId::of(&[b"group", origin, grouping, group.key()]))
            }
            ScopeKey::EveryNode => Some(ScopeId::of(&[b"every node", origin, self.node.as_bytes()])),
            ScopeKey::Selected(of, selector) if self.keeps_selections => {
                Some(self.of(of, position)?.selected(selector))
            }
            ScopeKey::Private(_) | ScopeKey::Document(..) | ScopeKey::Adjacent(..) | ScopeKey::Selected(..) => None,
        }
    }
}
