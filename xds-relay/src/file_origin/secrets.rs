//! What is wrong with a secret is said without the secret: errors go to logs and terminals.

use crate::yaml::{Error, Node};

/// Parts of field names, without underscores, whose values are secret or may be: those of Envoy's types that are
/// annotated as sensitive, and where a `DataSource` holds its data.
const SENSITIVE: &[&str] = &[
    "inlinestring",
    "inlinebytes",
    "password",
    "privatekey",
    "secret",
    "sessionticket",
    "token",
    "credential",
    "hmac",
    "jsonkey",
];

const HIDDEN: &str = "not a value of this field; what is written is not shown, because it may be secret";

/// What is wrong with the text of a file, where not even the types are known: what YAML takes for a tag may be a
/// password that begins with `!`.
pub(super) fn hide_in_syntax(error: Error) -> Error {
    if error.reason.starts_with("tag ") {
        let reason = "tags are not supported; a text that begins with `!` is written in quotes".to_owned();
        return Error { reason, ..error };
    }
    hide(error)
}

/// The error without what it quotes, where that may be a secret: the place is enough to mend it.
fn hide(error: Error) -> Error {
    if is_sensitive(&error.path) { hidden(error) } else { error }
}

/// The same for what is wrong with a message, `body`: all of a `Secret` is secret.
pub(super) fn hide_in(error: Error, body: &Node) -> Error {
    let type_url = body.entry("@type").and_then(|node| node.text().ok()).unwrap_or_default();
    if type_url.ends_with(".Secret") { hidden(error) } else { hide(error) }
}

/// Whether a field is one whose value is secret or may be, by its name or its path.
pub(super) fn is_sensitive(path: &str) -> bool {
    let path = path.replace(['_', '-'], "").to_ascii_lowercase();
    SENSITIVE.iter().any(|part| path.contains(part))
}

fn hidden(error: Error) -> Error {
    Error { reason: HIDDEN.to_owned(), ..error }
}
