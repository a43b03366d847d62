//! What is said to etcd and by it: of its API, version 3, the part that a store needs.
//!
//! Field numbers are the API's. What is not needed is left out, and ignored when it comes.

use bytes::Bytes;
use prost::{Message, Oneof};

/// What every answer begins with: who answers, and how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Header {
    #[prost(uint64, tag = "1")]
    pub(super) cluster_id: u64,
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
    #[prost(uint64, tag = "4")]
    pub(super) raft_term: u64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    // A value of its own: one in common with its message would keep all of that.
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    #[prost(int64, tag = "4")]
    pub(super) revision: i64,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(super) more: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Requested", tags = "1, 2, 3")]
    pub(super) request: Option<Requested>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum Requested {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

/// That of a key something is equal to this: `result` is 0 for that.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Comparison {
    #[prost(int32, tag = "2")]
    pub(super) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
    #[prost(oneof = "Compared", tags = "5, 6")]
    pub(super) to: Option<Compared>,
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub(super) enum Compared {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Modified(i64),
}

impl Comparison {
    /// A key was made at this revision; 0 if it is not there.
    pub(super) fn created(key: Vec<u8>, revision: i64) -> Self {
        Self { target: 1, key, to: Some(Compared::Created(revision)) }
    }

    /// A key was put last at this revision; 0 if it is not there.
    pub(super) fn modified(key: Vec<u8>, revision: i64) -> Self {
        Self { target: 2, key, to: Some(Compared::Modified(revision)) }
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Comparison>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<ResponseOp>,
}

/// Of the answers within a transaction's only a range's has something to say.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub(super) range: Option<Made>,
}

/// When keys were made.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Made {
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<MadeKey>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct MadeKey {
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) start_revision: i64,
    #[prost(bool, tag = "4")]
    pub(super) progress_notify: bool,
    #[prost(bool, tag = "8")]
    pub(super) fragment: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "3")]
    pub(super) created: bool,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(super) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(super) cancel_reason: String,
    #[prost(bool, tag = "7")]
    pub(super) fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<KeyEvent>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyEvent {
    /// 0 for a put, 1 for a deletion.
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantRequest {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseRequest {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseRevokeResponse {}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseKeepAliveResponse {
    /// In seconds; 0 if the lease is over.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}
