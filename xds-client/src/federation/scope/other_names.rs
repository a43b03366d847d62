//! By what other names that may be asked for which stands aside: the origin may say of one of them that it is gone, or another's.

use std::collections::HashMap;

use xds_transport::Frame;
use xdstp_cache::{Aliases, Known, TypeUrl};
use xdstp_uri::ResourceName;

/// The aliases of what stands aside, by type: none of what has none.
#[derive(Default)]
pub(super) struct OtherNames(HashMap<TypeUrl, Aliases>);

impl OtherNames {
    /// This stands aside, too: of several that claim an alias the last has it.
    pub(super) fn add<'a>(&mut self, known: impl IntoIterator<Item = &'a Known<Frame>>) {
        for known in known {
            let Known::Present { type_url, name, aliases, .. } = known else { continue };
            for alias in aliases {
                self.0.entry(type_url.clone()).or_default().insert(alias.clone(), name);
            }
        }
    }

    /// An alias is that of nothing any more that stands aside. What it was, is returned.
    pub(super) fn end(&mut self, type_url: &TypeUrl, alias: &ResourceName) -> Option<ResourceName> {
        self.0.get_mut(type_url)?.remove(alias)
    }

    /// Whether an alias is still that of a name.
    pub(super) fn has(&self, type_url: &TypeUrl, alias: &ResourceName, name: &ResourceName) -> bool {
        self.0.get(type_url).and_then(|aliases| aliases.canonical(alias)) == Some(name)
    }

    /// A name and what else that may be asked for by.
    pub(super) fn all_of<'a>(
        &'a self,
        type_url: &TypeUrl,
        name: &'a ResourceName,
    ) -> impl Iterator<Item = &'a ResourceName> {
        self.0.get(type_url).into_iter().flat_map(|aliases| aliases.of(name)).chain([name])
    }
}
