//! Where metrics are sent.

use std::time::Duration;

use super::fields::STATSD_FIELDS;
use super::values::duration;
use crate::yaml::{Error, Node};

/// A server of statsd that the metrics are sent to, by UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statsd {
    /// `HOST:PORT`, looked up each time.
    pub address: String,
    /// What names begin with, before a dot; none if it is empty.
    pub prefix: String,
    /// How often they are sent.
    pub interval: Duration,
}

const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);
/// More often, and it would be about looking at the relay more than about the relay.
const SHORTEST: Duration = Duration::from_millis(100);

/// A packet has one name at least.
const LONGEST_PREFIX: usize = 128;

/// Whether it means nothing to statsd where it stands in a prefix.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The prefix that is closest to a text.
pub(super) fn plain_prefix(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST_PREFIX).collect()
}

impl Statsd {
    /// Every 10 s, without a prefix.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), prefix: String::new(), interval: DEFAULT_INTERVAL }
    }

    /// What is wrong with it, if anything: the field, and in which way.
    pub(in crate::config) fn problem(&self) -> Option<(&'static str, String)> {
        let Self { address, prefix, interval } = self;
        let is_host =
            |host: &str| !host.is_empty() && !host.contains(['/', '@']) && !host.contains(char::is_whitespace);
        let port = address.rsplit_once(':').filter(|(host, _)| is_host(host)).and_then(|(_, port)| port.parse().ok());
        if port.is_none_or(|port: u16| port == 0) {
            return Some(("address", format!("`{address}`: expected HOST:PORT, such as 127.0.0.1:8125")));
        }
        if prefix.len() > LONGEST_PREFIX || !prefix.chars().all(is_plain) {
            return Some(("prefix", format!("`{prefix}`: expected up to 128 letters, digits, `.`, `_` and `-`")));
        }
        (*interval < SHORTEST).then(|| ("interval", format!("`{interval:?}`: expected at least 100ms")))
    }
}

pub(super) fn statsd(node: &Node) -> Result<Statsd, Error> {
    node.expect_fields(STATSD_FIELDS)?;
    let text = |node: &Node| node.text().map(str::to_owned);
    let mut statsd = Statsd::new(node.required_field("address", "expected HOST:PORT, such as 127.0.0.1:8125", text)?);
    statsd.prefix = node.field("prefix", text)?.unwrap_or_default();
    statsd.interval = node.field("interval", duration)?.unwrap_or(DEFAULT_INTERVAL);
    match statsd.problem() {
        None => Ok(statsd),
        Some((field, problem)) => {
            node.entry(field).unwrap_or(node).refuse(problem).map_err(|error: Error| error.under_key(field))
        }
    }
}
