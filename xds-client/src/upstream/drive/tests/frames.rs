//! An origin that writes HTTP/2 frames by hand: what a library of HTTP/2 does not let a test say or see.

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GO_AWAY: u8 = 7;

const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PREFACE: usize = 24;

/// The far end of a connection.
pub(super) struct Frames(DuplexStream);

impl Frames {
    pub(super) async fn accept(mut io: DuplexStream) -> Self {
        io.read_exact(&mut [0; PREFACE]).await.unwrap();
        let mut frames = Self(io);
        frames.write(SETTINGS, 0, 0, &[]).await;
        frames
    }

    /// The type of the next frame; what HTTP/2 wants to be answered is. `None` at the end.
    pub(super) async fn next(&mut self) -> Option<u8> {
        let mut header = [0; 9];
        self.0.read_exact(&mut header).await.ok()?;
        let [a, b, c, kind, flags, ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        if [SETTINGS, PING].contains(&kind) && flags & ACK == 0 {
            let payload = if kind == PING { payload.as_slice() } else { &[] };
            self.write(kind, ACK, 0, payload).await;
        }
        Some(kind)
    }

    /// Waits for the stream of the connection, and answers it.
    pub(super) async fn respond(&mut self, message: &Bytes) {
        while self.next().await.unwrap() != HEADERS {}
        // `:status: 200` is in the static table, and so is the name of `content-type`.
        let headers = [&[0x88, 0x5f, 16], "application/grpc".as_bytes()].concat();
        self.write(HEADERS, END_HEADERS, 1, &headers).await;
        self.write(DATA, 0, 1, message).await;
    }

    pub(super) async fn go_away(&mut self, code: u32, words: &str) {
        let payload = [&1_u32.to_be_bytes(), &code.to_be_bytes(), words.as_bytes()].concat();
        self.write(GO_AWAY, 0, 0, &payload).await;
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        self.0.write_all(&frame).await.unwrap();
    }
}
