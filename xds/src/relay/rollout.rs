//! `xds relay rollout`: the release under way.

use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use clap::Subcommand;
use xds_relay::api::{CandidateState, Ordered, ReleaseOrder, ReleasedScope, Releases};

use super::admin::{Admin, Failure};
use super::order::Ordering;
use super::time::millis;
use super::{Done, Form, json};
use crate::ask::seconds;
use crate::exit;
use crate::show::{complain, visible};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(500);
/// What was not taken before it was waited counts if that was so lately, and nothing else has come for a while.
const LATELY: u64 = 60_000;
const SETTLED: Duration = Duration::from_secs(10);
const HALTED: u8 = 3;
const FROZEN: u8 = 4;
const UNKNOWN: u8 = 5;

/// Have the release under way stay, go on, or be waited for
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Have it stay in its stage
    Hold {
        #[command(flatten)]
        ordering: Ordering,
    },
    /// Have it in this stage now, whatever it waited for
    Stage {
        /// Which, from 1
        stage: usize,
        #[command(flatten)]
        ordering: Ordering,
    },
    /// Have everybody served it
    Promote {
        #[command(flatten)]
        ordering: Ordering,
    },
    Wait(Wait),
}

/// Wait until it is stable
///
/// Exits with 0 if it is, with 1 if it is not in time, was taken back, or is not taken as it was before, with 3 if it halted, with 4 if it is frozen, and with 5 if
/// the relay cannot be asked.
#[derive(Debug, clap::Args)]
struct Wait {
    /// Of this scope: xdstp://AUTHORITY, or old-style; it may be left out where there is one
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// For this release; the one that is under way without it, and if none is, what is stable is well
    #[arg(long, value_name = "RELEASE")]
    release: Option<String>,
    /// For another one than this: what was stable before something new was made
    #[arg(long, value_name = "RELEASE", conflicts_with = "release")]
    not: Option<String>,
    /// For how long at most
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    within: Duration,
}

impl Args {
    pub(super) fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Result<ExitCode, Failure> {
        let done = match &self.command {
            Command::Hold { ordering } => ordering.order(Ordered::Hold, |order| order, admin, form, out),
            Command::Stage { stage, ordering } => {
                let at = |order| ReleaseOrder { stage: Some(*stage), ..order };
                ordering.order(Ordered::Stage, at, admin, form, out)
            }
            Command::Promote { ordering } => ordering.order(Ordered::Promote, |order| order, admin, form, out),
            Command::Wait(wait) => return wait.run(admin, form, out),
        };
        ended(done)
    }
}

fn ended(done: Done) -> Result<ExitCode, Failure> {
    done.map(|verdict| exit::code(Some(verdict)))
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stable,
    Left,
    NotTaken,
    Halted,
    Frozen,
}

impl Wait {
    fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Result<ExitCode, Failure> {
        let (begun, begun_at) = (Instant::now(), millis(SystemTime::now()));
        let (mut release, mut looked) = (self.release.clone(), begun);
        loop {
            let scope = match self.look(admin) {
                Ok(scope) => scope,
                Err(failure @ (Failure::Unreachable { .. } | Failure::Refused { .. })) => {
                    // A relay may be started again meanwhile.
                    if looked.elapsed() < admin.timeout && begun.elapsed() < self.within {
                        sleep(LOOK);
                        continue;
                    }
                    complain(visible(&failure.to_string()));
                    return Ok(UNKNOWN.into());
                }
                Err(failure) => return Err(failure),
            };
            looked = Instant::now();
            release = release.or_else(|| self.under_way(&scope));
            let mut end = release.as_ref().and_then(|release| ended_as(&scope, release));
            if let Some(not_taken) = self.not_taken(&scope, begun_at, begun.elapsed()).filter(|_| release.is_none()) {
                (release, end) = (Some(not_taken), Some(End::NotTaken));
            }
            if end.is_none() && begun.elapsed() < self.within {
                sleep(LOOK);
                continue;
            }
            let words = end.map_or_else(|| format!("not stable within {:?}", self.within), |end| words(end, &scope));
            // How it ended is told by the code, whoever reads the words.
            let _ = match form {
                Form::Json => json(out, &scope),
                Form::Text => {
                    writeln!(out, "{}: {}", visible(release.as_deref().unwrap_or("no release")), visible(&words))
                }
            };
            return Ok(match end {
                Some(End::Stable) => ExitCode::SUCCESS,
                Some(End::Left | End::NotTaken) | None => exit::wrong(),
                Some(End::Halted) => HALTED.into(),
                Some(End::Frozen) => FROZEN.into(),
            });
        }
    }

    /// The release that is on its way to everybody, or is with everybody.
    fn under_way(&self, scope: &ReleasedScope) -> Option<String> {
        let candidate = scope.candidate.as_ref().map(|candidate| &candidate.release);
        candidate.or(scope.stable.as_ref()).filter(|release| self.not.as_ref() != Some(release)).cloned()
    }

