//! The certificates that a relay goes by.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::words::short_time;

/// Of the certificates in a file the one that expires first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateStatus {
    /// The field of the configuration that names the file.
    pub field: String,
    /// The file.
    pub file: String,
    /// How near its end is.
    pub state: CertificateState,
    /// It expires in so many seconds: less than none, if it has expired.
    pub expires_in_seconds: i64,
    /// For how long it is good in all.
    pub lifetime_seconds: u64,
}

/// How near the end of a certificate is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateState {
    /// There is time, as far as is known.
    #[default]
    Good,
    /// Its last 30 days, or its last quarter, if that is less.
    Soon,
    /// Peers refuse it.
    Expired,
    /// Peers refuse it still.
    NotYet,
}

impl CertificateStatus {
    /// When it expires, in words.
    ///
    /// ```
    /// use xds_relay::api::CertificateStatus;
    ///
    /// let words = |expires_in_seconds| CertificateStatus { expires_in_seconds, ..CertificateStatus::default() }.words();
    /// assert_eq!([words(7200), words(-90)], ["expires in 2h", "expired 1m ago"]);
    /// ```
    pub fn words(&self) -> String {
        let time = short_time(self.expires_in_seconds.unsigned_abs());
        match self.expires_in_seconds < 0 {
            true => format!("expired {time} ago"),
            false => format!("expires in {time}"),
        }
    }
}

impl Display for CertificateState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Soon => "expires soon",
            Self::Expired => "expired",
            Self::NotYet => "not yet good",
        })
    }
}
