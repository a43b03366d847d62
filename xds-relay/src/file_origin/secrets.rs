//! What is wrong with a secret is said without the secret: errors go to logs and terminals.

use std::collections::HashSet;

use crate::yaml::{Content, Error, Node};

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

const HIDDEN_VARIABLE: &str = "a variable in it is not in the environment, or is not written as ${NAME} or ${NAME:-default}; what is \
                               written is not shown, because it may be secret";

/// What is wrong with what stands for variables in the values of a document.
pub(super) fn hide_in_values(errors: Vec<Error>, root: &Node) -> Vec<Error> {
    let mut secret = HashSet::new();
    note_secret(root, false, &mut secret);
    let hide = |error: Error| {
        let is_secret = error.position.is_none_or(|at| secret.contains(&(at.line, at.column)));
        if is_secret || is_sensitive(&error.path) {
            return Error { reason: HIDDEN_VARIABLE.to_owned(), ..error };
        }
        error
    };
    errors.into_iter().map(hide).collect()
}

/// Notes the places of all that is in a `Secret`, and in what may be one, because its type is not known yet.
fn note_secret(node: &Node, is_within: bool, found: &mut HashSet<(usize, usize)>) {
    match &node.content {
        Content::Plain(_) | Content::Text(_) if is_within => {
            found.insert((node.position.line, node.position.column));
        }
        Content::Plain(_) | Content::Text(_) => {}
        Content::Sequence(items) => items.iter().for_each(|item| note_secret(item, is_within, found)),
        Content::Mapping(entries) => {
            let type_url = node.entry("@type").and_then(|node| node.text().ok()).unwrap_or_default();
            let is_within = is_within || type_url.contains("${") || xds_transport::is_secret(type_url);
            let of_type = |key: &str| key == "@type" && !xds_transport::is_secret(type_url);
            for (key, value) in entries {
                note_secret(value, is_within && !of_type(&key.text), found);
            }
        }
    }
}

/// Whether the error says nothing of what is written.
pub(super) fn is_hidden(error: &Error) -> bool {
    error.reason == HIDDEN
}

/// Whether a field is one whose value is secret or may be, by its name or its path.
pub(super) fn is_sensitive(path: &str) -> bool {
    let path = path.replace(['_', '-'], "").to_ascii_lowercase();
    SENSITIVE.iter().any(|part| path.contains(part))
}

fn hidden(error: Error) -> Error {
    Error { reason: HIDDEN.to_owned(), ..error }
}
