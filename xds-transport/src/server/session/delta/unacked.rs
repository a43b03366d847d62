//! The responses of one delta session that were not answered yet, and what of them a client may take for more than it is.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use smallvec::SmallVec;
use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

use crate::server::nonce;
use crate::server::transmit::SPARE;

#[derive(Default)]
pub(crate) struct Unacked {
    sent: VecDeque<Sent>,
    /// The client left something since the first of them.
    crossed: bool,
}

/// Most updates put one.
pub(crate) type Puts = SmallVec<[ResourceName; 1]>;

/// A response.
pub(crate) struct Sent {
    pub(crate) nonce: u64,
    pub(crate) at: Instant,
    pub(crate) resources: u32,
    /// What it puts, of which the client left nothing since.
    pub(crate) puts: Puts,
    left: Vec<Left>,
}

/// What a response puts, where the client left what it may have been sent for: it may have had it before or after.
struct Left {
    name: ResourceName,
    itself: bool,
    by_glob: bool,
    by_wildcard: bool,
}

impl Unacked {
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether one of them puts this.
    pub(crate) fn puts(&self, name: &ResourceName) -> bool {
        self.sent.iter().any(|sent| sent.puts.contains(name) || sent.left.iter().any(|left| left.name == *name))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A response was sent, with these and perhaps more resources.
    pub(crate) fn push(&mut self, (nonce, at): (u64, Instant), resources: u32, mut names: Puts) {
        // It may stay for as long as a slow reader takes.
        if names.capacity() > names.len() + SPARE {
            names.shrink_to_fit();
        }
        self.sent.push_back(Sent { nonce, at, resources, puts: names, left: Vec::new() });
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
        for sent in &mut self.sent {
            let Sent { puts, left, .. } = sent;
            puts.retain(|name| {
                let concerns = by(interest, name) != (false, false, false);
                if concerns {
                    left.push(Left { name: name.clone(), itself: false, by_glob: false, by_wildcard: false });
                }
                !concerns
            });
            for left in &mut sent.left {
                let (itself, by_glob, by_wildcard) = by(interest, &left.name);
                left.itself |= itself;
                left.by_glob |= by_glob;
                left.by_wildcard |= by_wildcard;
            }
        }
    }

    /// A response has told that these are gone.
    pub(crate) fn told_gone(&mut self, names: Vec<ResourceName>) {
        if self.crossed && !names.is_empty() {
            let names: BTreeSet<_> = names.into_iter().collect();
            for sent in &mut self.sent {
                sent.puts.retain(|name| !names.contains(name));
                sent.left.retain(|left| !names.contains(&left.name));
            }
        }
    }

    /// Whether the next response is to say what it [told](Self::told_gone).
    pub(crate) fn is_crossed(&self) -> bool {
        self.crossed
    }

    /// What is on its way since before the client left it, it takes for a part of the answer when it asks for a collection
    /// anew: it is to be told what of it is gone by then (rule 84). Each with a version that no resource has.
    pub(crate) fn crossing(&self, collection: &Interest) -> Vec<(ResourceName, Version)> {
        let crosses = |left: &&Left| match collection {
            // Whether a wildcard has `xdstp:` names is not known here: what was left by its name or its glob, too, is of that.
            Interest::Wildcard if left.name.is_opaque() => left.by_wildcard || left.itself,
            Interest::Wildcard => left.by_wildcard && !left.by_glob && !left.itself,
            Interest::Name(glob) => (left.by_glob || left.itself) && left.name.glob_parent().as_ref() == Some(glob),
        };
        let crossing = self.sent.iter().flat_map(|sent| &sent.left).filter(crosses);
        crossing.map(|left| (left.name.clone(), Version::from(""))).collect()
    }
}

/// What of the resource this is: itself, its glob, or the wildcard.
fn by(interest: &Interest, resource: &ResourceName) -> (bool, bool, bool) {
    match interest {
        Interest::Wildcard => (false, false, true),
        Interest::Name(name) => (resource == name, resource.glob_parent().as_ref() == Some(name), false),
    }
}
