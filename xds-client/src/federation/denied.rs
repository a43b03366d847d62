//! What a subscriber asks for and may not have.

use std::collections::BTreeSet;

use xds_transport::Frame;
use xdstp_cache::{Interest, Pull, Resource, ResourceError, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::client::Client;
use crate::federation::scope::Scope;

/// Of what is denied by its alias alone: which name that is, is nothing for who may not ask for it.
const BY_ALIAS: &str = "it stands for a resource that this client may not ask for";

/// Of one subscriber. A wildcard is in it under the name that it is asked for by.
#[derive(Default)]
pub(crate) struct Denied {
    /// No scope knows that it is asked for.
    asked: BTreeSet<ResourceName>,
    /// It is asked for, and stands for what may not be.
    aliases: BTreeSet<ResourceName>,
    /// The client is yet to be told.
    untold: BTreeSet<ResourceName>,
}

impl Denied {
    /// It is asked for: whether it was not before. Who asks is told, each time.
    pub(crate) fn ask(&mut self, name: ResourceName) -> bool {
        self.untold.insert(name.clone());
        self.asked.insert(name)
    }

    /// It stands for what may not be asked for: whether that is new, of which the client is told once.
    pub(crate) fn stands_for_denied(&mut self, alias: ResourceName) -> bool {
        let new = self.aliases.insert(alias.clone());
        if new {
            self.untold.insert(alias);
        }
        new
    }

    /// It may be asked for, and is asked for anew: what it stands for is looked at again.
    pub(crate) fn ask_again(&mut self, name: &ResourceName) {
        self.aliases.remove(name);
    }

    /// It is not asked for any more: whether no scope knows that it was.
    pub(crate) fn leave(&mut self, name: &ResourceName) -> bool {
        self.untold.remove(name);
        self.aliases.remove(name);
        self.asked.remove(name)
    }

    /// What no scope knows of.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &ResourceName> {
        self.asked.iter()
    }

    pub(crate) fn is_asked(&self, name: &ResourceName) -> bool {
        self.asked.contains(name)
    }

    /// Whether it is known to stand for what may not be asked for.
    pub(crate) fn is_alias(&self, name: &ResourceName) -> bool {
        self.aliases.contains(name)
    }

    pub(crate) fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Whether that is the wildcard, before all else.
    pub(crate) fn owes_wildcard(&self) -> bool {
        self.untold.first().is_some_and(|name| name.as_str() == Interest::Wildcard.as_str())
    }

    /// Something of which the client is yet to be told, and what: it counts as told with this.
    pub(crate) fn pop(
        &mut self,
        why: impl Fn(&Interest) -> Option<ResourceError>,
    ) -> Option<(ResourceName, ResourceError)> {
        let name = self.untold.pop_first()?;
        let error = match why(&Interest::from(name.clone())) {
            Some(error) if self.asked.contains(&name) => error,
            _ => ResourceError::new(ResourceError::PERMISSION_DENIED, BY_ALIAS),
        };
        Some((name, error))
    }
}

/// The name that an interest is asked for by.
pub(crate) fn name_of(interest: &Interest) -> Option<ResourceName> {
    match interest {
        Interest::Name(name) => Some(name.clone()),
        Interest::Wildcard => ResourceName::parse("*").ok(),
    }
}

/// Keeps from a client what an alias that it may ask for stands for, where it may not ask for that by its own name.
pub(crate) struct Screen<'a> {
    client: &'a dyn Client,
    type_url: &'a TypeUrl,
    /// It has a wildcard, which it may only have where it may have all that its node group has.
    has_wildcard: bool,
    /// Those that stand for what was kept from it, whoever asked for them.
    pub(crate) aliases: BTreeSet<ResourceName>,
}

impl<'a> Screen<'a> {
    /// None where nothing is kept from a client.
    pub(crate) fn of(client: &'a dyn Client, type_url: &'a TypeUrl, has_wildcard: bool) -> Option<Self> {
        client.is_limited().then_some(Self { client, type_url, has_wildcard, aliases: BTreeSet::new() })
    }

    /// Of a scope.
    pub(crate) fn keeps(&mut self, scope: &Scope, pull: &Pull<'_, Frame>) -> bool {
        match pull {
            Pull::Put { name, resource, .. } => self.keeps_resource(scope, name, resource),
            Pull::Removed { name, .. } => self.denies(scope, name),
            _ => false,
        }
    }

    /// What has no aliases was asked for by its own name, which was looked at then.
    pub(crate) fn keeps_resource(&mut self, scope: &Scope, name: &ResourceName, resource: &Resource<Frame>) -> bool {
        let mut aliases = resource.value.aliases().peekable();
        let keeps = aliases.peek().is_some() && self.denies(scope, name);
        if keeps {
            self.aliases.extend(aliases);
        }
        keeps
    }

    fn denies(&self, scope: &Scope, name: &ResourceName) -> bool {
        let by_wildcard = self.has_wildcard && scope.key.authority().is_none();
        !by_wildcard && self.client.denies(self.type_url, &Interest::Name(name.clone())).is_some()
    }
}
