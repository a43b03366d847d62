//! Events as lines for people.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::ask::{Event, What};
use crate::show::visible;

/// A line, with the time; of what is an error the words are elsewhere.
pub(super) fn line(event: &Event, server: Option<&str>) -> Option<String> {
    let name = visible(event.name.as_deref()?);
    let what = match &event.what {
        What::Put { version, any, stale } => {
            let stale = if *stale { "  stale" } else { "" };
            format!("put      {name}  version {}  {} bytes{stale}", visible(version.as_str()), any.len())
        }
        What::Removed => format!("removed  {name}"),
        What::Answered | What::Error(_) | What::Ambient(_) => return None,
    };
    let from = server.map(|server| format!("  from {}", visible(server))).unwrap_or_default();
    Some(format!("{}  {what}{from}", clock()))
}

/// The time of day, UTC.
fn clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}.{:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60, since.subsec_millis())
}
