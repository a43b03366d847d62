//! Durations as JSON of protobuf has them.

use std::time::Duration;

use super::error::Wrong;
use super::json::Json;

/// Seconds, with up to nine digits behind the point, and an `s`: more than none.
pub(super) fn read(json: &Json<'_>) -> Result<Duration, Wrong> {
    let text = json.string()?;
    let wrong = || json.wrong(format_args!("{text:?} is no duration of more than 0s; expected one such as \"600s\""));
    let number = text.strip_suffix('s').ok_or_else(wrong)?;
    let (seconds, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
    let nanos: u32 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    // What protobuf's Duration holds: ten thousand years.
    const LONGEST: u64 = 315_576_000_000;
    let duration = Duration::new(seconds, nanos);
    if duration.is_zero() || seconds > LONGEST { Err(wrong()) } else { Ok(duration) }
}
