//! The responses of one delta session that were not answered yet, and what of them a client may take for more than it is.

use std::collections::VecDeque;

use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

use crate::server::nonce;

#[derive(Default)]
pub(crate) struct Unacked(VecDeque<Sent>);

/// A response.
pub(crate) struct Sent {
    pub(crate) nonce: u64,
    pub(crate) resources: usize,
    puts: Vec<Put>,
}

/// What a response puts. The client left a collection that may be what it was sent for: it may have had it before or after.
struct Put {
    name: ResourceName,
    left_by_glob: bool,
    left_by_wildcard: bool,
}

impl Unacked {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A response was sent, with these and perhaps more resources.
    pub(crate) fn push(&mut self, nonce: u64, resources: usize, names: Vec<ResourceName>) {
        let put = |name| Put { name, left_by_glob: false, left_by_wildcard: false };
        self.0.push_back(Sent { nonce, resources, puts: names.into_iter().map(put).collect() });
    }

    /// Rule 22: an ACK or NACK of a response answers those before it too. The last of these is the one with the nonce.
    pub(crate) fn answered(&mut self, nonce: &str) -> impl ExactSizeIterator<Item = Sent> {
        let position = self.0.iter().position(|sent| nonce::is(nonce, sent.nonce));
        self.0.drain(..position.map_or(0, |position| position + 1))
    }

    /// The client left a collection.
    pub(crate) fn leave(&mut self, collection: &Interest) {
        for put in self.0.iter_mut().flat_map(|sent| &mut sent.puts) {
            match collection {
                Interest::Wildcard => put.left_by_wildcard = true,
                Interest::Name(glob) => put.left_by_glob |= put.name.glob_parent().as_ref() == Some(glob),
            }
        }
    }

    /// What is on its way since before the client left a collection, it takes for a part of the answer when it asks for that
    /// anew: it is to be told what of it is gone by then (rule 84). Each with a version that no resource has.
    pub(crate) fn crossing(&self, collection: &Interest) -> Vec<(ResourceName, Version)> {
        let crosses = |put: &&Put| match collection {
            // Whether a wildcard has names of globs is not known here: what was of a glob that was left, too, is of that.
            Interest::Wildcard => put.left_by_wildcard && !put.left_by_glob,
            Interest::Name(glob) => put.left_by_glob && put.name.glob_parent().as_ref() == Some(glob),
        };
        let puts = self.0.iter().flat_map(|sent| &sent.puts).filter(crosses);
        puts.map(|put| (put.name.clone(), Version::from(""))).collect()
    }
}
