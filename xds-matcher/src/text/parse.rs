//! From text to a constraint.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{RESERVED, is_bare};
use crate::{Constraint, ConstraintError, ErrorKind, IntRange, MAX_DEPTH, MAX_NODES};

/// Parentheses that add no level to the tree count as well: they take stack.
const MAX_NESTING: usize = 2 * MAX_DEPTH;

/// A text that is no constraint.
///
/// ```
/// use xds_matcher::Constraint;
///
/// let text = "env=prod and shard in 6..4";
/// let error = text.parse::<Constraint>().unwrap_err();
/// assert_eq!(&text[error.offset()..], "6..4");
/// assert_eq!(error.to_string(), "expected a range with the smaller bound first, at byte 22");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    offset: usize,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Expected(&'static str),
    Limit(ErrorKind),
}

impl ParseError {
    /// The byte of the text at which it stops being a constraint, or its length.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::Expected(what) => write!(f, "expected {what}")?,
            Problem::Limit(kind) => ConstraintError::new(kind).fmt(f)?,
        }
        write!(f, ", at byte {}", self.offset)
    }
}

impl core::error::Error for ParseError {}

pub(crate) fn parse(text: &str) -> Result<Constraint, ParseError> {
    let mut parser = Parser { text, at: 0, nesting: 0, operands: 0 };
    let constraint = parser.disjunction()?;
    parser.skip_space();
    if parser.at < text.len() { Err(parser.expected("`and`, `or` or the end")) } else { Ok(constraint) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    nesting: usize,
    /// Operands and ranges read so far: more than [`MAX_NODES`] are refused as soon as they are met, not when they are joined.
    operands: usize,
}

impl<'a> Parser<'a> {
    fn disjunction(&mut self) -> Result<Constraint, ParseError> {
        self.operands("or", Self::conjunction, Constraint::any)
    }

    fn conjunction(&mut self) -> Result<Constraint, ParseError> {
        self.operands("and", Self::operand, Constraint::all)
    }

    fn operands(
        &mut self,
        operator: &str,
        operand: fn(&mut Self) -> Result<Constraint, ParseError>,
        join: fn(Vec<Constraint>) -> Result<Constraint, ConstraintError>,
    ) -> Result<Constraint, ParseError> {
        let start = self.at;
        let first = operand(self)?;
        if !self.take_word(operator) {
            return Ok(first);
        }
        let mut all = alloc::vec![first, operand(self)?];
        while self.take_word(operator) {
            all.push(operand(self)?);
        }
        join(all).map_err(|e| limit(start, &e))
    }

    fn operand(&mut self) -> Result<Constraint, ParseError> {
        self.skip_space();
        let start = self.at;
        self.count()?;
        if self.take_word("not") {
            return self.nested(Self::operand)?.negate().map_err(|e| limit(start, &e));
        }
        if self.take(b'(') {
            return self.nested(Self::in_parentheses);
        }
        if self.peek() == Some(b'"') {
            let key = self.quoted()?;
            return self.condition(key);
        }
        match self.bare() {
            "" => Err(self.expected("a condition")),
            "true" => Ok(Constraint::unconstrained()),
            "false" => Constraint::any([]).map_err(|e| limit(start, &e)),
            "exists" => {
                self.need(b'(', "`(` after `exists`")?;
                self.skip_space();
                let key = self.key()?;
                self.need(b')', "`)`")?;
                Ok(Constraint::exists(key))
            }
            "all" => self.call(start, Constraint::all),
            "any" => self.call(start, Constraint::any),
            word if RESERVED.contains(&word) => {
                self.at = start;
                Err(self.expected("a condition (a key that is a word of the language is quoted)"))
            }
            key => self.condition(Cow::Borrowed(key)),
        }
    }

    fn in_parentheses(&mut self) -> Result<Constraint, ParseError> {
        let inner = self.disjunction()?;
        self.need(b')', "`and`, `or` or `)`")?;
        Ok(inner)
    }

    /// `all(…)` and `any(…)`: lists of none or of one.
    fn call(
        &mut self,
        start: usize,
        join: fn(Option<Constraint>) -> Result<Constraint, ConstraintError>,
    ) -> Result<Constraint, ParseError> {
        self.need(b'(', "`(`")?;
        self.skip_space();
        let inner = if self.take(b')') { None } else { Some(self.nested(Self::in_parentheses)?) };
        join(inner).map_err(|e| limit(start, &e))
    }

    fn condition(&mut self, key: Cow<'a, str>) -> Result<Constraint, ParseError> {
        self.skip_space();
        if self.take(b'=') {
            self.skip_space();
            let value = if self.peek() == Some(b'"') { self.quoted()? } else { Cow::Borrowed(self.bare()) };
            // The empty value is written `""`: a forgotten one is an error.
            return match (&value, self.text.as_bytes().get(self.at.wrapping_sub(1))) {
                (Cow::Borrowed(""), last) if last != Some(&b'"') => Err(self.expected("a value")),
                _ => Ok(Constraint::value(key, value)),
            };
        }
        let start = self.at;
        if !self.take_word("in") {
            return Err(self.expected("`=` or `in` after the key"));
        }
        let mut ranges = alloc::vec![self.range()?];
        self.skip_space();
        while self.take(b',') {
            ranges.push(self.range()?);
            self.skip_space();
        }
        Constraint::int_in(key, ranges).map_err(|e| limit(start, &e))
    }

    /// `4..6`, `4..`, `..6` or `4`.
    fn range(&mut self) -> Result<IntRange, ParseError> {
        self.skip_space();
        self.count()?;
        let start = self.at;
        let min = self.integer()?;
        let dots = self.rest().starts_with("..");
        if dots {
            self.at += 2;
        }
        let max = if dots { self.integer()? } else { min };
        // Without this `4..6x` would be a range followed by a key.
        let ends = !self.peek().is_some_and(is_bare);
        let range = match (min, max) {
            _ if !ends => return Err(self.expected("a bound of decimal digits")),
            (None, None) => return Err(self.expected("an integer or a range such as `4..6`")),
            (min, max) => IntRange::new(min.unwrap_or(0), max.unwrap_or(u64::MAX)),
        };
        range.map_err(|_| ParseError {
            offset: start,
            problem: Problem::Expected("a range with the smaller bound first"),
        })
    }

    fn integer(&mut self) -> Result<Option<u64>, ParseError> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        let problem = Problem::Expected("an integer below 2^64");
        digits.parse().map(Some).map_err(|_| ParseError { offset: self.at - digits.len(), problem })
    }

    fn key(&mut self) -> Result<Cow<'a, str>, ParseError> {
        if self.peek() == Some(b'"') {
            return self.quoted();
        }
        let start = self.at;
        match self.bare() {
            "" => Err(self.expected("a key")),
            word if RESERVED.contains(&word) => {
                self.at = start;
                Err(self.expected("a key (one that is a word of the language is quoted)"))
            }
            key => Ok(Cow::Borrowed(key)),
        }
    }

    /// A JSON string.
    fn quoted(&mut self) -> Result<Cow<'a, str>, ParseError> {
        let start = self.at;
        self.at += 1;
        let plain = self.take_while(|byte| byte != b'"' && byte != b'\\');
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut unescaped = String::from(plain);
        loop {
            if self.take(b'"') {
                return Ok(Cow::Owned(unescaped));
            }
            if self.take(b'\\') {
                unescaped.push(self.escape()?);
                continue;
            }
            match self.take_while(|byte| byte != b'"' && byte != b'\\') {
                "" => return Err(ParseError { offset: start, problem: Problem::Expected("a closing quote") }),
                plain => unescaped.push_str(plain),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let start = self.at - 1;
        let wrong = ParseError { offset: start, problem: Problem::Expected("a JSON escape") };
        let letter = self.peek().ok_or_else(|| wrong.clone())?;
        let c = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                self.at += 1;
                return self.code_point().ok_or(wrong);
            }
            _ => return Err(wrong),
        };
        self.at += 1;
        Ok(c)
    }

    fn code_point(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.rest().starts_with("\\u").then_some(())?;
        self.at += 2;
        let second = self.four_digits().filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Constraint, ParseError>) -> Result<Constraint, ParseError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(ParseError { offset: self.at, problem: Problem::Limit(ErrorKind::TooDeep) });
        }
        let constraint = inner(self);
        self.nesting -= 1;
        constraint
    }

    fn count(&mut self) -> Result<(), ParseError> {
        self.operands += 1;
        if self.operands > MAX_NODES {
            return Err(ParseError { offset: self.at, problem: Problem::Limit(ErrorKind::TooLarge) });
        }
        Ok(())
    }

    fn bare(&mut self) -> &'a str {
        self.take_while(is_bare)
    }

    /// Takes `word` if it stands here as a whole word; as the start of `key=` it is none.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let taken = self.rest().strip_prefix(word).is_some_and(|rest| !rest.bytes().next().is_some_and(is_bare));
        if taken {
            self.at += word.len();
        }
        taken
    }

    fn need(&mut self, byte: u8, what: &'static str) -> Result<(), ParseError> {
        self.skip_space();
        if self.take(byte) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        // Every predicate here changes its answer at ASCII bytes only, which are character boundaries.
        let len = rest.bytes().position(|byte| !wanted(byte)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.take_while(|byte| byte.is_ascii_whitespace());
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, what: &'static str) -> ParseError {
        ParseError { offset: self.at, problem: Problem::Expected(what) }
    }
}

fn limit(offset: usize, error: &ConstraintError) -> ParseError {
    ParseError { offset, problem: Problem::Limit(error.kind()) }
}

#[cfg(test)]
mod tests;
