//! What a file holds.

use std::time::Duration;

use bytes::Bytes;
use xdstp_cache::Variant;

/// A resource that came from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileResource {
    /// The resource's name; an `xdstp:` name is in canonical form.
    pub name: String,
    /// The type URL, always with the prefix `type.googleapis.com/`.
    pub type_url: String,
    /// The encoded message: the value of the `Any` on the wire. The same text gives the same bytes in every process, so
    /// that a version computed from them is stable across restarts and replicas (rules 34 and 35).
    pub value: Bytes,
    /// The version that the file gives it; without one it is computed from the content.
    pub version: Option<String>,
    /// How long a client may use it without hearing of it again: it does, as long as the file says so.
    pub ttl: Option<Duration>,
    /// Whom it is for, if it is one of several variants of its name (TP2).
    pub variant: Option<Variant>,
    /// The other names it may be asked for by; `xdstp:` names are in canonical form.
    pub aliases: Vec<String>,
}
