//! How often it is looked whether what is served is what origins have.

use std::time::Duration;

use super::fields::DRIFT_FIELDS;
use super::values::duration;
use crate::yaml::{Error, Node};

/// Drift is looked for without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drift {
    /// Within what time each scope is compared once with what its origin has, where there are not more of them than seconds.
    pub every: Duration,
}

/// More often, and origins would be asked more for this than for anything else.
const SHORTEST: Duration = Duration::from_secs(60);
const EXPECTED: &str = "expected how often each is compared, at least 1m, such as 10m";

impl Drift {
    /// Each scope once in this time.
    pub fn new(every: Duration) -> Self {
        Self { every }
    }

    /// What is wrong with it, if anything: the field, and in which way.
    pub(in crate::config) fn problem(self) -> Option<(&'static str, String)> {
        (self.every < SHORTEST).then(|| ("every", format!("`{:?}`: {EXPECTED}", self.every)))
    }
}

pub(super) fn drift(node: &Node) -> Result<Drift, Error> {
    node.expect_fields(DRIFT_FIELDS)?;
    let drift = Drift::new(node.required_field("every", EXPECTED, duration)?);
    match drift.problem() {
        None => Ok(drift),
        Some((field, problem)) => {
            node.entry(field).unwrap_or(node).refuse(problem).map_err(|error: Error| error.under_key(field))
        }
    }
}
