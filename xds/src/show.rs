//! Text of other people on a terminal: what is no plain text is escaped, and an error is underlined.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use unicode_width::UnicodeWidthChar;

/// Says on standard error what is wrong, if anybody reads that.
pub(crate) fn complain(problem: impl Display) {
    let _ = writeln!(io::stderr(), "xds: {problem}");
}

/// That nobody reads any more is no error.
pub(crate) fn unless_closed(done: io::Result<ExitCode>) -> Result<ExitCode, Box<dyn Error>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => Ok(done?),
    }
}

/// An error with its causes, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// How many columns are shown before and from an error.
const BEFORE: usize = 48;
const FROM: usize = 28;

/// A text with what a terminal would not show, or would obey, as an escape.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(Glyph::of).map(|glyph| glyph.text).collect()
}

/// The part of a text around the byte `offset`, and a line with a mark below it.
pub(crate) fn underline(text: &str, offset: usize) -> String {
    let at = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let (before, from) = text.split_at(at);
    // A percent-encoded byte is one character to who reads the error.
    let is_escape = matches!(from.as_bytes(), [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    let mark = if is_escape { 3 } else { from.chars().next().map_or(1, |first| Glyph::of(first).width.max(1)) };
    let (head, head_width) = fit(before.chars().rev(), BEFORE);
    let (tail, _) = fit(from.chars(), FROM);
    let head: String = head.into_iter().rev().collect();
    let tail: String = tail.into_iter().collect();
    format!("  {head}{tail}\n  {}{}", " ".repeat(head_width), "^".repeat(mark))
}

/// The glyphs that fit into a number of columns, the last one an ellipsis if others are left out; and their width.
fn fit(chars: impl Iterator<Item = char>, columns: usize) -> (Vec<String>, usize) {
    let (mut glyphs, mut width) = (Vec::new(), 0);
    for glyph in chars.map(Glyph::of) {
        if width + glyph.width > columns {
            glyphs.push("…".to_owned());
            return (glyphs, width + 1);
        }
        width += glyph.width;
        glyphs.push(glyph.text);
    }
    (glyphs, width)
}

struct Glyph {
    text: String,
    width: usize,
}

impl Glyph {
    fn of(char: char) -> Self {
        let text: String = match char {
            '"' | '\'' | '\\' => char.into(),
            other => other.escape_debug().collect(),
        };
        let width = text.chars().map(|char| char.width().unwrap_or_default()).sum();
        Self { text, width }
    }
}

/// What is wrong with a file, and where.
#[derive(Debug)]
pub(crate) struct Problem {
    file: PathBuf,
    /// Line and column, from 1.
    place: Option<(usize, usize)>,
    problem: String,
    /// A line with a mark below it.
    excerpt: String,
}

impl Problem {
    pub(crate) fn new(file: &Path, problem: impl Display) -> Self {
        Self { file: file.to_owned(), place: None, problem: problem.to_string(), excerpt: String::new() }
    }

    /// With the line of the file's text in which `column`, which counts bytes, is.
    pub(crate) fn at_byte(mut self, text: &str, line: usize, column: usize) -> Self {
        self.place = Some((line, column));
        let shown = text.lines().nth(line.saturating_sub(1));
        self.excerpt = shown.map(|shown| underline(shown, column.saturating_sub(1))).unwrap_or_default();
        self
    }

    /// The same with a column that counts characters.
    pub(crate) fn at_char(self, text: &str, line: usize, column: usize) -> Self {
        let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let chars = shown.char_indices().map(|(at, _)| at).chain([shown.len()]);
        let byte = chars.take(column.max(1)).last().unwrap_or_default();
        let mut problem = self.at_byte(text, line, byte + 1);
        problem.place = Some((line, column));
        problem
    }

    /// With another text than the file's line below.
    pub(crate) fn with_excerpt(mut self, text: &str, offset: usize) -> Self {
        self.excerpt = underline(text, offset);
        self
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", visible(&self.problem))?;
        if !self.excerpt.is_empty() {
            write!(f, "\n{}", self.excerpt)?;
        }
        Ok(())
    }
}

impl Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_below_the_error() {
        assert_eq!(underline("ab%09c", 2), "  ab%09c\n    ^^^");
        assert_eq!(underline("ab", 2), "  ab\n    ^");
        assert_eq!(underline("", 0), "  \n  ^");
        assert_eq!(underline("é日x", 5), "  é日x\n     ^", "a wide character takes two columns");
        assert_eq!(underline("é日x", 2), "  é日x\n   ^^");
        assert_eq!(underline("a\u{1b}[2J", 1), "  a\\u{1b}[2J\n   ^^^^^^", "a terminal does not obey");
        assert_eq!(underline("ab", 99), "  ab\n    ^");
    }

    #[test]
    fn of_a_long_text_the_surroundings_are_shown() {
        let shown = underline(&"x".repeat(70_000), 35_000);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], format!("  …{}…", "x".repeat(BEFORE + FROM)));
        assert_eq!(lines[1].len(), 2 + 1 + BEFORE + 1);
    }

    #[test]
    fn text_is_escaped_where_a_terminal_would_not_show_it() {
        assert_eq!(visible("a\"b\\c\tñ\u{202e}"), "a\"b\\c\\tñ\\u{202e}");
    }
}
