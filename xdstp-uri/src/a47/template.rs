//! Templates of listener names.

use alloc::{
    format,
    string::{String, ToString},
};
use core::fmt;

use crate::percent::{self, Encoded, Set};

const PLACEHOLDER: &str = "%s";

/// Escapes what the path of a name may not show, as A47 asks for values that are put into `xdstp:` templates.
///
/// # Examples
/// ```
/// use xdstp_uri::a47::percent_encode_path;
///
/// assert_eq!(percent_encode_path("[::1]:8080"), "%5B::1%5D:8080");
/// ```
#[must_use]
pub fn percent_encode_path(text: &str) -> String {
    Encoded(text, Set::PATH).to_string()
}

/// Puts `value` in place of every `%s` of a template: percent-encoded if the template starts with `xdstp:`, else as it is.
///
/// One pass: a `%s` in the value stays.
///
/// # Examples
/// ```
/// use xdstp_uri::a47::expand_template;
///
/// assert_eq!(expand_template("xdstp://a/T/%s?id=%s", "x y"), "xdstp://a/T/x%20y?id=x%20y");
/// assert_eq!(expand_template("listener/%s", "%s y"), "listener/%s y");
/// ```
#[must_use]
pub fn expand_template(template: &str, value: &str) -> String {
    if template.starts_with("xdstp:") {
        template.replace(PLACEHOLDER, &percent_encode_path(value))
    } else {
        template.replace(PLACEHOLDER, value)
    }
}

/// The template of an authority whose entry in the bootstrap has none.
///
/// # Examples
/// ```
/// use xdstp_uri::a47::default_template;
///
/// assert_eq!(default_template("#.com"), "xdstp://%23.com/envoy.config.listener.v3.Listener/%s");
/// ```
#[must_use]
pub fn default_template(authority: &str) -> String {
    format!("xdstp://{}/envoy.config.listener.v3.Listener/{PLACEHOLDER}", Encoded(authority, Set::AUTHORITY))
}

/// Checks that the template in an authority's entry starts with `xdstp://<authority>/`.
///
/// Authorities are compared decoded, and the slash counts: a template for `a.com.evil` is none for `a.com`.
///
/// # Errors
/// The template starts otherwise.
///
/// # Examples
/// ```
/// use xdstp_uri::a47::check_template_prefix;
///
/// assert!(check_template_prefix("a.com", "xdstp://a.com/T/%s").is_ok());
/// assert!(check_template_prefix("a.com", "xdstp://a.com.evil/T/%s").is_err());
/// ```
pub fn check_template_prefix(authority: &str, template: &str) -> Result<(), TemplatePrefixError> {
    let rest = template.strip_prefix("xdstp://").unwrap_or_default();
    // The name of the authority may be written as it is, whatever characters it has, or percent-encoded.
    let raw = rest.strip_prefix(authority).is_some_and(|path| path.starts_with('/'));
    let encoded = rest.split_once('/').is_some_and(|(host, _)| percent::decoded(host.as_bytes()).eq(authority.bytes()));
    if template.starts_with("xdstp://") && (raw || encoded) {
        return Ok(());
    }
    Err(TemplatePrefixError { authority: authority.to_string(), template: template.to_string() })
}

/// The template of an authority is not for names of this authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePrefixError {
    authority: String,
    template: String,
}

impl fmt::Display for TemplatePrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = Encoded(&self.authority, Set::AUTHORITY);
        write!(f, "expected the template {:?} to start with \"xdstp://{authority}/\"", self.template)
    }
}

impl core::error::Error for TemplatePrefixError {}
