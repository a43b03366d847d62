//! When something was, for people.

use std::time::SystemTime;

use xds_relay::api::short_time;

/// How long before `now` it was, both in milliseconds since 1970.
pub(super) fn ago(at: u64, now: u64) -> String {
    format!("{} ago", short_time(now.saturating_sub(at) / 1000))
}

/// Since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