    /// The release that is not taken, if it is what is waited for. That may be of before: then something else is about to come.
    fn not_taken(&self, scope: &ReleasedScope, begun: u64, waited: Duration) -> Option<String> {
        let told = scope.not_taken.as_ref().filter(|of| self.not.as_ref().is_some_and(|not| *not != of.release))?;
        let is_new = told.at >= begun || (told.at.saturating_add(LATELY) >= begun && waited >= SETTLED);
        is_new.then(|| told.release.clone())
    }

    fn look(&self, admin: Admin<'_>) -> Result<ReleasedScope, Failure> {
        let Releases { scopes, .. } = admin.get("releases", &[])?;
        let mut scopes = scopes.into_iter().filter(|of| self.scope.as_ref().is_none_or(|scope| *scope == of.scope));
        match (scopes.next(), scopes.next()) {
            (Some(scope), None) => Ok(scope),
            (None, _) => Err(Failure::Absent("there are no such releases".to_owned())),
            (Some(_), Some(_)) => {
                Err(Failure::Absent("there are releases of several scopes: say which by --scope".to_owned()))
            }
        }
    }
}

/// Whether and how that release is not under way any more, or does not go on.
fn ended_as(scope: &ReleasedScope, release: &str) -> Option<End> {
    if scope.stable.as_deref() == Some(release) {
        return Some(End::Stable);
    }
    let candidate = scope.candidate.as_ref().filter(|candidate| candidate.release == release);
    match candidate.map(|candidate| candidate.state) {
        Some(CandidateState::Halted) => Some(End::Halted),
        Some(CandidateState::Frozen) => Some(End::Frozen),
        Some(_) => None,
        // It may not have come yet, or was there, and another one is.
        None => {
            let was_there = scope.kept.iter().any(|kept| kept.release == release);
            (was_there || scope.refused.iter().any(|refused| refused == release)).then_some(End::Left)
        }
    }
}

fn words(end: End, scope: &ReleasedScope) -> String {
    let said = scope.candidate.as_ref().and_then(|candidate| candidate.said.as_ref()).map(|said| said.why.as_str());
    let frozen = scope.frozen.as_ref().map(|said| said.why.as_str());
    match end {
        End::Stable => "stable".to_owned(),
        End::Left => "not under way any more".to_owned(),
        End::NotTaken => "not taken: a rollback left what is in it".to_owned(),
        End::Halted => format!("halted: {}", said.unwrap_or_default()),
        End::Frozen => format!("frozen: {}", frozen.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use xds_relay::api::{CandidateStatus, KeptRelease, NotTakenRelease};

    use super::*;

    #[test]
    fn a_release_ends_as_the_relay_tells() {
        let scope = |stable: &str, candidate: Option<(&str, CandidateState)>| ReleasedScope {
            stable: Some(stable.to_owned()),
            candidate: candidate.map(|(release, state)| CandidateStatus {
                release: release.to_owned(),
                state,
                ..CandidateStatus::default()
            }),
            kept: ["a", "b"].map(|of| KeptRelease { release: of.to_owned(), ..KeptRelease::default() }).into(),
            ..ReleasedScope::default()
        };
        use CandidateState::{Frozen, Halted, Held, Open};
        for (stable, candidate, end) in [
            ("b", None, Some(End::Stable)),
            ("b", Some(("a", Halted)), Some(End::Stable)),
            ("a", Some(("b", Open)), None),
            ("a", Some(("b", Held)), None),
            ("a", Some(("b", Halted)), Some(End::Halted)),
            ("a", Some(("b", Frozen)), Some(End::Frozen)),
            ("a", Some(("c", Open)), Some(End::Left)),
            ("a", None, Some(End::Left)),
        ] {
            assert_eq!(ended_as(&scope(stable, candidate), "b"), end, "{stable} {candidate:?}");
        }
        assert_eq!(ended_as(&scope("a", None), "c"), None, "it may come");
        let refused = ReleasedScope { refused: vec!["c".to_owned()], ..scope("a", None) };
        assert_eq!(ended_as(&refused, "c"), Some(End::Left));
        let wait = |not: Option<&str>| Wait { scope: None, release: None, not: not.map(str::to_owned), within: LOOK };
        for (not, stable, candidate, is) in [
            (None, "a", Some(("b", Open)), Some("b")),
            (None, "a", None, Some("a")),
            (Some("a"), "a", None, None),
            (Some("a"), "a", Some(("b", Open)), Some("b")),
            (Some("a"), "b", None, Some("b")),
        ] {
            assert_eq!(wait(not).under_way(&scope(stable, candidate)).as_deref(), is, "{not:?}");
        }
        assert_eq!(wait(None).under_way(&ReleasedScope::default()), None, "it may come");

        let refused = Some(NotTakenRelease { release: "b".to_owned(), at: 100_000 });
        let scope = ReleasedScope { not_taken: refused, ..scope("a", None) };
        for (not, begun, waited, is) in [
            (Some("a"), 99_000, 0, Some("b")),
            (Some("a"), 101_000, 9, None),
            (Some("a"), 101_000, 10, Some("b")),
            (Some("a"), 161_000, 1000, None),
            (Some("b"), 99_000, 0, None),
            (None, 99_000, 0, None),
        ] {
            let told = wait(not).not_taken(&scope, begun, Duration::from_secs(waited));
            assert_eq!(told.as_deref(), is, "{not:?} {begun} {waited}");
        }
    }
}
