use core::fmt;

use crate::{ConstraintError, ErrorKind};

/// Integers from a minimum to a maximum, both included.
///
/// ```
/// use xds_matcher::IntRange;
///
/// let shards = IntRange::new(4, 6).unwrap();
/// assert!(shards.contains(6) && !shards.contains(7));
/// assert_eq!(shards.to_string(), "4..6");
/// assert_eq!(IntRange::at_least(3).to_string(), "3..");
/// assert_eq!(IntRange::exactly(0).to_string(), "0");
/// assert!(IntRange::new(6, 4).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntRange {
    min: u64,
    max: u64,
}

impl IntRange {
    /// `min..=max`.
    ///
    /// # Errors
    /// [`ErrorKind::BadRange`] if `min` is above `max`.
    pub fn new(min: u64, max: u64) -> Result<Self, ConstraintError> {
        if min > max { Err(ConstraintError::new(ErrorKind::BadRange)) } else { Ok(Self { min, max }) }
    }

    /// Every integer from `min` on.
    #[must_use]
    pub const fn at_least(min: u64) -> Self {
        Self { min, max: u64::MAX }
    }

    /// Every integer up to `max`.
    #[must_use]
    pub const fn at_most(max: u64) -> Self {
        Self { min: 0, max }
    }

    /// One integer.
    #[must_use]
    pub const fn exactly(value: u64) -> Self {
        Self { min: value, max: value }
    }

    /// The smallest integer of the range.
    #[must_use]
    pub const fn start(self) -> u64 {
        self.min
    }

    /// The largest integer of the range; `u64::MAX` if it has no upper bound.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.max
    }

    pub(crate) fn extended_to(self, max: u64) -> Self {
        Self { min: self.min, max: core::cmp::max(self.max, max) }
    }

    /// Whether `value` lies in the range.
    #[must_use]
    pub const fn contains(self, value: u64) -> bool {
        self.min <= value && value <= self.max
    }
}

impl fmt::Display for IntRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, u64::MAX) => write!(f, "{min}.."),
            (min, max) if min == max => write!(f, "{min}"),
            (min, max) => write!(f, "{min}..{max}"),
        }
    }
}

/// The integer a parameter value spells: ASCII digits only, any number of leading zeros, at most `u64::MAX`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    const ZEROS: &str = "0000000000000000";
    let mut digits = text;
    // Many zeros are skipped some at once. What has another digit among so many first ones is larger than any integer.
    while digits.len() > ZEROS.len() + "18446744073709551615".len() {
        digits = digits.strip_prefix(ZEROS)?;
    }
    // `u64::from_str` alone would also take a leading `+`.
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

/// Whether a parameter value is an integer in one of the ranges.
pub(crate) fn holds_integer(ranges: &[IntRange], text: &str) -> bool {
    integer(text).is_some_and(|value| ranges.iter().any(|range| range.contains(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_ascii_digits_that_fit_u64() {
        assert_eq!(integer("007"), Some(7));
        assert_eq!(integer("18446744073709551615"), Some(u64::MAX));
        for zeros in 0..100 {
            let zeros = "0".repeat(zeros);
            assert_eq!(integer(&[&zeros, "18446744073709551615"].concat()), Some(u64::MAX));
            assert_eq!(integer(&[&zeros, "0"].concat()), Some(0));
            assert_eq!(integer(&[&zeros, "18446744073709551616"].concat()), None);
            assert_eq!(integer(&["1", &zeros, "00000000000000000000"].concat()), None);
            assert_eq!(integer(&["+", &zeros].concat()), None);
        }
        for text in ["", "+1", "-0", " 1", "1.0", "0x1", "18446744073709551616", "\u{661}"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}
