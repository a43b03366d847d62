//! The id of a release.

use std::fmt;
use std::str::FromStr;

use crate::hex::hex;

/// How long an id is, in bytes.
const LENGTH: usize = 16;

/// Which release: it follows from what is in it, on every relay alike. Written as 32 hexadecimal digits.
///
/// ```
/// use xds_relay::releases::Release;
///
/// let release: Release = "000102030405060708090a0b0c0d0e0f".parse()?;
/// assert_eq!(release.as_bytes()[15], 15);
/// assert_eq!(release.to_string(), "000102030405060708090a0b0c0d0e0f");
/// # Ok::<(), xds_relay::releases::ReleaseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release([u8; LENGTH]);

/// Not the id of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the id of a release: 32 hexadecimal digits")]
pub struct ReleaseError(());

impl Release {
    /// The one with these bytes.
    pub const fn of_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl FromStr for Release {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        // A sign is a number's, too, and no digit.
        let are_digits = text.len() == 2 * LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = are_digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(|number| Self(number.to_be_bytes())).ok_or(ReleaseError(()))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Release({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "00",
            &"0".repeat(31),
            &"0".repeat(33),
            &format!("+{}", "0".repeat(31)),
            &"g".repeat(32),
            &"ä".repeat(16),
        ] {
            assert_eq!(text.parse::<Release>(), Err(ReleaseError(())), "{text}");
        }
        let text = "A".repeat(32);
        assert_eq!(text.parse::<Release>().unwrap().to_string(), text.to_lowercase());
    }
}
