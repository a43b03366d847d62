//! What servers that are followed have of the relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use xds_transport::Frame;
use xdstp_cache::{Interest, Resource, Stored, TypeUrl};
use xdstp_client::federation::{self, Authorities, Dial, Federation, Held, Origin, Scope};
use xdstp_uri::ResourceName;

use crate::config::Config;
use crate::lock::lock;
use crate::relay_core::client_look::parts;
use crate::relay_core::configured::{Common, Missing, server_at};
use crate::relay_core::core::RelayCore;
use crate::relay_core::own_node::own_node;
use crate::relay_core::quotas;

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

    /// It has this, in which something may be lacking; or it is not known what it has.
    pub(crate) fn set_gathered(&self, position: usize, content: Option<(Vec<Held>, bool)>) {
        if let Some(origin) = self.followed.get(&position) {
            origin.set(content);
        }
    }

    /// Whether what a scope has of a type is in releases of an origin that is followed, which has more than these.
    pub(crate) fn is_gathered(&self, type_url: &TypeUrl, scope: &Scope) -> bool {
        let all = lock(&self.releases).clone();
        self.followed.contains_key(&scope.origin()) && all.iter().any(|releases| releases.have(type_url, scope))
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
    ) -> Result<BTreeMap<(TypeUrl, ResourceName), Resource<Frame>>, &'static str> {
        let all = lock(&self.releases).clone();
        let mut served = BTreeMap::new();
        for releases in all.iter().filter(|releases| releases.position() == position) {
            for (type_url, name, resource) in releases.served_content()?.iter().flat_map(|content| &content.held) {
                served.entry((type_url.clone(), name.clone())).or_insert_with(|| resource.clone());
            }
        }
        Ok(served)
    }
}
