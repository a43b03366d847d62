//! How streams to origins are opened.

use crate::upstream::Consumer;
use bytes::Bytes;

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Of which origin, by position of the configuration.
    pub origin: usize,
    /// Which one of those that the origin lists, in order of preference.
    pub server: usize,
}

/// Opens streams to origins. The core decides which, and for whom; how, is not its business: what an address stands for is
/// looked up whenever a connection is made. No lock of the core is held while it is called.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream to a server, as `node` unless the consumer names [another](Consumer::node), and keeps it open until the
    /// result is dropped.
    fn dial(&self, server: Position, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed>;
}

/// A stream that [`Dial`] keeps open; dropping it ends the stream. No lock of the core is held while either is done.
pub trait Dialed: Send + Sync {
    /// The consumer has commands.
    fn nudge(&self);
}
