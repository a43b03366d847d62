//! `\p{Greek}`: general categories and scripts, by exactly the names that Go has for them.

use super::{INVALID_CLASS_RANGE, NOTHING, SyntaxError};

const CATEGORIES: &[&str] = &[
    "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi",
    "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs", "Cc", "Cf", "Co",
];

/// Those that the crate `regex` knows, too, without its aliases and in this spelling alone.
const SCRIPTS: &str = include_str!("scripts.txt");

/// The items of a class for `\pL`, `\p{Greek}`, `\P{Greek}` or `\p{^Greek}`, and what follows; `None`: `text` does not
/// begin with one.
pub(super) fn class(text: &str) -> Result<Option<(String, &str)>, SyntaxError> {
    let Some(after) = text.strip_prefix(r"\p").or_else(|| text.strip_prefix(r"\P")) else { return Ok(None) };
    let (name, rest) = match after.strip_prefix('{') {
        Some(braced) => match braced.split_once('}') {
            Some(parts) => parts,
            None => return Err(SyntaxError::new(INVALID_CLASS_RANGE, text)),
        },
        None => after.split_at(after.chars().next().map_or(0, char::len_utf8)),
    };
    let (inverted, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let Some(items) = items(name) else { return Err(SyntaxError::between(INVALID_CLASS_RANGE, text, rest)) };
    let negated = text.starts_with(r"\P") != inverted;
    Ok(Some((if negated { format!("[^{items}]") } else { items }, rest)))
}

fn items(name: &str) -> Option<String> {
    Some(match name {
        "Any" => r"\x{0}-\x{10FFFF}".to_owned(),
        // Go has no category for what is not assigned, and text no surrogates.
        "C" => r"\p{Cc}\p{Cf}\p{Co}".to_owned(),
        "Cs" => NOTHING.to_owned(),
        _ if CATEGORIES.contains(&name) => format!(r"\p{{{name}}}"),
        _ if SCRIPTS.split_ascii_whitespace().any(|script| script == name) => format!(r"\p{{Script={name}}}"),
        _ => return None,
    })
}
