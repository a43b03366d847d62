//! A key that one has as long as he lives, and writes that count only meanwhile.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::client::Client;
use super::commit::Fence;
use super::engine::Engine;
use super::failure::Failure;
use super::messages::{
    Comparison, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveResponse, LeaseRequest, LeaseRevokeResponse,
    PutRequest, RangeRequest, RequestOp, Requested, TxnRequest,
};
use crate::federation::lock;
use crate::state::changes::Watch;
use crate::state::store::{Commit, Compare, Entry, Limits, Listing, Op, Revision, Store, StoreError};

/// A key of etcd's that is this process's, and gone soon after it: see [`Etcd::lease`](super::Etcd::lease).
///
/// It is kept alive until it is dropped. Then it is given back, if there is time for that; otherwise others have the key when the
/// time of the lease is over.
#[derive(Debug)]
pub struct Lease {
    engine: Arc<Engine>,
    fence: Fence,
    until: Arc<Mutex<Option<Instant>>>,
    _until_dropped: oneshot::Sender<()>,
}

impl Lease {
    /// `None` if somebody has the key.
    pub(super) fn acquire(
        engine: &Arc<Engine>,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let (client, key) = (engine.calls.clone(), [&engine.prefix, key].concat());
        let began = Instant::now();
        let Some((fence, ttl)) = engine.run(async move { acquire(&client, key, value, ttl).await })? else {
            return Ok(None);
        };
        let until = Arc::new(Mutex::new(Some(began + ttl)));
        let (until_dropped, dropped) = oneshot::channel();
        engine.spawn(keep(engine.calls.clone(), fence.lease, ttl, until.clone(), dropped));
        Ok(Some(Self { engine: engine.clone(), fence, until, _until_dropped: until_dropped }))
    }

    /// Whether the key is surely this process's, as far as it knows without asking: it is when the lease was kept alive lately.
    /// What is written by then may still come too late; what is written with a [store](Self::store) of the lease's does not.
    pub fn is_held(&self) -> bool {
        lock(&self.until).is_some_and(|until| Instant::now() < until)
    }

    /// The same store, where commits are done only as long as the key is there as this process put it. After that they are
    /// [`Fenced`](StoreError::Fenced), surely and for ever: etcd itself compares that, with all else that is compared. The key may
    /// be put with it, too, to have another value, and is the lease's still.
    pub fn store(&self) -> Fenced {
        Fenced { engine: self.engine.clone(), fence: self.fence.clone() }
    }

    /// Gives the key back, and waits for that: somebody else can have it then.
    ///
    /// # Errors
    /// Etcd does not answer. The key goes when the time of the lease is over.
    pub fn release(self) -> Result<(), StoreError> {
        let (client, lease) = (self.engine.calls.clone(), self.fence.lease);
        self.engine.run(async move { revoke(&client, lease).await })
    }
}

/// A store in which only the holder of a [`Lease`] commits.
#[derive(Clone, Debug)]
pub struct Fenced {
    engine: Arc<Engine>,
    fence: Fence,
}

impl Store for Fenced {
    fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.engine.list(prefix)
    }

    fn read(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.engine.read(key)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.engine.watch(prefix, after)
    }

    fn commit(&self, ops: &[Op], compares: &[Compare]) -> Result<Commit, StoreError> {
        self.engine.commit(ops, compares, Some(&self.fence))
    }

    fn limits(&self) -> Limits {
        self.engine.limits()
    }
}

async fn acquire(
    client: &Client,
    key: String,
    value: Bytes,
    ttl: Duration,
) -> Result<Option<(Fence, Duration)>, Failure> {
    let key_bytes = key.clone().into_bytes();
    let there = RangeRequest { key: key_bytes.clone(), limit: 1, keys_only: true, ..RangeRequest::default() };
    if !client.range(&there).await?.0.kvs.is_empty() {
        return Ok(None);
    }
    let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    let asked = LeaseGrantRequest { ttl: i64::try_from(seconds.max(1)).unwrap_or(i64::MAX) };
    let granted: LeaseGrantResponse = client.ask("/etcdserverpb.Lease/LeaseGrant", asked).await?;
    let ttl = of_seconds(granted.ttl).ok_or(Failure::Nonsense("a lease of no time"))?;
    let put = PutRequest { key: key_bytes.clone(), value, lease: granted.id };
    let txn = TxnRequest {
        compare: vec![Comparison::created(key_bytes, 0)],
        success: vec![RequestOp { request: Some(Requested::Put(put)) }],
        failure: Vec::new(),
    };
    let answer = client.txn(&txn).await;
    if let Ok(answer) = &answer
        && answer.succeeded
        && let Some(header) = answer.header
    {
        return Ok(Some((Fence { key, created: header.revision, lease: granted.id }, ttl)));
    }
    // The key may have been put: then it goes with its lease.
    let (client, lease) = (client.clone(), granted.id);
    tokio::spawn(async move {
        let _ = revoke(&client, lease).await;
    });
    answer.map(|_| None)
}

/// Keeps a lease until it is given back.
async fn keep(
    client: Client,
    id: i64,
    ttl: Duration,
    until: Arc<Mutex<Option<Instant>>>,
    mut dropped: oneshot::Receiver<()>,
) {
    // Another member is to be asked before it is too late.
    let hurried = client.hurried(ttl / 5);
    let keep = async {
        let mut pause = ttl / 3;
        loop {
            sleep(pause).await;
            let asked = Instant::now();
            let kept: Result<LeaseKeepAliveResponse, _> =
                hurried.ask_first("/etcdserverpb.Lease/LeaseKeepAlive", LeaseRequest { id }).await;
            pause = if kept.is_ok() { ttl / 3 } else { ttl / 20 };
            let Ok(kept) = kept else { continue };
            let kept = of_seconds(kept.ttl).and_then(|ttl| asked.checked_add(ttl));
            *lock(&until) = kept;
            if kept.is_none() {
                return tracing::warn!("a lease in etcd is over");
            }
        }
    };
    select! {
        _ = &mut dropped => {}
        () = keep => return,
    }
    let _ = revoke(&client, id).await;
}

async fn revoke(client: &Client, id: i64) -> Result<(), Failure> {
    let revoked: Result<LeaseRevokeResponse, _> =
        client.ask("/etcdserverpb.Lease/LeaseRevoke", LeaseRequest { id }).await;
    match revoked {
        // It is over already.
        Err(Failure::Refused(why)) if why.contains("lease not found") => Ok(()),
        other => other.map(drop),
    }
}

/// Of none or less there is nothing; of more than a day a day is enough.
fn of_seconds(seconds: i64) -> Option<Duration> {
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds.min(86_400)))
}
