//! A value that is not good, and what there is instead of it.

use std::time::Instant;

use xdstp_client::federation::Held;

use super::name::{name_of, shown_name};

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) why: String,
    /// Since when its key has none that is good.
    pub(super) since: Instant,
}

/// What there is instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instead {
    /// Since when.
    pub(crate) since: Instant,
    /// In words, if there is anything.
    pub(crate) last_good: Option<String>,
}

/// What counts of the value of a key that was good last, in words.
pub(super) fn last_good(counts: &[&Held]) -> Option<String> {
    let (first, others) = counts.split_first()?;
    let and_others = match others.len() {
        0 => String::new(),
        1 => " and another resource".to_owned(),
        count => format!(" and {count} other resources"),
    };
    let (.., resource) = first;
    Some(format!(
        "its last good value counts, with {} in version {}{and_others}",
        shown_name(&name_of(first)),
        resource.version.as_str().escape_debug()
    ))
}
