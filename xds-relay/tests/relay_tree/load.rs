//! What a process had to do.

use std::fmt;

/// Of all streams that it serves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Responses, and their bytes.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
    /// Streams that were opened, and that were refused.
    pub(crate) streams: u64,
    pub(crate) refused: u64,
    /// The most that were opened in a second.
    pub(crate) most_streams: u64,
    second: (u64, u64),
}

impl Load {
    pub(crate) fn opened(&mut self, now: u64) {
        self.streams += 1;
        let second = now / 1_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        self.most_streams = self.most_streams.max(self.second.1);
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, bytes, requests, streams, refused, most_streams, .. } = self;
        write!(
            f,
            "{messages} messages of {bytes} bytes, {requests} requests, {streams} new streams, {refused} refused, "
        )?;
        write!(f, "{most_streams} in a second")
    }
}

/// Of the processes of a tier: all together, and the one that had most to do.
#[derive(Debug, Default)]
pub(crate) struct Tier {
    pub(crate) all: Load,
    pub(crate) most: Load,
}

impl Tier {
    pub(crate) fn of(loads: impl IntoIterator<Item = Load>) -> Self {
        let mut tier = Self::default();
        for load in loads {
            for (into, of) in tier.all.fields().into_iter().zip({ load }.fields()) {
                *into += *of;
            }
            for (into, of) in tier.most.fields().into_iter().zip({ load }.fields()) {
                *into = (*into).max(*of);
            }
        }
        tier
    }
}

impl Load {
    fn fields(&mut self) -> [&mut u64; 6] {
        let Self { messages, bytes, requests, streams, refused, most_streams, .. } = self;
        [messages, bytes, requests, streams, refused, most_streams]
    }
}
