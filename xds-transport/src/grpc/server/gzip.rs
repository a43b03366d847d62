//! Requests that a client compressed.

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::GzDecoder;

/// Why a request is not decompressed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unpack {
    /// There is more of it than may be.
    TooLong,
    /// It is no gzip.
    Broken(String),
}

/// What is in a request that was compressed. A few bytes may be a great many: no more than the limit is held, ever.
pub(crate) fn unpack(packed: &[u8], limit: usize) -> Result<Bytes, Unpack> {
    let mut unpacked = Vec::new();
    let mut reader = GzDecoder::new(packed).take(limit as u64 + 1);
    reader
        .read_to_end(&mut unpacked)
        .map_err(|error| Unpack::Broken(format!("a request that does not decompress: {error}")))?;
    if unpacked.len() > limit { Err(Unpack::TooLong) } else { Ok(unpacked.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_request_is_unpacked_up_to_the_limit() {
        let zeros = vec![0; 10_000];
        assert_eq!(unpack(&packed(&zeros), 10_000), Ok(zeros.clone().into()));
        assert_eq!(unpack(&packed(&zeros), 9_999), Err(Unpack::TooLong));
        assert_eq!(unpack(&packed(b""), 0), Ok(Bytes::new()));
    }

    #[test]
    fn what_is_broken_is_no_request() {
        let whole = packed(b"a request");
        for broken in [&b"plain"[..], &whole[..whole.len() - 1], b""] {
            assert!(matches!(unpack(broken, 100), Err(Unpack::Broken(_))), "{broken:?}");
        }
    }
}
