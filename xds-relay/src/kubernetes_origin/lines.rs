//! The lines of an answer that has no end.

use super::failure::Failure;

/// The longest line that is taken: an object of Kubernetes is smaller, in whatever characters.
const LONGEST: usize = 16 << 20;

/// What has come of a line that is not whole yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// The lines that are whole now. What is left of the last one when all ends is no line.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.begun.len() + part.len() > LONGEST {
                return Err(Failure::TooMuch(LONGEST));
            }
            self.begun.extend_from_slice(part);
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.begun);
                if !line.trim_ascii().is_empty() {
                    lines.push(line);
                }
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"one\n\ntwo\r\nthree";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let whole: Vec<_> = text.chunks(size).flat_map(|chunk| lines.take(chunk).unwrap()).collect();
            assert_eq!(whole, [&b"one"[..], b"two\r"], "{size}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let (mut lines, chunk) = (Lines::default(), vec![b'x'; LONGEST / 2]);
        assert!(lines.take(&chunk).unwrap().is_empty());
        assert!(lines.take(&chunk).unwrap().is_empty());
        assert!(matches!(lines.take(b"x"), Err(Failure::TooMuch(LONGEST))));
    }
}
