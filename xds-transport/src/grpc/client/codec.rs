//! Messages that are encoded already, and stay so.

use bytes::{BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::whole::Handed;

/// What a response may measure by default: gRPC's own 4 MiB are too few for real fleets (rule 131).
pub const DEFAULT_MAX_MESSAGE_SIZE: usize = 64 << 20;

/// How much room a stream has for messages at the beginning, in bytes: those that come in are put together elsewhere.
const ROOM: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct BytesCodec {
    pub(super) handed: Handed,
}

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(ROOM, ROOM)
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, _empty: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(self.handed.take())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(ROOM, ROOM)
    }
}
