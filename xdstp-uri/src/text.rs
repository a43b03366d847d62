//! The text behind a name, borrowed or shared, and what can be read from it whatever kind of name it is.

use alloc::{borrow::Cow, string::String, sync::Arc};
use core::ops::Deref;

use crate::{
    canonical,
    error::ParseError,
    grammar::{Layout, Span},
    percent,
};

/// Borrowed as it was written, or owned and canonical.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl<'a> Text<'a> {
    pub(crate) fn shared(&self) -> Arc<str> {
        match self {
            Self::Borrowed(text) => Arc::from(*text),
            Self::Shared(text) => Arc::clone(text),
        }
    }

    /// What `part` reads in the text, for as long as a borrowed text lives; of a shared one, a copy.
    #[inline]
    pub(crate) fn read(&self, part: impl for<'t> FnOnce(&'t str) -> Cow<'t, str>) -> Cow<'a, str> {
        match self {
            Self::Borrowed(text) => part(text),
            Self::Shared(text) => Cow::Owned(part(text).into_owned()),
        }
    }
}

/// A text and where its components are.
#[derive(Clone, Debug)]
pub(crate) struct Parsed<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) layout: Layout,
}

impl<'a> Parsed<'a> {
    /// The result of a parser of the grammar, if its canonical form is not too long.
    #[inline]
    pub(crate) fn new(text: &'a str, layout: Layout) -> Result<Self, ParseError> {
        canonical::check_len(text, &layout)?;
        Ok(Self { text: Text::Borrowed(text), layout })
    }
}

impl<'a> Parsed<'a> {
    /// A component, decoded.
    pub(crate) fn component(&self, span: Span) -> Cow<'a, str> {
        self.text.read(|text| percent::decode(span.of(text)))
    }

    pub(crate) fn is_glob(&self) -> bool {
        is_glob(&self.text, &self.layout)
    }

    pub(crate) fn borrowed(&self) -> Parsed<'_> {
        Parsed { text: Text::Borrowed(&self.text), layout: self.layout }
    }

    pub(crate) fn to_canonical(&self) -> Cow<'a, str> {
        self.text.read(|text| canonical_form(text, &self.layout))
    }

    /// The canonical text, shared, with the layout that `parser` finds in it.
    pub(crate) fn into_owned(self, parser: impl FnOnce(&str) -> Result<Layout, ParseError>) -> Parsed<'static> {
        let text = if self.layout.canonical { self.text.shared() } else { Arc::from(self.to_canonical()) };
        // A canonical form parses: its length has been checked.
        let layout = if self.layout.canonical { self.layout } else { parser(&text).unwrap_or(self.layout) };
        Parsed { text: Text::Shared(text), layout }
    }
}

fn canonical_form<'t>(text: &'t str, layout: &Layout) -> Cow<'t, str> {
    if layout.canonical {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 2);
    // Writing to a string does not fail.
    let _ = canonical::write(&mut out, text, layout);
    Cow::Owned(out)
}

/// The id, decoded, is `*` or ends in `/*`.
pub(crate) fn is_glob(text: &str, layout: &Layout) -> bool {
    let id = layout.id.of(text).as_bytes();
    let ([directory @ .., b'*'] | [directory @ .., b'%', b'2', b'A' | b'a']) = id else {
        return false;
    };
    matches!(directory, [] | [.., b'/'] | [.., b'%', b'2', b'F' | b'f'])
}

/// Equality, hash and display by the canonical form, which stands for the components; the order is that of its bytes.
macro_rules! by_canonical_form {
    ($type:ident) => {
        impl PartialEq for $type<'_> {
            fn eq(&self, other: &Self) -> bool {
                self.borrowed().to_canonical() == other.borrowed().to_canonical()
            }
        }

        impl Eq for $type<'_> {}

        impl PartialOrd for $type<'_> {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type<'_> {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.borrowed().to_canonical().cmp(&other.borrowed().to_canonical())
            }
        }

        impl core::hash::Hash for $type<'_> {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                self.borrowed().to_canonical().hash(state);
            }
        }

        impl core::fmt::Display for $type<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(&self.borrowed().to_canonical())
            }
        }

        impl core::fmt::Debug for $type<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&*self.borrowed().to_canonical(), f)
            }
        }

        impl core::str::FromStr for $type<'static> {
            type Err = crate::ParseError;

            /// Parses into the owned, canonical form.
            fn from_str(text: &str) -> Result<Self, crate::ParseError> {
                $type::parse(text).map($type::into_owned)
            }
        }

        impl<'a> TryFrom<&'a str> for $type<'a> {
            type Error = crate::ParseError;

            fn try_from(text: &'a str) -> Result<Self, crate::ParseError> {
                Self::parse(text)
            }
        }
    };
}

pub(crate) use by_canonical_form;
