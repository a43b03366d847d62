//! By what other names what is kept elsewhere may be asked for: a server may say that one of them is gone when nothing is here
//! of what had it.

use std::collections::HashMap;

use xds_transport::Frame;
use xdstp_cache::{Aliases, Known, TypeUrl};
use xdstp_uri::ResourceName;

/// Of how many aliases of what came that is known; of more, what is kept has those that it had.
const MOST: usize = 1 << 16;

/// The aliases of what stands aside and of what came, by type: nothing of what has none.
#[derive(Default)]
pub(super) struct OtherNames {
    by_type: HashMap<TypeUrl, Aliases>,
    count: usize,
}

impl OtherNames {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// This was known before a restart: of several that claim an alias the last has it.
    pub(super) fn add<'a>(&mut self, known: impl IntoIterator<Item = &'a Known<Frame>>) {
        for known in known {
            if let Known::Present { type_url, name, aliases, .. } = known {
                aliases.iter().for_each(|alias| self.insert(type_url, alias, name));
            }
        }
    }

    /// A resource came, with these aliases. Others that had one of them are returned: they have it no more.
    pub(super) fn came(
        &mut self,
        type_url: &TypeUrl,
        name: &ResourceName,
        aliases: impl Iterator<Item = ResourceName>,
    ) -> Vec<ResourceName> {
        let aliases: Vec<_> = aliases.collect();
        if aliases.is_empty() && self.is_empty() {
            return Vec::new();
        }
        let cleared = self.by_type.get_mut(type_url).map(|of| of.clear(name).len());
        self.count -= cleared.unwrap_or_default();
        let before = aliases.iter().filter_map(|alias| self.end(type_url, alias)).collect();
        let room = MOST.saturating_sub(self.count);
        aliases.iter().take(room).for_each(|alias| self.insert(type_url, alias, name));
        before
    }

    /// An alias stands for nothing any more. What it stood for is returned.
    pub(super) fn end(&mut self, type_url: &TypeUrl, alias: &ResourceName) -> Option<ResourceName> {
        let before = self.by_type.get_mut(type_url)?.remove(alias);
        self.count -= usize::from(before.is_some());
        before
    }

    /// Whether an alias is still that of a name.
    pub(super) fn has(&self, type_url: &TypeUrl, alias: &ResourceName, name: &ResourceName) -> bool {
        self.by_type.get(type_url).and_then(|aliases| aliases.canonical(alias)) == Some(name)
    }

    /// A name and what else that may be asked for by.
    pub(super) fn all_of<'a>(
        &'a self,
        type_url: &TypeUrl,
        name: &'a ResourceName,
    ) -> impl Iterator<Item = &'a ResourceName> {
        self.by_type.get(type_url).into_iter().flat_map(|aliases| aliases.of(name)).chain([name])
    }

    fn insert(&mut self, type_url: &TypeUrl, alias: &ResourceName, name: &ResourceName) {
        let before = self.by_type.entry(type_url.clone()).or_default().insert(alias.clone(), name);
        self.count += usize::from(before.is_none());
    }
}
