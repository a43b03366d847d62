//! A commit as a transaction of etcd's, and what became of it.

use std::collections::BTreeSet;

use super::messages::{
    Comparison, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, Requested, TxnRequest, TxnResponse,
};
use crate::state::store::{Commit, Compare, Limits, Op, Revision, StoreError};

/// What a server takes at once, where nobody said otherwise: `--max-txn-ops` and `--max-request-bytes`.
const MOST_OPS: usize = 128;
const MOST_BYTES: usize = 3 << 19;
/// What is said of each key beside itself and its value, in bytes, and more than that.
const EACH: usize = 64;

/// A key that must be as it was made, for anything to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// With the prefix of the store.
    pub(super) key: String,
    pub(super) created: i64,
    /// The key goes when this does.
    pub(super) lease: i64,
}

/// How much is committed at once, to keys that begin with `prefix`.
pub(super) fn limits(prefix: &str) -> Limits {
    // One comparison is the fence's.
    let (ops, compares) = (MOST_OPS, MOST_OPS - 1);
    Limits { ops, compares, bytes: MOST_BYTES.saturating_sub((ops + compares + 1) * (prefix.len() + EACH)) }
}

/// Whether that is one commit, and no more than these.
pub(super) fn check(limits: Limits, ops: &[Op], compares: &[Compare]) -> Result<(), StoreError> {
    let keys = compares.iter().map(|compare| compare.key.len());
    let bytes = ops.iter().map(Op::size).chain(keys).fold(0, usize::saturating_add);
    if ops.len() <= limits.ops && compares.len() <= limits.compares && bytes <= limits.bytes {
        return Ok(());
    }
    Err(StoreError::TooLarge { ops: ops.len(), compares: compares.len(), bytes, limits })
}

/// What is to be done, to keys that begin with `prefix`; `None` if it cannot be so that all of `compares` hold.
pub(super) fn txn(prefix: &str, ops: &[Op], compares: &[Compare], fence: Option<&Fence>) -> Option<TxnRequest> {
    let full = |key: &str| [prefix, key].concat().into_bytes();
    let mut compare = Vec::with_capacity(compares.len() + 1);
    for Compare { key, revision } in compares {
        compare.push(Comparison::modified(full(key), i64::try_from(*revision).ok()?));
    }
    let mut failure = Vec::new();
    if let Some(Fence { key, created, .. }) = fence {
        compare.push(Comparison::created(key.clone().into_bytes(), *created));
        // So that it is known whether it was that.
        failure.push(look_at(key));
    }
    let request = |op: &Op| {
        let key = full(op.key());
        let request = match op {
            Op::Put(_, value) => {
                // A key that is put without its lease stays for ever.
                let own = fence.filter(|fence| fence.key.as_bytes() == key);
                let lease = own.map_or(0, |fence| fence.lease);
                Requested::Put(PutRequest { key, value: value.clone(), lease })
            }
            Op::Delete(_) => Requested::Delete(DeleteRangeRequest { key }),
        };
        RequestOp { request: Some(request) }
    };
    // A server refuses what has two for one key.
    let mut later = BTreeSet::new();
    let mut success: Vec<_> = ops.iter().rev().filter(|op| later.insert(op.key())).map(request).collect();
    success.reverse();
    if success.is_empty() {
        // A member that has nothing to do, and nothing to look at, compares what it has without asking a majority.
        success.push(look_at(prefix));
    }
    Some(TxnRequest { compare, success, failure })
}

fn look_at(key: &str) -> RequestOp {
    let range = RangeRequest { key: key.as_bytes().to_vec(), keys_only: true, ..RangeRequest::default() };
    RequestOp { request: Some(Requested::Range(range)) }
}

/// What became of it.
pub(super) fn outcome(answer: &TxnResponse, fence: Option<&Fence>) -> Result<Commit, StoreError> {
    if answer.succeeded {
        let revision = answer.header.and_then(|header| Revision::try_from(header.revision).ok());
        return revision.map(Commit::Done).ok_or_else(|| StoreError::Unsure("its revision is none".to_owned()));
    }
    let Some(fence) = fence else { return Ok(Commit::Conflict) };
    let there = answer.responses.iter().filter_map(|response| response.range.as_ref()).flat_map(|made| &made.kvs);
    match there.map(|made| made.create_revision).next() {
        Some(created) if created == fence.created => Ok(Commit::Conflict),
        _ => Err(StoreError::Fenced),
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::{Header, Made, MadeKey, ResponseOp};
    use super::*;
    use prost::Message as _;

    fn fence() -> Fence {
        Fence { key: "p/pub".to_owned(), created: 5, lease: 9 }
    }

    #[test]
    fn of_what_is_done_to_a_key_the_last_counts() {
        let ops = [Op::put("a", "1"), Op::delete("b"), Op::put("a", "2")];
        let txn = txn("p/", &ops, &[], None).unwrap();
        let [RequestOp { request: Some(Requested::Delete(deleted)) }, RequestOp { request: Some(Requested::Put(put)) }] =
            &*txn.success
        else {
            panic!("{txn:?}");
        };
        assert_eq!((&*deleted.key, &*put.key, &*put.value), (&b"p/b"[..], &b"p/a"[..], &b"2"[..]));
    }

    /// Etcd takes one without any for a read that need not be up to date.
    #[test]
    fn what_only_compares_asks_a_majority_too() {
        let txn = txn("p/", &[], &[Compare::absent("a")], None).unwrap();
        assert!(matches!(&*txn.success, [RequestOp { request: Some(Requested::Range(_)) }]), "{txn:?}");
    }

    #[test]
    fn the_key_of_a_lease_stays_its() {
        let txn = txn("p/", &[Op::put("pub", "1"), Op::put("a", "1")], &[], Some(&fence())).unwrap();
        let lease = |op: &RequestOp| match &op.request {
            Some(Requested::Put(put)) => put.lease,
            _ => -1,
        };
        assert_eq!(txn.success.iter().map(lease).collect::<Vec<_>>(), [9, 0]);
    }

    #[test]
    fn who_lost_his_lease_is_told_so_and_who_has_it_of_the_conflict() {
        let kept = |create_revision| ResponseOp { range: Some(Made { kvs: vec![MadeKey { create_revision }] }) };
        let answer = |responses| TxnResponse { header: Some(Header::default()), succeeded: false, responses };
        let of = |responses| outcome(&answer(responses), Some(&fence()));
        assert!(matches!(of(vec![kept(5)]), Ok(Commit::Conflict)));
        assert!(matches!(of(vec![kept(6)]), Err(StoreError::Fenced)));
        assert!(matches!(of(vec![]), Err(StoreError::Fenced)));
        assert!(matches!(outcome(&answer(vec![]), None), Ok(Commit::Conflict)));
    }

    #[test]
    fn what_is_within_the_limits_is_a_request_that_a_server_takes() {
        let prefix = "xds-relay/v1/";
        let Limits { ops, compares, bytes } = limits(prefix);
        let key = |number: usize| format!("{number:0>120}");
        let size = bytes / ops - 240;
        let ops: Vec<_> = (0..ops).map(|number| Op::put(key(number), vec![0; size])).collect();
        let compares: Vec<_> = (0..compares).map(|number| Compare::unchanged(key(number), u64::MAX >> 1)).collect();
        let txn = txn(prefix, &ops, &compares, Some(&fence())).unwrap();
        assert!(txn.encoded_len() < MOST_BYTES && txn.compare.len() <= MOST_OPS);
    }
}
