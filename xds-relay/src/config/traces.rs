//! Where traces are sent.

use super::fields::TRACES_FIELDS;
use crate::yaml::{Error, Node};

/// A collector of OpenTelemetry that is told of the lives of updates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traces {
    /// `http://HOST:PORT` of its OTLP over gRPC.
    pub otlp: String,
    /// One update in so many is told of.
    pub one_in: u32,
}

const DEFAULT_ONE_IN: u32 = 100;

impl Traces {
    /// Of one update in a hundred.
    pub fn new(otlp: impl Into<String>) -> Self {
        Self { otlp: otlp.into(), one_in: DEFAULT_ONE_IN }
    }

    /// What is wrong with it, if anything: the field, and in which way.
    pub(in crate::config) fn problem(&self) -> Option<(&'static str, String)> {
        let is_address = self.otlp.parse::<http::Uri>().is_ok_and(|uri| {
            uri.scheme_str() == Some("http")
                && uri.port_u16().is_some_and(|port| port > 0)
                && matches!(uri.path(), "" | "/")
        });
        if !is_address {
            return Some((
                "otlp",
                format!("`{}`: expected http://HOST:PORT, such as http://127.0.0.1:4317", self.otlp),
            ));
        }
        (self.one_in == 0).then(|| ("one_in", "`0`: expected 1 or more".to_owned()))
    }
}

pub(super) fn traces(node: &Node) -> Result<Traces, Error> {
    node.expect_fields(TRACES_FIELDS)?;
    let text = |node: &Node| node.text().map(str::to_owned);
    let expected = "expected http://HOST:PORT, such as http://127.0.0.1:4317";
    let mut traces = Traces::new(node.required_field("otlp", expected, text)?);
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
