//! The names of resources.

use xdstp_uri::ResourceName;

/// The form of a name that is served: an `xdstp:` name in canonical form, any other name as it is.
///
/// # Errors
/// Why the name cannot be that of a resource of the given message type.
pub(super) fn canonical(name: &str, message_type: &str) -> Result<String, String> {
    let parsed = ResourceName::parse(name).map_err(|error| format!("`{name}` is no resource name: {error}"))?;
    if parsed.is_glob() {
        return Err(format!("`{name}` stands for many resources, and cannot be the name of one"));
    }
    match parsed.resource_type() {
        Some(named) if named != message_type => {
            Err(format!("`{name}` is the name of a {named}, not of a {message_type}"))
        }
        _ if name.is_empty() || name == "*" => Err(format!("`{name}` cannot be the name of a resource")),
        _ => Ok(parsed.as_str().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn rule_096_an_xdstp_name_is_served_with_its_parameters_sorted() {
        let name = canonical("xdstp://a/x.v3.T/foo/b%61r?z=1&a=2", "x.v3.T");
        assert_eq!(name.as_deref(), Ok("xdstp://a/x.v3.T/foo/bar?a=2&z=1"));
        assert_eq!(canonical("old style?z&a", "x.v3.T").as_deref(), Ok("old style?z&a"));
    }

    #[test]
    fn what_cannot_be_subscribed_to_by_name_is_refused() {
        for name in
            ["", "*", "xdstp://a/x.v3.T/foo/*", "xdstp://a/x.v3.U/foo", "xdstp://a/x.v3.T/foo#entry=b", "xdstp://a"]
        {
            assert!(canonical(name, "x.v3.T").is_err(), "{name:?}");
        }
    }
}
