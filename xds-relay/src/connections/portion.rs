//! How much of a connection is read before others have their turn. What a frame of HTTP/2 costs has little to do with its length, so
//! that it goes by their number; and who changes his settings all the time has all of his streams gone through each time.

use std::time::Duration;

use tokio::time::Instant;

/// So many frames, and so many bytes, are a turn.
const FRAMES: usize = 64;
const BYTES: usize = 64 << 10;
/// What is read at once is the second of these at first, and goes there from the first again where frames are long. In shorter ones than the third, on
/// average, is no more than the first, as more than a turn has may come with it.
const LEAST: usize = 2 << 10;
const MOST: usize = 32 << 10;
const SHORT: usize = 128;
/// A client may send its settings so often in such a time.
const SETTINGS: usize = 1000;
const WITHIN: Duration = Duration::from_secs(10);

/// What was read in this turn, and how much may be next.
pub(super) struct Portion {
    heads: Heads,
    next: usize,
    bytes: usize,
    frames: usize,
    settings: usize,
    since: Instant,
}

impl Portion {
    /// Of a connection whose preface was read.
    pub(super) fn new() -> Self {
        let (heads, since) = (Heads::default(), Instant::now());
        Self { heads, next: MOST, bytes: 0, frames: 0, settings: 0, since }
    }

    /// How much to read next, at most; `None` where the turn is over, and for ever after too many settings.
    #[inline]
    pub(super) fn next(&self) -> Option<usize> {
        let is_over = self.bytes >= BYTES || self.frames >= FRAMES || self.settings > SETTINGS;
        (!is_over).then_some(self.next)
    }

    /// Another turn.
    #[inline]
    pub(super) fn begin(&mut self) {
        (self.bytes, self.frames) = (0, 0);
    }

    /// Whether what was read has no more settings than somebody changes.
    #[must_use]
    #[inline]
    pub(super) fn take(&mut self, read: &[u8]) -> bool {
        // It is nearly always so.
        if self.heads.is_one(read) {
            self.bytes += read.len();
            self.frames += 1;
            return true;
        }
        self.take_many(read)
    }

    #[inline(never)]
    fn take_many(&mut self, read: &[u8]) -> bool {
        let Passed { frames, settings } = self.heads.pass(read);
        self.bytes += read.len();
        self.frames += frames;
        if frames > FRAMES / 4 && read.len() < frames * SHORT {
            self.next = LEAST;
        } else if read.len() >= self.next {
            self.next = (self.next * 2).min(MOST);
        }
        if settings == 0 {
            return true;
        }
        if self.since.elapsed() > WITHIN {
            (self.settings, self.since) = (0, Instant::now());
        }
        self.settings += settings;
        self.settings <= SETTINGS
    }
}

/// Where in a frame the bytes that were read end (RFC 9113, 4.1).
#[derive(Default)]
struct Heads {
    head: [u8; HEAD],
    /// How much of the head was read, of a frame whose payload was not begun.
    begun: usize,
    /// How much of the payload is still to come.
    payload: usize,
}

const HEAD: usize = 9;
const KIND_SETTINGS: u8 = 4;

/// What began in some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Passed {
    frames: usize,
    /// Of these, settings: not those that acknowledge some.
    settings: usize,
}

impl Heads {
    /// Whether something is just one frame, and no settings.
    #[inline]
    fn is_one(&self, read: &[u8]) -> bool {
        let Some((&[a, b, c, kind, ..], payload)) = read.split_first_chunk::<HEAD>() else { return false };
        let is_whole = payload.len() == u32::from_be_bytes([0, a, b, c]) as usize;
        is_whole && kind != KIND_SETTINGS && self.begun == 0 && self.payload == 0
    }

    fn pass(&mut self, mut read: &[u8]) -> Passed {
        let mut passed = Passed::default();
        loop {
            let skipped = self.payload.min(read.len());
            self.payload -= skipped;
            read = read.get(skipped..).unwrap_or_default();
            let Some(head) = self.head.get_mut(self.begun..).filter(|_| !read.is_empty()) else { return passed };
            let many = head.len().min(read.len());
            let (more, rest) = read.split_at_checked(many).unwrap_or_default();
            head.iter_mut().zip(more).for_each(|(into, byte)| *into = *byte);
            self.begun += many;
            read = rest;
            if self.begun < HEAD {
                return passed;
            }
            let [a, b, c, kind, flags, ..] = self.head;
            (self.begun, self.payload) = (0, u32::from_be_bytes([0, a, b, c]) as usize);
            passed.frames += 1;
            passed.settings += usize::from(kind == KIND_SETTINGS && flags & 1 == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let [_, a, b, c] = (payload as u32).to_be_bytes();
        [&[a, b, c, kind, flags, 0, 0, 0, 1][..], &vec![4; payload]].concat()
    }

    /// How much is read, in which turns, of a client that sends the same frame all the time: as many bytes as are asked for.
    fn turns(frame: &[u8]) -> Vec<(usize, usize)> {
        let (mut portion, mut sent) = (Portion::new(), frame.iter().copied().cycle());
        (0..20)
            .map(|_| {
                portion.begin();
                while let Some(most) = portion.next() {
                    let read: Vec<_> = sent.by_ref().take(most).collect();
                    let _ = portion.take(&read);
                }
                (portion.frames, portion.bytes)
            })
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_has_few_frames_however_short_they_are_but_for_the_first() {
        for payload in [0, 1, 6, 100] {
            for (frames, _) in turns(&frame(0, 0, payload)).into_iter().skip(1) {
                assert!(frames < FRAMES + LEAST / HEAD, "{frames} of {payload}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_of_long_frames_is_of_many_bytes() {
        let last = turns(&frame(0, 0, 16 << 10)).pop().unwrap();
        assert!(last.1 >= BYTES && last.1 <= BYTES + MOST, "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn settings_are_counted_for_a_time_and_what_acknowledges_some_is_none() {
        let mut portion = Portion::new();
        for _ in 0..1000 {
            assert!(portion.take(&frame(4, 1, 0)) && portion.take(&frame(0, 0, 4)));
        }
        for _ in 0..3 {
            for _ in 0..SETTINGS {
                assert!(portion.take(&frame(4, 0, 6)));
            }
            tokio::time::advance(WITHIN * 2).await;
        }
        assert!((0..SETTINGS + 1).any(|_| !portion.take(&frame(4, 0, 6))));
    }

    proptest! {
        #[test]
        fn frames_are_found_wherever_what_is_read_ends(
            frames in proptest::collection::vec((0..10_u8, 0..2_u8, 0..40_usize), 0..40),
            cuts in proptest::collection::vec(1..30_usize, 1..40),
        ) {
            let settings = frames.iter().filter(|(kind, flags, _)| *kind == 4 && *flags == 0).count();
            let all: Vec<u8> = frames.iter().flat_map(|(kind, flags, payload)| frame(*kind, *flags, *payload)).collect();
            let (mut heads, mut passed, mut left) = (Heads::default(), Passed::default(), &all[..]);
            for many in cuts.into_iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (read, rest) = left.split_at(many.min(left.len()));
                let more = heads.pass(read);
                (passed.frames, passed.settings) = (passed.frames + more.frames, passed.settings + more.settings);
                left = rest;
            }
            prop_assert_eq!(passed, Passed { frames: frames.len(), settings });
        }
    }
}
