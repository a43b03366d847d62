//! Durations as Go's `time.ParseDuration` reads them.

use std::time::Duration;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
];

/// Such as `5m`, `1h30m` or `1.5s`; `None` for what is none, or is negative, or longer than Go can say.
pub(super) fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" || rest == "-0" {
        return Some(Duration::ZERO);
    }
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
        let (number, after) = rest.split_at_checked(number)?;
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit)?;
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        nanos = nanos.checked_add(part(number, *unit)?).filter(|nanos| i64::try_from(*nanos).is_ok())?;
        rest = after;
    }
    (!text.is_empty() && text != "+").then(|| Duration::from_nanos(nanos))
}

/// So many units, in nanoseconds; what is less than one is cut off.
fn part(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Of an hour, what is beyond 13 digits is no nanosecond.
    let fraction = fraction.get(..fraction.len().min(13))?;
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let rest = u128::from(fraction) * u128::from(unit) / u128::from(scale);
    whole.checked_mul(unit)?.checked_add(u64::try_from(rest).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, nanos) in [
            ("0", 0),
            ("5m", 300_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("2.s", 2_000_000_000),
            ("+3ms", 3_000_000),
            ("1µs2ns", 1002),
            ("0.0000000001s", 0),
            ("0.33333333333333333333h", 1_199_999_999_999),
        ] {
            assert_eq!(go_duration(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "+", "5", "-5s", "m", ".s", "1..5s", "1 s", "1d", "9999999h", "99999999999999999999s", "5m1"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }
}
