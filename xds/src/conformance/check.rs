//! A check: a rule, and what finds out whether a server keeps it.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use xds_transport::Dialect;

use super::lab::Lab;
use super::method::Method;

pub(crate) type Done<T = ()> = Result<T, Stop>;
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Done> + 'a>>;

/// One rule, asked of a server over each of its methods.
pub(crate) struct Check {
    /// Its number, as in `CONFORMANCE.md` of `xds-transport`.
    pub(crate) rule: u16,
    pub(crate) group: &'static str,
    pub(crate) title: &'static str,
    /// What Envoy or gRPC do when a server fails it.
    pub(crate) consequence: &'static str,
    pub(crate) methods: &'static [Method],
    /// The form of dynamic parameters that it is about, if it is about one of them.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) run: for<'a> fn(&'a mut Lab) -> Running<'a>,
}

/// A check ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    Fail { expected: String, seen: String },
    Inconclusive(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Pass,
    Inconclusive,
    Fail,
}

/// What came of a check over one method.
pub(crate) struct Outcome {
    pub(crate) check: &'static Check,
    pub(crate) method: Method,
    pub(crate) verdict: Verdict,
    /// What was expected, of a server that failed; or why nothing is known.
    pub(crate) expected: String,
    pub(crate) seen: String,
    /// What was said, both ways; of a check that passed, nothing.
    pub(crate) transcript: Vec<String>,
    pub(crate) took: Duration,
}

impl Verdict {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

impl Stop {
    pub(crate) fn fail(expected: impl fmt::Display, seen: impl fmt::Display) -> Self {
        Self::Fail { expected: expected.to_string(), seen: seen.to_string() }
    }

    pub(crate) fn inconclusive(why: impl fmt::Display) -> Self {
        Self::Inconclusive(why.to_string())
    }
}

/// Fails where something is not so.
///
/// # Errors
/// That it is not.
pub(crate) fn expect(so: bool, expected: impl fmt::Display, seen: impl fmt::Display) -> Done {
    if so { Ok(()) } else { Err(Stop::fail(expected, seen)) }
}
