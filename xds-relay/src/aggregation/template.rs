//! The replacement of a `regex_action`, as `Regexp.Expand` of Go reads it.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands in place of a match.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template {
    source: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// What the first of these groups matched that matched anything.
    Groups(Vec<usize>),
}

impl Template {
    /// For a pattern whose groups have these names, the whole match first.
    pub(super) fn new(source: &str, names: &[String]) -> Self {
        let mut text = source;
        let mut pieces = Pieces::default();
        while let Some((before, after)) = text.split_once('$') {
            pieces.text(before);
            text = after;
            if let Some(after) = after.strip_prefix('$') {
                pieces.text("$");
                text = after;
            } else if let Some((name, after)) = reference(after) {
                pieces.groups(groups(name, names));
                text = after;
            } else {
                // A dollar that refers to nothing is one.
                pieces.text("$");
            }
        }
        pieces.text(text);
        Self { source: source.to_owned(), pieces: pieces.0 }
    }

    /// As the file has it.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// How long a text of some length is at most once each match is replaced, where something stands in place of whatever match;
    /// none where a match may leave nothing.
    pub(super) fn longest(&self, text: usize) -> Option<usize> {
        let written = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { 0 };
        let written: usize = self.pieces.iter().map(written).sum();
        let groups = self.pieces.iter().filter(|piece| matches!(piece, Piece::Groups(_))).count();
        // There is a match more than there are characters, and together they are no longer than the text.
        (written > 0).then(|| text + (text + 1) * written + text * groups)
    }

    /// Appends what stands in place of this match.
    pub(super) fn expand(&self, captures: &Captures<'_>, into: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => into.push_str(text),
                Piece::Groups(groups) => {
                    let matched = groups.iter().find_map(|&group| captures.get(group));
                    into.push_str(matched.map_or("", |group| group.as_str()));
                }
            }
        }
    }
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// Groups that the pattern does not have stand for nothing.
    fn groups(&mut self, groups: Vec<usize>) {
        if !groups.is_empty() {
            self.0.push(Piece::Groups(groups));
        }
    }
}

/// The name in `name…` or `{name}…`, as long as it can be, and what follows.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (braced, text) = match text.strip_prefix('{') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let end = text.find(|character| !is_of_a_name(character)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = if braced { rest.strip_prefix('}')? } else { rest };
    (!name.is_empty()).then_some((name, rest))
}

/// A letter, a decimal digit or `_`; of any script.
fn is_of_a_name(character: char) -> bool {
    static LETTER_OR_DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\p{L}\p{Nd}]").ok());
    if character.is_ascii() {
        return character == '_' || character.is_ascii_alphanumeric();
    }
    let mut buffer = [0; 4];
    LETTER_OR_DIGIT.as_ref().is_some_and(|class| class.is_match(character.encode_utf8(&mut buffer)))
}

/// A number without leading zeros is that group; all else is a name, and several groups may have it.
fn groups(name: &str, names: &[String]) -> Vec<usize> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    if is_number && name.len() <= LONGEST_NUMBER {
        return name.parse().into_iter().filter(|&number: &usize| number < names.len()).collect();
    }
    names.iter().enumerate().filter(|(_, of)| of.as_str() == name).map(|(number, _)| number).collect()
}

/// More digits than that are a name to Go, which stops to count at a hundred million.
const LONGEST_NUMBER: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// What `replace` makes of the match of `pattern` in `text`.
    fn expanded(pattern: &str, names: &[&str], replace: &str, text: &str) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let captures = Regex::new(pattern).unwrap();
        let mut into = String::new();
        Template::new(replace, &names).expand(&captures.captures(text).unwrap(), &mut into);
        into
    }

    #[test]
    fn references_are_read_as_go_reads_them() {
        for (replace, expected) in [
            ("$1", "a"),
            ("${1}", "a"),
            ("$0", "ab"),
            ("<$2>", "<b>"),
            ("$1x", ""),
            ("${1}x", "ax"),
            ("$1_$2", "b"),
            ("$10", ""),
            ("${1}0", "a0"),
            ("$01", "zero-one"),
            ("$n", "b"),
            ("${n}!", "b!"),
            ("$none", ""),
            ("$$1", "$1"),
            ("$$$1", "$a"),
            ("$", "$"),
            ("a$", "a$"),
            ("$-", "$-"),
            ("${", "${"),
            ("${1", "${1"),
            ("${}", "${}"),
            ("${1 }", "${1 }"),
            ("$é1", ""),
            ("$٣", ""),
            ("$1—", "a—"),
            (r"\1", r"\1"),
        ] {
            let names: &[&str] = if replace == "$01" { &["", "", "", "01"] } else { &["", "", "n"] };
            let pattern = if replace == "$01" { "(a)(b)(.*)" } else { "(a)(b)" };
            let text = if replace == "$01" { "abzero-one" } else { "ab" };
            assert_eq!(expanded(pattern, names, replace, text), expected, "{replace}");
        }
    }

    #[test]
    fn of_several_groups_with_a_name_the_first_that_matched_counts() {
        assert_eq!(expanded("(a)|(b)", &["", "n", "n"], "[$n]", "b"), "[b]");
    }

    #[test]
    fn a_number_beyond_all_bounds_is_the_name_of_no_group() {
        assert_eq!(expanded("(a)", &["", ""], "[$99999999999999999999]", "a"), "[]");
    }
}
