//! Which of the scopes of a stream what comes over it belongs to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::changes::Changes;
use crate::federation::of_origin::OfOrigin;
use crate::federation::realm::Authorities;
use crate::federation::scope::Scope;
use crate::federation::scopes::{Found, Scopes};

/// The scopes of a stream that something of a message belongs to, and what of it: by authority on the stream of `xdstp:`
/// names, where there may be one of old-style names, too; a node group's own stream feeds just its scope.
pub(crate) struct Places<'a> {
    scopes: &'a Scopes,
    authorities: &'a Authorities,
    /// Everything is for this one.
    own: Option<usize>,
    /// That of old-style names, where there are others.
    of_every_node: Option<usize>,
    found: Vec<Part>,
    /// Those looked for; `None` if there is none.
    by_authority: HashMap<String, Option<usize>>,
}

/// A scope, and what of a message belongs to it.
pub(crate) struct Part {
    pub(crate) scope: Arc<Scope>,
    pub(crate) of_origin: Arc<OfOrigin>,
    pub(crate) changes: Changes,
}

/// Resources that are in scopes of other authorities than their names', because an alias is wanted there.
#[derive(Default)]
pub(crate) struct Elsewhere(HashMap<(TypeUrl, ResourceName), BTreeSet<String>>);

impl Elsewhere {
    pub(crate) fn forget(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        if !self.0.is_empty() {
            self.0.remove(&(type_url.clone(), name.clone()));
        }
    }

    fn authorities(&self, type_url: &TypeUrl, name: &ResourceName) -> impl Iterator<Item = &str> {
        let known = if self.0.is_empty() { None } else { self.0.get(&(type_url.clone(), name.clone())) };
        known.into_iter().flatten().map(String::as_str)
    }
}

impl<'a> Places<'a> {
    pub(crate) fn of(scopes: &'a Scopes, authorities: &'a Authorities) -> Self {
        let (own, of_every_node) = (scopes.own(), scopes.of_every_node());
        let (is_own, is_shared) = (own.is_some(), own.is_none() && of_every_node.is_some());
        let found: Vec<_> = own.or(of_every_node).into_iter().map(Part::of).collect();
        let (own, of_every_node) = (is_own.then_some(0), is_shared.then_some(0));
        Self { scopes, authorities, own, of_every_node, found, by_authority: HashMap::new() }
    }

    /// What belongs to each.
    pub(crate) fn into_parts(self) -> Vec<Part> {
        self.found
    }

    /// Whether a name is of another origin than the wildcard that may have brought it: no server of that may have it, and so it
    /// would go as another server feeds that.
    pub(crate) fn is_beside_wildcard(&self, name: &ResourceName) -> bool {
        let of_every_node = self.of_every_node.and_then(|place| self.scope(place));
        of_every_node.is_some_and(|scope| scope.origin() != self.authorities.origin_of(name.authority()))
    }

    /// Where a resource goes, last where a wildcard brings it, and where it was and is not wanted any more. One with aliases goes
    /// where any of its names is wanted.
    pub(crate) fn of_resource(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        aliases: &[ResourceName],
        elsewhere: &mut Elsewhere,
    ) -> (Vec<usize>, Vec<usize>) {
        if let Some(own) = self.own {
            return (vec![own], Vec::new());
        }
        let before: Vec<_> = elsewhere.authorities(type_url, name).map(str::to_owned).collect();
        if aliases.is_empty() && before.is_empty() {
            let own = self.of_authority(name.authority());
            // What a wildcard brings, not everybody asked for.
            let own = own.filter(|place| self.of_every_node.is_none() || self.demands(*place, type_url, &[name]));
            let by_wildcard = self.by_wildcard(type_url, name).filter(|place| Some(*place) != own);
            return (own.into_iter().chain(by_wildcard).collect(), Vec::new());
        }
        let mut names: HashMap<usize, Vec<&ResourceName>> = HashMap::new();
        for name in aliases.iter().chain([name]) {
            if let Some(place) = self.of_authority(name.authority()) {
                names.entry(place).or_default().push(name);
            }
        }
        let wanted =
            |(place, names): (usize, Vec<&ResourceName>)| self.demands(place, type_url, &names).then_some(place);
        let mut at: Vec<_> = names.into_iter().filter_map(wanted).collect();
        let by_wildcard = self.by_wildcard(type_url, name).filter(|place| !at.contains(place));
        at.extend(by_wildcard);
        elsewhere.forget(type_url, name);
        let others = at.iter().filter_map(|place| self.found.get(*place)?.scope.key.authority());
        let others: BTreeSet<_> = others.filter(|other| Some(*other) != name.authority()).map(str::to_owned).collect();
        if !others.is_empty() {
            elsewhere.0.insert((type_url.clone(), name.clone()), others);
        }
        // An alias of its own authority may have brought it there, too.
        let left = before.iter().map(|authority| Some(authority.as_str())).chain([name.authority()]);
        let left = left.filter_map(|authority| self.of_authority(authority)).filter(|place| !at.contains(place));
        let left = left.collect();
        (at, left)
    }

    /// Where what is said of a name goes.
    pub(crate) fn of_name(&mut self, type_url: &TypeUrl, name: &ResourceName, elsewhere: &Elsewhere) -> Vec<usize> {
        if let Some(own) = self.own {
            return vec![own];
        }
        let authorities = [name.authority()].into_iter().chain(elsewhere.authorities(type_url, name).map(Some));
        let mut at: Vec<_> = authorities.filter_map(|authority| self.of_authority(authority)).collect();
        let by_wildcard = self.by_wildcard(type_url, name).filter(|place| !at.contains(place));
        at.extend(by_wildcard);
        at
    }

    /// Where a wildcard beside authorities brings a name of its origin.
    fn by_wildcard(&self, type_url: &TypeUrl, name: &ResourceName) -> Option<usize> {
        let place = self.of_every_node.filter(|place| self.demands(*place, type_url, &[name]));
        place.filter(|_| !self.is_beside_wildcard(name))
    }

    fn demands(&self, place: usize, type_url: &TypeUrl, names: &[&ResourceName]) -> bool {
        self.scope(place).is_some_and(|scope| scope.demands(type_url, names))
    }

    pub(crate) fn of_interest(&mut self, interest: &Interest) -> Option<usize> {
        match interest {
            Interest::Name(name) => self.own.or_else(|| self.of_authority(name.authority())),
            Interest::Wildcard => self.own.or(self.of_every_node),
        }
    }

    pub(crate) fn scope(&self, place: usize) -> Option<&Arc<Scope>> {
        self.found.get(place).map(|part| &part.scope)
    }

    /// What the scope has in common with others of its origin.
    pub(crate) fn of_origin(&self, place: usize) -> Option<&OfOrigin> {
        self.found.get(place).map(|part| &*part.of_origin)
    }

    /// Changes what goes to one scope.
    pub(crate) fn put(&mut self, place: usize, change: impl FnOnce(&mut Changes)) {
        if let Some(part) = self.found.get_mut(place) {
            change(&mut part.changes);
        }
    }

    fn of_authority(&mut self, authority: Option<&str>) -> Option<usize> {
        let Some(authority) = authority else { return self.of_every_node };
        if let Some(known) = self.by_authority.get(authority) {
            return *known;
        }
        let place = self.scopes.of_authority(authority).map(|found| {
            self.found.push(Part::of(found));
            self.found.len() - 1
        });
        self.by_authority.insert(authority.to_owned(), place);
        place
    }
}

impl Part {
    fn of(Found { seat, scope, of_origin }: Found) -> Self {
        Self { scope, of_origin, changes: Changes::of(seat.key()) }
    }
}
