//! What a subscriber was sent for an alias.

use std::collections::HashMap;

use xdstp_uri::ResourceName;

use crate::keys::LinkKey;

/// By the link to the alias. Most subscribers ask for none.
#[derive(Default)]
pub(crate) struct Aliased(Option<Box<ByLink>>);

#[derive(Default)]
struct ByLink(HashMap<LinkKey, ResourceName>);

impl Aliased {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn get(&self, link: LinkKey) -> Option<&ResourceName> {
        self.0.as_ref()?.0.get(&link)
    }

    /// What was sent before is returned.
    pub(crate) fn insert(&mut self, link: LinkKey, name: ResourceName) -> Option<ResourceName> {
        self.0.get_or_insert_default().0.insert(link, name)
    }

    pub(crate) fn remove(&mut self, link: LinkKey) -> Option<ResourceName> {
        let by_link = self.0.as_mut()?;
        let removed = by_link.0.remove(&link);
        if by_link.0.is_empty() {
            self.0 = None;
        }
        removed
    }

    #[cfg(test)]
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkKey> {
        self.0.iter().flat_map(|by_link| by_link.0.keys().copied())
    }
}
