//! What the streams to several servers of an origin have in common for a faulty relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use xds_transport::client::{Command, Update};
use xdstp_cache::{TypeUrl, Version};
use xdstp_uri::ResourceName;

use crate::faults::Fault;
use crate::world::Place;

/// Who said what of each type.
#[derive(Clone, Default)]
pub(crate) struct Spoken(Arc<Mutex<BTreeMap<(Place, TypeUrl), Said>>>, Versions);

/// The version that each name has, and from where.
type Versions = Arc<Mutex<BTreeMap<(TypeUrl, ResourceName), (usize, Version)>>>;

#[derive(Default)]
struct Said {
    server: usize,
    names: BTreeSet<ResourceName>,
}

impl Spoken {
    /// A server speaks: what another said before and it does not is taken for gone.
    pub(crate) fn remove_on_switch(&self, place: Place, server: usize, update: &mut Update) {
        let mut spoken = self.0.lock().unwrap();
        let said = spoken.entry((place, update.type_url.clone())).or_default();
        let names: BTreeSet<_> = update.changed.iter().map(|changed| changed.name.clone()).collect();
        if said.server != server {
            update.removed.extend(said.names.difference(&names).cloned());
        }
        said.server = server;
        said.names.extend(names);
    }

    /// An origin speaks: what it calls by the version that another called it by is taken for that.
    pub(crate) fn take_for_the_same(&self, position: usize, update: &mut Update) {
        let mut versions = self.1.lock().unwrap();
        update.changed.retain(|changed| {
            let key = (update.type_url.clone(), changed.name.clone());
            let version = &changed.resource.version;
            if versions.get(&key).is_some_and(|(of, known)| *of != position && known == version) {
                return false;
            }
            versions.insert(key, (position, version.clone()));
            true
        });
    }

    /// A server speaks; whether one below it did before.
    pub(crate) fn follows_another(&self, place: Place, server: usize, type_url: Option<&TypeUrl>) -> bool {
        let mut spoken = self.0.lock().unwrap();
        if let Some(type_url) = type_url {
            let said = spoken.entry((place, type_url.clone())).or_default();
            said.server = said.server.max(server);
        }
        spoken.iter().any(|((of, _), said)| *of == place && said.server > server)
    }
}

/// Commands that a faulty relay gives.
pub(crate) fn faulty(fault: Option<Fault>, commands: Vec<Command>) -> Vec<Command> {
    let mut given: Vec<Command> = Vec::new();
    for command in commands {
        // What is asked for anew is not: the versions of before are named.
        if fault == Some(Fault::KeepVersionsOfBefore)
            && let Command::Subscribe(type_url, interest) = &command
            && let Some(Command::Unsubscribe(of, left)) = given.last()
            && (of, left) == (type_url, interest)
        {
            given.pop();
            continue;
        }
        given.push(command);
    }
    given
}
