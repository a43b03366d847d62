//! What commands read: records of standard input, and files.

use std::fs;
use std::io::{self, BufRead};
use std::path::Path;

use crate::show::Problem;

/// The records of a reader, which end with `separator`; what is behind the last one is a record unless it is empty.
///
/// Of a record no more than `limit` bytes are kept, whatever its length.
pub(crate) struct Records<R> {
    reader: R,
    separator: u8,
    limit: usize,
}

pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    /// It was longer than the limit.
    pub(crate) is_cut: bool,
}

impl<R: BufRead> Records<R> {
    pub(crate) fn new(reader: R, separator: u8, limit: usize) -> Self {
        Self { reader, separator, limit }
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        let mut record = Record { bytes: Vec::new(), is_cut: false };
        let mut is_empty = true;
        loop {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(if is_empty { None } else { Some(record) });
            }
            is_empty = false;
            let mut parts = available.splitn(2, |byte| *byte == self.separator);
            let part = parts.next().unwrap_or_default();
            let is_whole = parts.next().is_some();
            let kept = part.len().min(self.limit - record.bytes.len());
            record.bytes.extend(part.iter().take(kept));
            record.is_cut |= kept < part.len();
            let used = part.len() + usize::from(is_whole);
            self.reader.consume(used);
            if is_whole {
                return Ok(Some(record));
            }
        }
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The text of a file.
pub(crate) fn read_file(file: &Path) -> Result<String, Problem> {
    let bytes = fs::read(file).map_err(|error| Problem::new(file, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let read = error.as_bytes().get(..at).unwrap_or_default();
        let line = 1 + read.iter().filter(|byte| **byte == b'\n').count();
        Problem::new(file, format_args!("expected UTF-8, in line {line} at byte {at} of the file"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(input: &[u8], limit: usize) -> Vec<(String, bool)> {
        let reader = io::BufReader::with_capacity(2, input);
        let record = |record: Record| (String::from_utf8(record.bytes).unwrap(), record.is_cut);
        Records::new(reader, b'\n', limit).map(|found| record(found.unwrap())).collect()
    }

    #[test]
    fn records_end_with_a_separator_or_the_input() {
        let expected: Vec<_> = ["abc", "", "d"].map(|text| (text.to_owned(), false)).into();
        assert_eq!(records(b"abc\n\nd\n", 10), expected);
        assert_eq!(records(b"abc\n\nd", 10), expected);
        assert!(records(b"", 10).is_empty());
    }

    #[test]
    fn of_a_long_record_no_more_is_kept_than_the_limit() {
        assert_eq!(records(b"abcdefgh\nabc\n", 3), [("abc".to_owned(), true), ("abc".to_owned(), false)]);
    }
}
