//! What `--log` says is logged: a level, or of parts of the program one each.

use tracing_subscriber::filter::{LevelFilter, Targets};

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

/// The filter in a text such as `info` or `warn,xds_relay=debug`.
///
/// # Errors
/// What is wrong first, and where.
pub(crate) fn parse(text: &str) -> Result<Targets, String> {
    let mut filter = Targets::new();
    let mut at = 1;
    for part in text.split(',') {
        filter = match part.split_once('=') {
            Some((target, level)) => {
                let known = PARTS.contains(&target.split("::").next().unwrap_or_default());
                if !known {
                    let parts = PARTS.join(", ");
                    return Err(format!(
                        "character {at}: {target:?} is no part of the program; expected one of {parts}"
                    ));
                }
                let level_at = at + target.chars().count() + 1;
                filter.with_target(target, level_of(level).ok_or_else(|| wrong(level_at, level, ""))?)
            }
            None => filter.with_default(level_of(part).ok_or_else(|| wrong(at, part, ", or TARGET=LEVEL"))?),
        };
        at += part.chars().count() + 1;
    }
    Ok(filter)
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
    fn what_it_says_is_what_targets_say() {
        for text in ["info", "OFF", "warn,xds_relay=debug", "xds_relay::state=trace,error", "h2=off"] {
            let expected: Targets = text.parse().unwrap();
            assert_eq!(parse(text), Ok(expected), "{text}");
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
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(start), "{said}");
        }
    }
}
