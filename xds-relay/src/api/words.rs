//! How people are told what is in these, and how they ask for it.

use std::fmt::{self, Display, Write as _};

use super::clients::ClientState;
use super::origins::{OriginState, OriginStatus};
use super::releases::ReleasedScope;
use super::resources::ResourceRow;

impl Display for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Synced => "SYNCED",
            Self::Waiting => "WAITING",
            Self::Silent => "SILENT",
            Self::Rejected => "REJECTED",
        })
    }
}

impl Display for OriginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Idle => "idle",
            Self::Up => "up",
            Self::Partly => "partly up",
            Self::Down => "down",
        })
    }
}

impl OriginStatus {
    /// What is wrong with it now: what was wrong once is no news of an origin that is up.
    ///
    /// ```
    /// use xds_relay::api::{OriginState, OriginStatus};
    ///
    /// let was = OriginStatus { last_error: Some("refused".to_owned()), ..OriginStatus::default() };
    /// let down = OriginStatus { state: OriginState::Down, ..was.clone() };
    /// assert_eq!((was.trouble(), down.trouble().as_deref()), (None, Some("refused")));
    /// ```
    pub fn trouble(&self) -> Option<String> {
        let error = self.last_error.clone().filter(|_| matches!(self.state, OriginState::Partly | OriginState::Down));
        let words: Vec<_> = error.into_iter().chain(self.hint.clone()).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

impl ReleasedScope {
    /// That orders wait for the store, if any do, in words.
    ///
    /// ```
    /// use xds_relay::api::ReleasedScope;
    ///
    /// let waits = ReleasedScope { unsaved: 2, ..ReleasedScope::default() };
    /// let words = "2 orders are done here, and not in the store yet: they are forgotten if the relay ends before";
    /// assert_eq!((waits.unsaved_words().as_deref(), ReleasedScope::default().unsaved_words()), (Some(words), None));
    /// ```
    pub fn unsaved_words(&self) -> Option<String> {
        let orders = match self.unsaved {
            0 => return None,
            1 => "1 order is".to_owned(),
            many => format!("{many} orders are"),
        };
        let then = match self.keeps_unsaved {
            true => "kept over a restart of the relay",
            false => "forgotten if the relay ends before",
        };
        let they_are = if self.unsaved == 1 { "it is" } else { "they are" };
        Some(format!("{orders} done here, and not in the store yet: {they_are} {then}"))
    }
}

impl ResourceRow {
    /// Its version, or that there is none, in words.
    ///
    /// ```
    /// use xds_relay::api::ResourceRow;
    ///
    /// let row = ResourceRow { version: Some("7".to_owned()), stale: true, ..ResourceRow::default() };
    /// assert_eq!((row.version_words(), ResourceRow::default().version_words()), ("7 (stale)".into(), "(does not exist)".into()));
    /// ```
    pub fn version_words(&self) -> String {
        match &self.version {
            None => "(does not exist)".to_owned(),
            Some(version) if self.stale => format!("{version} (stale)"),
            Some(version) => version.clone(),
        }
    }
}

/// A time in its largest unit.
///
/// ```
/// assert_eq!([0, 59, 60, 7199, 86_400 * 3].map(xds_relay::api::short_time), ["0s", "59s", "1m", "1h", "3d"]);
/// ```
pub fn short_time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The end of a type URL.
///
/// ```
/// assert_eq!(xds_relay::api::short_type("type.googleapis.com/envoy.config.cluster.v3.Cluster"), "Cluster");
/// ```
pub fn short_type(type_url: &str) -> &str {
    type_url.rsplit(['.', '/']).next().unwrap_or_default()
}

/// What is asked of a page, as it stands behind its path: fields without a value are left out.
///
/// ```
/// use xds_relay::api::query;
///
/// assert_eq!(query(&[("a", None), ("b", Some("x y&z=%")), ("c", Some("é\r\n"))]), "?b=x%20y%26z%3D%25&c=%C3%A9%0D%0A");
/// assert_eq!(query(&[]), "");
/// ```
pub fn query(fields: &[(&str, Option<&str>)]) -> String {
    let mut text = String::new();
    for (key, value) in fields.iter().filter_map(|(key, value)| Some((key, (*value)?))) {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(key);
        text.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
                _ => _ = write!(text, "%{byte:02X}"),
            }
        }
    }
    text
}
