//! The grammar from left to right, as Go reads it: the first error is the same one.

use super::repeat::{self, Bounds};
use super::{
    INVALID_ESCAPE, INVALID_NAMED_CAPTURE, INVALID_PERL_SYNTAX, MISSING_PAREN, MISSING_REPEAT_ARGUMENT,
    NESTED_REPETITION, SyntaxError, Translated, UNEXPECTED_PAREN, class, escape, unicode,
};

/// `(?imsU)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) fold_case: bool,
    multi_line: bool,
    dot_is_any: bool,
    swap_greed: bool,
}

/// Something that an operator repeats.
struct Item {
    text: String,
    /// How many copies of the innermost thing the repetitions within come to.
    copies: u32,
}

/// What is open: the pattern as a whole, or a group within it.
struct Open {
    /// Before it: what opened it, and the flags that its end restores.
    opening: &'static str,
    flags: Flags,
    /// The alternatives that are complete, each with its `|`.
    alternatives: String,
    copies: u32,
    /// Of the last alternative.
    items: Vec<Item>,
}

impl Open {
    fn new(opening: &'static str, flags: Flags) -> Self {
        Self { opening, flags, alternatives: String::new(), copies: 1, items: Vec::new() }
    }

    fn end_alternative(&mut self) {
        for item in self.items.drain(..) {
            self.alternatives.push_str(&item.text);
            self.copies = self.copies.max(item.copies);
        }
    }
}

struct Parser<'p> {
    pattern: &'p str,
    rest: &'p str,
    flags: Flags,
    /// The innermost, and those around it.
    open: Open,
    around: Vec<Open>,
    names: Vec<String>,
}

pub(super) fn parse(pattern: &str) -> Result<Translated, SyntaxError> {
    let flags = Flags::default();
    let open = Open::new("", flags);
    let mut parser = Parser { pattern, rest: pattern, flags, open, around: Vec::new(), names: vec![String::new()] };
    let mut repetition = None;
    while let Some(first) = parser.rest.chars().next() {
        let before = parser.rest;
        repetition = if parser.one(first, repetition)? { Some(before) } else { None };
    }
    if !parser.around.is_empty() {
        return Err(SyntaxError::new(MISSING_PAREN, pattern));
    }
    parser.open.end_alternative();
    Ok(Translated { pattern: parser.open.alternatives, names: parser.names })
}

impl<'p> Parser<'p> {
    /// Reads one step, which begins with `first`; whether it was a repetition. `last` begins with the one right before.
    fn one(&mut self, first: char, last: Option<&'p str>) -> Result<bool, SyntaxError> {
        let after = self.rest.strip_prefix(first).unwrap_or_default();
        match first {
            '(' if after.starts_with('?') => self.flags_or_group(after)?,
            '(' => {
                self.names.push(String::new());
                self.enter("(", self.flags);
                self.rest = after;
            }
            '|' => {
                self.open.end_alternative();
                self.open.alternatives.push('|');
                self.rest = after;
            }
            ')' => {
                self.leave()?;
                self.rest = after;
            }
            '^' => self.push(if self.flags.multi_line { "(?m:^)" } else { r"\A" }, after),
            '$' => self.push(if self.flags.multi_line { "(?m:$)" } else { r"\z" }, after),
            '.' => self.push(if self.flags.dot_is_any { "(?s:.)" } else { "." }, after),
            '[' => {
                let (class, rest) = class::class(self.rest, self.flags)?;
                self.push(class, rest);
            }
            '*' | '+' | '?' => {
                self.repeat(Bounds::of(first), after, last)?;
                return Ok(true);
            }
            '{' => match repeat::counted(self.rest)? {
                Some((bounds, after)) => {
                    self.repeat(bounds, after, last)?;
                    return Ok(true);
                }
                None => self.literal('{' as u32, after),
            },
            '\\' => self.escaped(after)?,
            _ => self.literal(first as u32, after),
        }
        Ok(false)
    }

    fn push(&mut self, text: impl Into<String>, rest: &'p str) {
        self.open.items.push(Item { text: text.into(), copies: 1 });
        self.rest = rest;
    }

    fn literal(&mut self, rune: u32, rest: &'p str) {
        self.push(class::one(rune, self.flags), rest);
    }

    fn enter(&mut self, opening: &'static str, restored: Flags) {
        let around = std::mem::replace(&mut self.open, Open::new(opening, restored));
        self.around.push(around);
    }

