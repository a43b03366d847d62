//! Who speaks for a node group.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The members of a node group, of whom one speaks for all.
#[derive(Default)]
pub(crate) struct Speakers {
    /// By stream, as the origin is told of them.
    members: BTreeMap<u64, Bytes>,
    speaks: Option<u64>,
}

impl Speakers {
    pub(crate) fn join(&mut self, stream: u64, node: Bytes) {
        self.members.insert(stream, node);
    }

    pub(crate) fn leave(&mut self, stream: u64) {
        self.members.remove(&stream);
    }

    /// A living member: the same one as long as it is there. None when the last of them has left.
    pub(crate) fn speaker(&mut self) -> Option<Bytes> {
        let speaks = self.speaks.filter(|stream| self.members.contains_key(stream));
        self.speaks = speaks.or_else(|| self.members.keys().next().copied());
        self.members.get(&self.speaks?).cloned()
    }
}
