//! Patterns of resource names.

use std::fmt;

use xdstp_uri::ResourceName;

use super::glob::{Glob, PatternError};

/// A pattern of resource names: of old-style ones by their text, of `xdstp:` names by authority, type and id, whatever their
/// context parameters are. However a name is spelled, it is the same name.
///
/// A glob collection is a name like others: what matches it matches whatever the collection may have.
///
/// ```
/// use xds_relay::config::NamePattern;
///
/// let pattern = NamePattern::parse("xdstp://example.com/*/shop/*")?;
/// assert!(pattern.matches(&"xdstp://example.com/a.v3.Type/%73hop/web?env=prod".parse()?));
/// assert!(!pattern.matches(&"xdstp://example.com/a.v3.Type/bank/web".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    of: Of,
}

#[derive(Clone, PartialEq, Eq)]
enum Of {
    Opaque(Glob),
    Xdstp { authority: Glob, resource_type: Glob, id: Glob },
}

impl NamePattern {
    /// Reads `TEXT`, or `xdstp://AUTHORITY/TYPE/ID`.
    ///
    /// # Errors
    /// It is empty, or an `xdstp:` name that is none, has no id, or says more than a pattern can.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if !text.starts_with("xdstp:") {
            return Ok(Self { text: text.to_owned(), of: Of::Opaque(Glob::parse(text, '/')?) });
        }
        const EXPECTED: &str = "expected xdstp://AUTHORITY/TYPE/ID, without parameters and directives";
        let bad = |words: &str| PatternError(format!("`{text}`: {words}"));
        let rest = text.strip_prefix("xdstp://").filter(|rest| !rest.contains(['?', '#']));
        let parts = rest.and_then(|rest| rest.split_once('/'));
        let parts = parts.and_then(|(authority, rest)| Some((authority, rest.split_once('/')?)));
        let (authority, (resource_type, id)) = parts.ok_or_else(|| bad(EXPECTED))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*');
        if resource_type.is_empty() || !resource_type.chars().all(plain) || id.is_empty() {
            return Err(bad(EXPECTED));
        }
        // Written as the names are that are matched; no type has a star.
        let name =
            ResourceName::parse(&format!("xdstp://{authority}/T/{id}")).map_err(|error| bad(&error.to_string()))?;
        let parts = Parts::of(&name).ok_or_else(|| bad(EXPECTED))?;
        let of = Of::Xdstp {
            authority: Glob::of_part(parts.authority, '.')?,
            resource_type: Glob::of_part(resource_type, '/')?,
            id: Glob::of_part(parts.id, '/')?,
        };
        Ok(Self { text: text.to_owned(), of })
    }

    /// Whether a name is one of these.
    #[must_use]
    pub fn matches(&self, name: &ResourceName) -> bool {
        match (&self.of, Parts::of(name)) {
            (Of::Opaque(glob), None) => glob.matches(name.as_str()),
            (Of::Xdstp { authority, resource_type, id }, Some(parts)) => {
                authority.matches(parts.authority) && resource_type.matches(parts.resource_type) && id.matches(parts.id)
            }
            _ => false,
        }
    }
}

/// The parts of an `xdstp:` name in canonical form, in which what delimits them is escaped within them.
struct Parts<'a> {
    authority: &'a str,
    resource_type: &'a str,
    id: &'a str,
}

impl<'a> Parts<'a> {
    fn of(name: &'a ResourceName) -> Option<Self> {
        let (authority, resource_type) = (name.authority()?, name.resource_type()?);
        let path = name.as_str().split(['?', '#']).next().unwrap_or_default();
        let rest = path.strip_prefix("xdstp://")?.strip_prefix(authority)?.strip_prefix('/')?;
        let id = rest.strip_prefix(resource_type)?;
        Some(Self { authority, resource_type, id: id.strip_prefix('/').unwrap_or(id) })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamePattern::parse(pattern).unwrap().matches(&name.parse().unwrap())
    }

