//! Rules of strings and of bytes.

use super::form::Form;
use super::number::{Range, listed};
use super::refusal::Found;

/// What strings may be.
#[derive(Debug)]
pub(super) struct Strings {
    pub(super) constant: Option<String>,
    pub(super) characters: Range<u64>,
    pub(super) bytes: Range<u64>,
    pub(super) pattern: Option<regex::Regex>,
    pub(super) prefix: Option<String>,
    pub(super) suffix: Option<String>,
    pub(super) contains: Option<String>,
    pub(super) lacks: Option<String>,
    pub(super) one_of: Vec<String>,
    pub(super) none_of: Vec<String>,
    pub(super) form: Option<Form>,
    /// Whether an empty one may always be.
    pub(super) ignores_empty: bool,
}

/// What bytes may be.
#[derive(Debug)]
pub(super) struct ByteStrings {
    pub(super) constant: Option<Vec<u8>>,
    pub(super) bytes: Range<u64>,
    pub(super) pattern: Option<regex::bytes::Regex>,
    pub(super) prefix: Option<Vec<u8>>,
    pub(super) suffix: Option<Vec<u8>>,
    pub(super) contains: Option<Vec<u8>>,
    pub(super) one_of: Vec<Vec<u8>>,
    pub(super) none_of: Vec<Vec<u8>>,
    /// How many bytes an IP address may have, in words too.
    pub(super) lengths: Option<(&'static [usize], &'static str)>,
    /// Whether an empty one may always be.
    pub(super) ignores_empty: bool,
}

/// A pattern as it was written: what a value must match from its beginning to its end.
pub(super) fn whole(pattern: &str) -> String {
    format!(r"\A(?:{pattern})\z")
}

fn written(whole: &str) -> &str {
    whole.strip_prefix(r"\A(?:").and_then(|rest| rest.strip_suffix(r")\z")).unwrap_or(whole)
}

impl Strings {
    pub(super) fn check(&self, value: &str, refuse: &mut dyn FnMut(String, Found)) {
        if self.ignores_empty && value.is_empty() {
            return;
        }
        count(&self.characters, value.chars().count() as u64, "character", refuse);
        count(&self.bytes, value.len() as u64, "byte", refuse);
        if let Some(form) = self.form.filter(|form| !form.has(value)) {
            let found = if form.may_be_secret() { Found::Untold } else { Found::Value(quoted(value)) };
            refuse(form.words().to_owned(), found);
        }
        let mut refuse = |expected: String| refuse(expected, Found::Value(quoted(value)));
        if let Some(constant) = self.constant.as_ref().filter(|constant| *constant != value) {
            refuse(quoted(constant));
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(value)) {
            refuse(format!("what matches `{}`", written(pattern.as_str())));
        }
        if let Some(prefix) = self.prefix.as_ref().filter(|prefix| !value.starts_with(*prefix)) {
            refuse(format!("what begins with {}", quoted(prefix)));
        }
        if let Some(suffix) = self.suffix.as_ref().filter(|suffix| !value.ends_with(*suffix)) {
            refuse(format!("what ends with {}", quoted(suffix)));
        }
        if let Some(part) = self.contains.as_ref().filter(|part| !value.contains(*part)) {
            refuse(format!("what has {} in it", quoted(part)));
        }
        if let Some(part) = self.lacks.as_ref().filter(|part| value.contains(*part)) {
            refuse(format!("what does not have {} in it", quoted(part)));
        }
        if !self.one_of.is_empty() && !self.one_of.iter().any(|one| one == value) {
            refuse(format!("one of {}", listed(self.one_of.iter().map(|one| quoted(one)))));
        }
        if self.none_of.iter().any(|one| one == value) {
            refuse(format!("none of {}", listed(self.none_of.iter().map(|one| quoted(one)))));
        }
    }
}

impl ByteStrings {
    /// The bytes themselves are nothing to be shown.
    pub(super) fn check(&self, value: &[u8], refuse: &mut dyn FnMut(String, Found)) {
        if self.ignores_empty && value.is_empty() {
            return;
        }
        count(&self.bytes, value.len() as u64, "byte", refuse);
        if let Some((_, words)) = self.lengths.filter(|(lengths, _)| !lengths.contains(&value.len())) {
            refuse(words.to_owned(), Found::Told(number_of(value.len() as u64, "byte")));
        }
        let mut refuse = |expected: String| refuse(expected, Found::Untold);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        if let Some(constant) = self.constant.as_ref().filter(|constant| *constant != value) {
            refuse(format!("the bytes {}", hex(constant)));
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(value)) {
            refuse(format!("bytes that match `{}`", written(pattern.as_str())));
        }
        if let Some(prefix) = self.prefix.as_ref().filter(|prefix| !value.starts_with(prefix)) {
            refuse(format!("bytes that begin with {}", hex(prefix)));
        }
        if let Some(suffix) = self.suffix.as_ref().filter(|suffix| !value.ends_with(suffix)) {
            refuse(format!("bytes that end with {}", hex(suffix)));
        }
        if let Some(part) = self.contains.as_ref().filter(|part| !has(value, part)) {
            refuse(format!("bytes that have {} in them", hex(part)));
        }
        if !self.one_of.is_empty() && !self.one_of.iter().any(|one| one == value) {
            refuse(format!("one of the bytes {}", listed(self.one_of.iter().map(|one| hex(one)))));
        }
        if self.none_of.iter().any(|one| one == value) {
            refuse(format!("none of the bytes {}", listed(self.none_of.iter().map(|one| hex(one)))));
        }
    }
}

/// Checks how many there are of something.
pub(super) fn count(range: &Range<u64>, number: u64, one: &str, refuse: &mut dyn FnMut(String, Found)) {
    if !range.has(number) {
        let expected = range.words(&|number| number_of(number, one));
        refuse(expected, Found::Told(if number == 0 { "none".to_owned() } else { number.to_string() }));
    }
}

fn number_of(number: u64, one: &str) -> String {
    if number == 1 { format!("{number} {one}") } else { format!("{number} {one}s") }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn has(value: &[u8], part: &[u8]) -> bool {
    part.is_empty() || value.windows(part.len()).any(|window| window == part)
}
