//! What a subscriber has looked at of names that have variants.

use std::collections::HashMap;
use std::sync::Arc;

use xdstp_uri::ResourceName;

use crate::moments::Seq;
use crate::subscribers::names::Names;
use crate::variant::Variant;

/// By name. Most subscribers want nothing that has variants.
#[derive(Default)]
pub(crate) struct Looked(Option<Box<Looks>>);

#[derive(Default)]
struct Looks(HashMap<ResourceName, Look>);

/// What it has looked at of one name.
#[derive(Default)]
pub(crate) struct Look {
    /// Since when the name had variants: if it has others by now, this says only what is held.
    pub(crate) of: Seq,
    /// When what it selects had last changed; 0 if it is to be told whatever it is.
    pub(crate) seq: Seq,
    /// The variants that it may hold, and was not told to be gone: the one that it was sent, or those that it may have from
    /// before.
    pub(crate) held: Vec<Arc<Variant>>,
}

impl Looked {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn get(&self, name: &ResourceName) -> Option<&Look> {
        self.0.as_ref()?.0.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &ResourceName) -> Option<&mut Look> {
        self.0.as_mut()?.0.get_mut(name)
    }

    /// Whether the subscriber was told that there is no variant of a name for it, or that what it had is gone.
    pub(crate) fn knows_absent(&self, name: &ResourceName) -> bool {
        self.get(name).is_some_and(|look| look.seq > 0 && look.held.is_empty())
    }

    pub(crate) fn into_looks(self) -> impl Iterator<Item = (ResourceName, Look)> {
        self.0.into_iter().flat_map(|looks| looks.0)
    }

    pub(crate) fn entry(&mut self, name: &ResourceName) -> &mut Look {
        self.0.get_or_insert_default().0.entry(name.clone()).or_default()
    }

    pub(crate) fn remove(&mut self, name: &ResourceName) -> Option<Look> {
        let looks = self.0.as_mut()?;
        let removed = looks.0.remove(name);
        if looks.0.is_empty() {
            self.0 = None;
        }
        removed
    }
}

impl Names for Looked {
    fn iter(&self) -> impl Iterator<Item = &ResourceName> {
        self.0.iter().flat_map(|looks| looks.0.keys())
    }

    fn of_glob<'a>(&'a self, glob: &'a ResourceName) -> impl Iterator<Item = &'a ResourceName> {
        self.iter().filter(move |name| name.answers(glob))
    }
}
