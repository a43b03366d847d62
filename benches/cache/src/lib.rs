//! One resource of N changes, and W of the subscribers are interested in it: until each of them has it.
//!
//! Every peer has the same resources, and every subscriber is a task that sleeps until it is woken. What differs is how
//! a change finds the subscribers, and what each then does to see it.

pub mod floor;
pub mod nebucloud;
pub mod ours;
pub mod sotw;
pub mod tasks;

use bytes::Bytes;

/// The type of every resource.
pub const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// The length of a resource's `Any`: that of a `ClusterLoadAssignment` of 16 endpoints.
pub const BODY: usize = 429;

/// What the subscribers of a workload want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Everything.
    Wildcard,
    /// The one directory that all resources are in.
    Glob,
    /// As many names as said, the one that changes among them.
    Exact(usize),
    /// As many names as said, each of another part of the resources: one of all subscribers is interested.
    Spread(usize),
    /// Each another directory: one of all subscribers is interested.
    Globs,
}

impl Workload {
    /// The name of the resource that is `index`-th of all.
    pub fn name(self, index: usize) -> String {
        let directory = if self == Self::Globs { index } else { 0 };
        format!("xdstp://bench.example/envoy.config.endpoint.v3.ClusterLoadAssignment/pool-{directory:06}/{index:06}")
    }

    /// What the subscriber that is `who`-th of all asks for, where there are `resources`.
    pub fn asks(self, who: usize, resources: usize) -> Vec<String> {
        match self {
            Self::Wildcard => vec!["*".into()],
            Self::Glob => vec![glob_of(&self.name(0))],
            Self::Globs => vec![glob_of(&self.name(who))],
            Self::Exact(names) => (0..names).map(|index| self.name(index)).collect(),
            Self::Spread(names) => (0..names).map(|index| self.name((who * names + index) % resources)).collect(),
        }
    }

    /// How many of `subscribers` are interested in the first resource, which is the one that changes.
    pub fn interested(self, subscribers: usize) -> usize {
        match self {
            Self::Wildcard | Self::Glob | Self::Exact(_) => subscribers,
            Self::Spread(_) | Self::Globs => 1,
        }
    }
}

/// The collection that a name is in.
pub fn glob_of(name: &str) -> String {
    let (directory, _) = name.rsplit_once('/').unwrap_or_default();
    format!("{directory}/*")
}

/// The content of a resource after `round` changes, as an encoded `Any`.
pub fn body(round: u64) -> Bytes {
    let mut value = vec![0x7f; BODY - TYPE_URL.len() - 5];
    value[..8].copy_from_slice(&round.to_be_bytes());
    let mut any = vec![0x0a, TYPE_URL.len() as u8];
    any.extend_from_slice(TYPE_URL.as_bytes());
    any.push(0x12);
    prost::encoding::encode_varint(value.len() as u64, &mut any);
    any.extend_from_slice(&value);
    any.into()
}

/// A cache with its resources and its subscribers, which have all been sent what there is.
pub trait Peer {
    /// Fills a cache with `resources`, and lets `subscribers` in.
    fn new(workload: Workload, resources: usize, subscribers: usize) -> Self;

    /// Makes the next state of the first resource: what comes before a cache is told is not measured.
    fn prepare(&mut self);

    /// Publishes that, and returns when everybody interested has it.
    fn publish(&mut self);

    /// What the subscribers do afterwards, and is not measured with the update.
    fn settle(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publishes<P: Peer>(workload: Workload) {
        let mut peer = P::new(workload, 100, 20);
        for _ in 0..20 {
            peer.prepare();
            peer.publish();
            peer.settle();
        }
    }

    #[test]
    fn everybody_interested_has_an_update_when_it_is_published() {
        for workload in [Workload::Wildcard, Workload::Glob, Workload::Exact(5), Workload::Spread(5), Workload::Globs] {
            publishes::<ours::Cached>(workload);
            publishes::<ours::Served>(workload);
            publishes::<floor::Floor>(workload);
        }
        publishes::<nebucloud::Snapshots>(Workload::Wildcard);
    }

    #[test]
    fn a_body_has_the_size_it_is_said_to_have() {
        assert_eq!(body(0).len(), BODY);
        assert_ne!(body(0), body(1));
    }
}
