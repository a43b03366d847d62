//! `xds relay releases`: what is released, to whom, and what is kept.

use std::io::{self, Write};
use std::time::SystemTime;

use serde_json::Value;
use xds_relay::api::{CandidateState, CandidateStatus, KeptRelease, ReleasedScope, Releases, SaidOf};

use super::admin::{Admin, Failure};
use super::text::columns;
use super::time::{ago, millis};
use super::{Done, Form, json};
use crate::ask::Verdict;
use crate::show::visible;

/// Say of each scope that has releases what is stable, which release is under way and how far, and what is kept: exits with 1 if
/// one halted, nothing is released of a scope yet, or there is no such scope
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Of this scope only: xdstp://AUTHORITY, or old-style
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
}

pub(super) fn run(args: &Args, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
    let mut told: Value = admin.get("releases", &[])?;
    if let Some(scopes) = told.get_mut("scopes").and_then(Value::as_array_mut) {
        scopes.retain(|told| args.scope.as_ref().is_none_or(|scope| told.get("scope").is_some_and(|is| is == scope)));
    }
    let Releases { scopes, .. } = admin.read(told.clone())?;
    if scopes.is_empty() {
        let scope = args.scope.as_ref().map_or_else(String::new, |scope| format!(" of {scope}"));
        return Err(Failure::Absent(format!(
            "there are no releases{scope}: rollout of the relay's configuration has them"
        )));
    }
    match form {
        Form::Json => json(out, &told)?,
        Form::Text => scopes.iter().enumerate().try_for_each(|(at, scope)| {
            if at > 0 {
                writeln!(out)?;
            }
            text(out, scope, millis(SystemTime::now()))
        })?,
    }
    let is_wrong = |scope: &ReleasedScope| {
        let has_halted = scope.candidate.as_ref().is_some_and(|of| of.state == CandidateState::Halted);
        has_halted || scope.stable.is_none()
    };
    Ok(if scopes.iter().any(is_wrong) { Verdict::Wrong } else { Verdict::There })
}

fn text(out: &mut impl Write, scope: &ReleasedScope, now: u64) -> io::Result<()> {
    let (unsaved, other_stages) = (scope.unsaved_words(), scope.other_stages);
    let ReleasedScope {
        scope,
        mark,
        stable,
        candidate,
        frozen,
        refused,
        not_taken,
        kept,
        clients,
        damaged,
        recalled,
        ..
    } = scope;
    writeln!(out, "{}, mark {}", visible(scope), visible(mark))?;
    match stable {
        None => writeln!(out, "no release yet: nothing is served")?,
        Some(stable) => writeln!(out, "stable {}, served to {}", visible(stable), of_clients(clients.stable))?,
    }
    if let Some(candidate) = candidate {
        writeln!(out, "{}", under_way(candidate, clients.candidate, now))?;
    }
    if let Some(by) = frozen {
        writeln!(out, "frozen {}", words(by, now))?;
    }
    if let Some(of) = not_taken {
        writeln!(out, "not taken {} {}: a rollback left it", visible(&of.release), ago(of.at, now))?;
    }
    if *recalled {
        writeln!(out, "recalled: the store has not answered since the relay began, and this is what it had before")?;
    }
    if other_stages {
        writeln!(out, "other stages: the relay that wrote last has other stages than this one")?;
    }
    if let Some(unsaved) = unsaved {
        writeln!(out, "unsaved: {unsaved}")?;
    }
    for damage in damaged {
        writeln!(out, "damaged: {}", visible(damage))?;
    }
    if kept.is_empty() {
        return Ok(());
    }
    let row = |release: &KeptRelease| {
        let is = [(stable.as_ref(), "stable"), (candidate.as_ref().map(|of| &of.release), "candidate")];
        let is = is.into_iter().find(|(of, _)| *of == Some(&release.release)).map(|(_, word)| word);
        let is = is.unwrap_or(if refused.contains(&release.release) { "refused" } else { "" });
        [
            release.release.clone(),
            ago(release.at, now),
            release.resources.to_string(),
            release.from.clone(),
            is.to_owned(),
        ]
    };
    writeln!(out)?;
    columns(out, ["RELEASE", "TAKEN", "RESOURCES", "FROM", "IS"], &kept.iter().map(row).collect::<Vec<_>>())
}

