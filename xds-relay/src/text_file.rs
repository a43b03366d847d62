//! Reading a text file that somebody else wrote, or that is something else by now.

use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::path::Path;

use crate::yaml::{self, Position};

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// Why there is no text.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It cannot be read, or is no file.
    File(io::Error),
    /// What is in it is no text, from there on.
    Text(yaml::Error),
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> Result<String, Unread> {
    let bytes = bytes(file).map_err(Unread::File)?;
    String::from_utf8(bytes).map_err(|error| Unread::Text(not_text(error.as_bytes(), error.utf8_error().valid_up_to())))
}

/// What is in a file, whatever it is.
pub(crate) fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // To open a FIFO is to wait for who writes it, and a device may have no end.
    let kind = fs::metadata(file)?.file_type();
    if !kind.is_file() {
        return Err(io::Error::other(format!("{}, not a file", name(kind))));
    }
    File::open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

/// The byte at `offset` is where UTF-8 ends.
fn not_text(bytes: &[u8], offset: usize) -> yaml::Error {
    let before = String::from_utf8_lossy(bytes.get(..offset).unwrap_or_default());
    let line = before.rsplit('\n').next().unwrap_or_default();
    let position = Position { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 };
    let byte = bytes.get(offset).copied().unwrap_or_default();
    yaml::Error::new(position, format!("not UTF-8: the byte 0x{byte:02x}, at offset {offset} of the file"))
}

/// What something is that is no file.
pub(crate) fn name(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return "a FIFO";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    if kind.is_dir() { "a directory" } else { "a device" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        match read(file.path()) {
            Err(Unread::Text(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_byte_that_is_no_text_is_named_with_its_place() {
        assert_eq!(failure(b"\xff"), "1:1: not UTF-8: the byte 0xff, at offset 0 of the file");
        assert_eq!(
            failure("a: 1\né: \u{e9}".as_bytes().strip_suffix(b"\xa9").unwrap()),
            "2:4: not UTF-8: the byte 0xc3, at offset 9 of the file"
        );
        assert_eq!(failure(b"a\n\n\x80b\n"), "3:1: not UTF-8: the byte 0x80, at offset 3 of the file");
    }

    #[test]
    fn what_is_too_large_is_not_read_to_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_BYTES + 1).unwrap();
        assert!(
            matches!(read(file.path()), Err(Unread::File(error)) if error.to_string() == "larger than 16777216 bytes")
        );
        file.as_file().set_len(MAX_BYTES).unwrap();
        assert!(read(file.path()).is_ok_and(|text| text.len() as u64 == MAX_BYTES));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_named_as_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, words) in [
            (directory.path(), "a directory, not a file"),
            (&socket, "a socket, not a file"),
            (Path::new("/dev/null"), "a device, not a file"),
        ] {
            assert!(matches!(read(path), Err(Unread::File(error)) if error.to_string() == words), "{words}");
        }
    }
}
