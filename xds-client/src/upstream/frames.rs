//! The frames of HTTP/2 that an origin sends, looked at as they pass by: a library of HTTP/2 keeps to itself what they say
//! of the connection as a whole.

use super::go_away::{self, GoAway};

/// RFC 9113, 4.1: a length of three bytes, a type, flags, and the stream.
const HEADER: usize = 9;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
const ACK: u8 = 1;
/// RFC 9113, 6.5.1: an identifier of two bytes, a value of four.
const SETTING: usize = 6;
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// What a frame says of its connection.
#[derive(Debug)]
pub(super) enum Said {
    /// Settings, with the bound on streams if it is among them.
    Settings { max_streams: Option<u32> },
    /// No more streams are taken.
    GoAway(GoAway),
}

/// Where in the frames of a connection its bytes are.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Of the header, or of what is wanted after it; never much.
    kept: Vec<u8>,
    /// After the header, what is to come of the frame.
    payload: Option<Payload>,
}

#[derive(Debug)]
struct Payload {
    /// How many bytes.
    left: usize,
    /// The type of frame that is wanted.
    wanted: Option<u8>,
}

impl Frames {
    /// Looks at the bytes that come next, and tells what they complete.
    pub(super) fn pass(&mut self, mut bytes: &[u8], tell: &mut dyn FnMut(Said)) {
        loop {
            match &mut self.payload {
                None => {
                    let (now, rest) = bytes.split_at(bytes.len().min(HEADER - self.kept.len()));
                    self.kept.extend_from_slice(now);
                    bytes = rest;
                    let [a, b, c, kind, flags, ..] = *self.kept.as_slice() else { return };
                    if self.kept.len() < HEADER {
                        return;
                    }
                    let left = u32::from_be_bytes([0, a, b, c]) as usize;
                    let is_wanted = kind == GO_AWAY || (kind == SETTINGS && flags & ACK == 0);
                    self.payload = Some(Payload { left, wanted: is_wanted.then_some(kind) });
                    self.kept.clear();
                }
                Some(Payload { left, wanted }) => {
                    let (now, rest) = bytes.split_at(bytes.len().min(*left));
                    if wanted.is_some() {
                        let room = go_away::MAX_PAYLOAD - self.kept.len();
                        self.kept.extend_from_slice(now.get(..room).unwrap_or(now));
                    }
                    *left -= now.len();
                    bytes = rest;
                    if *left > 0 {
                        return;
                    }
                    match wanted {
                        Some(SETTINGS) => tell(Said::Settings { max_streams: max_streams(&self.kept) }),
                        Some(_) => GoAway::read(&self.kept).map(Said::GoAway).into_iter().for_each(&mut *tell),
                        None => {}
                    }
                    *self = Self::default();
                }
            }
        }
    }
}

/// The last value counts (RFC 9113, 6.5.3).
fn max_streams(payload: &[u8]) -> Option<u32> {
    payload.chunks_exact(SETTING).rev().find_map(|setting| {
        let (identifier, value) = setting.split_first_chunk::<2>()?;
        let value = value.first_chunk().filter(|_| u16::from_be_bytes(*identifier) == MAX_CONCURRENT_STREAMS)?;
        Some(u32::from_be_bytes(*value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 0], payload].concat()
    }

    fn told(pieces: &[&[u8]]) -> Vec<String> {
        let (mut frames, mut told) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.pass(piece, &mut |said| {
                told.push(match said {
                    Said::Settings { max_streams } => format!("{max_streams:?} streams"),
                    Said::GoAway(go_away) => go_away.to_string(),
                });
            });
        }
        told
    }

    #[test]
    fn what_is_said_of_a_connection_is_heard_wherever_the_bytes_are_cut() {
        let calm = [&[0, 0, 0, 1, 0, 0, 0, 11], "too_many_pings".as_bytes()].concat();
        let hundred = [0, 4, 0, 0, 0, 7, 0, 3, 0, 0, 0, 100];
        let all = [
            frame(SETTINGS, 0, &hundred),
            frame(SETTINGS, ACK, &[]),
            frame(0, 0, &[7; 300]),
            frame(SETTINGS, 0, &[]),
            frame(GO_AWAY, 0, &calm),
            frame(6, 0, &[7; 8]),
        ];
        let all = all.concat();
        for size in 1..all.len() {
            let pieces: Vec<_> = all.chunks(size).collect();
            let expected = ["Some(100) streams", "None streams", "GOAWAY ENHANCE_YOUR_CALM: too_many_pings"];
            assert_eq!(told(&pieces), expected);
        }
    }

    #[test]
    fn of_a_long_frame_no_more_is_kept_than_is_of_use() {
        let long = [&[0; 8][..], &[b'x'; 100_000]].concat();
        let told = told(&[&frame(GO_AWAY, 0, &long)]);
        assert_eq!(told.first().map(String::len), Some("GOAWAY NO_ERROR: ".len() + 256));
    }
}
