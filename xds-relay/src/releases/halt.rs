//! What must not happen to a candidate.

use std::fmt;
use std::str::FromStr;

use http::Uri;

use crate::releases::stage::Percent;

/// When a candidate halts.
///
/// ```
/// use xds_relay::releases::{Halt, Threshold};
///
/// let mut halt = Halt::default();
/// halt.silent = "2%".parse()?;
/// assert_eq!(halt.rejected, Threshold::Count(1));
/// assert!(halt.silent.is_reached(1, 50) && !halt.silent.is_reached(1, 51) && !halt.silent.is_reached(0, 0));
/// assert!(!halt.lost.is_reached(50, 50));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halt {
    /// How many resources clients refuse, each counted once for each client; as a part, how many of the clients that are served the
    /// candidate refuse any. Those count that had accepted what is stable.
    pub rejected: Threshold,
    /// How many clients say nothing of it within 15 s.
    pub silent: Threshold,
    /// How many of the clients that were served it have gone since, and have not come back.
    pub lost: Threshold,
    /// Who is asked over and over, by HTTP, whether all is well: whatever but 200 halts it. While nothing is said it stays in its stage.
    pub check: Option<Uri>,
}

/// How much is too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Threshold {
    /// Nothing is.
    #[default]
    Never,
    /// As many.
    Count(usize),
    /// As many of all whom it could happen to.
    Part(Percent),
}

/// Not a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 1, a percentage above 0 such as 2%, or never")]
pub struct ThresholdError(());

impl Default for Halt {
    /// The first refusal halts it, and nothing else does.
    fn default() -> Self {
        Self { rejected: Threshold::Count(1), silent: Threshold::Never, lost: Threshold::Never, check: None }
    }
}

impl Threshold {
    /// Whether it happened too often, where it could have happened to so many.
    pub fn is_reached(self, count: usize, of: usize) -> bool {
        match self {
            Self::Never => false,
            Self::Count(most) => count > 0 && count >= most,
            Self::Part(part) => count > 0 && part.is_at_most(count, of),
        }
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let threshold = match text {
            "never" => Some(Self::Never),
            _ if is_number => text.parse().ok().map(Self::Count),
            _ if text.ends_with('%') => text.parse().ok().map(Self::Part),
            _ => None,
        };
        let is_some = |threshold: &Self| match threshold {
            Self::Never => true,
            Self::Count(count) => *count > 0,
            Self::Part(part) => !part.is_none(),
        };
        threshold.filter(is_some).ok_or(ThresholdError(()))
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Part(part) => write!(f, "{part}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_read_as_it_is_written() {
        for text in ["never", "1", "12", "2%", "0.25%", "100%"] {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
        for text in ["", "0", "0%", "0.00%", "-1", "+1", "1.5", "101%", "%", "often", "99999999999999999999999"] {
            assert_eq!(text.parse::<Threshold>(), Err(ThresholdError(())), "{text}");
        }
    }

    #[test]
    fn a_part_is_of_all_whom_it_could_happen_to() {
        for (text, count, of, is_reached) in [
            ("2%", 0, 0, false),
            ("2%", 1, 1, true),
            ("2%", 1, 50, true),
            ("2%", 1, 51, false),
            ("2%", 2, 100, true),
            ("2", 0, 5, false),
            ("2", 1, 5, false),
            ("2", 2, 5, true),
            ("2", 3, 5, true),
            ("never", 5, 5, false),
        ] {
            let threshold: Threshold = text.parse().unwrap();
            assert_eq!(threshold.is_reached(count, of), is_reached, "{text}: {count} of {of}");
        }
    }
}
