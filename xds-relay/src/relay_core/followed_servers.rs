//! What servers that are followed have of the relay.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Interest, Resource, Stored, TypeUrl};
use xdstp_client::federation::{self, Authorities, Dial, Federation, Origin};
use xdstp_uri::ResourceName;

use crate::config::Config;
use crate::lock::lock;
use crate::relay_core::client_look::parts;
use crate::relay_core::configured::{Common, Missing, server_at};
use crate::relay_core::core::RelayCore;
use crate::relay_core::followed_origin::ToRelease;
use crate::relay_core::own_node::own_node;
use crate::relay_core::quotas;

/// A resource of a release that is served.
#[derive(Clone, Debug)]
pub(crate) struct InRelease {
    pub(crate) resource: Resource<Frame>,
    /// The candidate has it, and what is stable has not, or otherwise.
    pub(crate) is_candidates: bool,
}

impl RelayCore {
    /// The server at a position, dialed by what is made of how the relay dials, behind as many as there are before it. None where
    /// there is none.
    pub(crate) fn origins_up_to(
        &self,
        config: &Config,
        position: usize,
        dial: impl FnOnce(Arc<dyn Dial>) -> Arc<dyn Dial>,
    ) -> Option<Vec<Arc<dyn Origin>>> {
        let Common { rules, relays, metrics, .. } = &self.common;
        let common = Common {
            rules: rules.clone(),
            relays: relays.clone(),
            interner: Arc::default(),
            metrics: metrics.clone(),
            dial: dial(self.common.dial.clone()),
            embedded: Default::default(),
        };
        let authorities = Arc::new(Authorities::new([].into(), position));
        let server = server_at(config, config.origins.get(position)?, position, &authorities, &common)?;
        let before = (0..position).map(|_| Arc::new(Missing) as Arc<dyn Origin>);
        Some(before.chain([server]).collect())
    }

    /// Who the relay is, encoded.
    pub(crate) fn own_node(&self, config: &Config) -> Bytes {
        own_node(config)
    }

    /// What the relay itself may use up, as a client.
    pub(crate) fn limits_of_one(&self) -> federation::Limits {
        quotas::of_streams(self.limits())
    }

    /// A server is followed from now on, by what is in these scopes, and may use up so much.
    pub(crate) fn follows(&self, federation: Arc<Federation>, limits: federation::Limits) {
        lock(&self.following).push((federation, limits));
    }

    pub(crate) fn follows_no_more(&self, federation: &Arc<Federation>) {
        lock(&self.following).retain(|(other, _)| !Arc::ptr_eq(other, federation));
    }

    /// It has this; or it is not known what it has.
    pub(crate) fn set_gathered(&self, position: usize, content: Option<ToRelease>) {
        if let Some(origin) = self.followed.get(&position) {
            origin.set(content);
        }
    }

    /// The names of it that are `meant`, and that clients ask for, as such, or that are known from before a restart.
    #[cfg(feature = "file-origin")]
    pub(crate) fn used_of(
        &self,
        position: usize,
        is_meant: &dyn Fn(&(TypeUrl, ResourceName)) -> bool,
    ) -> BTreeSet<(TypeUrl, ResourceName)> {
        let mut names = BTreeSet::new();
        self.visit_streams(None, |_, stream| {
            let of_it = parts(stream).into_iter().filter(|(_, scope, _)| scope.origin() == position);
            for (type_url, scope, part) in of_it.filter(|(type_url, scope, _)| self.is_gathered(type_url, scope)) {
                let asked = scope.interests(part).into_iter().filter_map(|interest| match interest {
                    Interest::Name(name) if !name.is_glob() => Some((type_url.clone(), name)),
                    _ => None,
                });
                names.extend(asked.filter(is_meant));
            }
            true
        });
        let is_stale = |stored: Stored<'_, Frame>| {
            (stored.stale && stored.resource.is_some()).then(|| (stored.type_url.clone(), stored.name.clone()))
        };
        for scope in self.all_scopes().into_iter().filter(|scope| scope.origin() == position) {
            scope.visit_stored(is_stale, |name| names.extend(name.filter(is_meant)));
        }
        names
    }

    /// What is in the releases of it that are served: of each name what the candidate has, or else what is stable.
    ///
    /// # Errors
    /// Why that is not known.
    pub(crate) fn served_of(
        &self,
        position: usize,
    ) -> Result<BTreeMap<(TypeUrl, ResourceName), InRelease>, &'static str> {
        let all = lock(&self.releases).clone();
        let mut served = BTreeMap::new();
        for releases in all.iter().filter(|releases| releases.position() == position) {
            let [stable, candidate] = releases.served_content()?;
            let all = stable.iter().map(|of| (of, false)).chain(candidate.iter().map(|of| (of, true)));
            for (content, is_candidates) in all {
                for (type_url, name, resource) in &content.held {
                    let of = InRelease { resource: resource.clone(), is_candidates };
                    match served.entry((type_url.clone(), name.clone())) {
                        Entry::Vacant(entry) => _ = entry.insert(of),
                        Entry::Occupied(entry) if is_same(&entry.get().resource.value, &of.resource.value) => {}
                        Entry::Occupied(mut entry) => _ = entry.insert(of),
                    }
                }
            }
        }
        Ok(served)
    }
}

fn is_same(one: &Frame, other: &Frame) -> bool {
    (one.any(), one.wrapper(), one.ttl(), one.variant()) == (other.any(), other.wrapper(), other.ttl(), other.variant())
}
