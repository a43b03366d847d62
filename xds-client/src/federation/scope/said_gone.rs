//! What the origin said is gone, until who keeps what is known has taken that: watches may have left it by then.

use std::collections::HashSet;

use xds_transport::Frame;
use xdstp_cache::{Edit, Interest, TypeUrl};
use xdstp_uri::ResourceName;

use crate::federation::demand::Wish;

/// Of how many names that is known; of more, what is kept stays as if they were left.
const MOST: usize = 1 << 16;

/// Names that are gone by the origin's word: noted with the change itself, so that nobody takes one without the other. Where
/// nothing was held of one there is no change, and something may be kept of it all the same: by a scope that is dropped since.
#[derive(Default)]
pub(super) struct SaidGone(HashSet<Wish>);

impl SaidGone {
    /// The origin said that this is gone, and it is.
    pub(super) fn went(&mut self, edit: &mut Edit<'_, Frame>, type_url: &TypeUrl, name: ResourceName) {
        if self.0.len() < MOST && edit.resource(type_url, &name).is_none() {
            edit.note(type_url, &name);
            self.0.insert((type_url.clone(), Interest::Name(name)));
        }
    }

    /// The origin has this, be it by another name.
    pub(super) fn came(&mut self, type_url: &TypeUrl, name: &ResourceName) {
        if !self.0.is_empty() {
            self.take(&(type_url.clone(), Interest::Name(name.clone())));
        }
    }

    /// All of them, which are known still.
    pub(super) fn all(&self) -> impl Iterator<Item = &Wish> {
        self.0.iter()
    }

    /// Whether it is among them, which is known no longer.
    pub(super) fn take(&mut self, of: &Wish) -> bool {
        self.0.remove(of)
    }
}
