//! A response on its way out: small heads of its own, and references to shared bodies.

use std::mem;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;
use xdstp_cache::{Resource, ResourceError, TypeUrl, Version};

use crate::Protocol;
use crate::frame::{Frame, Named, duration_len, put_duration};
use crate::server::image::Image;
use crate::server::nonce;
use crate::wire::RESOURCE_TYPE_URL;
use crate::wire::walk;

/// A response is closed once it holds this many bytes, with what its resources count for (rule 133): larger ones only delay
/// what is newer. The resource that fills it is in it still, so a response stays below 4 MiB, which is what gRPC accepts
/// where nobody asked for more, unless one resource alone has nearly that much.
pub(crate) const BUDGET: usize = 256 * 1024;

/// Small bodies are copied together into chunks of this size; larger ones are sent as they are. Not a byte more: it is what
/// a frame of HTTP/2 holds where nobody asked for more, and what is beyond is a frame and a write of its own.
const CHUNK: usize = 16 * 1024;
/// What the response's own fields take, about: type URL, nonce, control plane, keys and lengths.
const TAIL: usize = 160;
/// From here on a body is worth a chunk of its own.
const LARGE: usize = 4 * 1024;
/// What a resource counts for beside its bytes, so that a response has some hundreds at most. Until who does not read has
/// taken it, it has a reference to its body, and its name until the ACK.
const RESOURCE: usize = 384;
/// How many of a response there are before as many more are expected as fit.
const SOME: usize = 8;
/// No more than this is written for all who are sent the same.
const MOST_SHOWN: usize = 512 * 1024;
/// Room for more entries than this is given back once a response is complete: to a slow reader it is on its way for long.
pub(crate) const SPARE: usize = 32;

/// An encoded response, assembled chunk by chunk as the peer takes it: what is staged for a slow
/// reader is one reference per resource, never a copy of the bodies. It is handed on by value, and kept small for that.
#[derive(Debug)]
pub struct Transmit {
    /// The type of the response.
    pub type_url: TypeUrl,
    /// How many resources it carries.
    pub resources: u32,
    /// How many resources it lets live on without sending them (rule 112).
    pub refreshed: u32,
    /// How many removals it carries.
    pub removed: u32,
    /// How many errors of resources it carries (TP3).
    pub errors: u32,
    heads: Vec<u8>,
    /// Most updates have one.
    bodies: SmallVec<[Body; 1]>,
    /// How many bytes of the heads, and how many bodies, precede what is still to be sent.
    taken: usize,
    gone: usize,
    remaining: usize,
}

#[derive(Debug)]
struct Body {
    /// It goes after this many bytes of the heads.
    after: usize,
    bytes: Bytes,
}

impl Transmit {
    pub(crate) fn new(type_url: TypeUrl) -> Self {
        Self {
            type_url,
            resources: 0,
            refreshed: 0,
            removed: 0,
            errors: 0,
            heads: Vec::new(),
            bodies: SmallVec::new(),
            taken: 0,
            gone: 0,
            remaining: 0,
        }
    }

