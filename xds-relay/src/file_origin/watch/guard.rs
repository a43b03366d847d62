//! What is not believed at once: that much is gone, or that there never was anything.
//!
//! A volume that is not mounted is an empty directory, and a part of a list that is being copied is a list.

use std::collections::BTreeSet;
use std::time::Instant;

use xdstp_cache::TypeUrl;
use xdstp_uri::ResourceName;

use crate::file_origin::resource::FileResource;
use crate::keyed_origin::{HELD, MUCH, Name, Removals};

/// What counts, and what is to count later.
#[derive(Debug)]
pub(super) struct Guard {
    /// What the files had when they were believed last; none before that.
    good: Option<BTreeSet<Name>>,
    removals: Removals,
    /// Since when there is no file, where nothing was before.
    empty_since: Option<Instant>,
}

/// What is read counts if it is so still at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Later {
    /// How many resources would be gone.
    pub(super) gone: usize,
    pub(super) until: Instant,
}

impl Guard {
    /// Of what counts already, if anything does.
    pub(super) fn new(good: Option<&[FileResource]>) -> Self {
        Self { good: good.map(names), removals: Removals::default(), empty_since: None }
    }

    /// When these count, of so many files, if that is later.
    pub(super) fn hold(&mut self, (resources, files): (&[FileResource], usize), now: Instant) -> Option<Later> {
        let names = names(resources);
        let later = match &self.good {
            Some(good) => {
                let mut gone: BTreeSet<_> = good.difference(&names).cloned().collect();
                // Little, with something in its place, is a change; a volume that is not mounted has nothing.
                if gone.len() <= MUCH && !names.is_empty() {
                    gone.clear();
                }
                let until = self.removals.hold(&gone, || good.len(), now);
                until.map(|until| Later { gone: gone.len(), until })
            }
            None if files == 0 => {
                let until = *self.empty_since.get_or_insert(now) + HELD;
                (now < until).then_some(Later { gone: 0, until })
            }
            None => None,
        };
        if later.is_none() {
            self.good = Some(names);
        }
        later
    }
}

fn names(resources: &[FileResource]) -> BTreeSet<Name> {
    let name = |resource: &FileResource| {
        Some((TypeUrl::from(resource.type_url.as_str()), ResourceName::parse(&resource.name).ok()?))
    };
    resources.iter().filter_map(name).collect()
}
