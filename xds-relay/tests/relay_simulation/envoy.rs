//! What a client says that is like Envoy: the requests of a real client machine, put in Envoy's words.
//!
//! Envoy writes names as its user wrote them, and of what it holds it does not tell the members of globs (rule 100).

use std::collections::BTreeSet;

use xdstp_uri::ResourceName;

use crate::messages::Request;

/// A name as the user wrote it: the same one in another spelling, if it has one.
pub(crate) fn spelled(name: &str) -> String {
    let name = name.replace("?k=1&l=2", "?l=2&k=1");
    match name.strip_prefix("xdstp://").and_then(|_| name.split_once("d/1")) {
        Some((before, after)) => format!("{before}d/%31{after}"),
        None => name,
    }
}

/// Puts a request in Envoy's words.
pub(crate) fn reword(request: &mut Request) {
    let parsed = |name: &String| name.parse::<ResourceName>().unwrap();
    let asked: BTreeSet<_> = request.names.iter().map(parsed).collect();
    // All it wants stands in the first request, which is the one that says what it holds.
    request.initial.retain(|(name, _)| {
        let name = parsed(name);
        asked.contains(&name) || !name.glob_parent().is_some_and(|glob| asked.contains(&glob))
    });
    for (name, _) in request.initial.iter_mut().filter(|(name, _)| asked.contains(&parsed(name))) {
        *name = spelled(name);
    }
    for name in request.names.iter_mut().chain(&mut request.unsubscribe) {
        *name = spelled(name);
    }
}
