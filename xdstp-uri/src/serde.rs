//! `serde`: every type as its canonical text.

use core::{fmt, marker::PhantomData, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

use crate::{ContextParams, Directive, Locator, ParseError, ResourceName, Urn};

macro_rules! as_text {
    ($owned:ty, $any:ty) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl Serialize for $any {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<'de> Deserialize<'de> for $owned {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(PhantomData))
            }
        }
    };
}

as_text!(ResourceName, ResourceName);
as_text!(Urn<'static>, Urn<'_>);
as_text!(Locator<'static>, Locator<'_>);
as_text!(ContextParams<'static>, ContextParams<'_>);
as_text!(Directive<'static>, Directive<'_>);

struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err = ParseError>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error: ParseError| E::custom(format_args!("{text:?}: {error}")))
    }
}
