//! The canonical form of a locator, written from its text and layout.

use core::{cmp::Ordering, fmt};

use alloc::string::String;
use smallvec::SmallVec;

use crate::{
    error::{ParseError, ParseErrorKind},
    grammar::{self, DirectiveName, Layout, MAX_LEN, Scheme},
    percent::{self, Set},
};

/// No byte of a text becomes more than `3 + 2 * MAX_ALT_DEPTH` bytes (a byte of the innermost `alt`, whose escape is
/// escaped once a level) and no piece gains more than three, so a shorter text cannot outgrow [`MAX_LEN`].
const CANNOT_OUTGROW: usize = MAX_LEN / 32;

/// Most names have few parameters; more go to the heap.
pub(crate) type Pairs<'a> = SmallVec<[(&'a str, &'a str); 8]>;

/// Context parameters, still encoded, in canonical order: sorted by decoded key, of equal keys the last one.
pub(crate) fn sorted_pairs(params: &str) -> Pairs<'_> {
    let mut pairs: Pairs<'_> = grammar::pairs(params).collect();
    let ascending = pairs.is_sorted_by(|a, b| compare_keys(a, b) == Ordering::Less);
    if !ascending {
        // The sort is stable, so the last of equal keys stays last.
        pairs.sort_by(compare_keys);
        pairs.reverse();
        pairs.dedup_by(|a, b| compare_keys(a, b) == Ordering::Equal);
        pairs.reverse();
    }
    pairs
}

pub(crate) fn write_params(out: &mut impl fmt::Write, params: &str) -> fmt::Result {
    for (index, (key, value)) in sorted_pairs(params).into_iter().enumerate() {
        out.write_str(if index == 0 { "" } else { "&" })?;
        percent::recode(out, key, Set::PARAM)?;
        out.write_char('=')?;
        percent::recode(out, value, Set::PARAM)?;
    }
    Ok(())
}

/// Writes everything but the fragment.
pub(crate) fn write_base(out: &mut impl fmt::Write, text: &str, layout: &Layout) -> fmt::Result {
    out.write_str(match layout.scheme {
        Scheme::Xdstp => "xdstp://",
        Scheme::Http => "http://",
        Scheme::File => "file:///",
    })?;
    let id = layout.id.of(text);
    if layout.scheme == Scheme::File {
        return percent::recode(out, id, Set::PATH);
    }
    percent::recode(out, layout.authority.of(text), Set::AUTHORITY)?;
    out.write_char('/')?;
    percent::recode(out, layout.resource_type.of(text), Set::RESOURCE_TYPE)?;
    if !id.is_empty() {
        out.write_char('/')?;
        percent::recode(out, id, Set::PATH)?;
    }
    let params = layout.params.of(text);
    if params.bytes().any(|byte| byte != b'&') {
        out.write_char('?')?;
        write_params(out, params)?;
    }
    Ok(())
}

/// Writes the whole locator.
pub(crate) fn write(out: &mut impl fmt::Write, text: &str, layout: &Layout) -> fmt::Result {
    if layout.canonical {
        return out.write_str(text);
    }
    write_base(out, text, layout)?;
    let Some(fragment) = layout.fragment else { return Ok(()) };
    for (index, (name, value)) in grammar::pieces(fragment.of(text)).enumerate() {
        out.write_char(if index == 0 { '#' } else { ',' })?;
        write_directive(out, name, value)?;
    }
    Ok(())
}

/// Writes one directive whose encoded value has been parsed before.
pub(crate) fn write_directive(out: &mut impl fmt::Write, name: DirectiveName, value: &str) -> fmt::Result {
    match name {
        DirectiveName::Entry => {
            out.write_str("entry=")?;
            percent::recode(out, value, Set::DIRECTIVE)
        }
        DirectiveName::Alt => {
            out.write_str("alt=")?;
            let decoded = percent::decode(value);
            let layout = grammar::locator(&decoded, 0).map_err(|_| fmt::Error)?;
            if layout.canonical {
                return percent::encode(out, &decoded, Set::DIRECTIVE);
            }
            let mut inner = String::with_capacity(decoded.len());
            write(&mut inner, &decoded, &layout)?;
            percent::encode(out, &inner, Set::DIRECTIVE)
        }
    }
}

/// Refuses a text whose canonical form would be too long to be parsed again.
#[inline]
pub(crate) fn check_len(text: &str, layout: &Layout) -> Result<(), ParseError> {
    if layout.canonical || text.len() <= CANNOT_OUTGROW {
        return Ok(());
    }
    check_written_len(text, |counter| write(counter, text, layout))
}

/// The same for what `write` writes of `text`.
#[cold]
pub(crate) fn check_written_len(text: &str, write: impl FnOnce(&mut Counter) -> fmt::Result) -> Result<(), ParseError> {
    if text.len() <= CANNOT_OUTGROW {
        return Ok(());
    }
    let mut counter = Counter(0);
    // A counter takes everything.
    let _ = write(&mut counter);
    if counter.0 > MAX_LEN { Err(ParseError::new(ParseErrorKind::TooLong, text.len())) } else { Ok(()) }
}

/// Counts bytes.
pub(crate) struct Counter(usize);

impl fmt::Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn compare_keys(a: &(&str, &str), b: &(&str, &str)) -> Ordering {
    percent::compare(a.0.as_bytes(), b.0.as_bytes())
}
