//! Who is asked for what: by the authorities of a bootstrap.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use xdstp_uri::ResourceName;
use xdstp_uri::a47::look_up_authority;

use super::brought::Brought;
use super::parameters::{Dpds, Parameters};
use crate::bootstrap::{Bootstrap, Server};
use crate::error::Error;
use crate::federation::Authorities;
#[cfg(test)]
use crate::federation::faults::{Fault, planted};

/// The position of an origin, or why there is none.
type Found = Result<usize, Error>;

/// The lists of servers of a bootstrap: two that are equal are one origin.
pub(super) struct Lists {
    /// That of old-style names.
    top: Found,
    /// By the keys of the bootstrap.
    by_authority: HashMap<String, Found>,
    /// The positions of those that are lists, of which each is there [twice](Self::adjacent_to).
    twins: Range<usize>,
}

/// Where names are found.
pub(super) struct Directory {
    /// None: everything is found at the top.
    bootstrap: Option<Bootstrap>,
    lists: Lists,
    /// With what names are asked for: old-style ones, and those of authorities, by the keys of the bootstrap.
    old_style: Option<Arc<Parameters>>,
    parameters: HashMap<String, Arc<Parameters>>,
}

/// Where a name is asked for, and with what.
#[derive(Clone)]
pub(crate) struct Place {
    /// The position of its origin.
    pub(crate) origin: usize,
    /// A source beside the name says so (TP1).
    pub(crate) is_adjacent: bool,
    pub(super) parameters: Option<Arc<Parameters>>,
}

impl Place {
    /// What says with what else it is to be asked for, if anything does.
    pub(crate) fn dpds(&self) -> Option<&Dpds> {
        self.parameters.as_ref()?.dpds.as_ref()
    }
}

impl Lists {
    /// `origin` makes an origin of a list, in which each server is once. Those that were brought come in place of lists.
    pub(super) fn of<'a>(
        bootstrap: &'a Bootstrap,
        brought: &Brought,
        mut origin: impl FnMut(&[Server]) -> Found,
    ) -> Self {
        let default = brought.default_position().map(|position| (bootstrap.servers(), Ok(position)));
        let mut known: Vec<(&[Server], Found)> = default.into_iter().collect();
        let mut find = |servers: &'a [Server]| {
            if let Some((_, found)) = known.iter().find(|(known, _)| *known == servers) {
                return found.clone();
            }
            let found = match servers {
                [] => Err(unknown(bootstrap, "")),
                _ => origin(&each_once(servers)),
            };
            known.push((servers, found.clone()));
            found
        };
        let top = find(bootstrap.servers());
        let is_brought = |name: &&String| brought.by_authority.contains_key(*name);
        let own = |name: &String| Some((name.clone(), find(bootstrap.servers_of(Some(name))?)));
        let of_lists = bootstrap.authorities().keys().filter(|name| !is_brought(name)).filter_map(own);
        let mut by_authority: HashMap<_, _> = of_lists.collect();
        by_authority.extend(brought.authorities().map(|(name, position)| (name.clone(), Ok(position))));
        Self { top, by_authority, twins: 0..0 }
    }

    /// Only the servers at the top, or what was brought in their place.
    pub(super) fn of_top(bootstrap: &Bootstrap, brought: &Brought, origin: impl FnOnce(&[Server]) -> Found) -> Self {
        let default = brought.default_position().map(Ok);
        Self::one(default.unwrap_or_else(|| origin(&each_once(bootstrap.servers()))))
    }

    /// One for everything.
    pub(super) fn one(found: Found) -> Self {
        Self { top: found, by_authority: HashMap::new(), twins: 0..0 }
    }

    /// Whether two origins are the same list.
    fn are_same(&self, one: usize, other: usize) -> bool {
        let list = |origin: usize| match self.adjacent_to(origin) {
            Some(twin) if twin == origin => origin - self.twins.len(),
            _ => origin,
        };
        list(one) == list(other)
    }

    /// The lists at these positions are at the next ones once more, for names of whatever authority.
    pub(super) fn with_twins(self, of: Range<usize>) -> Self {
        Self { twins: of, ..self }
    }

    /// Whose servers have the names that a source beside them says to be where another resource is: of which origin that is
    /// one. A program's own has no servers.
    fn adjacent_to(&self, origin: usize) -> Option<usize> {
        let (start, count) = (self.twins.start, self.twins.len());
        match origin.checked_sub(start)? {
            at if at < count => Some(origin + count),
            at => (at < 2 * count).then_some(origin),
        }
    }

    /// Which names each origin may set.
    pub(super) fn authorities(&self) -> Arc<Authorities> {
        let of = |(name, found): (&String, &Found)| Some((canonical(name), *found.as_ref().ok()?));
        let origins = self.by_authority.iter().filter_map(of).collect();
        Arc::new(Authorities::new(origins, self.top.clone().unwrap_or(usize::MAX)))
    }
}

