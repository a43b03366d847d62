//! An engine for several machines: a cluster of etcd.
//!
//! It speaks etcd's API, version 3, by gRPC of its own.

mod client;
mod commit;
mod engine;
mod failure;
mod history;
mod lease;
mod link;
mod listing;
mod messages;
mod options;
mod patience;
mod range;
mod revisions;
mod rpc;
#[cfg(test)]
mod tests;
mod thread;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use self::engine::Engine;
pub use self::lease::{Fenced, Lease};
pub use self::options::{EtcdOptions, EtcdOptionsError};
use crate::state::changes::Watch;
use crate::state::store::{Commit, Compare, Entry, Limits, Listing, Op, Revision, Store, StoreError};

/// A store in a cluster of etcd, version 3.4 or later, for as many processes as use the same prefix. Clones are the same.
///
/// Revisions are etcd's, which others make, too. All that is asked is answered by a majority of the cluster: of what any process
/// was told to be done, nobody misses anything. Who answers no more is left for the next member; what fails has failed
/// [within its time](EtcdOptions::with_deadline), and says whether it may have been done:
/// [`Unsure`](StoreError::Unsure) is that, and no other of its errors.
///
/// A [commit](Store::commit) is one transaction, whose [limits](Store::limits) are etcd's own: more is
/// [`TooLarge`](StoreError::TooLarge). It writes nothing that no op says, so that a commit that changes nothing has the revision
/// that there is. Of several ops for one key the last is done.
///
/// A [watch](Store::watch) goes on by itself when its member is lost, from where it was. It is
/// [`Compacted`](StoreError::Compacted) when etcd has compacted what is missed, when who watches is too slow (8 MiB or 16384
/// changes), and when the cluster is another one or was put back to an earlier state: what was listed before is to be listed
/// again. It is so, too, when it cannot go on for half a minute although all else is answered. While no member answers, nothing is
/// told.
///
/// It has a thread of its own, and may be called wherever one may wait.
///
/// ```no_run
/// use xdstp_client::state::{Commit, Etcd, EtcdOptions, Op, Store};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let members = ["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"];
/// let store = Etcd::open(EtcdOptions::new(members, "xds-relay/v1/")?)?;
/// let listing = store.list("zone/")?;
/// let mut watch = store.watch("zone/", listing.revision)?;
/// assert!(matches!(store.commit(&[Op::put("zone/a", "1")], &[])?, Commit::Done(_)));
/// assert_eq!(watch.next(std::time::Duration::from_secs(1))?[0].op, Op::put("zone/a", "1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Etcd(Arc<Engine>);

impl Etcd {
    /// A store in a cluster, which need not be there yet: it is connected to when something is asked.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn open(options: EtcdOptions) -> Result<Self, StoreError> {
        Engine::start(options).map(|engine| Self(Arc::new(engine)))
    }

    /// Has a key with a value for as long as this process lives, if nobody has it: `None` if somebody does. Who wants it then
    /// watches the key until it is deleted. It is gone when the process has been silent for `ttl`, in whole seconds; etcd makes
    /// that longer than an election takes.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use xdstp_client::state::{Etcd, Op, Store, StoreError};
    ///
    /// fn publish(store: &Etcd) -> Result<(), StoreError> {
    ///     let Some(lease) = store.lease("pub/example", "relay-1", Duration::from_secs(5))? else { return Ok(()) };
    ///     // Nothing of it is done when another relay publishes meanwhile, however late it comes.
    ///     let _ = lease.store().commit(&[Op::put("ctl/example", "stable")], &[])?;
    ///     lease.release()
    /// }
    /// ```
    ///
    /// # Errors
    /// Etcd does not answer, or refuses. What may have been done is undone.
    pub fn lease(&self, key: &str, value: impl Into<Bytes>, ttl: Duration) -> Result<Option<Lease>, StoreError> {
        Lease::acquire(&self.0, key, value.into(), ttl)
    }
}

impl Store for Etcd {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.0.list(prefix)
    }

    fn read(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.0.read(key)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.0.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.0.commit(ops, compares, None)
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }
}
