//! JSON as YAML 1.2, for people to read. What could be read as anything but itself stands in quotes.

use std::iter;

use serde_json::{Map, Value};

/// What YAML 1.1 or 1.2 reads as something other than text.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A document, as far as it fits into about so many bytes, and whether that is all of it.
pub(crate) fn write(value: &Value, most: usize) -> (String, bool) {
    let mut writer = Writer { text: String::new(), most };
    match value {
        Value::Object(fields) if !fields.is_empty() => writer.mapping(fields, 0, false),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0, false),
        scalar => writer.scalar(scalar),
    }
    let is_all = !writer.is_full();
    (writer.text, is_all)
}

struct Writer {
    text: String,
    most: usize,
}

impl Writer {
    fn is_full(&self) -> bool {
        self.text.len() > self.most
    }

    /// `placed`: the first line is begun already.
    fn mapping(&mut self, fields: &Map<String, Value>, indent: usize, mut placed: bool) {
        for (key, value) in fields {
            if self.is_full() {
                return;
            }
            self.place(indent, std::mem::take(&mut placed));
            self.string(key);
            self.text.push(':');
            match value {
                Value::Object(fields) if !fields.is_empty() => {
                    self.text.push('\n');
                    self.mapping(fields, indent + 2, false);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.text.push('\n');
                    self.sequence(items, indent, false);
                }
                scalar => {
                    self.text.push(' ');
                    self.scalar(scalar);
                }
            }
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize, mut placed: bool) {
        for item in items {
            if self.is_full() {
                return;
            }
            self.place(indent, std::mem::take(&mut placed));
            self.text.push_str("- ");
            match item {
                Value::Object(fields) if !fields.is_empty() => self.mapping(fields, indent + 2, true),
                Value::Array(items) if !items.is_empty() => self.sequence(items, indent + 2, true),
                scalar => self.scalar(scalar),
            }
        }
    }

    fn place(&mut self, indent: usize, placed: bool) {
        if !placed {
            self.text.extend(iter::repeat_n(' ', indent));
        }
    }

    /// With the end of its line.
    fn scalar(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.string(text),
            // As JSON writes them.
            other => self.text.push_str(&other.to_string()),
        }
        self.text.push('\n');
    }

    fn string(&mut self, text: &str) {
        if is_plain(text) {
            self.text.push_str(text);
            return;
        }
        self.text.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                _ if is_unseen(letter) => self.text.push_str(&format!("\\u{:04X}", u32::from(letter))),
                _ => self.text.push(letter),
            }
        }
        self.text.push('"');
    }
}

fn is_plain(text: &str) -> bool {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "_./-:".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(is_safe)
        && !text.ends_with(':')
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// What cannot be seen, or makes other things be seen elsewhere.
fn is_unseen(letter: char) -> bool {
    let directs = matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    letter.is_control() || directs || letter == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    fn all(value: &Value) -> String {
        let (text, is_all) = write(value, usize::MAX);
        assert!(is_all);
        text
    }

    #[test]
    fn blocks_are_indented_and_what_could_be_read_otherwise_is_quoted() {
        let value = json!({
            "@type": "type.googleapis.com/a.B",
            "address": "127.0.0.1:80",
            "empty": {},
            "list": [{ "a": 1, "b": [true, null] }, [["x"]], "no", []],
        });
        let expected = "\"@type\": type.googleapis.com/a.B\naddress: \"127.0.0.1:80\"\nempty: {}\nlist:\n- a: 1\n  b:\n  - true\n  \
                        - null\n- - - x\n- \"no\"\n- []\n";
        assert_eq!(all(&value), expected);
    }

    #[test]
    fn whatever_is_written_is_read_as_what_it_was() {
        let texts = [
            "",
            " ",
            "a",
            "a b",
            "a: b",
            "a:",
            "a #b",
            "- a",
            "1",
            "01",
            "1e3",
            "0x1",
            ".inf",
            "1:30",
            "~",
            "Null",
            "NO",
            "=",
            "<<",
            "'",
            "\"",
            "\\",
            "%a",
            "@a",
            "`a",
            "!a",
            "&a",
            "*a",
            "|",
            ">",
            "---",
            "...",
            "{a}",
            "[a]",
            "a,b",
            "a\nb\n\n",
            "\t",
            "\u{7}",
            "\r\n",
            "é日\u{1f600}",
            "\u{202e}",
            "\u{85}",
            "\u{2028}",
            "xdstp://a/b/c?d=e",
            "/a/b",
        ];
        for text in texts {
            let value = json!({ text: [text, { "a": text }, [text]] });
            let yaml = all(&value);
            let node = crate::yaml::parse(&yaml).unwrap_or_else(|error| panic!("{error}: {yaml}")).unwrap();
            assert_eq!(Value::deserialize(&node).unwrap(), value, "{yaml}");
        }
    }

    #[test]
    fn what_is_too_long_ends_soon() {
        let (text, is_all) = write(&json!(vec!["word"; 1000]), 100);
        assert!(!is_all && text.len() < 120 && text.ends_with("- word\n"), "{text}");
    }
}
