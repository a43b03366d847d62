//! Which of the scopes of a stream what comes over it belongs to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use xdstp_cache::{Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::relay_core::changes::Changes;
use crate::relay_core::scope::Scope;
use crate::relay_core::scope_key::ScopeKey;

/// The scopes of a stream, by their position: by authority on the stream of `xdstp:` names; a node group's own stream
/// feeds just its scope.
pub(crate) struct Places<'a> {
    scopes: &'a [Arc<Scope>],
    authorities: HashMap<&'a str, usize>,
    own: Option<usize>,
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
    pub(crate) fn of(scopes: &'a [Arc<Scope>]) -> Self {
        let authority = |(at, scope): (usize, &'a Arc<Scope>)| match &scope.key {
            ScopeKey::Authority(authority) => Some((authority.as_str(), at)),
            _ => None,
        };
        let own = scopes.iter().position(|scope| scope.key.has_own_stream());
        Self { scopes, authorities: scopes.iter().enumerate().filter_map(authority).collect(), own }
    }

    pub(crate) fn len(&self) -> usize {
        self.scopes.len()
    }

    /// Where a resource goes, and where it was and is not wanted any more. One with aliases goes where any of its names
    /// is wanted.
    pub(crate) fn of_resource(
        &self,
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
            return (self.of_authority(name).into_iter().collect(), Vec::new());
        }
        let mut names: HashMap<usize, Vec<&ResourceName>> = HashMap::new();
        for name in aliases.iter().chain([name]) {
            if let Some(place) = self.of_authority(name) {
                names.entry(place).or_default().push(name);
            }
        }
        let wanted = |(place, names): (usize, Vec<&ResourceName>)| {
            self.scopes.get(place).is_some_and(|scope| scope.demands(type_url, &names)).then_some(place)
        };
        let at: Vec<_> = names.into_iter().filter_map(wanted).collect();
        elsewhere.forget(type_url, name);
        let others = at.iter().filter_map(|place| self.scopes.get(*place)?.key.authority());
        let others: BTreeSet<_> = others.filter(|other| Some(*other) != name.authority()).map(str::to_owned).collect();
        if !others.is_empty() {
            elsewhere.0.insert((type_url.clone(), name.clone()), others);
        }
        // An alias of its own authority may have brought it there, too.
        let left = before.iter().filter_map(|authority| self.authorities.get(authority.as_str()).copied());
        let left = left.chain(self.of_authority(name)).filter(|place| !at.contains(place)).collect();
        (at, left)
    }

    /// Where what is said of a name goes.
    pub(crate) fn of_name(&self, type_url: &TypeUrl, name: &ResourceName, elsewhere: &Elsewhere) -> Vec<usize> {
        if let Some(own) = self.own {
            return vec![own];
        }
        let others = elsewhere.authorities(type_url, name).filter_map(|other| self.authorities.get(other).copied());
        self.of_authority(name).into_iter().chain(others).collect()
    }

    pub(crate) fn of_interest(&self, interest: &Interest) -> Option<usize> {
        match interest {
            Interest::Name(name) => self.own.or_else(|| self.of_authority(name)),
            Interest::Wildcard => self.own,
        }
    }

    /// Changes what goes to one scope.
    pub(crate) fn put(&self, parts: &mut [Changes], place: usize, change: impl FnOnce(&mut Changes)) {
        if let Some(part) = parts.get_mut(place) {
            change(part);
        }
    }

    fn of_authority(&self, name: &ResourceName) -> Option<usize> {
        self.authorities.get(name.authority()?).copied()
    }
}
