//! What is logged: a level, or of parts of the program one each.

use std::fmt;
use std::str::FromStr;

use tracing_subscriber::filter::LevelFilter;

/// Those that log something. What is none of them is a slip of the pen, which would silence all else.
const PARTS: [&str; 15] = [
    "audit",
    "axum",
    "h2",
    "hyper",
    "hyper_util",
    "mio",
    "rustls",
    "tokio",
    "tokio_util",
    "tonic",
    "tower",
    "xds_relay",
    "xds_transport",
    "xdstp_cache",
    "xdstp_client",
];

const EXPECTED: &str = "expected off, error, warn, info, debug or trace";

/// What is logged: a level such as `info`, or levels of parts of the program, such as `warn,xds_relay=debug`.
///
/// ```
/// use xds_relay::config::LogFilter;
///
/// assert_eq!("warn,xds_relay=debug".parse::<LogFilter>()?.as_str(), "warn,xds_relay=debug");
/// assert_eq!(LogFilter::default().as_str(), "info");
/// assert!("wran".parse::<LogFilter>().is_err());
/// # Ok::<(), xds_relay::config::LogFilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// What is wrong first with a text that is no [`LogFilter`], and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LogFilterError(String);

impl LogFilter {
    /// As it was written: what `tracing_subscriber::filter::Targets` reads.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LogFilter {
    type Err = LogFilterError;

    fn from_str(text: &str) -> Result<Self, LogFilterError> {
        check(text).map(|()| Self(text.to_owned())).map_err(LogFilterError)
    }
}

fn check(text: &str) -> Result<(), String> {
    let mut at = 1;
    for part in text.split(',') {
        match part.split_once('=') {
            Some((target, level)) => {
                let known = PARTS.contains(&target.split("::").next().unwrap_or_default());
                if !known {
                    let parts = PARTS.join(", ");
                    return Err(format!(
                        "character {at}: {target:?} is no part of the program; expected one of {parts}"
                    ));
                }
                let level_at = at + target.chars().count() + 1;
                level_of(level).ok_or_else(|| wrong(level_at, level, ""))?;
            }
            None => drop(level_of(part).ok_or_else(|| wrong(at, part, ", or TARGET=LEVEL"))?),
        }
        at += part.chars().count() + 1;
    }
    Ok(())
}

fn level_of(text: &str) -> Option<LevelFilter> {
    // Nothing at all would be taken for an error.
    (!text.is_empty()).then(|| text.parse().ok()).flatten()
}

fn wrong(at: usize, found: &str, or: &str) -> String {
    format!("character {at}: {found:?}: {EXPECTED}{or}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_good_is_good_for_targets() {
        for text in ["info", "OFF", "warn,xds_relay=debug", "xds_relay::state=trace,error", "h2=off"] {
            assert_eq!(text.parse::<LogFilter>().unwrap().as_str(), text);
            text.parse::<tracing_subscriber::filter::Targets>().unwrap();
        }
    }

    #[test]
    fn a_slip_is_refused_with_its_place_and_silences_nothing() {
        for (text, start) in [
            ("inof", "character 1: \"inof\": expected off, "),
            ("", "character 1: \"\": expected off, "),
            (
                "info,xds_rely=debug",
                "character 6: \"xds_rely\" is no part of the program; expected one of audit, axum, ",
            ),
            ("info,xds_relay=lots", "character 16: \"lots\": expected off, "),
            ("info,", "character 6: \"\": expected off, "),
            ("xds_relay", "character 1: \"xds_relay\": expected off, "),
        ] {
            let said = check(text).unwrap_err();
            assert!(said.starts_with(start), "{said}");
        }
    }
}
