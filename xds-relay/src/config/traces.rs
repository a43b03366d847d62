//! Where traces are sent.

use super::fields::TRACES_FIELDS;
use super::tls::{self, File, OriginTls};
use crate::yaml::{Error, Node};

/// A collector of OpenTelemetry that is told of the lives of updates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traces {
    /// `http://HOST:PORT` or `https://HOST:PORT` of its OTLP over gRPC.
    pub otlp: String,
    /// Who may vouch for it, and who the relay is to it, over TLS only.
    pub tls: Option<OriginTls>,
    /// One update in so many is told of.
    pub one_in: u32,
}

const DEFAULT_ONE_IN: u32 = 100;
const EXPECTED: &str = "expected http://HOST:PORT or https://HOST:PORT, such as http://127.0.0.1:4317";

impl Traces {
    /// Of one update in a hundred; of TLS, for `https://`, the system says who may vouch for the collector.
    pub fn new(otlp: impl Into<String>) -> Self {
        let otlp = otlp.into();
        let tls = is_https(&otlp).then(OriginTls::default);
        Self { otlp, tls, one_in: DEFAULT_ONE_IN }
    }

    /// What is wrong with it, if anything: the field, and in which way.
    pub(in crate::config) fn problem(&self) -> Option<(&'static str, String)> {
        let is_address = self.otlp.parse::<http::Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.port_u16().is_some_and(|port| port > 0)
                && matches!(uri.path(), "" | "/")
        });
        if !is_address {
            return Some(("otlp", format!("`{}`: {EXPECTED}", self.otlp)));
        }
        if self.tls.is_some() != is_https(&self.otlp) {
            return Some(("tls", "it is for https://HOST:PORT, and that is by TLS".to_owned()));
        }
        (self.one_in == 0).then(|| ("one_in", "`0`: expected 1 or more".to_owned()))
    }
}

fn is_https(otlp: &str) -> bool {
    otlp.parse::<http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https"))
}

pub(super) fn traces(node: &Node, file: File<'_>) -> Result<Traces, Error> {
    node.expect_fields(TRACES_FIELDS)?;
    let text = |node: &Node| node.text().map(str::to_owned);
    let mut traces = Traces::new(node.required_field("otlp", EXPECTED, text)?);
    if let Some(tls) = node.field("tls", |node| tls::origin(node, file))? {
        traces.tls = Some(tls);
    }
    let number = |node: &Node| {
        let text = node.text()?;
        text.parse().or_else(|_| node.refuse(format!("`{text}`: expected a number, 1 or more")))
    };
    traces.one_in = node.field("one_in", number)?.unwrap_or(DEFAULT_ONE_IN);
    match traces.problem() {
        None => Ok(traces),
        Some((field, problem)) => {
            node.entry(field).unwrap_or(node).refuse(problem).map_err(|error: Error| error.under_key(field))
        }
    }
}
