//! Names of X.501, from DER to text (RFC 4514).

use std::fmt::Write as _;

const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;

/// A name, the last part first: what is within its sequence. What is no DER ends it.
pub(super) fn subject(mut name: &[u8]) -> String {
    let mut parts = Vec::new();
    while let Some((_, mut set)) = next(&mut name) {
        let mut values = Vec::new();
        while let Some((_, mut attribute)) = next(&mut set) {
            let Some((_, kind)) = next(&mut attribute) else { break };
            values.push(value(kind, attribute));
        }
        parts.push(values.join("+"));
    }
    parts.reverse();
    parts.join(",")
}

/// What comes next: its tag, and what is in it.
fn next<'a>(der: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], mut rest) = der.split_first_chunk()?;
    let length = match first {
        0..0x80 => usize::from(first),
        _ => {
            let (bytes, behind) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = behind;
            bytes.iter().try_fold(0_usize, |length, byte| length.checked_mul(256)?.checked_add(usize::from(*byte)))?
        }
    };
    let (content, behind) = rest.split_at_checked(length)?;
    *der = behind;
    Some((tag, content))
}

/// `KEY=VALUE`; what has no key of its own, or is no text, as numbers.
fn value(kind: &[u8], encoded: &[u8]) -> String {
    let key = match kind {
        [0x55, 4, 3] => Some("CN"),
        [0x55, 4, 6] => Some("C"),
        [0x55, 4, 7] => Some("L"),
        [0x55, 4, 8] => Some("ST"),
        [0x55, 4, 10] => Some("O"),
        [0x55, 4, 11] => Some("OU"),
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => Some("DC"),
        _ => None,
    };
    let mut rest = encoded;
    let text = match next(&mut rest) {
        Some((UTF8_STRING | PRINTABLE_STRING | IA5_STRING, text)) => str::from_utf8(text).ok(),
        _ => None,
    };
    match (key, text) {
        (Some(key), Some(text)) => format!("{key}={}", escaped(text)),
        (key, _) => {
            let bytes: String = encoded.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            format!("{}=#{bytes}", key.map_or_else(|| dotted(kind), str::to_owned))
        }
    }
}

fn dotted(kind: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in kind {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.extend([first, number - first * 40]);
            } else {
                numbers.push(number);
            }
            number = 0;
        }
    }
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, c) in text.chars().enumerate() {
        match c {
            '\0'..='\x1f' | '\x7f' => _ = write!(escaped, "\\{:02x}", u32::from(c)),
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => escaped.extend(['\\', c]),
            '#' if at == 0 => escaped.extend(['\\', c]),
            ' ' if at == 0 || at == last => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_ends_and_is_no_panic() {
        let good = [0x31, 12, 0x30, 10, 6, 3, 0x55, 4, 3, 0x0c, 3, b'#', b'\n', b'=', 0x31];
        assert_eq!(subject(&good), r"CN=\#\0a\=");
        for length in 0..good.len() {
            subject(&good[..length]);
        }
        for byte in 0..=255 {
            for at in 0..good.len() {
                let mut bad = good;
                bad[at] = byte;
                subject(&bad);
            }
        }
        subject(&[0x31, 0x88, 255, 255, 255, 255, 255, 255, 255, 255]);
        subject(&[0x31, 0xff]);
    }
}
