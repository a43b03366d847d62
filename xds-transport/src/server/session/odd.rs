//! Texts that are no names, and locators that are none.

use std::borrow::Cow;
use std::collections::BTreeSet;

use xdstp_cache::ResourceError;
use xdstp_uri::{ParseError, ParseErrorKind, ResourceName};

use crate::server::error::ProtocolError;
use crate::server::source::Source;
use crate::server::weight::weight;
use crate::wire::parameters::LocatorError;

/// `google.rpc.Code.INVALID_ARGUMENT`.
const INVALID_ARGUMENT: i32 = 3;

/// A text of more bytes than this, and than a name may have, is not said back in full.
const LONGEST_TOLD: usize = 128 << 10;
/// What stands for the rest of it. What is cut is still longer than a name may be: it is nobody's name.
const CUT: &str = "[…]";

/// Why a text is no name. Its client is told so, and nothing else of its stream is the worse for it (rule 109).
#[derive(Debug)]
pub(crate) enum NoName {
    /// The text, or the name in canonical form, is longer than the server takes.
    TooLong(ProtocolError),
    Malformed(ParseError),
}

/// The name that a text is, if that is no longer than so many bytes.
pub(crate) fn name_of(text: &str, longest: usize) -> Result<ResourceName, NoName> {
    let too_long = |length| Err(NoName::TooLong(ProtocolError::TooLong { what: "name", length, limit: longest }));
    if text.len() > longest {
        return too_long(text.len());
    }
    match ResourceName::parse(text) {
        Ok(name) if name.as_str().len() > longest => too_long(name.as_str().len()),
        parsed => parsed.map_err(NoName::Malformed),
    }
}

/// What is kept of a text that is no name until its client was told, by which it is told: the text, unless that is far longer than a
/// name may be.
pub(crate) fn kept(text: &str, longest: usize) -> Cow<'_, str> {
    let most = longest.max(LONGEST_TOLD);
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Cow::Owned(text.get(..end).unwrap_or_default().to_owned() + CUT)
}

impl NoName {
    pub(crate) fn is_too_long(&self) -> bool {
        match self {
            Self::TooLong(_) => true,
            Self::Malformed(error) => error.kind() == ParseErrorKind::TooLong,
        }
    }

    /// What the client is told.
    pub(crate) fn to_error(&self, source: &impl Source) -> ResourceError {
        let words = match self {
            Self::TooLong(error) => source.words(error),
            Self::Malformed(error) => error.to_string(),
        };
        ResourceError::new(INVALID_ARGUMENT, words)
    }
}

/// What the client is told of a locator that is none, by the name it has.
///
/// # Errors
/// When it has no name, because it is no message: the stream is over then.
pub(crate) fn no_locator(error: LocatorError) -> Result<(String, ResourceError), ProtocolError> {
    let words = error.to_string();
    match error {
        LocatorError::Malformed(what) => Err(ProtocolError::Malformed(what)),
        LocatorError::Constraints { name, .. } => Ok((name, ResourceError::new(INVALID_ARGUMENT, words))),
    }
}

/// Texts that are no names, of which the client is yet to be told.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    texts: BTreeSet<String>,
    weight: usize,
}

impl Odd {
    /// Whether it is new.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        let new = !self.texts.contains(text);
        if new {
            self.texts.insert(text.to_owned());
            self.weight += weight(text);
        }
        new
    }

    pub(crate) fn remove(&mut self, text: &str) {
        if self.texts.remove(text) {
            self.weight -= weight(text);
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<String> {
        let first = self.texts.pop_first()?;
        self.weight -= weight(&first);
        Some(first)
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        let weight = &mut self.weight;
        self.texts.retain(|text| {
            let stays = stays(text);
            *weight -= if stays { 0 } else { self::weight(text) };
            stays
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// How many names they count for.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_far_too_long_is_cut_and_is_nobodys_name_then() {
        for longest in [1 << 10, LONGEST_TOLD, 2 * LONGEST_TOLD] {
            let most = longest.max(LONGEST_TOLD);
            for of in ["x", "é", "…", "🦀"] {
                let texts = [0, 1, 2, 3].map(|more| "a".repeat(more) + &of.repeat(most));
                for text in texts.iter().filter(|text| text.len() > most) {
                    let cut = kept(text, longest);
                    assert!(cut.len() <= most + CUT.len() && cut.len() > most, "{} of {}", cut.len(), text.len());
                    assert!(name_of(&cut, longest).is_err_and(|reason| reason.is_too_long()));
                }
            }
            let fits = "x".repeat(most);
            assert!(matches!(kept(&fits, longest), Cow::Borrowed(text) if text == fits));
        }
    }

    #[test]
    fn what_is_kept_counts_until_it_is_told_or_left() {
        let mut odd = Odd::default();
        let long = "x".repeat(5000);
        assert!(odd.insert(&long) && !odd.insert(&long) && odd.insert("a") && odd.insert("b"));
        assert_eq!(odd.weight(), 7);
        odd.retain(|text| text != long);
        assert_eq!(odd.weight(), 2);
        odd.remove("a");
        assert_eq!((odd.pop_first().as_deref(), odd.weight(), odd.is_empty()), (Some("b"), 0, true));
    }
}
