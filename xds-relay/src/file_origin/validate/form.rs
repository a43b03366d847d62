//! Well-known forms of texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Email,
    Hostname,
    Ip,
    Ipv4,
    Ipv6,
    Uri,
    UriRef,
    /// A host's name or an IP address.
    Address,
    Uuid,
    HeaderName,
    HeaderValue,
    /// A header's name or value where the rule is not strict.
    Header,
}

const MOST_OF_HOSTNAME: usize = 253;
const MOST_OF_LABEL: usize = 63;
const MOST_OF_EMAIL: usize = 254;
const MOST_OF_LOCAL_PART: usize = 64;

impl Form {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Hostname => "a host name",
            Self::Ip => "an IP address",
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
            Self::Uri => "a URI with a scheme",
            Self::UriRef => "a URI, or a reference that is relative to one",
            Self::Address => "a host name or an IP address",
            Self::Uuid => "a UUID",
            Self::HeaderName => "the name of an HTTP header",
            Self::HeaderValue => "the value of an HTTP header, without control characters",
            Self::Header => "no NUL and no end of a line",
        }
    }

    pub(super) fn has(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ip => text.parse::<IpAddr>().is_ok(),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uri => scheme_end(text).is_some_and(|end| is_of_uri(text) && end + 1 < text.len()),
            Self::UriRef => is_of_uri(text) && (scheme_end(text).is_some() || !begins_with_colon_in_segment(text)),
            Self::Address => is_hostname(text) || text.parse::<IpAddr>().is_ok(),
            Self::Uuid => is_uuid(text),
            Self::HeaderName => is_header_name(text),
            Self::HeaderValue => !text.contains(|c: char| (c.is_ascii_control() && c != '\t') || c == '\u{7f}'),
            Self::Header => !text.contains(['\0', '\n', '\r']),
        }
    }

    /// Whether what has this form is often secret.
    pub(super) fn may_be_secret(self) -> bool {
        matches!(self, Self::HeaderValue | Self::Header)
    }
}

fn is_hostname(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=MOST_OF_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.len() <= MOST_OF_HOSTNAME && name.split('.').all(is_label)
}

/// An address alone: names, brackets and comments around it are not taken.
fn is_email(text: &str) -> bool {
    let Some((local, host)) = text.rsplit_once('@') else { return false };
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    text.len() <= MOST_OF_EMAIL
        && (1..=MOST_OF_LOCAL_PART).contains(&local.len())
        && local.bytes().all(is_local)
        && is_hostname(host)
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_header_name(text: &str) -> bool {
    let name = text.strip_prefix(':').unwrap_or(text);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+,-.^_|~`".contains(&byte))
}

/// Where the scheme of a URI ends, before the colon.
fn scheme_end(text: &str) -> Option<usize> {
    let end = text.find(':')?;
    let scheme = text.get(..end)?;
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_of_scheme)).then_some(end)
}

/// No blanks, no control characters, and what is escaped is escaped well.
fn is_of_uri(text: &str) -> bool {
    let mut escapes = text.split('%');
    let first = escapes.next().unwrap_or_default();
    let is_escaped = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    !first.contains(is_blank) && escapes.all(|rest| is_escaped(rest) && !rest.contains(is_blank))
}

fn is_blank(c: char) -> bool {
    c == ' ' || c.is_control()
}

/// That would be taken for a scheme.
fn begins_with_colon_in_segment(text: &str) -> bool {
    text.split(['/', '?', '#']).next().is_some_and(|segment| segment.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_form_has_it_and_what_has_not_has_not() {
        let long = format!("{}.example", "a".repeat(64));
        let longer = ["abcdefg."; 32].concat();
        for (form, good, bad) in [
            (Form::Email, &["a.b+c@x.example"][..], &["a", "@x", "a@", "a b@x", "a@x..y", "A <a@x>"][..]),
            (Form::Hostname, &["a", "a-1.B.", "1"], &["", ".", "a..b", "-a", "a.b-", "a_b", "ä", &long, &longer]),
            (Form::Ip, &["1.2.3.4", "::1"], &["", "1.2.3", "1.2.3.4:5", "[::1]", "a"]),
            (Form::Ipv4, &["1.2.3.4"], &["::1", "1.2.3.256"]),
            (Form::Ipv6, &["fe80::1", "::ffff:1.2.3.4"], &["1.2.3.4", ":::"]),
            (
                Form::Uri,
                &["http://a/b?c#d", "urn:a", "a:%20"],
                &["", "a", "/a", "1a:b", "a b:c", "a:%2", "a:%zz", "a:"],
            ),
            (Form::UriRef, &["http://a/", "/a", "a/b:c", "", "?a:b"], &["a b", "%", "1a:b", "a\n"]),
            (Form::Address, &["1.2.3.4", "::1", "a.b"], &["", "a_b", "1.2.3.4:5"]),
            (
                Form::Uuid,
                &["01234567-89ab-CDEF-0123-456789abcdef"],
                &["", "0123456789abcdef0123456789abcdef", "01234567-89ab-cdeg-0123-456789abcdef"],
            ),
            (Form::HeaderName, &[":path", "x-a_b", "A!#$%&'*+,-.^|~`"], &["", ":", "a b", "a:b", "a\"", "ä"]),
            (Form::HeaderValue, &["", "a b\tc", "ä"], &["a\n", "\u{7f}", "\u{1}"]),
            (Form::Header, &["", "a b", "\u{1}"], &["a\n", "a\r", "\0"]),
        ] {
            good.iter().for_each(|text| assert!(form.has(text), "{form:?} {text:?}"));
            bad.iter().for_each(|text| assert!(!form.has(text), "{form:?} {text:?}"));
        }
    }
}
