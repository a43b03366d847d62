//! Nonces: numbers to the server, bytes to everybody else.

/// Whether a client's nonce is that of a response: byte by byte, because "007" was never sent.
pub(crate) fn is(text: &str, nonce: u64) -> bool {
    let mut left = nonce;
    for byte in text.bytes().rev() {
        if left == 0 || u64::from(byte) != u64::from(b'0') + left % 10 {
            return false;
        }
        left /= 10;
    }
    left == 0 && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn a_nonce_is_compared_as_bytes() {
        assert!(is("7", 7) && is("10", 10) && is(&u64::MAX.to_string(), u64::MAX));
        for other in ["", "007", "+7", " 7", "7 ", "77", "8", "٧"] {
            assert!(!is(other, 7), "{other:?}");
        }
        assert!(!is("0", 10) && !is("1", 10));
    }
}
