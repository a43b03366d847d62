//! What follows a backslash.

use super::{INVALID_ESCAPE, SyntaxError, TRAILING_BACKSLASH};

/// `\d`, `\s`, `\w` and their opposites, as items of a class: ASCII. `text` begins with the backslash.
pub(super) fn perl_class(text: &str) -> Option<(&'static str, &str)> {
    let class = match text.as_bytes() {
        [b'\\', b'd', ..] => "0-9",
        [b'\\', b'D', ..] => "[^0-9]",
        [b'\\', b's', ..] => r"\t\n\x0C\r\x20",
        [b'\\', b'S', ..] => r"[^\t\n\x0C\r\x20]",
        [b'\\', b'w', ..] => "0-9A-Z_a-z",
        [b'\\', b'W', ..] => "[^0-9A-Z_a-z]",
        _ => return None,
    };
    Some((class, text.get(2..)?))
}

/// The character that an escape stands for, and what follows. It may be a surrogate, which no text has. `text` begins with
/// the backslash.
pub(super) fn rune(text: &str) -> Result<(u32, &str), SyntaxError> {
    let mut rest = text.strip_prefix('\\').unwrap_or(text);
    let Some(letter) = take(&mut rest) else { return Err(SyntaxError::new(TRAILING_BACKSLASH, "")) };
    let rune = match letter {
        // A digit alone would be a back-reference.
        '1'..='7' if !rest.starts_with(|digit| matches!(digit, '0'..='7')) => None,
        '0'..='7' => Some(octal(letter, &mut rest)),
        'x' => hexadecimal(&mut rest),
        'a' => Some(0x07),
        'f' => Some(0x0C),
        'n' => Some(0x0A),
        'r' => Some(0x0D),
        't' => Some(0x09),
        'v' => Some(0x0B),
        _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(letter as u32),
        _ => None,
    };
    match rune {
        Some(rune) => Ok((rune, rest)),
        None => Err(SyntaxError::between(INVALID_ESCAPE, text, rest)),
    }
}

fn take(text: &mut &str) -> Option<char> {
    let first = text.chars().next()?;
    *text = text.get(first.len_utf8()..).unwrap_or_default();
    Some(first)
}

/// Up to three digits, of which the first is read.
fn octal(first: char, rest: &mut &str) -> u32 {
    let mut rune = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let Some(digit) = rest.chars().next().and_then(|digit| digit.to_digit(8)) else { break };
        take(rest);
        rune = rune * 8 + digit;
    }
    rune
}

/// `\x41` or `\x{10FFFF}`. On failure `rest` is where it was noticed, as Go says it.
fn hexadecimal(rest: &mut &str) -> Option<u32> {
    let first = take(rest)?;
    if first != '{' {
        let second = take(rest);
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut rune = None;
    loop {
        match take(rest)? {
            '}' => return rune,
            digit => {
                let larger = rune.unwrap_or(0) * 16 + digit.to_digit(16)?;
                rune = Some(larger).filter(|&rune| rune <= char::MAX as u32);
                rune?;
            }
        }
    }
}
