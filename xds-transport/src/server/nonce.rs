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

/// A nonce in decimal.
pub(crate) struct Text {
    digits: [u8; LONGEST],
    from: usize,
}

/// The digits of the greatest number.
const LONGEST: usize = 20;

impl Text {
    pub(crate) fn of(nonce: u64) -> Self {
        let (mut digits, mut from, mut left) = ([b'0'; LONGEST], LONGEST, nonce);
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            (*digit, from, left) = (b'0' + (left % 10) as u8, at, left / 10);
            if left == 0 {
                break;
            }
        }
        Self { digits, from }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.from..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Text, is};

    #[test]
    fn a_nonce_is_written_in_decimal() {
        for nonce in [0, 7, 10, 123, u64::MAX] {
            assert_eq!(Text::of(nonce).as_bytes(), nonce.to_string().as_bytes());
        }
    }

    #[test]
    fn a_nonce_is_compared_as_bytes() {
        assert!(is("7", 7) && is("10", 10) && is(&u64::MAX.to_string(), u64::MAX));
        for other in ["", "007", "+7", " 7", "7 ", "77", "8", "٧"] {
            assert!(!is(other, 7), "{other:?}");
        }
        assert!(!is("0", 10) && !is("1", 10));
    }
}
