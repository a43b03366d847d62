//! The server's side of a stream: sessions that pull change sets from a [`Source`], without I/O.

mod error;
mod features;
mod image;
mod nack_reason;
mod nonce;
mod order;
mod session;
mod settings;
mod source;
mod stream;
mod tally;
mod transmit;
mod view;
mod weight;

pub use error::{NodeError, ProtocolError, Refused};
pub use features::ASKS_FOR_OTHERS;
pub use image::{Image, Images};
pub use nack_reason::NackReason;
pub use settings::Settings;
#[cfg(feature = "grpc-server")]
pub(crate) use source::forward::forward;
pub use source::{Answer, Source, Took};
pub use stream::Stream;
pub use tally::{Nack, Tally};
pub use transmit::Transmit;
pub use view::{Mark, Reception, SessionView};
pub use weight::{held_weight, weight};