    /// The length of what is left to send, in bytes.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// The next part of the encoded message; `None` when all of it was taken.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        self.chunk_after(&[])
    }

    /// As [`next_chunk`](Self::next_chunk), in one buffer with something that goes before it.
    pub fn chunk_after(&mut self, prefix: &[u8]) -> Option<Bytes> {
        if self.remaining == 0 && prefix.is_empty() {
            return None;
        }
        let large = |body: &Body| body.bytes.len() >= LARGE;
        if prefix.is_empty()
            && let Some(body) = self.bodies.get_mut(self.gone).filter(|body| large(body) && body.after == self.taken)
        {
            self.gone += 1;
            self.remaining -= body.bytes.len();
            return Some(mem::take(&mut body.bytes));
        }
        let mut chunk = Vec::with_capacity((prefix.len() + self.remaining).min(CHUNK));
        chunk.extend_from_slice(prefix);
        loop {
            let body = self.bodies.get_mut(self.gone);
            let end = body.as_ref().map_or(self.heads.len(), |body| body.after);
            let until = end.min(self.taken + CHUNK.saturating_sub(chunk.len()));
            chunk.extend_from_slice(self.heads.get(self.taken..until).unwrap_or_default());
            self.taken = until;
            let room = CHUNK.saturating_sub(chunk.len());
            let Some(body) = body.filter(|body| room > 0 && !large(body)) else { break };
            if body.bytes.len() > room {
                chunk.extend_from_slice(&body.bytes.split_to(room));
                break;
            }
            chunk.extend_from_slice(&mem::take(&mut body.bytes));
            self.gone += 1;
        }
        self.remaining -= chunk.len() - prefix.len();
        Some(chunk.into())
    }

    /// The whole of what is left, in one buffer.
    pub fn into_bytes(mut self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.remaining);
        while let Some(chunk) = self.next_chunk() {
            all.extend_from_slice(&chunk);
        }
        all.freeze()
    }

    /// Appends an element of `DeltaDiscoveryResponse.resources`.
    #[inline]
    pub(crate) fn push_delta<'a>(
        &mut self,
        name: impl Into<Named<'a>>,
        resource: &Resource<Frame>,
        ttl: Option<Duration>,
    ) {
        let name = name.into();
        let Resource { version, value: frame, .. } = resource;
        let length = frame.encoded_len(name, version, ttl);
        // Room for this head and for the fields of the response that follow the last one.
        let head = length - frame.any().len() + TAIL;
        if self.heads.is_empty() {
            self.heads = Vec::with_capacity(head);
        } else if self.heads.capacity() - self.heads.len() < head {
            self.expect_more(head);
        }
        walk::put_delimited(&mut self.heads, 2, length);
        frame.put_head(&mut self.heads, name, version, ttl);
        self.push_body(frame.any().clone());
    }

    /// Appends an element of `DiscoveryResponse.resources`, bare.
    pub(crate) fn push_bare(&mut self, frame: &Frame) {
        walk::put_delimited(&mut self.heads, 2, frame.any().len());
        self.push_body(frame.any().clone());
    }

    /// Appends an element of `DiscoveryResponse.resources`, in a `Resource` (rule 110).
    pub(crate) fn push_wrapped<'a>(
        &mut self,
        name: impl Into<Named<'a>>,
        resource: &Resource<Frame>,
        ttl: Option<Duration>,
    ) {
        let name = name.into();
        let Resource { version, value: frame, .. } = resource;
        let wrapped = frame.encoded_len(name, version, ttl);
        let any = walk::delimited_len(1, RESOURCE_TYPE_URL.len()) + walk::delimited_len(2, wrapped);
        walk::put_delimited(&mut self.heads, 2, any);
        walk::put_bytes(&mut self.heads, 1, RESOURCE_TYPE_URL.as_bytes());
        walk::put_delimited(&mut self.heads, 2, wrapped);
        frame.put_head(&mut self.heads, name, version, ttl);
        self.push_body(frame.any().clone());
    }

    /// Appends an element of `DeltaDiscoveryResponse.resources` that has no body: the client has it, and is to keep it
    /// for another `ttl`.
    pub(crate) fn push_heartbeat(&mut self, name: &str, version: &Version, ttl: Duration) {
        self.refreshed += 1;
        let text = walk::bytes_len(1, version.as_str().len()) + walk::bytes_len(3, name.len());
        walk::put_delimited(&mut self.heads, 2, text + walk::delimited_len(6, duration_len(ttl)));
        walk::put_bytes(&mut self.heads, 1, version.as_str().as_bytes());
        walk::put_bytes(&mut self.heads, 3, name.as_bytes());
        put_duration(&mut self.heads, 6, ttl);
    }

    /// Appends an element of `DeltaDiscoveryResponse.resources` that is an alias of itself and of nothing: how a
    /// client that asked for a virtual host learns that there is none (rule 106).
    pub(crate) fn push_absent_alias(&mut self, name: &str) {
        const VERSION: &str = "absent";
        self.removed += 1;
        let name_len = walk::delimited_len(3, name.len());
        walk::put_delimited(&mut self.heads, 2, walk::delimited_len(1, VERSION.len()) + 2 * name_len);
        walk::put_bytes(&mut self.heads, 1, VERSION.as_bytes());
        for number in [3, 4] {
            walk::put_delimited(&mut self.heads, number, name.len());
            self.heads.extend_from_slice(name.as_bytes());
        }
    }

    /// Appends an element of `DeltaDiscoveryResponse.removed_resources`, the empty name too.
    pub(crate) fn push_removed(&mut self, name: &str) {
        self.removed += 1;
        walk::put_delimited(&mut self.heads, 6, name.len());
        self.heads.extend_from_slice(name.as_bytes());
    }

    /// Appends an element of `DeltaDiscoveryResponse.removed_resource_names`: an encoded `ResourceName` (TP2).
    pub(crate) fn push_removed_name(&mut self, name: &[u8]) {
        self.removed += 1;
        walk::put_delimited(&mut self.heads, 8, name.len());
        self.heads.extend_from_slice(name);
    }

    /// Appends an element of `resource_errors`, which the two protocols number differently (TP3).
    pub(crate) fn push_error(&mut self, protocol: Protocol, name: &str, error: &ResourceError) {
        self.errors += 1;
        let number = match protocol {
            Protocol::Delta => 9,
            Protocol::Sotw => 7,
        };
        // A negative code is a sign-extended int32.
        let code = i64::from(error.code) as u64;
        let message = error.message.as_bytes();
        let name_len = walk::bytes_len(1, name.len());
        let status_len = 1 + walk::varint_len(code) + walk::bytes_len(2, message.len());
        let whole = walk::delimited_len(1, name_len) + walk::delimited_len(2, status_len);
        walk::put_delimited(&mut self.heads, number, whole);
        walk::put_delimited(&mut self.heads, 1, name_len);
        walk::put_bytes(&mut self.heads, 1, name.as_bytes());
        walk::put_delimited(&mut self.heads, 2, status_len);
        self.heads.put_u8(1 << 3);
        walk::put_varint(&mut self.heads, code);
        walk::put_bytes(&mut self.heads, 2, message);
    }

    /// How many bytes of the heads were appended so far.
    pub(crate) fn heads(&self) -> usize {
        self.heads.len()
    }

    /// The resources that were appended, with the first so many bytes of the heads, or all of them; none where it is too much
    /// to be copied.
    pub(crate) fn additions(&self, heads: Option<usize>) -> Option<Bytes> {
        let heads = heads.unwrap_or(self.heads.len());
        let length = heads + self.remaining;
        if length > MOST_SHOWN {
            return None;
        }
        let mut bytes = BytesMut::with_capacity(length);
        let mut from = 0;
        for body in &self.bodies {
            bytes.extend_from_slice(self.heads.get(from..body.after)?);
            bytes.extend_from_slice(&body.bytes);
            from = body.after;
        }
        Some(bytes.freeze())
    }

    /// The same are in an image.
    pub(crate) fn show_additions(&mut self, heads: Option<usize>, image: &Image) {
        let heads = heads.unwrap_or(self.heads.len()).min(self.heads.len());
        self.heads.drain(..heads);
        self.bodies.clear();
        (self.remaining, self.resources) = (0, 0);
        self.show(image);
    }

    /// Begins with what others are sent, too.
    pub(crate) fn show(&mut self, image: &Image) {
        self.resources += image.names().len() as u32;
        self.remaining += image.bytes().len();
        self.bodies.push(Body { after: 0, bytes: image.bytes().clone() });
    }

    /// Appends the removals that another has, which is not closed.
    pub(crate) fn append(&mut self, removals: Self) {
        self.removed += removals.removed;
        self.heads.extend_from_slice(&removals.heads);
    }

    /// Appends the fields of the response itself, in any order: protobuf does not mind. From here on it is only taken.
    pub(crate) fn close(&mut self, protocol: Protocol, version: Option<&str>, nonce: u64, identifier: &str) {
        let heads = &mut self.heads;
        if let Some(version) = version {
            walk::put_bytes(heads, 1, version.as_bytes());
        }
        walk::put_bytes(heads, 4, self.type_url.as_str().as_bytes());
        walk::put_bytes(heads, 5, nonce::Text::of(nonce).as_bytes());
        // Rule 139.
        if !identifier.is_empty() {
            let control_plane = match protocol {
                Protocol::Delta => 7,
                Protocol::Sotw => 6,
            };
            walk::put_delimited(heads, control_plane, walk::delimited_len(1, identifier.len()));
            walk::put_bytes(heads, 1, identifier.as_bytes());
        }
        self.end_with_what_is_large();
        self.remaining = self.heads.len() + self.bodies.iter().map(|body| body.bytes.len()).sum::<usize>();
        if self.bodies.capacity() > self.bodies.len() + SPARE {
            self.bodies.shrink_to_fit();
            self.heads.shrink_to_fit();
        }
    }

    /// Whether nothing is told in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.resources + self.removed + self.refreshed + self.errors == 0
    }

    /// How many bytes have been appended so far, bodies included, and what the resources count for.
    #[inline]
    pub(crate) fn budget_used(&self) -> usize {
        self.remaining + self.heads.len() + RESOURCE * self.resources as usize
    }

    /// What goes after a large body would be a frame and a write of its own: it goes before the head of the last one. Of a body that is
    /// many frames one more is nothing, and the next response is looked for later.
    fn end_with_what_is_large(&mut self) {
        let is_one_frame = |body: &Body| (LARGE..CHUNK).contains(&body.bytes.len());
        let (last, others) = match &mut self.bodies[..] {
            [others @ .., last] if last.after == 0 || is_one_frame(last) => (last, others),
            _ => return,
        };
        // Between two bodies there are whole elements, and the head of the second.
        let from = others.last().map_or(0, |body| body.after);
        if let Some(heads) = self.heads.get_mut(from..) {
            heads.rotate_left(last.after - from);
        }
        last.after = self.heads.len();
    }

    /// For how many more resources there is room.
    #[inline]
    pub(crate) fn expected(&self) -> usize {
        self.bodies.capacity() - self.bodies.len()
    }

    /// Of many, what was written is seldom moved: once there are some, room is made for as many as one response takes.
    #[inline(never)]
    fn expect_more(&mut self, head: usize) {
        let used = self.budget_used();
        if (self.resources as usize) < SOME || used >= BUDGET {
            self.heads.reserve(head.max(3 * self.heads.len()));
            return;
        }
        let left = |so_far: usize| so_far * (BUDGET - used) / used + 1;
        self.heads.reserve_exact(head + left(self.heads.len()));
        self.bodies.reserve(left(self.bodies.len()));
    }

    fn push_body(&mut self, bytes: Bytes) {
        self.resources += 1;
        // Until `close`, `remaining` counts the bodies alone.
        self.remaining += bytes.len();
        self.bodies.push(Body { after: self.heads.len(), bytes });
    }
}
