//! The responses of one delta session that were not answered yet, and what of them a client may take for more than it is.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use xdstp_cache::{Interest, Version};
use xdstp_uri::ResourceName;

use crate::server::nonce;
use crate::server::session::delta::puts::Puts;

#[derive(Default)]
pub(crate) struct Unacked {
    sent: VecDeque<Sent>,
    /// The client left something since the first of them.
    crossed: bool,
    /// While a request is read: what was left of the responses that it answers.
    answered: Vec<ResourceName>,
}

/// A response.
pub(crate) struct Sent {
    pub(crate) nonce: u64,
    pub(crate) at: Instant,
    pub(crate) resources: u32,
    /// What it puts, of which the client left nothing since.
    pub(crate) puts: Puts,
    /// What it puts, where the client left what that may have been sent for: it may have had it before or after.
    pub(crate) left: Vec<ResourceName>,
}

impl Unacked {
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether one of them puts this.
    pub(crate) fn puts(&self, name: &ResourceName) -> bool {
        self.sent.iter().any(|sent| sent.puts.contains(name) || sent.left.contains(name))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A response was sent, with these and perhaps more resources.
    pub(crate) fn push(&mut self, (nonce, at): (u64, Instant), resources: u32, mut names: Puts) {
        // It may stay for as long as a slow reader takes.
        names.give_back();
        if self.sent.capacity() == 0 {
            // Mostly there is one at a time, and a client that is idle keeps the room.
            self.sent.reserve_exact(1);
        }
        self.sent.push_back(Sent { nonce, at, resources, puts: names, left: Vec::new() });
    }

    /// Rule 22: an ACK or NACK of a response answers those before it too. So many are to be [taken](Self::take) now; the last of
    /// these is the one with the nonce.
    pub(crate) fn answered(&mut self, nonce: &str) -> usize {
        let is_it = |sent: &Sent| nonce::is(nonce, sent.nonce);
        // Mostly there is but one.
        let position = if self.sent.front().is_some_and(is_it) { Some(0) } else { self.sent.iter().position(is_it) };
        self.crossed &= position.is_none_or(|position| position + 1 < self.sent.len());
        position.map_or(0, |position| position + 1)
    }

    /// The oldest.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// A request answers responses of which the client had left these before. What else it asks for it may have wanted since
    /// before it read them: they are on their way to it, until that is [read](Self::read).
    pub(crate) fn reads(&mut self, left: Vec<ResourceName>) {
        self.answered = left;
    }

    pub(crate) fn read(&mut self) {
        self.answered = Vec::new();
    }

    /// The client left this.
    pub(crate) fn leave(&mut self, interest: &Interest) {
        self.crossed |= !self.sent.is_empty();
        self.leave_each(|name| may_be_of(interest, name));
    }

    /// And what it asks for by nothing any more: which resource it left by an alias, only the source knows.
    pub(crate) fn leave_unless(&mut self, is_asked_for: impl Fn(&ResourceName) -> bool) {
        if self.crossed {
            self.leave_each(|name| !is_asked_for(name));
        }
    }

    fn leave_each(&mut self, is_left: impl Fn(&ResourceName) -> bool) {
        for Sent { puts, left, .. } in &mut self.sent {
            puts.retain(|name| {
                let is_left = is_left(name);
                if is_left {
                    left.push(name.clone());
                }
                !is_left
            });
        }
    }

    /// A response has told that these are gone.
    pub(crate) fn told_gone(&mut self, names: Vec<ResourceName>) {
        if self.crossed && !names.is_empty() {
            let names: BTreeSet<_> = names.into_iter().collect();
            for sent in &mut self.sent {
                sent.puts.retain(|name| !names.contains(name));
                sent.left.retain(|name| !names.contains(name));
            }
        }
    }

    /// Whether the next response is to say what it [told](Self::told_gone).
    pub(crate) fn is_crossed(&self) -> bool {
        self.crossed
    }

    /// What is on its way since before the client left it, it takes for a part of the answer when it asks for a collection
    /// anew: it is to be told what of it is gone by then (rule 84). Each with a version that no resource has. Of which names
    /// a wildcard is, `is_of_wildcard` says.
    pub(crate) fn crossing(
        &self,
        collection: &Interest,
        is_of_wildcard: impl Fn(&ResourceName) -> bool,
    ) -> Vec<(ResourceName, Version)> {
        let crosses = |left: &&ResourceName| match collection {
            Interest::Wildcard => is_of_wildcard(left),
            Interest::Name(_) => may_be_of(collection, left),
        };
        let crossing = self.answered.iter().chain(self.sent.iter().flat_map(|sent| &sent.left)).filter(crosses);
        crossing.map(|left| (left.clone(), Version::from(""))).collect()
    }
}

/// Whether who asks for this may be sent the resource: it is that, of the glob, or of the wildcard.
fn may_be_of(interest: &Interest, resource: &ResourceName) -> bool {
    match interest {
        Interest::Wildcard => true,
        Interest::Name(name) => resource.answers(name),
    }
}
