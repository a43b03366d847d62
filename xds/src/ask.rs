//! What is asked, of whom, and what comes of it: shared by the commands that speak to servers.

mod attribute;
mod covered;
mod documents;
mod event;
mod identity;
mod key_value;
mod news;
mod progress;
mod secure;
mod servers;
mod types;
mod wanted;

pub(crate) use self::covered::Held;
pub(crate) use self::event::{Event, Failure, Kind, What};
pub(crate) use self::identity::{DialectName, Identity};
pub(crate) use self::news::{Until, listen};
pub(crate) use self::progress::{Progress, Verdict};
pub(crate) use self::secure::Args as Secure;
pub(crate) use self::servers::{Servers, Where};
pub(crate) use self::types::{help as type_help, type_url};
pub(crate) use self::wanted::Wanted;

use std::time::Duration;

/// Seconds, such as `20` or `0.5`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds, such as 20 or 0.5".to_owned())
}
