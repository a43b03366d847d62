//! What an origin says when it ends a connection.

/// RFC 9113, 6.8: the last stream and the code come before the words.
const BEFORE_WORDS: usize = 8;
const MAX_WORDS: usize = 256;
/// How much of a GOAWAY is looked at, in bytes.
pub(super) const MAX_PAYLOAD: usize = BEFORE_WORDS + MAX_WORDS;

/// The GOAWAY of a connection: a code, and words beside it.
#[derive(Clone, Debug)]
pub(super) struct GoAway {
    code: u32,
    words: String,
}

impl GoAway {
    /// What is read of up to [`MAX_PAYLOAD`] bytes of a frame; `None` where they are too few to be one.
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let (_last_stream, rest) = payload.split_first_chunk::<4>()?;
        let (code, words) = rest.split_first_chunk::<4>()?;
        let words = String::from_utf8_lossy(words).escape_debug().to_string();
        Some(Self { code: u32::from_be_bytes(*code), words })
    }

    /// Whether it finds fault with us: servers that only want their streams to end say so without an error.
    pub(super) fn is_complaint(&self) -> bool {
        self.code != 0
    }
}

impl std::fmt::Display for GoAway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match usize::try_from(self.code).ok().and_then(|code| CODES.get(code)) {
            Some(name) => write!(f, "GOAWAY {name}")?,
            None => write!(f, "GOAWAY {:#x}", self.code)?,
        }
        if self.words.is_empty() { Ok(()) } else { write!(f, ": {}", self.words) }
    }
}

/// RFC 9113, 7.
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_goaways_are_heard_as_far_as_they_go() {
        let heard = |payload: &[u8]| GoAway::read(payload).map(|said| said.to_string());
        assert_eq!(heard(&[0; 8]).as_deref(), Some("GOAWAY NO_ERROR"));
        assert_eq!(heard(&[0xff; 8]).as_deref(), Some("GOAWAY 0xffffffff"));
        assert_eq!(heard(&[0; 7]), None);
        assert_eq!(
            heard(b"\0\0\0\0\0\0\0\x0b\x1b[2J\n\xff").as_deref(),
            Some("GOAWAY ENHANCE_YOUR_CALM: \\u{1b}[2J\\n\u{fffd}")
        );
    }
}
