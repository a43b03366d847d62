//! Patterns of texts.

use std::fmt;

/// A pattern of texts. `*` stands for any text without the separator, `**` for any text, and all else for itself.
///
/// ```
/// use xds_relay::config::Glob;
///
/// let glob = Glob::parse("spiffe://example.com/ns/*/sa/web", '/')?;
/// assert!(glob.matches("spiffe://example.com/ns/shop/sa/web"));
/// assert!(!glob.matches("spiffe://example.com/ns/shop/sa/a/sa/web"));
/// # Ok::<(), xds_relay::config::PatternError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    separator: u8,
    pieces: Vec<Piece>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(pub(super) String);

#[derive(Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `*`
    Within,
    /// `**`
    Across,
}

impl Glob {
    /// Reads a pattern; the separator is an ASCII character.
    ///
    /// # Errors
    /// It is empty, or there are more stars in a row than mean anything.
    pub fn parse(text: &str, separator: char) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError("empty; expected a pattern, such as ** for any text".to_owned()));
        }
        Self::of_part(text, separator)
    }

    /// The same of a part, which may be empty.
    pub(super) fn of_part(text: &str, separator: char) -> Result<Self, PatternError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, stars)) = rest.find('*').and_then(|at| rest.split_at_checked(at)) {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let after = stars.trim_start_matches('*');
            pieces.push(match stars.len() - after.len() {
                1 => Piece::Within,
                2 => Piece::Across,
                _ => return Err(PatternError(format!("`{text}`: expected * or **, and no more stars in a row"))),
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        let separator = u8::try_from(separator).ok().filter(u8::is_ascii);
        let separator = separator.ok_or_else(|| PatternError("expected an ASCII separator".to_owned()))?;
        Ok(Self { text: text.to_owned(), separator, pieces })
    }

    /// Whether it can be of URIs: no name of a host has a colon.
    pub(crate) fn is_of_uris(&self) -> bool {
        self.text.contains(':')
    }

    /// Whether a text is one of these. It takes no longer than the text is long, for each piece of the pattern.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        // What a pattern ends with leaves out most of what it is not for.
        if let Some(Piece::Text(last)) = self.pieces.last()
            && !text.ends_with(last.as_str())
        {
            return false;
        }
        let bytes = text.as_bytes();
        let mut reached = vec![false; bytes.len() + 1];
        reached.iter_mut().take(1).for_each(|start| *start = true);
        for piece in &self.pieces {
            let next = match piece {
                Piece::Text(part) => after_text(bytes, &reached, part.as_bytes()),
                Piece::Within => spread(bytes, &reached, Some(self.separator)),
                Piece::Across => spread(bytes, &reached, None),
            };
            if !next.contains(&true) {
                return false;
            }
            reached = next;
        }
        reached.last().copied().unwrap_or_default()
    }
}

/// Where one is after a part of a text, by where one was before it.
fn after_text(bytes: &[u8], reached: &[bool], part: &[u8]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (at, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        if bytes.get(at..).is_some_and(|rest| rest.starts_with(part))
            && let Some(after) = next.get_mut(at + part.len())
        {
            *after = true;
        }
    }
    next
}

/// The same after any text up to a byte that is not in it.
fn spread(bytes: &[u8], reached: &[bool], separator: Option<u8>) -> Vec<bool> {
    let mut on = false;
    let mut spread = |(at, reached): (usize, &bool)| {
        let here = on || *reached;
        on = here && (separator.is_none() || bytes.get(at).copied() != separator);
        here
    };
    reached.iter().enumerate().map(&mut spread).collect()
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As it is defined: by trying everything.
    fn naive(pattern: &str, text: &str) -> bool {
        if let Some(rest) = pattern.strip_prefix("**") {
            return (0..=text.len()).any(|at| text.get(at..).is_some_and(|left| naive(rest, left)));
        }
        if let Some(rest) = pattern.strip_prefix('*') {
            let longest = text.find('/').unwrap_or(text.len());
            return (0..=longest).any(|at| text.get(at..).is_some_and(|left| naive(rest, left)));
        }
        match (pattern.chars().next(), text.chars().next()) {
            (None, None) => true,
            (Some(a), Some(b)) if a == b => naive(&pattern[a.len_utf8()..], &text[b.len_utf8()..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_it_is_defined_to(pattern in "[ab/é*]{1,8}", text in "[ab/é*]{0,8}") {
            if let Ok(glob) = Glob::parse(&pattern, '/') {
                prop_assert_eq!(glob.matches(&text), naive(&pattern, &text));
            }
        }

        /// So that who may ask for a glob may ask for what it covers.
        #[test]
        fn what_matches_a_last_star_matches_whatever_stands_for_it(
            pattern in "[ab/*]{1,8}", parent in "[ab/]{0,4}", id in "[ab*]{0,4}",
        ) {
            if let Ok(glob) = Glob::parse(&pattern, '/')
                && glob.matches(&format!("{parent}*"))
            {
                // The parent is no text of a glob unless a separator ends it.
                let parent = if parent.is_empty() || parent.ends_with('/') { parent } else { return Ok(()) };
                let member = parent + &id;
                prop_assert!(glob.matches(&member));
            }
        }
    }

    #[test]
    fn what_means_nothing_is_no_pattern() {
        assert!(Glob::parse("", '/').unwrap_err().to_string().starts_with("empty"));
        assert!(Glob::parse("a***", '/').unwrap_err().to_string().contains("stars"));
        assert!(Glob::parse("[a]?", '/').unwrap().matches("[a]?"));
    }

    #[test]
    fn a_long_text_that_almost_matches_does_not_take_long() {
        let glob = Glob::parse("*a*a*a*a*a*a*a*a*b", '/').unwrap();
        assert!(!glob.matches(&("a".repeat(64 << 10) + "c")));
        assert!(glob.matches(&("a".repeat(64 << 10) + "b")));
    }
}
