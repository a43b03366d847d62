//! What an unquoted scalar means.
//!
//! YAML 1.2's core schema, less what YAML 1.1 reads otherwise: a file that two readers understand differently is refused
//! rather than guessed at.

/// The value of an unquoted scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plain<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

/// Reads an unquoted scalar; the error is a reason for people.
pub(super) fn resolve(text: &str) -> Result<Plain<'_>, String> {
    if is_null(text) {
        return Ok(Plain::Null);
    }
    match text {
        "true" | "True" | "TRUE" => return Ok(Plain::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Plain::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Ok(Plain::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Ok(Plain::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Ok(Plain::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    if is_boolean_in_yaml_1_1(text) {
        return Err(format!(
            "unquoted `{text}` is a boolean in YAML 1.1 and a string in YAML 1.2: write \"{text}\", or true or false"
        ));
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return Ok(u64::from_str_radix(hexadecimal, 16).map_or(Plain::Text(text), Plain::Unsigned));
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(format!(
                "unquoted `{text}` is octal in YAML 1.1 and decimal in YAML 1.2: write \"{text}\", or no leading zero"
            ));
        }
        if let Ok(number) = text.parse() {
            return Ok(Plain::Unsigned(number));
        }
        if let Ok(number) = text.parse() {
            return Ok(Plain::Signed(number));
        }
    }
    let may_be_float = text.contains(|character: char| character.is_ascii_digit())
        && text.chars().all(|character| matches!(character, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
    match text.parse() {
        Ok(number) if may_be_float => Ok(Plain::Float(number)),
        _ => Ok(Plain::Text(text)),
    }
}

/// Whether an unquoted scalar is no value.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn is_boolean_in_yaml_1_1(text: &str) -> bool {
    const WORDS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];
    let rest = text.get(1..).unwrap_or_default();
    // `yes`, `Yes` and `YES`, but not `yEs`.
    let uniform = |test: fn(&char) -> bool| rest.chars().all(|character| test(&character));
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
        && (uniform(char::is_ascii_lowercase) || text.chars().all(|character| character.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for (text, expected) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("true", Plain::Bool(true)),
            ("FALSE", Plain::Bool(false)),
            ("0", Plain::Unsigned(0)),
            ("18446744073709551615", Plain::Unsigned(u64::MAX)),
            ("-42", Plain::Signed(-42)),
            ("+7", Plain::Unsigned(7)),
            ("0x1F", Plain::Unsigned(31)),
            ("1.5", Plain::Float(1.5)),
            ("-1e3", Plain::Float(-1000.0)),
            ("-.inf", Plain::Float(f64::NEG_INFINITY)),
            ("10s", Plain::Text("10s")),
            ("1.2.3", Plain::Text("1.2.3")),
            ("-", Plain::Text("-")),
            ("e5", Plain::Text("e5")),
            ("127.0.0.1", Plain::Text("127.0.0.1")),
            ("infinity", Plain::Text("infinity")),
            ("yEs", Plain::Text("yEs")),
            ("nope", Plain::Text("nope")),
        ] {
            assert_eq!(resolve(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_yaml_1_1_reads_otherwise_is_refused() {
        for text in ["y", "N", "yes", "No", "ON", "off", "Off", "0777", "-010"] {
            assert!(resolve(text).is_err(), "{text:?}");
        }
    }
}
