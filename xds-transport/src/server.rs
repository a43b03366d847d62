//! The server's side of a stream: sessions that pull change sets from a [`Source`], without I/O.

mod ack;
mod delta;
mod entries;
mod error;
mod listed;
mod nonce;
mod odd;
mod order;
mod outgoing;
mod refreshes;
mod refusals;
mod sotw;
mod source;
mod spelling;
mod stream;
mod transmit;
mod unacked;
mod version;
mod wanted;
mod weight;

pub use error::{NodeError, ProtocolError, Refused};
pub use source::Source;
pub use stream::{ASKS_FOR_OTHERS, Nack, SessionView, Settings, Stream, Tally};
pub use transmit::Transmit;
pub use weight::{held_weight, weight};