    #[test]
    fn a_pattern_is_of_old_style_names_or_of_others() {
        for (pattern, name) in [
            ("web", "web"),
            ("shop/*", "shop/web"),
            ("**", "a/b"),
            ("xdstp://a/T/x", "xdstp://a/T/x"),
            ("xdstp://a/T/x", "xdstp://a/T/x?k=v&l=w"),
            ("xdstp:///T/x", "xdstp:/T/x"),
            ("xdstp://*.example.com/*/**", "xdstp://a.example.com/b.v3.T/c/d"),
            ("xdstp://a/T/**", "xdstp://a/T"),
            ("xdstp://a/T/x/*", "xdstp://a/T/x/*"),
            ("xdstp://a/T/x/*", "xdstp://a/T/x/*?k=v"),
            ("xdstp://a%2Fb/T/*", "xdstp://a%2fb/T/x"),
            ("xdstp://a/T/x%20y", "xdstp://a/T/x%20y"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("web", "webs"),
            ("shop/*", "shop/a/b"),
            ("**", "xdstp://a/T/x"),
            ("xdstp://**/*/**", "a"),
            ("xdstp://*/T/x", "xdstp://evil%2FT%2Fx/U/y"),
            ("xdstp://*.example.com/T/x", "xdstp://a.b.example.com/T/x"),
            ("xdstp://*.example.com/T/x", "xdstp://evil%2F.example.com.evil/T/x"),
            ("xdstp://a/T/x/*", "xdstp://a/T/x/y/*"),
            ("xdstp://a/T/x/web", "xdstp://a/T/x/*"),
            ("xdstp://a/T/x/w*b", "xdstp://a/T/x/*"),
            ("xdstp://a/T/*/web", "xdstp://a/T/x/*"),
            ("xdstp://a/T/x", "xdstp://a/T/x/"),
            ("xdstp://a/T/x", "xdstp://A/T/x"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        for bad in ["", "xdstp://a", "xdstp://a/T", "xdstp://a/T/x?k=v", "xdstp://a/T/x#entry=y", "xdstp://a/T/***"] {
            assert!(NamePattern::parse(bad).is_err(), "{bad}");
        }
    }

    /// Writes a part with some of its bytes escaped.
    fn spelled(part: &str, escapes: &[(bool, bool)]) -> String {
        let byte = |(byte, (escape, upper)): (u8, &(bool, bool))| match (escape, upper) {
            (true, true) => format!("%{byte:02X}"),
            (true, false) => format!("%{byte:02x}"),
            _ => char::from(byte).to_string(),
        };
        part.bytes().zip(escapes.iter().cycle()).map(byte).collect()
    }

    proptest! {
        #[test]
        fn however_a_name_is_spelled_it_is_decided_alike(
            pattern in "xdstp://[ab.*]{0,3}/[ab*]{1,3}/[ab/*]{1,6}",
            authority in "[ab.]{0,3}", resource_type in "[ab]{1,3}", id in "[ab/*]{0,6}",
            escapes in proptest::collection::vec(any::<(bool, bool)>(), 1..8),
            swap in any::<bool>(),
        ) {
            let Ok(pattern) = NamePattern::parse(&pattern) else { return Ok(()) };
            let plain: Result<ResourceName, _> = format!("xdstp://{authority}/{resource_type}/{id}?a=1&b=2").parse();
            let Ok(plain) = plain else { return Ok(()) };
            let [authority, resource_type, id] =
                [&authority, &resource_type, &id].map(|part| spelled(part, &escapes));
            let params = if swap { "b=2&a=1" } else { "%61=1&b=%32&" };
            let other: ResourceName = format!("xdstp://{authority}/{resource_type}/{id}?{params}").parse().unwrap();
            prop_assert_eq!(&plain, &other);
            prop_assert_eq!(pattern.matches(&plain), pattern.matches(&other));
        }

        #[test]
        fn who_may_ask_for_a_glob_may_ask_for_what_it_has(
            pattern in "xdstp://a/T/[ab/*]{1,6}", parent in "([ab]{1,2}/){0,2}", member in "[ab]{1,3}",
        ) {
            let Ok(pattern) = NamePattern::parse(&pattern) else { return Ok(()) };
            let glob: ResourceName = format!("xdstp://a/T/{parent}*").parse().unwrap();
            let name: ResourceName = format!("xdstp://a/T/{parent}{member}").parse().unwrap();
            prop_assert!(glob.is_glob() && name.answers(&glob));
            prop_assert!(!pattern.matches(&glob) || pattern.matches(&name));
        }
    }
}
