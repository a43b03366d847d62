//! Bytes as people read them.

/// Two lowercase digits for each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of such a text: none if it is of another length, or no such text.
pub(crate) fn unhex<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f').then(|| char::from(byte).to_digit(16)).flatten();
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        assert_eq!(unhex::<3>(&hex(&[0, 0x1f, 0xff])), Some([0, 0x1f, 0xff]));
        for text in ["", "00", "0001f", "00010g", "00010F", "+0+1+2", "000102ff", "äää"] {
            assert_eq!(unhex::<3>(text), None, "{text}");
        }
    }
}