    fn leave(&mut self) -> Result<(), SyntaxError> {
        let around = self.around.pop().ok_or_else(|| SyntaxError::new(UNEXPECTED_PAREN, self.pattern))?;
        let mut group = std::mem::replace(&mut self.open, around);
        group.end_alternative();
        let text = format!("{}{})", group.opening, group.alternatives);
        self.open.items.push(Item { text, copies: group.copies });
        self.flags = group.flags;
        Ok(())
    }

    /// Repeats the last item, whatever stands between it and the operator: `a(?i)*` is `a*`.
    fn repeat(&mut self, bounds: Bounds, after: &'p str, last: Option<&str>) -> Result<(), SyntaxError> {
        let before = self.rest;
        let (lazy, after) = match after.strip_prefix('?') {
            Some(after) => (!self.flags.swap_greed, after),
            None => (self.flags.swap_greed, after),
        };
        if let Some(last) = last {
            return Err(SyntaxError::between(NESTED_REPETITION, last, after));
        }
        let Some(item) = self.open.items.last_mut() else {
            return Err(SyntaxError::between(MISSING_REPEAT_ARGUMENT, before, after));
        };
        item.copies = bounds.copies(item.copies, before, after)?;
        item.text = format!("(?:{}){bounds}{}", item.text, if lazy { "?" } else { "" });
        self.rest = after;
        Ok(())
    }

    /// `after` is behind the backslash.
    fn escaped(&mut self, after: &'p str) -> Result<(), SyntaxError> {
        if let Some(quoted) = after.strip_prefix('Q') {
            let (literal, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            for character in literal.chars() {
                self.literal(character as u32, rest);
            }
            self.rest = rest;
            return Ok(());
        }
        let look = match after.chars().next() {
            Some('A') => r"\A",
            Some('z') => r"\z",
            Some('b') => r"(?-u:\b)",
            Some('B') => r"(?-u:\B)",
            Some('C') => return Err(SyntaxError::new(INVALID_ESCAPE, r"\C")),
            _ => {
                if let Some((class, rest)) = unicode::class(self.rest)? {
                    self.push(class::bracket(&class, false, self.flags), rest);
                } else if let Some((class, rest)) = escape::perl_class(self.rest) {
                    self.push(class::bracket(class, false, self.flags), rest);
                } else {
                    let (rune, rest) = escape::rune(self.rest)?;
                    self.literal(rune, rest);
                }
                return Ok(());
            }
        };
        self.push(look, after.get(1..).unwrap_or_default());
        Ok(())
    }

    /// `(?P<name>`, `(?flags)` or `(?flags:`; `after` is behind the parenthesis.
    fn flags_or_group(&mut self, after: &'p str) -> Result<(), SyntaxError> {
        let named = after.strip_prefix("?P<").filter(|name| !name.is_empty());
        if let Some(named) = named {
            let Some((name, rest)) = named.split_once('>') else {
                return Err(SyntaxError::new(INVALID_NAMED_CAPTURE, self.rest));
            };
            if name.is_empty() || !name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric()) {
                return Err(SyntaxError::between(INVALID_NAMED_CAPTURE, self.rest, rest));
            }
            self.names.push(name.to_owned());
            self.enter("(", self.flags);
            self.rest = rest;
            return Ok(());
        }
        let (flags, opens, rest) = self.read_flags(after.strip_prefix('?').unwrap_or(after))?;
        if opens {
            self.enter("(?:", self.flags);
        }
        self.flags = flags;
        self.rest = rest;
        Ok(())
    }

    /// The flags, whether a group begins, and what follows.
    fn read_flags(&self, mut text: &'p str) -> Result<(Flags, bool, &'p str), SyntaxError> {
        let mut flags = self.flags;
        let mut set = true;
        // Whether there was a flag since the last sign.
        let mut any = false;
        while let Some(letter) = text.chars().next() {
            text = text.strip_prefix(letter).unwrap_or_default();
            match letter {
                'i' => flags.fold_case = set,
                'm' => flags.multi_line = set,
                's' => flags.dot_is_any = set,
                'U' => flags.swap_greed = set,
                '-' if set => {
                    set = false;
                    any = false;
                    continue;
                }
                ':' | ')' if set || any => return Ok((flags, letter == ':', text)),
                _ => break,
            }
            any = true;
        }
        Err(SyntaxError::between(INVALID_PERL_SYNTAX, self.rest, text))
    }
}
