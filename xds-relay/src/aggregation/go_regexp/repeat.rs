//! Repetition operators, and how much they may repeat.

use std::fmt;

use super::{INVALID_REPEAT_COUNT, SyntaxError};

/// How many copies of the innermost thing repetitions may come to, one within the other.
const MOST: u32 = 1000;

/// How often something is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    Operator(char),
    /// Without an end where there is no second.
    Counted(u32, Option<u32>),
}

impl Bounds {
    /// `*`, `+` or `?`.
    pub(super) fn of(operator: char) -> Self {
        Self::Operator(operator)
    }

    /// How many copies it comes to of something that comes to `within`. `before` begins with the operator, `after` is behind
    /// it: for the error.
    pub(super) fn copies(self, within: u32, before: &str, after: &str) -> Result<u32, SyntaxError> {
        let Self::Counted(least, most) = self else { return Ok(within) };
        let copies = match most {
            // Nothing of it is left.
            Some(0) => 1,
            _ => most.unwrap_or(least).max(1).saturating_mul(within),
        };
        let several = least >= 2 || most.is_some_and(|most| most >= 2);
        if several && copies > MOST {
            return Err(SyntaxError::between(INVALID_REPEAT_COUNT, before, after));
        }
        Ok(copies)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(operator) => write!(f, "{operator}"),
            Self::Counted(least, None) => write!(f, "{{{least},}}"),
            Self::Counted(least, Some(most)) => write!(f, "{{{least},{most}}}"),
        }
    }
}

/// `{2}`, `{2,}` or `{2,3}`, with what follows; `None`: the brace is text, as in `{,3}`.
pub(super) fn counted(text: &str) -> Result<Option<(Bounds, &str)>, SyntaxError> {
    let Some((least, most, after)) = numbers(text) else { return Ok(None) };
    let limits = least <= MOST && most.is_none_or(|most| most <= MOST && least <= most);
    if !limits {
        return Err(SyntaxError::between(INVALID_REPEAT_COUNT, text, after));
    }
    Ok(Some((Bounds::Counted(least, most), after)))
}

fn numbers(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => number(rest).map(|(most, rest)| (Some(most), rest))?,
    };
    Some((least, most, rest.strip_prefix('}')?))
}

/// Without leading zeros; what is too large for any bound stays so.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