impl Directory {
    pub(super) fn of_bootstrap(bootstrap: Bootstrap, lists: Lists) -> Self {
        let own = |(name, authority)| Some((String::clone(name), Parameters::of_authority(authority)?));
        let parameters = bootstrap.authorities().iter().filter_map(own).collect();
        Self { old_style: Parameters::of_old_style(&bootstrap), parameters, bootstrap: Some(bootstrap), lists }
    }

    /// Everything is found at the top of a bootstrap.
    pub(super) fn of_top(bootstrap: &Bootstrap, lists: Lists) -> Self {
        Self { old_style: Parameters::of_old_style(bootstrap), ..Self::of_all(lists) }
    }

    pub(super) fn of_all(lists: Lists) -> Self {
        Self { bootstrap: None, lists, old_style: None, parameters: HashMap::new() }
    }

    /// Where the names of an authority are asked for that a source beside them says to be where another resource is, which is of
    /// an origin.
    pub(super) fn adjacent(&self, origin: usize, authority: &str) -> Option<Place> {
        let origin = self.lists.adjacent_to(origin)?;
        let of_authority = self.parameters.iter().find(|(name, _)| canonical(name) == authority);
        let parameters = match self.bootstrap {
            Some(_) => of_authority.map(|(_, parameters)| parameters),
            None => self.old_style.as_ref(),
        };
        Some(Place { origin, is_adjacent: true, parameters: parameters.cloned() })
    }

    /// Whether two places have the same servers.
    pub(super) fn has_same_servers(&self, one: &Place, other: &Place) -> bool {
        self.lists.are_same(one.origin, other.origin)
    }

    /// The resources that say with what others are asked for.
    pub(super) fn dpds(&self) -> impl Iterator<Item = &Dpds> {
        self.parameters.values().filter_map(|parameters| parameters.dpds.as_ref())
    }

    /// Where a name is asked for, or else everything.
    pub(super) fn of(&self, name: Option<&ResourceName>) -> Result<Place, Error> {
        let top = || {
            let origin = self.lists.top.clone()?;
            Ok(Place { origin, is_adjacent: false, parameters: self.old_style.clone() })
        };
        let (Some(bootstrap), Some(name)) = (&self.bootstrap, name) else { return top() };
        let unknown = |authority: &str| unknown(bootstrap, authority);
        let found = look_up_authority(bootstrap, name);
        #[cfg(test)]
        if planted(Fault::AskForStrangers) && found.is_err() {
            return top();
        }
        let found = match found {
            Ok(found) => found.authority,
            // The bootstrap need not have what has an origin of the program's own.
            Err(error) => Some(error.authority().to_owned()),
        };
        let Some(authority) = found else { return top() };
        let origin = self.lists.by_authority.get(&authority).cloned().unwrap_or_else(|| Err(unknown(&authority)))?;
        Ok(Place { origin, is_adjacent: false, parameters: self.parameters.get(&authority).cloned() })
    }
}

/// A server that stands there twice is nowhere to turn to when it fails.
fn each_once(servers: &[Server]) -> Vec<Server> {
    let mut each = Vec::with_capacity(servers.len());
    for server in servers {
        if !each.contains(server) {
            each.push(server.clone());
        }
    }
    each
}

fn unknown(bootstrap: &Bootstrap, authority: &str) -> Error {
    Error::UnknownAuthority { authority: authority.into(), node: bootstrap.node().id.as_str().into() }
}

/// An authority as names have it.
pub(super) fn canonical(authority: &str) -> String {
    let escaped = authority.replace('%', "%25").replace('/', "%2F").replace('?', "%3F").replace('#', "%23");
    let name = ResourceName::parse(&format!("xdstp://{escaped}/T")).ok();
    name.and_then(|name| name.authority().map(str::to_owned)).unwrap_or_else(|| authority.to_owned())
}
