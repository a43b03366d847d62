//! What the processes of the measurement have in common: see `benches/README.md`.

pub mod content;
pub mod delta_ads;
pub mod updates;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::net::{TcpListener, TcpSocket};

/// The length of the prefix that gRPC puts before a message: a flag, and a length of four bytes.
pub const PREFIX: usize = 5;

/// A message with the prefix that gRPC puts before it.
pub fn framed(message: &impl Message) -> Bytes {
    framed_with(message, &[])
}

/// The same, with fields that are encoded already after those of the message.
pub fn framed_with(message: &impl Message, fields: &[u8]) -> Bytes {
    let length = message.encoded_len() + fields.len();
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    framed.put_u32(length as u32);
    framed.put_slice(&message.encode_to_vec());
    framed.put_slice(fields);
    framed.freeze()
}

/// The length of the message at the front, prefix included, once all of it is there.
pub fn complete(data: &[u8]) -> Option<usize> {
    let (prefix, _) = data.split_first_chunk::<PREFIX>()?;
    let [_, length @ ..] = *prefix;
    let length = PREFIX + u32::from_be_bytes(length) as usize;
    (data.len() >= length).then_some(length)
}

/// Listens somewhere on this machine, with room for a storm.
///
/// # Errors
/// The system has no place.
pub fn listen() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    socket.listen(4096)
}

/// What went wrong, in words for whoever runs the measurement.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
