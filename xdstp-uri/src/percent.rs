//! Percent-encoding: which bytes each component shows as they are, decoding, encoding.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::{cmp::Ordering, fmt};

/// A set of bytes, as bits of [`class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set(u8);

impl Set {
    /// unreserved, sub-delims, `:`, `[`, `]`, `@`
    pub(crate) const AUTHORITY: Self = Self(1);
    /// letters, digits, `.`, `_`, `-`
    pub(crate) const RESOURCE_TYPE: Self = Self(2);
    /// unreserved, sub-delims, `:`, `@`, `/`
    pub(crate) const PATH: Self = Self(4);
    /// pchar, `/`, `?`, without `&` and `=`
    pub(crate) const PARAM: Self = Self(8);
    /// pchar, `/`, `?`, without `,`
    pub(crate) const DIRECTIVE: Self = Self(16);

    #[inline]
    pub(crate) fn contains(self, byte: u8) -> bool {
        class(byte) & self.0 != 0
    }
}

/// `text` with one level of escapes removed; borrows where there is none. A `%` without two hex digits stands for itself.
///
/// The caller has checked that the decoded bytes are UTF-8; what is not becomes U+FFFD.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    let Some((plain, mut rest)) = at_percent(text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend_from_slice(plain);
    while let Some((byte, width)) = next(rest) {
        bytes.push(byte);
        let after = rest.get(width..).unwrap_or_default();
        let (plain, escape) = at_percent(after).unwrap_or((after, &[]));
        bytes.extend_from_slice(plain);
        rest = escape;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// Cuts before the first `%`.
fn at_percent(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&byte| byte == b'%')?;
    bytes.split_at_checked(at)
}

/// The bytes of `text` with one level of escapes removed.
pub(crate) fn decoded(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = text;
    core::iter::from_fn(move || {
        let (byte, width) = next(rest)?;
        rest = rest.get(width..)?;
        Some(byte)
    })
}

/// Orders two encoded texts by their decoded bytes.
pub(crate) fn compare(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        match (next(a), next(b)) {
            (Some((x, _)), Some((y, _))) if x != y => return x.cmp(&y),
            (Some((_, x_width)), Some((_, y_width))) => {
                (a, b) = (a.get(x_width..).unwrap_or_default(), b.get(y_width..).unwrap_or_default());
            }
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

/// The first decoded byte of `bytes` and how many bytes it takes there.
#[inline]
pub(crate) fn next(bytes: &[u8]) -> Option<(u8, usize)> {
    match *bytes {
        [b'%', high, low, ..] => match (hex(high), hex(low)) {
            (Some(high), Some(low)) => Some((high << 4 | low, 3)),
            _ => Some((b'%', 1)),
        },
        [byte, ..] => Some((byte, 1)),
        [] => None,
    }
}

/// Where the byte at `offset` of what `text` decodes to is in `text`.
pub(crate) fn encoded_offset(text: &[u8], offset: usize) -> usize {
    let mut at = 0;
    for _ in 0..offset {
        match text.get(at..).and_then(next) {
            Some((_, width)) => at += width,
            None => break,
        }
    }
    at
}

/// Writes decoded text with every byte outside `plain` escaped, in upper-case hex.
pub(crate) fn encode(out: &mut impl fmt::Write, text: &str, plain: Set) -> fmt::Result {
    write(out, text, plain, |bytes| bytes.first().map(|&byte| (byte, 1)))
}

/// Writes encoded text as [`encode`] would write what it decodes to.
pub(crate) fn recode(out: &mut impl fmt::Write, text: &str, plain: Set) -> fmt::Result {
    write(out, text, plain, next)
}

/// An adapter whose `Display` is [`encode`].
pub(crate) struct Encoded<'a>(pub(crate) &'a str, pub(crate) Set);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        encode(f, self.0, self.1)
    }
}

/// Writes runs of plain bytes as they are; `read` gives the byte behind a run, and its width in the text.
fn write(
    out: &mut impl fmt::Write,
    text: &str,
    plain: Set,
    read: impl Fn(&[u8]) -> Option<(u8, usize)>,
) -> fmt::Result {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or_default();
    let mut at = 0;
    while let Some(rest) = text.as_bytes().get(at..).filter(|rest| !rest.is_empty()) {
        let run = rest.iter().position(|&byte| !plain.contains(byte)).unwrap_or(rest.len());
        // Plain bytes are ASCII, but what follows may be inside a character.
        if let Some(run) = text.get(at..at + run).filter(|run| !run.is_empty()) {
            out.write_str(run)?;
        }
        at += run;
        let Some((byte, width)) = rest.get(run..).and_then(&read) else { break };
        at += width;
        if plain.contains(byte) {
            out.write_char(char::from(byte))?;
        } else {
            out.write_char('%')?;
            out.write_char(digit(byte >> 4))?;
            out.write_char(digit(byte & 15))?;
        }
    }
    Ok(())
}

const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Checks, byte by byte, that what a component decodes to is UTF-8.
#[derive(Default)]
pub(crate) struct Utf8 {
    /// Continuation bytes still due, and the range of the next one.
    due: u8,
    low: u8,
    high: u8,
}

impl Utf8 {
    /// Takes the next byte; false if no UTF-8 text continues so.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        if self.due > 0 {
            let fits = (self.low..=self.high).contains(&byte);
            (self.due, self.low, self.high) = (self.due - 1, 0x80, 0xBF);
            return fits;
        }
        // Table 3-7 of the Unicode standard: well-formed byte sequences.
        (self.due, self.low, self.high) = match byte {
            0x00..=0x7F => (0, 0, 0),
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xE1..=0xEF => (2, 0x80, 0xBF),
            0xF0 => (3, 0x90, 0xBF),
            0xF1..=0xF3 => (3, 0x80, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => return false,
        };
        true
    }

    /// No character is half read.
    pub(crate) const fn is_complete(&self) -> bool {
        self.due == 0
    }
}

#[inline]
fn class(byte: u8) -> u8 {
    // A u8 is below 256, so the bounds check and the default compile to nothing.
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

static CLASSES: [u8; 256] = classes();

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn classes() -> [u8; 256] {
    const EVERYWHERE: u8 = Set::AUTHORITY.0 | Set::RESOURCE_TYPE.0 | Set::PATH.0 | Set::PARAM.0 | Set::DIRECTIVE.0;
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        table[byte as usize] = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => EVERYWHERE,
            b'~' | b'!' | b'$' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b':' | b'@' => {
                EVERYWHERE & !Set::RESOURCE_TYPE.0
            }
            b',' => Set::AUTHORITY.0 | Set::PATH.0 | Set::PARAM.0,
            b'&' | b'=' => Set::AUTHORITY.0 | Set::PATH.0 | Set::DIRECTIVE.0,
            b'/' => Set::PATH.0 | Set::PARAM.0 | Set::DIRECTIVE.0,
            b'?' => Set::PARAM.0 | Set::DIRECTIVE.0,
            b'[' | b']' => Set::AUTHORITY.0,
            _ => 0,
        };
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_check_agrees_with_the_standard_library() {
        let interesting =
            [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF4, 0xF5];
        for a in interesting {
            for b in interesting {
                for c in interesting {
                    for d in interesting {
                        let bytes = [a, b, c, d];
                        let mut utf8 = Utf8::default();
                        let ours = bytes.iter().all(|&byte| utf8.push(byte)) && utf8.is_complete();
                        assert_eq!(ours, core::str::from_utf8(&bytes).is_ok(), "{bytes:02X?}");
                    }
                }
            }
        }
    }
}
