//! The responses of one delta session that were not answered yet, and what of them a client may take for more than it is.

use std::collections::{BTreeSet, VecDeque};

use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

use crate::server::nonce;

#[derive(Default)]
pub(crate) struct Unacked {
    sent: VecDeque<Sent>,
    /// The client left something since the first of them.
    crossed: bool,
}

/// A response.
pub(crate) struct Sent {
    pub(crate) nonce: u64,
    pub(crate) resources: usize,
    puts: Vec<Put>,
}

/// What a response puts. The client left what it may have been sent for: it may have had it before or after.
struct Put {
    name: ResourceName,
    left_itself: bool,
    left_by_glob: bool,
    left_by_wildcard: bool,
}

impl Unacked {
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A response was sent, with these and perhaps more resources.
    pub(crate) fn push(&mut self, nonce: u64, resources: usize, names: Vec<ResourceName>) {
        let put = |name| Put { name, left_itself: false, left_by_glob: false, left_by_wildcard: false };
        self.sent.push_back(Sent { nonce, resources, puts: names.into_iter().map(put).collect() });
    }

    /// Rule 22: an ACK or NACK of a response answers those before it too. The last of these is the one with the nonce.
    pub(crate) fn answered(&mut self, nonce: &str) -> impl ExactSizeIterator<Item = Sent> {
        let position = self.sent.iter().position(|sent| nonce::is(nonce, sent.nonce));
        self.crossed &= position.is_none_or(|position| position + 1 < self.sent.len());
        self.sent.drain(..position.map_or(0, |position| position + 1))
    }

    /// The client left this.
    pub(crate) fn leave(&mut self, interest: &Interest) {
        self.crossed |= !self.sent.is_empty();
        for put in self.sent.iter_mut().flat_map(|sent| &mut sent.puts) {
            match interest {
                Interest::Wildcard => put.left_by_wildcard = true,
                Interest::Name(name) => {
                    put.left_itself |= put.name == *name;
                    put.left_by_glob |= put.name.glob_parent().as_ref() == Some(name);
                }
            }
        }
    }

    /// A response has told that these are gone.
    pub(crate) fn told_gone(&mut self, names: &BTreeSet<ResourceName>) {
        if self.crossed && !names.is_empty() {
            self.sent.iter_mut().for_each(|sent| sent.puts.retain(|put| !names.contains(&put.name)));
        }
    }

    /// Whether the next response is to say what it [told](Self::told_gone).
    pub(crate) fn is_crossed(&self) -> bool {
        self.crossed
    }

    /// What is on its way since before the client left it, it takes for a part of the answer when it asks for a collection
    /// anew: it is to be told what of it is gone by then (rule 84). Each with a version that no resource has.
    pub(crate) fn crossing(&self, collection: &Interest) -> Vec<(ResourceName, Version)> {
        let crosses = |put: &&Put| match collection {
            // Whether a wildcard has `xdstp:` names is not known here: what was left by its name or its glob, too, is of that.
            Interest::Wildcard if put.name.is_opaque() => put.left_by_wildcard || put.left_itself,
            Interest::Wildcard => put.left_by_wildcard && !put.left_by_glob && !put.left_itself,
            Interest::Name(glob) => {
                (put.left_by_glob || put.left_itself) && put.name.glob_parent().as_ref() == Some(glob)
            }
        };
        let puts = self.sent.iter().flat_map(|sent| &sent.puts).filter(crosses);
        puts.map(|put| (put.name.clone(), Version::from(""))).collect()
    }
}
