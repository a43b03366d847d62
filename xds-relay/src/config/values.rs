//! Values that several parts of a configuration have.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::yaml::{self, Error};

/// A day: what is longer is a slip of the unit, and sums of times must not overflow.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Of streams or connections: what is more is a slip.
const LARGEST_COUNT: usize = 1_000_000;

pub(super) fn count(node: &yaml::Node) -> Result<NonZeroUsize, Error> {
    let text = node.text()?;
    let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= LARGEST_COUNT);
    count.map_or_else(|| node.refuse(format!("`{text}`: expected a number from 1 to {LARGEST_COUNT}")), Ok)
}

pub(super) fn duration(node: &yaml::Node) -> Result<Duration, Error> {
    let text = node.text()?;
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) => node.refuse(format!("`{text}`: expected at most 24h")),
        Err(_) => node.refuse(format!("`{text}`: expected a duration, such as 500ms, 30s or 2m")),
    }
}

pub(super) fn flag(node: &yaml::Node) -> Result<bool, Error> {
    match node.text()? {
        "true" => Ok(true),
        "false" => Ok(false),
        other => node.refuse(format!("`{other}`: expected true or false")),
    }
}
