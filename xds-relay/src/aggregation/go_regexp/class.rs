//! Classes of characters, and the class of one.

use std::fmt::Write as _;

use super::parse::Flags;
use super::{ANYTHING, INVALID_CLASS_RANGE, MISSING_BRACKET, NOTHING, SyntaxError, escape, unicode};

const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// A character, which may be a surrogate: then nothing is like it.
pub(super) fn one(rune: u32, flags: Flags) -> String {
    match char::from_u32(rune) {
        None => NOTHING.to_owned(),
        Some(character) if flags.fold_case => format!("(?i:{})", quoted(character)),
        Some(character) => quoted(character),
    }
}

fn quoted(character: char) -> String {
    if character.is_ascii() && !character.is_ascii_alphanumeric() {
        format!(r"\x{{{:X}}}", character as u32)
    } else {
        character.to_string()
    }
}

/// A class of these items.
pub(super) fn bracket(items: &str, negated: bool, flags: Flags) -> String {
    let class = match (items, negated) {
        ("", false) => return NOTHING.to_owned(),
        ("", true) => return ANYTHING.to_owned(),
        (items, false) => format!("[{items}]"),
        (items, true) => format!("[^{items}]"),
    };
    // The case is folded before the class is negated, here as there.
    if flags.fold_case { format!("(?i:{class})") } else { class }
}

/// Reads a class, with what follows. `text` begins with its bracket.
pub(super) fn class(text: &str, flags: Flags) -> Result<(String, &str), SyntaxError> {
    let mut rest = text.strip_prefix('[').unwrap_or(text);
    let negated = rest.starts_with('^');
    rest = rest.strip_prefix('^').unwrap_or(rest);
    let mut items = String::new();
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((class, after)) = posix(rest)? {
            items.push_str(&class);
            rest = after;
        } else if let Some((class, after)) = unicode::class(rest)? {
            items.push_str(&class);
            rest = after;
        } else if let Some((class, after)) = escape::perl_class(rest) {
            items.push_str(class);
            rest = after;
        } else {
            rest = range(rest, text, &mut items)?;
        }
    }
    Ok((bracket(&items, negated, flags), rest.strip_prefix(']').unwrap_or(rest)))
}

/// One character, or two with a `-` between them; what follows.
fn range<'p>(text: &'p str, whole: &str, items: &mut String) -> Result<&'p str, SyntaxError> {
    let (low, mut rest) = character(text, whole)?;
    let mut high = low;
    let upper = rest.strip_prefix('-').filter(|upper| !upper.is_empty() && !upper.starts_with(']'));
    if let Some(upper) = upper {
        (high, rest) = character(upper, whole)?;
        if high < low {
            return Err(SyntaxError::between(INVALID_CLASS_RANGE, text, rest));
        }
    }
    let low = if SURROGATES.contains(&low) { SURROGATES.end() + 1 } else { low };
    let high = if SURROGATES.contains(&high) { SURROGATES.start() - 1 } else { high };
    if low <= high {
        // Writing to a string cannot fail.
        let _ = write!(items, r"\x{{{low:X}}}-\x{{{high:X}}}");
    }
    Ok(rest)
}

fn character<'p>(text: &'p str, whole: &str) -> Result<(u32, &'p str), SyntaxError> {
    match text.chars().next() {
        None => Err(SyntaxError::new(MISSING_BRACKET, whole)),
        Some('\\') => escape::rune(text),
        Some(character) => Ok((character as u32, text.strip_prefix(character).unwrap_or_default())),
    }
}

/// `[:alpha:]`, as items.
fn posix(text: &str) -> Result<Option<(String, &str)>, SyntaxError> {
    let Some((name, rest)) = text.strip_prefix("[:").and_then(|text| text.split_once(":]")) else { return Ok(None) };
    let (negated, class) = match name.strip_prefix('^') {
        Some(class) => (true, class),
        None => (false, name),
    };
    let items = match class {
        "alnum" => "0-9A-Za-z",
        "alpha" => "A-Za-z",
        "ascii" => r"\x00-\x7F",
        "blank" => r"\t\x20",
        "cntrl" => r"\x00-\x1F\x7F",
        "digit" => "0-9",
        "graph" => r"\x21-\x7E",
        "lower" => "a-z",
        "print" => r"\x20-\x7E",
        "punct" => r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E",
        "space" => r"\t-\r\x20",
        "upper" => "A-Z",
        "word" => "0-9A-Z_a-z",
        "xdigit" => "0-9A-Fa-f",
        _ => return Err(SyntaxError::between(INVALID_CLASS_RANGE, text, rest)),
    };
    Ok(Some((if negated { format!("[^{items}]") } else { items.to_owned() }, rest)))
}