/// A time that somebody waits for, to the second or the minute.
fn remaining(seconds: u64) -> String {
    let two = |large: u64, large_unit, small: u64, small_unit| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit} {small}{small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        _ => two(seconds / 3600, "h", seconds / 60 % 60, "m"),
    }
}

fn under_way(candidate: &CandidateStatus, clients: usize, now: u64) -> String {
    let CandidateStatus { release, stage, stages, since, state, due, said, check } = candidate;
    let (release, clients, since) = (visible(release), of_clients(clients), ago(*since, now));
    let mut text =
        format!("candidate {release}, stage {stage} of {stages} since {since}, {state}, served to {clients}");
    if let Some(due) = due {
        text += &format!("; it goes on in {}", remaining(due.saturating_sub(now) / 1000));
    }
    if let Some(check) = check {
        text += &format!("; check: {}", visible(check));
    }
    if let Some(by) = said {
        text += &format!("; {}", words(by, now));
    }
    text
}

fn words(SaidOf { by, why, at }: &SaidOf, now: u64) -> String {
    format!("by {} {}: {}", visible(by), ago(*at, now), visible(why))
}

fn of_clients(count: usize) -> String {
    if count == 1 { "1 client".to_owned() } else { format!("{count} clients") }
}

#[cfg(test)]
mod tests {
    use xds_relay::api::ServedCounts;

    use super::*;

    #[test]
    fn what_halted_is_told_with_who_and_why() {
        let said = SaidOf { by: "relay 1".to_owned(), why: "clients refused 1".to_owned(), at: 60_000 };
        let halted = CandidateStatus {
            release: "b2".to_owned(),
            stage: 1,
            stages: 3,
            since: 0,
            state: CandidateState::Halted,
            due: None,
            check: Some("all is well".to_owned()),
            said: Some(said),
        };
        let kept =
            |release: &str, at| KeptRelease { release: release.to_owned(), at, from: "files".to_owned(), resources: 7 };
        let scope = ReleasedScope {
            scope: "old-style".to_owned(),
            mark: "7".to_owned(),
            stable: Some("a1".to_owned()),
            candidate: Some(halted.clone()),
            kept: vec![kept("b2", 0), kept("a1", 0), kept("a0", 0), kept("z9", 0)],
            refused: vec!["b2".to_owned(), "a0".to_owned()],
            clients: ServedCounts { stable: 9, candidate: 1 },
            unsaved: 1,
            keeps_unsaved: true,
            ..ReleasedScope::default()
        };
        let mut out = Vec::new();
        text(&mut out, &scope, 120_000).unwrap();
        let expected = "old-style, mark 7\n\
            stable a1, served to 9 clients\n\
            candidate b2, stage 1 of 3 since 2m ago, halted, served to 1 client; check: all is well; by relay 1 1m ago: clients refused 1\n\
            unsaved: 1 order is done here, and not in the store yet: it is kept over a restart of the relay\n\n\
            RELEASE  TAKEN   RESOURCES  FROM   IS\n\
            b2       2m ago  7          files  candidate\n\
            a1       2m ago  7          files  stable\n\
            a0       2m ago  7          files  refused\n\
            z9       2m ago  7          files\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let open =
            CandidateStatus { state: CandidateState::Open, due: Some(180_000), said: None, check: None, ..halted };
        let later = CandidateStatus { due: Some(237_999), ..open.clone() };
        assert!(under_way(&later, 0, 120_000).ends_with("; it goes on in 1m 57s"));
        assert_eq!([0, 59, 3600, 7199, 90_000].map(remaining), ["0s", "59s", "1h", "1h 59m", "25h"]);
        assert!(under_way(&open, 0, 120_000).ends_with("open, served to 0 clients; it goes on in 1m"));
    }
}
