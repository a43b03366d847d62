//! How streams to origins are opened.

use crate::upstream::Consumer;
use bytes::Bytes;

/// Opens streams to origins. The core decides which, and for whom; how, is not its business.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream to the origin at this position of the configuration, as `node` unless the consumer names
    /// [another](Consumer::node), and keeps it open until the result is dropped.
    fn dial(&self, origin: usize, node: Bytes, consumer: Box<dyn Consumer>) -> Box<dyn Dialed>;
}

/// A stream that [`Dial`] keeps open; dropping it ends the stream.
pub trait Dialed: Send + Sync {
    /// The consumer has commands.
    fn nudge(&self);
}
