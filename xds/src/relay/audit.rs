//! `xds relay audit`: what was done with releases, by whom and why.

use std::io::Write;
use std::time::SystemTime;

use serde_json::Value;
use xds_relay::api::{Audit, AuditEntry};

use super::admin::{Admin, of_releases};
use super::text::columns;
use super::time::{ago, millis};
use super::{Done, Form, json};
use crate::ask::Verdict;

/// Say what was done with releases, when, by whom and why, the last first: exits with 1 if nothing was
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Of this scope only: xdstp://AUTHORITY, or old-style
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// How many, 1000 at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl Args {
    pub(super) fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
        let limit = self.limit.to_string();
        let told: Value =
            of_releases(admin.get("audit", &[("scope", self.scope.as_deref()), ("limit", Some(&limit))]))?;
        let audit: Audit = admin.read(told.clone())?;
        let now = millis(SystemTime::now());
        match form {
            Form::Json => {
                let mut entries = told.get("entries").and_then(Value::as_array).into_iter().flatten();
                entries.try_for_each(|entry| json(out, entry))?;
            }
            Form::Text => {
                let rows: Vec<_> = audit.entries.iter().map(|entry| row(entry, now)).collect();
                columns(out, ["WHEN", "SCOPE", "DONE", "RELEASE", "BY", "WHY"], &rows)?;
                if audit.more > 0 {
                    writeln!(out, "and {} before", audit.more)?;
                }
            }
        }
        Ok(if audit.entries.is_empty() { Verdict::Wrong } else { Verdict::There })
    }
}

fn row(entry: &AuditEntry, now: u64) -> [String; 6] {
    let AuditEntry { scope, at, done, release, taken_back, by, why, .. } = entry;
    let release = release.clone().unwrap_or_default();
    // What was taken back, and what is served since.
    let about =
        taken_back.as_ref().map_or_else(|| release.clone(), |taken_back| format!("{taken_back}, for {release}"));
    [ago(*at, now), scope.clone(), done.clone(), about, by.clone(), why.clone()]
}
