//! Runs of the suite, and what comes of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cli::{Run, xds};

/// What came of a run: of each rule, the worst.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) run: Run,
    pub(crate) objects: Vec<Value>,
}

impl Results {
    /// With these arguments beside `--output json`.
    pub(crate) fn of(args: &[&str]) -> Self {
        let run = xds(&[&["conformance"], args, &["--output", "json"]].concat(), "");
        let objects = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { run, objects }
    }

    /// The rules with this verdict over some method.
    pub(crate) fn rules(&self, verdict: &str) -> BTreeSet<u64> {
        let with = self.objects.iter().filter(|object| object["verdict"] == verdict);
        with.map(|object| object["rule"].as_u64().unwrap()).collect()
    }

    /// The checks with this verdict over some method.
    pub(crate) fn titles(&self, verdict: &str) -> BTreeSet<&str> {
        let with = self.objects.iter().filter(|object| object["verdict"] == verdict);
        with.map(|object| object["title"].as_str().unwrap()).collect()
    }

    /// What is known of all that did not pass.
    pub(crate) fn trouble(&self) -> String {
        let wrong = self.objects.iter().filter(|object| object["verdict"] != "pass");
        let lines: Vec<_> = wrong.map(|object| serde_json::to_string_pretty(object).unwrap()).collect();
        format!("{}{}", lines.join("\n"), self.run.err)
    }
}
