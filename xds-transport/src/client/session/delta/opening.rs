//! What the first request of a type on a delta stream says, and what those that follow say because it has no room.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

use crate::client::room::{Room, version_size};
use crate::client::session::wanted::Wanted;
use crate::wire::walk;

#[derive(Debug)]
pub(crate) struct Opening {
    /// What it asks for, in order.
    pub(crate) asked: Vec<Interest>,
    /// `initial_resource_versions`, each entry encoded.
    pub(crate) versions: Vec<Bytes>,
    /// Members of what it asks for whose versions it has no room for.
    pub(crate) left_out: BTreeSet<ResourceName>,
}

impl Opening {
    /// Only here versions are told (rule 85). A name has its answer in whichever request it is asked for, but what became
    /// of a member is told to who names its version: those go first, right behind the collections.
    pub(crate) fn new(wanted: &mut Wanted, versions: BTreeMap<ResourceName, Version>, mut room: Room) -> Self {
        let mut asked = wanted.ask_each(Interest::is_collection);
        asked.iter().for_each(|collection| _ = room.take_name(collection.as_str()));
        let (named, members): (BTreeMap<_, _>, BTreeMap<_, _>) =
            versions.into_iter().partition(|(name, _)| wanted.wish(&Interest::Name(name.clone())).is_some());
        let (mut aliases, mut left_out) = (BTreeSet::new(), BTreeSet::new());
        let mut told = BTreeMap::new();
        for (name, version) in members {
            // What is held by an alias is nobody's before that is asked for, and would be told as gone.
            let size = wanted.aliases(&name).map(|alias| room.size_of(alias.as_str())).sum::<usize>();
            if room.take(size + version_size(name.as_str(), version.as_str())) {
                aliases.extend(wanted.aliases(&name).cloned());
                told.insert(name, version);
            } else {
                left_out.insert(name);
            }
        }
        asked.extend(wanted.ask_each(|interest| matches!(interest, Interest::Name(name) if aliases.contains(name))));
        // Nor is a version told later of a name that is asked for.
        asked.extend(wanted.ask_each(|interest| {
            let Interest::Name(name) = interest else { return false };
            let Some(version) = named.get(name) else { return false };
            let fits = room.take(room.size_of(name.as_str()) + version_size(name.as_str(), version.as_str()));
            if fits {
                told.insert(name.clone(), version.clone());
            }
            fits
        }));
        let mut room = room.of_part();
        asked.extend(wanted.ask(|interest| room.take_name(interest.as_str())));
        asked.sort_unstable();
        let versions = told.iter().map(|(name, version)| entry(name.as_str(), version.as_str())).collect();
        Self { asked, versions, left_out }
    }
}

fn entry(name: &str, version: &str) -> Bytes {
    let mut entry = Vec::with_capacity(name.len() + version.len() + 8);
    walk::put_bytes(&mut entry, 1, name.as_bytes());
    walk::put_bytes(&mut entry, 2, version.as_bytes());
    entry.into()
}
